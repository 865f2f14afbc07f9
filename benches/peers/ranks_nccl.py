# Conjugate gradients on several GPUs as usually implemented: rows distributed over ranks, NCCL for sums and halos,
# cuSPARSE for the product, cuBLAS for inner products, through PyTorch. One iteration is captured in a graph, which is
# launched once per iteration. Also measured: NCCL alone, with two sums of a double and a halo of 256^2 doubles in each
# direction.
#
#     python3 benches/peers/ranks_nccl.py [RANKS] [CASE...]        a case: 256x256x256 (7 points) or 4096x4096 (5 points)
import os
import sys
import time

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as mp

ITERATIONS = 200


def rows_of(dims, first, last):
    """Rows first to last of the model problem as offsets, columns and values. The first dimension is the slowest."""
    n = int(np.prod(dims))
    row = np.arange(first, last)
    columns, values, there, step = [row], [np.full(row.size, 2.0 * len(dims))], [np.ones(row.size, bool)], 1
    for size in reversed(dims):
        place = row // step % size
        for side in (-1, 1):
            columns.append(row + side * step)
            values.append(np.full(row.size, -1.0))
            there.append((place + side >= 0) & (place + side < size))
        step *= size
    order = np.argsort(np.stack(columns, 1), axis=1)
    pick = lambda parts: np.take_along_axis(np.stack(parts, 1), order, 1)
    columns, values, there = pick(columns), pick(values), pick(there)
    offsets = np.concatenate([[0], np.cumsum(there.sum(1))])
    return n, offsets, columns[there], values[there]


def csr(offsets, columns, values, width):
    to = lambda a: torch.from_numpy(a.astype(np.int32)).cuda()
    size = (len(offsets) - 1, width)
    return torch.sparse_csr_tensor(to(offsets), to(columns), torch.from_numpy(values).cuda(), size=size)


class Part:
    """The rows of a rank. Columns are numbered: its own first, then the plane before its own, then the plane after."""

    def __init__(self, dims, rank, ranks):
        plane = int(np.prod(dims[1:]))
        first, last = rank * dims[0] // ranks * plane, (rank + 1) * dims[0] // ranks * plane
        _, offsets, columns, values = rows_of(dims, first, last)
        self.n, self.rank, self.ranks, self.plane = last - first, rank, ranks, plane
        place = columns - first
        place = np.where(columns < first, self.n + columns - (first - plane), place)
        place = np.where(columns >= last, self.n + plane + columns - last, place)
        self.a = csr(offsets, place, values, self.n + 2 * plane)
        f64 = dict(dtype=torch.float64, device="cuda")
        self.p = torch.zeros(self.n + 2 * plane, **f64)
        self.own = self.p[: self.n]
        self.x, self.r, self.q = (torch.zeros(self.n, **f64) for _ in range(3))
        self.rho, self.pq, self.rr = (torch.zeros((), **f64) for _ in range(3))

    def exchange(self):
        n, plane, ops = self.n, self.plane, []
        if self.rank > 0:
            ops += [dist.P2POp(dist.isend, self.p[:plane], self.rank - 1)]
            ops += [dist.P2POp(dist.irecv, self.p[n : n + plane], self.rank - 1)]
        if self.rank + 1 < self.ranks:
            ops += [dist.P2POp(dist.isend, self.p[n - plane : n], self.rank + 1)]
            ops += [dist.P2POp(dist.irecv, self.p[n + plane :], self.rank + 1)]
        if ops:
            for work in dist.batch_isend_irecv(ops):
                work.wait()

    def start(self, b):
        self.x.zero_()
        self.r.copy_(b)
        self.own.copy_(b)
        self.rho.copy_(torch.dot(self.r, self.r))
        dist.all_reduce(self.rho)

    def iterate(self):
        self.exchange()
        self.q.copy_(self.a @ self.p)
        self.pq.copy_(torch.dot(self.own, self.q))
        dist.all_reduce(self.pq)
        alpha = self.rho / self.pq
        self.x.add_(alpha * self.own)
        self.r.sub_(alpha * self.q)
        self.rr.copy_(torch.dot(self.r, self.r))
        dist.all_reduce(self.rr)
        self.own.mul_(self.rr / self.rho).add_(self.r)
        self.rho.copy_(self.rr)


def seconds(work, times):
    torch.cuda.synchronize()
    dist.barrier()
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(times):
        work()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / times


def captured(work):
    """Captures the work as a graph, after three runs in which libraries allocate what they need."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            work()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return graph.replay


def run(rank, ranks, cases):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29517", TORCH_NCCL_ASYNC_ERROR_HANDLING="0")
    os.environ.setdefault("NCCL_NVLS_ENABLE", "0")
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=ranks, device_id=torch.device("cuda", rank))
    say = lambda *words: print(*words, flush=True) if rank == 0 else None
    say("NCCL", torch.cuda.nccl.version(), "on", ranks, torch.cuda.get_device_name())
    if ranks > 1:
        sums = torch.ones(1, dtype=torch.float64, device="cuda")
        halo = torch.ones((2, 256 * 256), dtype=torch.float64, device="cuda")
        peer = rank ^ 1

        def rounds():
            if peer < ranks:
                ops = [dist.P2POp(dist.isend, halo[0], peer), dist.P2POp(dist.irecv, halo[1], peer)]
                for work in dist.batch_isend_irecv(ops):
                    work.wait()
            dist.all_reduce(sums)
            dist.all_reduce(sums)

        by_one = min(seconds(rounds, 200) for _ in range(3))
        replay = captured(rounds)
        in_graph = min(seconds(replay, 200) for _ in range(3))
        say(f"two sums and a halo of 256^2: {1e6 * in_graph:.1f} us captured, {1e6 * by_one:.1f} us one by one")
    for case in cases:
        dims = [int(size) for size in case.split("x")]
        part = Part(dims, rank, ranks)
        generator = torch.Generator(device="cuda").manual_seed(3 + rank)
        b = torch.rand(part.n, dtype=torch.float64, device="cuda", generator=generator) - 0.5
        part.start(b)
        part.iterate()
        by_one = min(seconds(part.iterate, ITERATIONS) for _ in range(2))
        try:
            replay = captured(part.iterate)
            part.start(b)
            in_graph = f"{1e6 * min(seconds(replay, ITERATIONS) for _ in range(3)):.1f}"
        except RuntimeError as error:
            in_graph = f"none ({str(error).splitlines()[0]})"
        # Checks that this is conjugate gradients: the recurrence's residual after 50 iterations is close to b - A x.
        part.start(b)
        for _ in range(50):
            part.iterate()
        carried = float(part.rr.sqrt())
        part.own.copy_(part.x)
        part.exchange()
        true = b - part.a @ part.p
        square = torch.dot(true, true)
        dist.all_reduce(square)
        say(
            f"{case:12} {ranks} GPUs {in_graph} us an iteration captured, {1e6 * by_one:.1f} one by one; residual after 50 "
            f"{carried:.6e}, b - A x {float(square.sqrt()):.6e}"
        )
        del part, b, true
        torch.cuda.empty_cache()
    dist.destroy_process_group()


if __name__ == "__main__":
    ranks = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    cases = sys.argv[2:] or ["64x64x64", "128x128x128", "256x256x256", "400x400x400"]
    mp.spawn(run, args=(ranks, cases), nprocs=ranks)
