# CuPy's gmres and cg, one iteration each, on the model problems of benches/methods_device.rs.
import time, cupy as cp, cupyx.scipy.sparse as sp, cupyx.scipy.sparse.linalg as la, numpy as np, scipy.sparse as ss


def lap(dims):
    n = int(np.prod(dims))
    diags = [2.0 * len(dims) * np.ones(n)]
    offs = [0]
    s = 1
    for d in reversed(dims):
        v = -np.ones(n)
        v[((np.arange(n) // s) % d) == d - 1] = 0
        diags += [v[: n - s], v[: n - s]]
        offs += [s, -s]
        s *= d
    return sp.csr_matrix(ss.diags(diags, offs, format="csr"))


def timed(f, a, b):
    f(a)
    cp.cuda.Device().synchronize()
    t = time.time()
    f(a)
    cp.cuda.Device().synchronize()
    t1 = time.time() - t
    t = time.time()
    f(b)
    cp.cuda.Device().synchronize()
    t2 = time.time() - t
    return (t2 - t1) / (b - a) * 1e6


for dims in [(256, 256, 256), (512, 512)]:
    A = lap(dims)
    n = A.shape[0]
    b = A @ cp.random.rand(n)
    for name, f in [
        ("gmres(30)", lambda it: la.gmres(A, b, rtol=1e-30, restart=30, maxiter=it)),
        ("cg", lambda it: la.cg(A, b, rtol=1e-30, maxiter=it)),
    ]:
        try:
            print("cupy", dims, name, "%.1f us/iteration" % timed(f, 60, 120), flush=True)
        except Exception as e:
            print("cupy", dims, name, e, flush=True)


# BiCGSTAB with cuSPARSE's product, cuBLAS's inner products with results on the device, and one elementwise kernel for
# each combination of vectors; the whole iteration is captured in a graph. It has five inner products, as in van der
# Vorst's algorithm.
def bicgstab(A, b):
    import cupyx.cusparse as cusparse

    n = A.shape[0]
    x, r, r0, p, v, s, t = (cp.zeros(n) for _ in range(7))
    rho, alpha, omega, beta, vr, ts, tt, rr = (cp.ones(()) for _ in range(8))
    r[:], r0[:], p[:] = b, b, b
    rho[...] = r0 @ r
    K = cp.ElementwiseKernel
    half = K("float64 r, raw float64 rho, raw float64 vr, float64 v", "float64 s", "s = r - rho[0] / vr[0] * v")
    end = K(
        "float64 p, float64 s, float64 t, raw float64 rho, raw float64 vr, raw float64 ts, raw float64 tt",
        "float64 x, float64 r",
        "double w = ts[0] / tt[0]; x += rho[0] / vr[0] * p + w * s; r = s - w * t",
    )
    turn = K(
        "float64 r, float64 v, raw float64 next, raw float64 rho, raw float64 vr, raw float64 ts, raw float64 tt",
        "float64 p",
        "double w = ts[0] / tt[0]; p = r + next[0] / rho[0] * (rho[0] / vr[0]) / w * (p - w * v)",
    )
    from cupy.cuda import cublas

    def dot(a, c, out):
        handle = cp.cuda.device.get_cublas_handle()
        mode = cublas.getPointerMode(handle)
        cublas.setPointerMode(handle, cublas.CUBLAS_POINTER_MODE_DEVICE)
        cublas.ddot(handle, n, a.data.ptr, 1, c.data.ptr, 1, out.data.ptr)
        cublas.setPointerMode(handle, mode)

    def iteration():
        cusparse.spmv(A, p, v)
        dot(r0, v, vr)
        half(r, rho, vr, v, s)
        cusparse.spmv(A, s, t)
        dot(t, s, ts)
        dot(t, t, tt)
        end(p, s, t, rho, vr, ts, tt, x, r)
        dot(r0, r, beta)
        turn(r, v, beta, rho, vr, ts, tt, p)
        cp.copyto(rho, beta)
        dot(r, r, rr)

    return iteration


for dims in [(256, 256, 256), (4096, 4096), (512, 512), (64, 64, 64)]:
    A = lap(dims)
    b = A @ (cp.random.rand(A.shape[0]) - 0.5)
    iteration = bicgstab(A, b)
    for _ in range(3):
        iteration()
    cp.cuda.Device().synchronize()
    try:
        stream = cp.cuda.Stream(non_blocking=True)
        with stream:
            iteration()
            stream.synchronize()
            stream.begin_capture()
            iteration()
            graph = stream.end_capture()
        run, how = lambda: graph.launch(stream), "graph"
    except Exception as error:
        try:
            stream.end_capture()
        except Exception:
            pass
        run, how = iteration, "launches (%s)" % str(error)[:80]
    t = time.time()
    for _ in range(100):
        run()
    cp.cuda.Device().synchronize()
    print(
        "cupy",
        dims,
        "bicgstab by cusparse and cublas, %s: %.1f us/iteration" % (how, (time.time() - t) * 1e4),
        flush=True,
    )
