"""Numbering things by first appearance: nodes of a file, clusters of a partition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ptclust._kernel import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray


@kernel
def number_by_first_appearance(codes: NDArray[Any], new_code: NDArray[Any]) -> int:
    """Renumber ``codes`` in place as 0, 1, 2, ... in the order in which they first appear; negative ones stay.

    ``new_code`` has room for every code and is filled with -1 on entry; on return it maps old codes to new ones.
    Returns how many distinct codes there are.
    """
    count = 0
    for i in range(len(codes)):
        code = codes[i]
        if code >= 0:
            if new_code[code] < 0:
                new_code[code] = count
                count += 1
            codes[i] = new_code[code]
    return count
