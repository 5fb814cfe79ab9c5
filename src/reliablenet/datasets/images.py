"""What the image datasets share: folds of a stratified part of their images, and work in chunks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reliablenet._checks import check_count, parameter_error
from reliablenet.tables.fold_sizes import PAPER_SHARES, fold_counts
from reliablenet.tables.folds import cut_rows


def cut_images(
    labels: NDArray[Any], images: int | None, random_state: int, owner: str
) -> list[NDArray[np.intp]]:
    """Return the row numbers of the three folds of so many images, stratified by label.

    Parameters
    ----------
    labels : array of shape (n,)
    images : int or None
        How many of the n images to use; None for all.
    random_state : int
    owner : str
        Whose parameter ``images`` is, for the message.

    Returns
    -------
    list of three arrays of row numbers, each ascending

    Examples
    --------
    >>> import numpy as np
    >>> from reliablenet.datasets.images import cut_images
    >>> [len(part) for part in cut_images(np.arange(1000) % 10, 200, 0, "load")]
    [140, 30, 30]
    """
    used = len(labels) if images is None else check_count("images", images, owner)
    if used > len(labels):
        raise parameter_error("images", owner, f"be at most {len(labels)}", images)
    counts = (len(labels) - used, *fold_counts(used, PAPER_SHARES))
    return cut_rows(labels, counts, random_state)[1:]


def chunks(n: int, size: int) -> Iterator[slice]:
    """Cut n rows into slices of so many rows, so that temporary arrays stay small.

    Examples
    --------
    >>> import numpy as np
    >>> from reliablenet.datasets.images import chunks
    >>> [np.arange(5)[part].tolist() for part in chunks(5, 2)]
    [[0, 1], [2, 3], [4]]
    """
    return (slice(start, start + size) for start in range(0, n, size))
