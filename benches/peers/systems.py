#!/usr/bin/env python3
"""Sparse systems solved by SuperLU (SciPy), UMFPACK and PETSc, each in its own process with a time limit.

    python3 benches/peers/systems.py MATRIX.mtx ... [--limit 120] [--peers superlu,superlu-mmd,umfpack,petsc-lu,...]

b = A x with a random x. Printed are seconds from the matrix in memory to x (analysis, factors, solve), the same in
processor time, the residual ||b - A x|| / ||b|| computed anew, and the peak memory of the process. UMFPACK and PETSc
are those of the system (libumfpack, petsc4py); if one is missing, its rows say so. The matrices are made by `residua
generate`.
"""

import argparse, ctypes, ctypes.util, json, resource, subprocess, sys, time
import numpy as np
import scipy.io, scipy.sparse as sp, scipy.sparse.linalg as sla

PEERS = ["superlu", "superlu-mmd", "umfpack", "petsc-lu", "petsc-mumps", "petsc-gmres"]


def umfpack(a, b):
    """UMFPACK through its C interface; its solve includes iterative refinement."""
    lib = ctypes.CDLL(ctypes.util.find_library("umfpack"))
    a = a.tocsc()
    a.sort_indices()
    ptr = lambda v: v.ctypes.data_as(ctypes.c_void_p)
    p, i, n = a.indptr.astype(np.int64), a.indices.astype(np.int64), a.shape[0]
    is_complex = np.iscomplexobj(a)
    kind = "zl" if is_complex else "dl"
    call = lambda name: getattr(lib, f"umfpack_{kind}_{name}")
    x = np.zeros(n, dtype=a.dtype)
    values = lambda v: (ptr(v), None) if is_complex else (ptr(v),)
    symbolic, numeric, size = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_long
    pattern, numbers = (ptr(p), ptr(i)), values(a.data)
    codes = [call("symbolic")(size(n), size(n), *pattern, *numbers, ctypes.byref(symbolic), None, None)]
    codes.append(call("numeric")(*pattern, *numbers, symbolic, ctypes.byref(numeric), None, None))
    codes.append(call("solve")(size(0), *pattern, *numbers, *values(x), *values(b), numeric, None, None))
    if any(code < 0 for code in codes):
        raise RuntimeError(f"UMFPACK: {codes}")
    return x


def petsc(a, b, way):
    from petsc4py import PETSc

    if np.iscomplexobj(a) and not np.issubdtype(PETSc.ScalarType, np.complexfloating):
        raise RuntimeError("this PETSc has real numbers alone")
    a = a.tocsr()
    m = PETSc.Mat().createAIJ(a.shape, csr=(a.indptr.astype("i4"), a.indices.astype("i4"), a.data))
    ksp = PETSc.KSP().create()
    ksp.setOperators(m)
    ksp.setTolerances(rtol=1e-9, max_it=10000)
    ksp.setType("gmres" if way == "gmres" else "preonly")
    pc = ksp.getPC()
    if way == "gmres":
        ksp.getPC().setType("ilu")
    else:
        pc.setType("lu")
        if way == "mumps":
            pc.setFactorSolverType("mumps")
    ksp.setFromOptions()
    v, x = m.createVecs()
    x.setArray(b)
    ksp.solve(x, v)
    return v.getArray().copy()


def solve(peer, a, b):
    if peer == "superlu":
        return sla.splu(a).solve(b)
    if peer == "superlu-mmd":
        symmetric = dict(permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.01, options=dict(SymmetricMode=True))
        return sla.splu(a, **symmetric).solve(b)
    if peer == "umfpack":
        return umfpack(a, b)
    return petsc(a, b, peer.split("-")[1])


def one(peer, path):
    a = scipy.io.mmread(path)
    a = sp.csc_matrix(a)
    a.sort_indices()
    random = np.random.default_rng(1)
    x = random.standard_normal(a.shape[0]).astype(a.dtype)
    b = a @ x
    start, used = time.perf_counter(), time.process_time()
    found = solve(peer, a, b)
    seconds, cpu = time.perf_counter() - start, time.process_time() - used
    residual = np.linalg.norm(b - a @ found) / np.linalg.norm(b)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(json.dumps(dict(seconds=seconds, cpu=cpu, residual=residual, gib=peak)))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("matrices", nargs="+")
    parser.add_argument("--limit", type=float, default=120)
    parser.add_argument("--peers", default=",".join(PEERS))
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        return one(args.peers, args.matrices[0])
    for path in args.matrices:
        for peer in args.peers.split(","):
            command = [sys.executable, __file__, path, "--one", "--peers", peer]
            try:
                done = subprocess.run(command, capture_output=True, text=True, timeout=args.limit)
                lines = done.stdout.strip().splitlines()
                if done.returncode == 0 and lines:
                    told = json.loads(lines[-1])
                    text = "{seconds:8.2f} s {cpu:8.2f} s cpu  {residual:.1e}  {gib:.2f} GiB".format(**told)
                else:
                    text = (done.stderr.strip().splitlines() or ["ended without a word"])[-1][:100]
            except subprocess.TimeoutExpired:
                text = f"more than {args.limit:.0f} s with reading"
            print(f"{path.split('/')[-1]:24} {peer:12} {text}", flush=True)


if __name__ == "__main__":
    main()
