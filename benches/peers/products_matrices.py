"""Matrices for checking and timing products, made on the GPU."""

import numpy as np

from kernels_gpu import SIZE, cp


class Matrix:
    def __init__(self, name, rows, columns, offsets, indices, values=None):
        self.name, self.rows, self.columns = name, rows, columns
        self.offsets, self.indices = offsets.astype(np.uint32), indices.astype(np.uint32)
        self.nnz = indices.size
        if values is None:
            values = cp.random.default_rng(3).random(self.nnz) + 0.5
        self.values = {"f64": values, "f32": values.astype(np.float32)}
        self.lengths = self.offsets[1:] - self.offsets[:-1] if rows else cp.zeros(0, np.uint32)

    def shape(self, group=32):
        """The length of the longest row, and the number of nonzeros in the fullest group of rows."""
        if not self.rows:
            return 0, 0
        at = cp.minimum(cp.arange(0, self.rows + group, group), self.rows)
        o = self.offsets[at].astype(np.int64)
        return int(self.lengths.max()), int((o[1:] - o[:-1]).max())

    def bytes(self, value, vector):
        return self.nnz * (SIZE[value] + 4) + (self.rows + 1) * 4 + (self.rows + self.columns) * SIZE[vector]


def stencil(name, nx, ny, nz, box):
    n = nx * ny * nz
    i = cp.arange(n, dtype=np.int32)
    X, Y, Z = i % nx, i // nx % ny, i // (nx * ny)
    steps = [(dx, dy, dz) for dz in (-1, 0, 1) for dy in (-1, 0, 1) for dx in (-1, 0, 1)]
    steps = [s for s in steps if (nz > 1 or s[2] == 0) and (box or sum(map(abs, s)) <= 1)]
    inside, cols = cp.empty((n, len(steps)), bool), cp.empty((n, len(steps)), np.int32)
    for k, (dx, dy, dz) in enumerate(steps):
        inside[:, k] = (X + dx >= 0) & (X + dx < nx) & (Y + dy >= 0) & (Y + dy < ny) & (Z + dz >= 0) & (Z + dz < nz)
        cols[:, k] = i + dx + dy * nx + dz * nx * ny
    counts = inside.sum(axis=1)
    offsets = cp.concatenate([cp.zeros(1, np.int64), cp.cumsum(counts)])
    return Matrix(name, n, n, offsets, cols[inside])


def from_keys(name, n, keys):
    keys = cp.unique(keys)
    rows, cols = keys // n, keys % n
    offsets = cp.concatenate([cp.zeros(1, np.int64), cp.cumsum(cp.bincount(rows.astype(np.int64), minlength=n))])
    return Matrix(name, n, n, offsets, cols)


def rmat(scale, factor):
    n = 1 << scale
    rng = cp.random.default_rng(7)
    r, c = cp.zeros(n * factor, np.uint64), cp.zeros(n * factor, np.uint64)
    for _ in range(scale):
        u = rng.random(n * factor, dtype=np.float32)
        r = r * 2 + (u >= 0.76)
        c = c * 2 + (((u >= 0.57) & (u < 0.76)) | (u >= 0.95))
    return from_keys(f"rmat{scale}x{factor}", n, r.astype(np.uint64) * n + c.astype(np.uint64))


def random16(n):
    c = cp.sort(cp.random.default_rng(11).integers(0, n, (n, 16)), axis=1)
    return Matrix(f"random{n}x16", n, n, cp.arange(n + 1, dtype=np.int64) * 16, c.ravel())


def elasticity(side):
    a = stencil("", side, side, side, True)
    lengths = cp.repeat(a.lengths.astype(np.int64) * 3, 3)
    offsets = cp.concatenate([cp.zeros(1, np.int64), cp.cumsum(lengths)])
    # Row 3 i + d has the columns 3 j + 0, 1, 2 for each j of row i.
    e = cp.arange(int(offsets[-1]), dtype=np.int64)
    row = cp.searchsorted(offsets, e, side="right") - 1
    within = e - offsets[row]
    j = a.indices[(a.offsets[row // 3].astype(np.int64) + within // 3)].astype(np.int64)
    return Matrix(f"elasticity{side}^3", 3 * a.rows, 3 * a.rows, offsets, 3 * j + within % 3)


def with_lengths(name, columns, lengths, seed):
    lengths = np.minimum(np.asarray(lengths, np.int64), columns)
    rng = np.random.default_rng(seed)
    pieces = [np.sort(rng.choice(columns, l, replace=False)) if l < 2000 else np.arange(l) for l in lengths]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return Matrix(
        name,
        len(lengths),
        columns,
        cp.asarray(offsets),
        cp.asarray(np.concatenate(pieces + [np.zeros(0, np.int64)]).astype(np.int64)),
    )


def by_diagonals(name, rows, columns, distances):
    """Diagonals at these distances, with every fifth entry missing."""
    lines = [[i + d for d in distances if 0 <= i + d < columns and (4 * i + d) % 5 != 4] for i in range(rows)]
    offsets = np.concatenate([[0], np.cumsum([len(line) for line in lines])]).astype(np.int64)
    return Matrix(name, rows, columns, cp.asarray(offsets), cp.asarray(np.concatenate(lines).astype(np.int64)))


def arrow(n):
    """A matrix whose diagonal, first column and first row are full."""
    i = cp.arange(1, n, dtype=np.int64)
    cols = cp.concatenate([cp.arange(n, dtype=np.int64), cp.stack([0 * i, i], axis=1).ravel()])
    return Matrix(
        f"arrow{n}", n, n, cp.concatenate([cp.zeros(1, np.int64), n + 2 * cp.arange(n, dtype=np.int64)]), cols
    )


def one_long(n, long):
    """Three entries per row, and a row of `long` entries in the middle."""
    i = cp.arange(n, dtype=np.int64)
    lengths = cp.full(n, 3, np.int64)
    lengths[n // 2] = long
    offsets = cp.concatenate([cp.zeros(1, np.int64), cp.cumsum(lengths)])
    short = cp.clip(cp.stack([i - 1, i, i + 1], axis=1), 0, n - 1)
    before, behind = short[: n // 2].ravel(), short[n // 2 + 1 :].ravel()
    return Matrix(f"one row of {long}", n, n, offsets, cp.concatenate([before, cp.arange(long) * (n // long), behind]))


CASES = {
    "5pt": lambda: stencil("5-point 4096^2", 4096, 4096, 1, False),
    "7pt": lambda: stencil("7-point 256^3", 256, 256, 256, False),
    "9pt": lambda: stencil("9-point 3000^2", 3000, 3000, 1, True),
    "27pt": lambda: stencil("27-point 160^3", 160, 160, 160, True),
    "elast": lambda: elasticity(64),
    "rmat": lambda: rmat(21, 16),
    "random": lambda: random16(2_000_000),
    "arrow": lambda: arrow(1_000_000),
    "long": lambda: one_long(2_000_000, 1_000_000),
    "1e4": lambda: stencil("5-point 45^2", 45, 45, 1, False),
    "1e5": lambda: stencil("5-point 142^2", 142, 142, 1, False),
    "1e6": lambda: stencil("5-point 447^2", 447, 447, 1, False),
    "1e6r": lambda: rmat(16, 16),
}


def ragged():
    rng = np.random.default_rng(1)
    giant = rng.integers(0, 4, 700)
    giant[311] = 700
    yield with_lengths("597 x 43", 43, rng.integers(0, 9, 597), 1)
    yield with_lengths("43 x 597", 597, rng.integers(0, 90, 43), 2)
    holes = rng.integers(0, 12, 1000)
    holes[::3] = 0
    yield with_lengths("empty rows and columns", 1000, holes, 3)
    yield with_lengths("one row", 800, [300], 4)
    yield with_lengths("one column", 1, [1, 0, 1, 1] * 50, 5)
    yield with_lengths("one giant row", 700, giant, 6)
    yield with_lengths(
        "rows of several tiles",
        40_000,
        [3] * 900 + [30_000] + [5] * 77 + [9_000, 40_000] + [2] * 3001 + [20_000, 0, 0],
        7,
    )
    yield with_lengths("power law", 2500, [2000 // (i + 1) for i in range(2500)][::-1], 8)
    yield by_diagonals("597 x 43 by diagonals", 597, 43, [-590, -300, -41, -2, 0, 1, 42])
    yield by_diagonals("43 x 597 by diagonals", 43, 597, [-42, -1, 0, 7, 300, 580, 596])
    yield by_diagonals("a grid with holes", 2001, 2001, [-300, -40, -1, 0, 1, 40, 300])
    yield with_lengths("no nonzeros", 7, [0] * 5000, 10)
    yield with_lengths("no rows", 7, [], 11)
    yield with_lengths("even lengths", 5000, [16] * 5000, 12)
