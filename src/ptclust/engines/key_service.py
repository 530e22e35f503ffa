"""How the key of a release reaches the tasks that draw its noise, and no disk.

All that is part of a task, its pickled function included, travels through Spark's broadcasts, which
lie on the disks of driver and executors. So a task carries a ticket instead: an address of the
driver and a token. With it a worker asks the driver for the key, once, and keeps it in memory.

Each answer is masked by a pad that depends on the token and on fresh numbers of both sides. An
eavesdropper without the token learns nothing; nor does anyone who finds the token on a disk later:
the driver answers only while the job runs, and the pad hides the key. Anyone who has the token
while the job runs can ask as a worker does, and could read the weights themselves, which Spark's
tasks hold then.
"""

from __future__ import annotations

import hmac
import os
import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

_SIZE = 32  # bytes of keys, tokens, nonces and tags
_SECONDS = 20.0
_keys: dict[bytes, bytes] = {}  # of this process, by token


def _mac(token: bytes, *parts: bytes) -> bytes:
    return hmac.digest(token, b"".join(parts), "sha256")  # parts are of fixed lengths


@dataclass(frozen=True)
class Ticket:
    """What a task needs to ask for the key; it may be seen on disks."""

    host: str
    port: int
    token: bytes = field(repr=False)

    def key(self) -> bytes:
        """Return the key: as requested before, or from the driver."""
        if self.token not in _keys:
            _keys.clear()
            _keys[self.token] = self._ask()
        return _keys[self.token]

    def _ask(self) -> bytes:
        mine = os.urandom(_SIZE)
        with socket.create_connection((self.host, self.port), _SECONDS) as connection:
            connection.sendall(mine + _mac(self.token, b"ask", mine))
            theirs, masked, tag = (_received(connection) for _ in range(3))
        if not hmac.compare_digest(tag, _mac(self.token, b"tag", mine, theirs, masked)):
            raise ConnectionError("the answer of the driver is not authentic")
        return _masked(masked, _mac(self.token, b"pad", mine, theirs))


@contextmanager
def serve_key(key: bytes, host: str, bind: str | None = None) -> Iterator[Ticket]:
    """Yield the ticket with which workers get the key until the context ends.

    *Privacy.* The key is in the memory of this process and of the workers, and nowhere else.
    """
    token = os.urandom(_SIZE)

    class Answer(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.settimeout(_SECONDS)
            mine = os.urandom(_SIZE)
            theirs, tag = _received(self.request), _received(self.request)
            if hmac.compare_digest(tag, _mac(token, b"ask", theirs)):
                masked = _masked(key, _mac(token, b"pad", theirs, mine))
                tag = _mac(token, b"tag", theirs, mine, masked)
                self.request.sendall(mine + masked + tag)

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            """Say nothing of who asked in vain."""

    with Server((bind or host, 0), Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        _keys[token] = key  # this process need not ask itself
        try:
            yield Ticket(host, server.server_address[1], token)
        finally:
            _keys.pop(token, None)
            server.shutdown()


def _received(connection: socket.socket) -> bytes:
    held = b""
    while len(held) < _SIZE:
        more = connection.recv(_SIZE - len(held))
        if not more:
            raise ConnectionError("the other side ended early")
        held += more
    return held


def _masked(text: bytes, pad: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(text, pad, strict=True))
