"""The kernels of products, launched as in the library, and the formats that they read."""

import ctypes

import numpy as np

from kernels_gpu import F, SIZE, U, U32, ceil, cp, kernel


# ---- formats
FILL = (
    cp.RawKernel(
        r"""
extern "C" __global__ void fill(long long rows, int height, const unsigned* offsets, const unsigned* columns, const VALUE* values,
                                const unsigned* sections, const unsigned* order, unsigned* out_columns, VALUE* out_values) {
    for (long long p = blockIdx.x * (long long)blockDim.x + threadIdx.x; p < rows; p += gridDim.x * (long long)blockDim.x) {
        long long r = order ? order[p] : p;
        for (unsigned k = offsets[r], i = 0; k < offsets[r + 1]; k++, i++) {
            unsigned long long at = sections[p / height] + (unsigned long long)i * height + p % height;
            out_columns[at] = columns[k];
            out_values[at] = values[k];
        }
    }
}""".replace("VALUE", "double"),
        "fill",
    )
    if cp
    else None
)
FILL32 = cp.RawKernel(FILL.code.replace("double", "float"), "fill") if cp else None
PAD = (
    cp.RawKernel(
        r"""
extern "C" __global__ void pad(long long rows, int height, const int* sections, const unsigned* offsets, const unsigned* order, int* columns) {
    for (long long p = blockIdx.x * (long long)blockDim.x + threadIdx.x; p < rows; p += gridDim.x * (long long)blockDim.x) {
        long long r = order ? order[p] : p;
        int width = (sections[p / height + 1] - sections[p / height]) / height;
        for (int i = offsets[r + 1] - offsets[r]; i < width; i++) columns[sections[p / height] + (long long)i * height + p % height] = -1;
    }
}""",
        "pad",
    )
    if cp
    else None
)


def pad_columns(a, sections, columns, height, order=None):
    """Marks padding by the column -1, for our SELL and for cuSPARSE's."""
    PAD(
        (4096,),
        (256,),
        (np.int64(a.rows), np.int32(height), sections, a.offsets, U(0) if order is None else order, columns),
    )


def to_sell(a, t, height, order=None):
    """offsets, lengths, columns, values; None if padding would make it more than three times as large."""
    sections = ceil(a.rows, height)
    if not sections:
        return None
    lengths = a.lengths if order is None else a.lengths[order]
    padded = cp.zeros(sections * height, np.int64)
    padded[: a.rows] = lengths
    widths = padded.reshape(sections, height).max(axis=1)
    offsets = cp.concatenate([cp.zeros(1, np.int64), cp.cumsum(widths * height)])
    total = int(offsets[-1])
    if total > 4 * a.nnz + 4096 or total >= 1 << 31:
        return None
    columns, values = cp.zeros(total, np.uint32), cp.zeros(total, F[t])
    (FILL if t == "f64" else FILL32)(
        (4096,),
        (256,),
        (
            np.int64(a.rows),
            np.int32(height),
            a.offsets,
            a.indices,
            a.values[t],
            offsets.astype(np.uint32),
            U(0) if order is None else order,
            columns,
            values,
        ),
    )
    return offsets.astype(np.uint32), lengths.astype(np.uint32), columns, values


# ---- the products
def scalar(t, v):
    return F[t](v)


NULL = U(0)
# Kernels may read the matrix before the previous kernel has finished, because no kernel here writes to it.
SETTLED = U32(1)


class Attribute(ctypes.Structure):
    _fields_ = [("id", ctypes.c_int), ("pad", ctypes.c_int), ("value", ctypes.c_int), ("rest", ctypes.c_char * 60)]


class Launch(ctypes.Structure):
    _fields_ = [(n, ctypes.c_uint) for n in ("gx", "gy", "gz", "bx", "by", "bz", "shared")] + [
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.c_void_p),
        ("count", ctypes.c_uint),
    ]


def early(f, grid, block, args, shared=0):
    """Launches a kernel that may start before the previous one has finished, as in the library; it waits by itself."""
    types = {
        np.uint64: ctypes.c_uint64,
        np.uint32: ctypes.c_uint32,
        np.float64: ctypes.c_double,
        np.float32: ctypes.c_float,
    }
    cell = lambda a: (
        (ctypes.c_uint32 * len(a))(*a)
        if type(a) is tuple
        else types[type(a)](a.item())
        if type(a) in types
        else ctypes.c_uint64(a.data.ptr)
    )
    cells = [cell(a) for a in args]
    pointers = (ctypes.c_void_p * len(cells))(*[ctypes.addressof(c) for c in cells])
    attribute, launch = Attribute(6, 0, 1, b""), ctypes.CDLL("libcuda.so.1").cuLaunchKernelEx

    def run(_keep=(cells, args)):
        config = Launch(
            grid, 1, 1, block, 1, 1, shared, cp.cuda.get_current_stream().ptr, ctypes.addressof(attribute), 1
        )
        code = launch(ctypes.byref(config), ctypes.c_void_p(f.kernel.ptr), pointers, None)
        if code:
            raise RuntimeError(f"launch: {code}")

    return run


def stream_constants(a, t, v, lanes=None, unroll=None, threads=None, **c):
    mean = max(1.0, a.nnz / max(1, a.rows))
    short = SIZE[v] == 4
    odd = short and a.rows and int(a.lengths.max()) % 2
    if lanes is None:
        lanes = 1
        while lanes < 32 and mean / lanes > (28 if odd else 14):
            lanes *= 2
    brief = not odd and mean <= 4
    usual = 9 if odd else 4 if brief or short and lanes == 1 and mean > 6 else 8
    return (
        dict(
            SCALAR=t,
            STORED=v,
            OFFSET="u32",
            LANES=lanes,
            UNROLL=unroll or usual,
            THREADS=threads or (128 if short or brief else 256),
            IN_BULK=int(odd),
        )
        | c
    )


def csr_stream(a, t, v, x, y, alpha=1, beta=0, dot=None, capacity=None, **c):
    k = stream_constants(a, t, v, **c)
    rows_a_tile = k["THREADS"] // k["LANES"]
    if capacity is None:
        _, busiest = a.shape()
        capacity = (
            ceil(max(1, rows_a_tile // 32) * busiest + 4, 16) * 16 if rows_a_tile >= 32 else ceil(busiest + 4, 16) * 16
        )
        capacity = min(capacity, 8192)
    shared = capacity * (4 + SIZE[v])
    tiles = ceil(a.rows, rows_a_tile)
    if dot is None:
        f = kernel("csr_stream.cu", "csr_stream", shared, **k)
        return (
            tiles
            and early(
                f,
                tiles,
                k["THREADS"],
                (
                    U(a.rows),
                    U(a.nnz),
                    a.offsets,
                    a.indices,
                    a.values[v],
                    scalar(t, alpha),
                    x,
                    scalar(t, beta),
                    y,
                    U32(capacity),
                    U32(0),
                ),
                shared,
            )
            or (lambda: None)
        )
    f = kernel("csr_stream.cu", "csr_stream_dot", shared, **k)
    return summed(
        t,
        tiles,
        dot,
        lambda partials, finished: f(
            (tiles,),
            (k["THREADS"],),
            (
                U(a.rows),
                U(a.nnz),
                a.offsets,
                a.indices,
                a.values[v],
                scalar(t, 1),
                x,
                y,
                U32(capacity),
                dot,
                partials,
                finished,
            ),
            shared_mem=shared,
        ),
    )


def summed(t, tiles, dot, product):
    """A product whose blocks write partial sums. The last block adds up a few; many are added up by a second kernel."""
    partials, finished = cp.zeros(tiles + 4096, F[t]), cp.zeros(1, np.uint32)
    if tiles <= FEW:
        return lambda: product(partials, finished)
    join = kernel("vector.cu", "sum", SCALAR=t, THREADS=256, UNROLL=4, SUM_THREADS=512, SUM_UNROLL=4, MAX_PARTIALS=4096)
    grid = min(528, ceil(tiles, 512 * 4 * 16 // SIZE[t]))

    def run():
        product(partials, NULL)
        join((grid,), (512,), (partials, U(tiles), dot, partials[tiles:], finished))

    return run


FEW = 1024


BALANCED = [
    dict(THREADS=t, ITEMS=i, UNROLL=u, SLACK=s, MIN_BLOCKS=b, AHEAD=h)
    for t, i, u, s, b, h in (
        (128, 5, 5, 128, 12, 1),
        (256, 8, 3, 256, 8, 0),
        (256, 10, 5, 256, 8, 0),
        (256, 4, 4, 256, 6, 0),
    )
]


def scattered(a):
    """Whether x is read at random all over, judged by lines of 16 columns in windows of 4096 nonzeros."""
    windows, lines = min(64, a.nnz // 4096), cp.zeros(1, np.uint64)
    kernel("column_spread.cu", "column_spread", THREADS=256, WINDOW=4096, LINE=16)(
        (windows,), (256,), (U(a.nnz), a.indices, lines)
    )
    return int(lines[0]) > 800 * windows


def balanced_class(a, t, v):
    """The same constants as in the library's tuning."""
    if a.nnz < 1 << 22 and not (a.nnz // 4 < a.rows and a.nnz >= 4096):
        return BALANCED[0]
    if scattered(a):
        return BALANCED[3]
    return BALANCED[2] | (dict(MIN_BLOCKS=6) if t != v else {}) if SIZE[v] == 4 else BALANCED[1]


def csr_balanced(a, t, v, x, y, alpha=1, beta=0, **c):
    k = dict(SCALAR=t, STORED=v, OFFSET="u32") | balanced_class(a, t, v) | c
    f = kernel("csr_balanced.cu", "csr_balanced", **k)
    tile = k["THREADS"] * k["ITEMS"]
    tiles = ceil(a.rows + a.nnz, tile)
    starts, posts = cp.zeros(2 * (tiles + 1), np.uint64), cp.zeros(tiles * SIZE[t] // 4 + 1, np.uint64)
    find = kernel("row_shape.cu", "tile_starts", OFFSET="u32", THREADS=256, TILE=tile, SLACK=k["SLACK"])
    find((ceil(tiles + 1, 256),), (256,), (U(a.rows), U(a.nnz), a.offsets, starts))
    return (
        tiles
        and early(
            f,
            tiles,
            k["THREADS"],
            (
                starts,
                a.offsets,
                a.indices,
                a.values[v],
                scalar(t, alpha),
                x,
                scalar(t, beta),
                y,
                U32(0),
                posts,
                SETTLED,
            ),
        )
        or (lambda: None)
    )


def bins(a, each, threads):
    """The parts of rows, and where each group of parts ends, as in src/backend/cuda/product/bins.rs."""
    lengths, offsets = cp.asnumpy(a.lengths).astype(np.int64), cp.asnumpy(a.offsets).astype(np.int64)
    parts, ends, below = [], [], -1
    for row in np.nonzero(lengths > 32 * each)[0]:
        begin, length, since = offsets[row], lengths[row], len(parts)
        size = ceil(int(length), ceil(int(length), threads * each))
        parts += [(begin + i, begin + min(i + size, length), row, since) for i in range(0, length, size)]
        parts[-1] = (*parts[-1][:3], since | 1 << 31)
    arrays, ends, warps = [np.array(parts, np.uint32).reshape(-1, 4)], [len(parts)], 0
    for i in range(6):
        rows = np.nonzero((lengths > below) & (lengths <= each << i))[0]
        below, fill = each << i, ceil(rows.size, 32 >> i) * (32 >> i)
        part = np.tile(np.array([0, 0, (1 << 32) - 1, 0], np.uint32), (fill, 1))
        part[: rows.size, 0], part[: rows.size, 1], part[: rows.size, 2] = offsets[rows], offsets[rows + 1], rows
        warps += fill // (32 >> i)
        arrays.append(part)
        ends.append(warps)
    return cp.asarray(np.concatenate(arrays)), tuple(ends)


def csr_binned(a, t, v, x, y, alpha=1, beta=0, **c):
    k = dict(SCALAR=t, STORED=v, EACH=8, THREADS=128, MIN_BLOCKS=10 if t == "f32" else 1) | c
    f = kernel("csr_binned.cu", "csr_binned", **k)
    if not a.rows:
        return lambda: None
    parts, ends = bins(a, k["EACH"], k["THREADS"])
    posts = cp.zeros(ends[0] * SIZE[t] // 4 + 1, np.uint64)
    grid = ends[0] + ceil(ends[6], k["THREADS"] // 32)
    return early(
        f,
        grid,
        k["THREADS"],
        (parts, ends, a.indices, a.values[v], scalar(t, alpha), x, scalar(t, beta), y, U32(0), posts, SETTLED),
    )


def csr_vector(a, t, v, x, y, alpha=1, beta=0, lanes=None, threads=256, unroll=4, **c):
    mean = a.nnz // max(1, a.rows)
    lanes = lanes or min(32, max(2, 1 << max(0, (mean - 1).bit_length() - 1)))
    f = kernel(
        "csr_vector.cu",
        "csr",
        SCALAR=t,
        STORED=v,
        OFFSET="u32",
        LANES=lanes,
        THREADS=threads,
        UNROLL=unroll,
        **(dict(AHEAD=int(a.nnz < 1 << 20)) | c),
    )
    grid = ceil(a.rows, threads // lanes)
    return (
        grid
        and early(
            f,
            grid,
            threads,
            (U(a.rows), a.offsets, a.indices, a.values[v], scalar(t, alpha), x, scalar(t, beta), y, U32(0), SETTLED),
        )
        or (lambda: None)
    )


def sell(
    a, t, v, x, y, alpha=1, beta=0, dot=None, height=32, runtime=False, order=None, threads=None, unroll=None, **c
):
    s = to_sell(a, v, height, order)
    wide = not runtime and a.nnz >= 1 << 20 and a.nnz > 40 * a.rows
    single = runtime or wide or a.nnz < 1 << 20
    threads, unroll = threads or (128 if single else 64), unroll or (9 if wide else 7)
    if s is None:
        return None
    offsets, _, columns, values = s
    lengths = NULL
    pad_columns(a, offsets, columns, height, order)
    k = (
        dict(
            SCALAR=t,
            STORED=v,
            OFFSET="u32",
            HEIGHT=0 if runtime else height,
            ROWS=1 if single else 2,
            WIDE=int(wide),
            UNROLL=unroll,
            THREADS=threads,
        )
        | c
    )
    k["AHEAD"] = int(a.nnz < 1 << 20 and k["ROWS"] == 1 and not k["WIDE"])
    f = kernel("sell.cu", "sell" if dot is None else "sell_dot", **k)
    tiles = ceil(a.rows, threads * k["ROWS"])
    place = NULL if order is None else order
    if dot is None:
        return early(
            f,
            tiles,
            threads,
            (
                U(a.rows),
                U32(height),
                place,
                lengths,
                offsets,
                columns,
                values,
                scalar(t, alpha),
                x,
                scalar(t, beta),
                y,
                U32(0),
                SETTLED,
            ),
        )
    return summed(
        t,
        tiles,
        dot,
        lambda partials, finished: f(
            (tiles,),
            (threads,),
            (
                U(a.rows),
                U32(height),
                place,
                lengths,
                offsets,
                columns,
                values,
                scalar(t, 1),
                x,
                y,
                dot,
                partials,
                finished,
            ),
        ),
    )


def csr_block(a, t, v, x, y, vectors, alpha=1, beta=0, lanes=None, width=None, tiles=None, steps=None, **c):
    """A product with several vectors: by rows, or by tiles of equal work if the lengths of rows differ much."""
    width = width or (16 // SIZE[t] if vectors % (16 // SIZE[t]) == 0 else 1)
    lanes = lanes or 1 << (ceil(vectors, width) - 1).bit_length()
    k = dict(SCALAR=t, STORED=v, OFFSET="u32", LANES=lanes, WIDTH=width, UNROLL=4, THREADS=128) | c
    tile = k["THREADS"] // lanes
    longest, fullest = a.shape()
    mean = ceil(a.nnz, max(1, a.rows))
    if tiles or tiles is None and longest > max(128, 4 * mean):
        return csr_block_tiles(a, t, v, x, y, vectors, alpha, beta, k | dict(THREADS=256) | c, steps)
    capacity = ceil(min(fullest * ceil(tile, 32) + 3, 2 * mean * tile + 64, 48128 // (4 + SIZE[v]) - 31), 32) * 32
    shared = capacity * (4 + SIZE[v])
    f = kernel("csr_block.cu", "csr_block", shared, **k)

    def run():
        if a.rows:
            f(
                (ceil(a.rows, tile),),
                (k["THREADS"],),
                (
                    U(a.rows),
                    U(a.nnz),
                    a.offsets,
                    a.indices,
                    a.values[v],
                    scalar(t, alpha),
                    x,
                    scalar(t, beta),
                    y,
                    U32(vectors),
                    U32(capacity),
                ),
                shared_mem=shared,
            )

    return run


def csr_block_tiles(a, t, v, x, y, vectors, alpha, beta, k, steps=None):
    k = k | dict(STEPS=steps or (1024 if a.nnz >= max(8 * a.rows, 1 << 23) else 2048))
    shared = (k["STEPS"] + 4) * (4 + SIZE[v])
    f, join = (
        kernel("csr_block_tiles.cu", "csr_block_tiles", shared, **k),
        kernel("csr_block_tiles.cu", "csr_block_join", **k),
    )
    starts = first_rows(a, k["STEPS"])
    tiles = starts.size - 1
    pieces = cp.zeros(2 * tiles * vectors, F[t])

    def run():
        if tiles:
            f(
                (tiles,),
                (k["THREADS"],),
                (
                    U(a.rows),
                    U(a.nnz),
                    starts,
                    a.offsets,
                    a.indices,
                    a.values[v],
                    scalar(t, alpha),
                    x,
                    scalar(t, beta),
                    y,
                    U32(vectors),
                    pieces,
                ),
                shared_mem=shared,
            )
        if tiles > 1:
            join(
                (ceil(32 * tiles, k["THREADS"]),),
                (k["THREADS"],),
                (U(a.rows), U(a.nnz), starts, a.offsets, scalar(t, alpha), scalar(t, beta), y, U32(vectors), pieces),
            )

    return run


def first_rows(a, steps):
    """The first row of each tile of `steps` steps."""
    tiles = ceil(a.rows + a.nnz, steps)
    starts = cp.zeros(tiles + 1, np.uint32)
    kernel("row_shape.cu", "tile_rows", OFFSET="u32", THREADS=256, TILE=steps, SLACK=0)(
        (ceil(tiles + 1, 256),), (256,), (U(a.rows), U(a.nnz), a.offsets, starts)
    )
    return starts


def coo(a, t, v, x, y, alpha=1, beta=0, atomic=False, items=7, threads=256):
    k = dict(SCALAR=t, STORED=v, THREADS=threads, ITEMS=items)
    rows = (cp.searchsorted(a.offsets.astype(np.int64), cp.arange(a.nnz, dtype=np.int64), side="right") - 1).astype(
        np.uint32
    )
    scale, segmented, join, by_atomics = (
        kernel("coo.cu", f, **k) for f in ("coo_scale", "coo_segmented", "coo_join", "coo_atomic")
    )
    tiles = ceil(a.nnz, threads * items)
    pieces = cp.zeros(2 * tiles + 1, F[t])

    def run():
        if beta != 1 and a.rows:
            scale((min(ceil(a.rows, threads), 2112),), (threads,), (U(a.rows), scalar(t, beta), y))
        if tiles and atomic:
            by_atomics(
                (min(ceil(a.nnz, threads), 16896),),
                (threads,),
                (U(a.nnz), rows, a.indices, a.values[v], scalar(t, alpha), x, y, U32(0)),
            )
        elif tiles:
            segmented(
                (tiles,), (threads,), (U(a.nnz), rows, a.indices, a.values[v], scalar(t, alpha), x, y, U32(0), pieces)
            )
            if tiles > 1:
                join((ceil(tiles, threads // 32),), (threads,), (U(a.nnz), rows, scalar(t, alpha), y, pieces))

    return run


def ell(a, t, v, x, y, alpha=1, beta=0, unroll=8, threads=256, eager=None):
    """A product with ELL, stored as one section of all rows."""
    width = int(a.lengths.max()) if a.rows else 0
    if not a.rows or width * a.rows > 3 * a.nnz + 4096:
        return None
    _, lengths, columns, values = to_sell(a, v, a.rows)
    eager = int(width * a.rows < 1 << 20) if eager is None else eager
    f = kernel("ell.cu", "ell", SCALAR=t, STORED=v, UNROLL=unroll, THREADS=threads, EAGER=eager)
    return early(
        f,
        ceil(a.rows, threads),
        threads,
        (U(a.rows), U32(width), lengths, columns, values, scalar(t, alpha), x, scalar(t, beta), y, U32(0), SETTLED),
    )


SECTION = 32


def to_dia(a, t):
    """Distances, and values in sections; None if padding would make it more than three times as large."""
    rows = cp.searchsorted(a.offsets.astype(np.int64), cp.arange(a.nnz, dtype=np.int64), side="right") - 1
    place = a.indices.astype(np.int64) - rows + a.rows
    marks = cp.zeros(a.rows + a.columns + 1, np.uint8)
    marks[place] = 1
    found = cp.flatnonzero(marks)
    if not a.rows or ceil(a.rows, SECTION) * SECTION * found.size > 3 * a.nnz + 4096:
        return None
    number = cp.zeros(marks.size, np.int32)
    number[found] = cp.arange(found.size, dtype=np.int32)
    at = (rows // SECTION * found.size + number[place]) * SECTION + rows % SECTION
    values = cp.empty(ceil(a.rows, SECTION) * SECTION * found.size, F[t])
    values.view(np.uint8)[:] = 255
    values[at] = a.values[t]
    return (found - a.rows).astype(np.int64), values


def dia(a, t, v, x, y, alpha=1, beta=0, dot=None, stored=None, **c):
    stored = stored or to_dia(a, v)
    if stored is None:
        return None
    distances, values = stored
    few, wide = a.rows * distances.size < 1 << 20, distances.size > 40
    wide, pairs = wide and not few, t == "f32" and not few and not wide
    k = (
        dict(
            SCALAR=t,
            STORED=v,
            ROWS=1 + pairs,
            WIDE=int(wide),
            HALF=0,
            UNROLL=7,
            BLOCKS=0,
            TILES=1,
            THREADS=128 if wide or pairs else 256,
        )
        | c
    )
    f = kernel("dia.cu", "dia" if dot is None else "dia_dot", **k)
    tiles = ceil(a.rows, k["THREADS"] * k["ROWS"])
    sizes = (U(a.rows), U(a.columns), U32(distances.size), U32(distances.size), distances, values)
    if dot is None:
        return early(f, tiles, k["THREADS"], sizes + (scalar(t, alpha), x, scalar(t, beta), y, U32(0)))
    return summed(
        t,
        tiles,
        dot,
        lambda partials, finished: f((tiles,), (k["THREADS"],), sizes + (scalar(t, 1), x, y, dot, partials, finished)),
    )


def sorted_order(a, window):
    keys = -a.lengths.astype(np.int64) + (cp.arange(a.rows) // window) * (1 << 33)
    return cp.argsort(keys, kind="stable").astype(np.uint32)
