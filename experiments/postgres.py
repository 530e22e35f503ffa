"""A PostgreSQL server of one's own, for as long as it is needed: for tests and measurements."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Server", "binaries", "running_server"]

_USER = "curator"


def binaries() -> Path | None:
    """Return where the programs of the server are, or None if it is not installed."""
    found = shutil.which("initdb")
    if found is not None:
        return Path(found).resolve().parent
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return places[-1].parent if places else None


@dataclass(frozen=True)
class Server:
    """A server that runs on this machine."""

    folder: Path  # of its programs
    port: int
    password: str

    @property
    def address(self) -> str:
        """Its address, with the password."""
        return f"postgresql://{_USER}:{self.password}@127.0.0.1:{self.port}/postgres"

    @property
    def address_without_password(self) -> str:
        """Its address; PGPASSWORD has to have the password."""
        return f"postgresql://{_USER}@127.0.0.1:{self.port}/postgres"

    def run(self, *commands: str) -> None:
        """Carry out commands of psql."""
        each = [word for command in commands for word in ("-c", command)]
        options = ["--quiet", "--no-psqlrc", "--set", "ON_ERROR_STOP=1", *each]
        subprocess.run(  # noqa: S603
            [self.folder / "psql", self.address, *options], check=True, capture_output=True
        )


@contextmanager
def running_server(password: str = "a secret word") -> Iterator[Server]:  # noqa: S107
    """Start a server that wants a password, with an empty database, and stop it afterwards."""
    folder = binaries()
    if folder is None:
        raise FileNotFoundError("PostgreSQL is not installed here: make database")
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        data, secret = root / "data", root / "password"
        secret.write_text(password)
        run_as: dict[str, Any] = {}
        if os.getuid() == 0:  # which the server refuses
            run_as = {"user": "postgres", "group": "postgres"}
            for path in (root, secret):
                shutil.chown(path, "postgres", "postgres")
        quiet: dict[str, Any] = {"check": True, "capture_output": True, "cwd": root, **run_as}
        start = ["--auth=scram-sha-256", f"--username={_USER}", f"--pwfile={secret}"]
        subprocess.run(  # noqa: S603
            [folder / "initdb", f"--pgdata={data}", "--no-sync", *start], **quiet
        )
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={root}"
        control = [str(folder / "pg_ctl"), f"--pgdata={data}", "--wait", "--silent"]
        quiet |= {"capture_output": False, "stdout": subprocess.DEVNULL}
        subprocess.run(  # noqa: S603
            [*control, f"--log={root / 'log'}", f"--options={options} -F", "start"], **quiet
        )
        try:
            yield Server(folder, port, password.replace(" ", "%20"))
        finally:
            subprocess.run([*control, "--mode=immediate", "stop"], **quiet)  # noqa: S603
