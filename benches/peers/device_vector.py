"""The peer of benches/device/main.rs: CuPy (cuBLAS) on the same device. It prints the same quantities."""

import time

import cupy as cp


def median(call, repeats):
    for _ in range(3):
        call()
    times = []
    for _ in range(9):
        cp.cuda.Device().synchronize()
        start = time.perf_counter()
        for _ in range(repeats):
            call()
        cp.cuda.Device().synchronize()
        times.append((time.perf_counter() - start) / repeats)
    return sorted(times)[4]


def main():
    print("cupy", cp.__version__)
    from cupy_backends.cuda.libs import cublas

    cublas.setPointerMode(cp.cuda.device.get_cublas_handle(), cublas.CUBLAS_POINTER_MODE_DEVICE)
    for dtype, dot, axpy in ((cp.float64, cublas.ddot, cublas.daxpy), (cp.float32, cublas.sdot, cublas.saxpy)):
        handle = cp.cuda.device.get_cublas_handle()
        alpha = cp.array([0.5], dtype)
        for n in (1 << 16, 1 << 20, 1 << 24, 1 << 28):
            x = (cp.arange(n, dtype=dtype) % 1000) * dtype(1e-3)
            y = (cp.arange(n, dtype=dtype) % 999) * dtype(1e-3)
            out = cp.zeros(1, dtype)
            repeats = max(4, min(200, (1 << 30) // n))
            size = x.itemsize
            cases = (
                ("dot (cuBLAS)", 2, lambda: dot(handle, n, x.data.ptr, 1, y.data.ptr, 1, out.data.ptr)),
                ("axpy (cuBLAS)", 3, lambda: axpy(handle, n, alpha.data.ptr, x.data.ptr, 1, y.data.ptr, 1)),
                ("copy", 2, lambda: cp.copyto(y, x)),
            )
            for name, words, call in cases:
                t = median(call, repeats)
                print(f"{name:<14} {x.dtype} n = {n:>9}  {t * 1e6:>9.2f} us  {words * n * size / t / 1e9:>6.0f} GB/s")
    out = cp.zeros(1)
    x = cp.ones(1000)
    print(f"dot and its value on the host: {median(lambda: float(cp.dot(x, x)), 100) * 1e6:.2f} us")
    try:
        import torch

        data = torch.full((1 << 27,), 1.5, dtype=torch.float64)
        for _ in range(2):
            torch.cuda.synchronize()
            start = time.perf_counter()
            there = data.to("cuda")
            torch.cuda.synchronize()
            up = time.perf_counter() - start
            start = time.perf_counter()
            there.to("cpu")
            print(
                f"torch {torch.__version__}, pageable: 1 GiB to the device {8 * len(data) / up / 1e9:.1f} GB/s; back {8 * len(data) / (time.perf_counter() - start) / 1e9:.1f} GB/s"
            )
    except ImportError:
        pass


if __name__ == "__main__":
    main()
