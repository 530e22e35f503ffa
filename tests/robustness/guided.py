"""Fuzzing guided by coverage: `python -m tests.robustness.guided FORMAT [options of libFuzzer]`.

Needs atheris.

It needs `pip install atheris`, which is no dependency: there are wheels for Linux and a few
versions of Python only.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from random import Random


def main() -> None:
    """Run until an unhandled exception, or as long as the options say."""
    import atheris

    with atheris.instrument_imports(include=["ptclust"]):
        from tests.robustness.corpus import KINDS, seeds
        from tests.robustness.fuzz import attempt
        from tests.robustness.mutations import spoiled

    kind, *options = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        corpus = Path(folder) / "corpus"
        corpus.mkdir()
        for number, content in enumerate(seeds(kind)):
            (corpus / str(number)).write_bytes(content)
        path = Path(folder) / f"file{KINDS[kind].ending}"

        def one_input(content: bytes) -> None:
            path.write_bytes(content)
            problem = attempt(kind, path)[1]
            if problem:
                raise AssertionError(problem)

        def mutator(content: bytes, most: int, seed: int) -> bytes:
            if seed % 2:
                return bytes(atheris.Mutate(content, most))
            return spoiled(content, kind, Random(seed))[:most]

        arguments = [sys.argv[0], str(corpus), "-max_len=20000", *options]
        atheris.Setup(arguments, one_input, custom_mutator=mutator)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
