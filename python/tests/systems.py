"""Matrices that tests share."""

import numpy as np
import scipy.sparse as sparse

DTYPES = [np.float32, np.float64, np.complex64, np.complex128]
FORMATS = ["csr", "csc", "coo", "bsr", "dia"]


def tolerance(dtype) -> float:
    """The library's own relative tolerance for a type."""
    return 1e-5 if np.finfo(dtype).eps > 1e-10 else 1e-8


def dominant(n: int, dtype=np.float64, seed: int = 0, symmetric: bool = False) -> sparse.csr_array:
    """A random, strictly diagonally dominant matrix with rows of different lengths."""
    rng = np.random.default_rng(seed)
    a = sparse.random_array((n, n), density=min(1.0, 4 / n), rng=rng, dtype=np.float64).tocsr()
    if np.dtype(dtype).kind == "c":
        a = a + 1j * sparse.random_array((n, n), density=min(1.0, 4 / n), rng=rng).tocsr()
    if symmetric:
        a = a + a.conj().T
    weight = np.asarray(abs(a).sum(axis=1)).reshape(-1) + 1
    return sparse.csr_array(a + sparse.diags_array(weight)).astype(dtype)


def random_vector(n: int, dtype, seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(n)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * rng.standard_normal(n)
    return values.astype(dtype)


def residual(a, x, b) -> float:
    """||b - A x|| / ||b|| in double precision."""
    wide = np.complex128 if np.iscomplexobj(x) or np.iscomplexobj(b) else np.float64
    r = b.astype(wide) - a @ x.astype(wide)
    return float(np.linalg.norm(r) / np.linalg.norm(b))


def rounding(a: np.ndarray, x, b) -> float:
    """The size of ||b - A x|| / ||b|| that rounding in the type of x may cause."""
    eps = float(np.finfo(x.dtype).eps)
    size = float(np.linalg.norm(a.astype(np.complex128))) * float(np.linalg.norm(x.astype(np.complex128)))
    return 4 * eps * (1 + size / float(np.linalg.norm(b)))
