"""Sparse right-hand sides of direct solvers: x is sparse, and what b repeats or leaves empty is not solved for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sparse

#: Columns that are made dense at once.
COLUMNS = 64


def solution(b: Any, solve: Callable[[np.ndarray], np.ndarray], dtype: np.dtype) -> Any:
    """The x of A x = b for a sparse b of two dimensions, csc, of this type and without stored zeros.

    ``solve`` is called with some columns of b at a time. Columns without entries are skipped, and of columns that are
    equal one is solved for.
    """
    columns = sparse.csc_array(b, copy=True)
    columns.sum_duplicates()
    columns.eliminate_zeros()
    starts, indices, data = columns.indptr, columns.indices, columns.data
    filled = np.flatnonzero(np.diff(starts))
    numbers: dict[tuple[bytes, bytes], int] = {}
    place = np.empty(len(filled), np.intp)
    first: list[int] = []
    for k, j in enumerate(filled):
        part = slice(starts[j], starts[j + 1])
        number = numbers.setdefault((indices[part].tobytes(), data[part].tobytes()), len(first))
        if number == len(first):
            first.append(int(j))
        place[k] = number
    found = [
        sparse.csc_array(solve(columns[:, first[k : k + COLUMNS]].toarray(order="F")), dtype=dtype)
        for k in range(0, len(first), COLUMNS)
    ]
    if not found:
        return sparse.csc_array(b.shape, dtype=dtype)
    known = sparse.hstack(found, format="csc")[:, place]
    ends = np.zeros(b.shape[1] + 1, known.indptr.dtype)
    ends[filled + 1] = np.diff(known.indptr)
    return sparse.csc_array((known.data, known.indices, np.cumsum(ends, dtype=ends.dtype)), shape=b.shape)
