"""Work on several processors at once."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from ptclust._threads import in_threads


@pytest.fixture(autouse=True)
def _two_processors(monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 2)


def test_results_come_in_the_order_of_the_items():
    second_is_done = threading.Event()

    def work(item):
        if item == 0:
            assert second_is_done.wait(60)
        else:
            second_is_done.set()
        return item

    assert list(in_threads(work, range(2))) == [0, 1]


def test_after_an_error_no_further_item_is_begun(monkeypatch):
    begun, is_cancelled, shutdown = [], threading.Event(), ThreadPoolExecutor.shutdown

    def noted(executor, **options):
        is_cancelled.set()
        shutdown(executor, **options)

    def work(item):
        begun.append(item)
        if item == 0:
            raise ValueError(item)
        assert is_cancelled.wait(60)

    monkeypatch.setattr(ThreadPoolExecutor, "shutdown", noted)
    with pytest.raises(ValueError, match="0"):
        next(in_threads(work, range(100)))
    assert len(begun) <= 3
