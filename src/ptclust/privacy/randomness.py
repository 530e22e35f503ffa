"""Random bits for mechanisms: a cryptographic keystream that kernels read inside their loops."""

from __future__ import annotations

import hashlib
import os
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from ptclust._traces import shown_half_built
from ptclust.errors import UsageError
from ptclust.privacy._chacha_kernel import fill_words, new_state
from ptclust.privacy._numbers import count


@shown_half_built
class RandomStream:
    """A stream of random words: ChaCha20 (RFC 8439) under a key from the system, or from a seed.

    Kernels take :attr:`state` and hand it to the functions of ``_chacha_kernel``. One stream
    belongs to one thread. After a fork, a secure stream takes a new key in the child, so that
    parent and child never draw the same words.

    Notes
    -----
    *Privacy.* Anyone who knows the key of a stream can subtract the noise drawn from it. A secure
    stream takes 256 bits from ``os.urandom`` and never shows or pickles them: its output is as hard
    to tell from uniform bits as ChaCha20 is to break. A seeded stream is predictable by anyone who
    guesses the seed, so what is drawn from it is not private, and :attr:`reproducible` says so.
    There is no forward secrecy: anyone who reads the memory of the process during a run learns the
    words drawn before, but the same memory holds the weights themselves.

    >>> RandomStream.secure()
    <RandomStream: secure>
    """

    def __init__(self, key: bytes, *, reproducible: bool) -> None:
        self._reproducible = reproducible
        self._state: NDArray[np.uint32] | None = new_state(key)
        self._process = os.getpid()

    @classmethod
    def secure(cls) -> RandomStream:
        """Return a stream under a fresh key of 256 bits from the operating system."""
        return cls(os.urandom(32), reproducible=False)

    @classmethod
    def seeded(cls, seed: int) -> RandomStream:
        """Return the stream of ``seed``, an integer of 0 or more, for experiments: not private."""
        hint = " If the run need not be repeated, use RandomStream.secure()."
        words = f"ptclust.RandomStream.seeded:{count('A seed', seed, hint)}"
        return cls(hashlib.sha256(words.encode()).digest(), reproducible=True)

    @classmethod
    def of(cls, random_state: int | None) -> RandomStream:
        """Return a secure stream for None, else the stream that belongs to the seed."""
        return cls.secure() if random_state is None else cls.seeded(random_state)

    @property
    def reproducible(self) -> bool:
        """Whether the words follow from a seed; then nothing drawn from them is private."""
        return self._reproducible

    @property
    def state(self) -> NDArray[np.uint32]:
        """The state for kernels, which advance it in place."""
        if self._state is None:
            raise UsageError("This random stream is closed; make one with RandomStream.secure().")
        if self._process != os.getpid():
            self._process = os.getpid()
            if not self._reproducible:
                self._state[:] = new_state(os.urandom(32))
        return self._state

    def words(self, count: int) -> NDArray[np.uint64]:
        """Return the next ``count`` words of 64 random bits."""
        words = np.empty(count, dtype=np.uint64)
        self.fill(words)
        return words

    def fill(self, words: NDArray[np.uint64]) -> None:
        """Fill an array with the next words."""
        fill_words(self.state, words)

    def numpy_generator(self) -> np.random.Generator:
        """Return a numpy generator seeded by this reproducible stream, for simulated noise."""
        if not self._reproducible:
            raise UsageError(
                "A secure random stream makes no numpy generator: that would be predictable, its "
                "noise not private. For experiments use RandomStream.seeded(seed)."
            )
        seed = [int(word) for word in self.words(4)]
        return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed)))

    def close(self) -> None:
        """Overwrite key and buffer; the stream cannot be used afterwards."""
        if self._state is not None:
            self._state[:] = 0
            self._state = None

    def __enter__(self) -> RandomStream:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        kind = "reproducible" if self._reproducible else "secure"
        return f"<RandomStream: {kind}{', closed' if self._state is None else ''}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a RandomStream refuses to be copied or pickled: two streams under one key draw the "
            "same noise; make a new one where it is needed"
        )
