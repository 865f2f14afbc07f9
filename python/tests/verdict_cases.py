"""Small systems, each of a type that people have reported trouble with, and what must hold for its solution.

Properties of an x are computed without rounding: a double is an integer times a power of two.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import scipy.sparse as sparse

#: Outcomes for a regular system: it is solved as accurately as double precision allows.
SOLVED = ("converged", "precision_limit")
#: Further outcomes for least-squares problems, and for matrices that can be shown to be singular.
# If pivots were replaced, perhaps no vector that shows singularity is found; then nothing is claimed.
LEAST = ("least_squares", "singular", "precision_limit")
# A matrix within rounding of a singular one may be called singular too.
NEARLY_SINGULAR = (*SOLVED, *LEAST)


@dataclass
class Case:
    """A system, and what must hold for x in addition to the verdict."""

    name: str
    a: sparse.csr_array
    b: np.ndarray
    #: The outcomes that may be reported; empty: all.
    allowed: tuple[str, ...] = SOLVED
    #: The exact x, and the largest error of an entry: absolute, or relative to the entry.
    x: np.ndarray | None = None
    within: float | None = None
    relative: float | None = None
    #: Weights of a mean of x, its exact value, and its largest relative error.
    mean: tuple[np.ndarray, float, float] | None = None
    #: Largest backward error, by rows or in norm.
    componentwise: float | None = None
    backward: float | None = None

    @property
    def regular(self) -> bool:
        """Whether the matrix must not be called singular."""
        return bool(self.allowed) and "singular" not in self.allowed

    @property
    def square(self) -> bool:
        return self.a.shape[0] == self.a.shape[1]

    def faults_of(self, x: np.ndarray) -> list[str]:
        """A list of the properties of x that are wrong."""
        if not np.isfinite(x).all():
            return ["x is not finite"]
        found = []

        def at_most(what: str, value: float, limit: float | None) -> None:
            if limit is not None and not value <= limit:
                found.append(f"{what} is {value:.3e}, at most {limit:.1e} is right")

        if self.x is not None:
            errors = np.abs(x - self.x)
            at_most("the largest error", errors.max(), self.within)
            at_most("the largest relative error", (errors / np.abs(self.x)).max(), self.relative)
        if self.mean is not None:
            weights, mean, limit = self.mean
            at_most("the error of the mean", abs(np.vdot(weights, x) / len(x) / mean - 1), limit)
        if self.componentwise is not None or self.backward is not None:
            measures = Measures(self.a, self.b, x)
            at_most("the componentwise backward error", measures.componentwise, self.componentwise)
            at_most("the backward error", measures.backward, self.backward)
        return found


def _parts(value: complex) -> tuple[float, float]:
    return float(value.real), float(value.imag)


def _exact(value: float) -> tuple[int, int]:
    """A double as an integer and an exponent of two."""
    mantissa, exponent = math.frexp(value)
    return int(mantissa * 2**53), exponent - 53


def _sum_of_products(pairs: list[tuple[float, float]]) -> Fraction:
    """The sum of products of doubles, without rounding."""
    terms = []
    for one, other in pairs:
        (m, e), (n, f) = _exact(one), _exact(other)
        if m and n:
            terms.append((m * n, e + f))
    if not terms:
        return Fraction(0)
    lowest = min(exponent for _, exponent in terms)
    total = sum(mantissa << (exponent - lowest) for mantissa, exponent in terms)
    return Fraction(total << lowest) if lowest >= 0 else Fraction(total, 1 << -lowest)


def exact_residual(a: sparse.csr_array, b: np.ndarray, x: np.ndarray) -> np.ndarray:
    """b - A x in exact arithmetic, each entry rounded once."""
    result = np.empty(len(b), np.complex128)
    entries = [_parts(value) for value in a.data]
    xs, bs = [_parts(value) for value in x], [_parts(value) for value in b]
    for i in range(len(bs)):
        real, imaginary = [(bs[i][0], 1.0)], [(bs[i][1], 1.0)]
        for k in range(a.indptr[i], a.indptr[i + 1]):
            (ar, ai), (xr, xi) = entries[k], xs[a.indices[k]]
            real += [(-ar, xr), (ai, xi)]
            imaginary += [(-ar, xi), (-ai, xr)]
        result[i] = complex(float(_sum_of_products(real)), float(_sum_of_products(imaginary)))
    return result


class Measures:
    """Errors and residual norms of an x, from its exact residual."""

    def __init__(self, a: sparse.csr_array, b: np.ndarray, x: np.ndarray) -> None:
        a = sparse.csr_array(a)
        r = exact_residual(a, b, x)
        sizes = abs(a) @ np.abs(x) + np.abs(b)
        rows = np.sqrt(np.asarray((abs(a) ** 2).sum(axis=1)).reshape(-1))
        # The square of a denormal number is zero.
        rows = np.where(rows > 0, rows, np.asarray(abs(a).max(axis=1).todense()).reshape(-1))
        used = rows > 0
        norm = np.linalg.norm
        self.relative = _over(norm(r), norm(b))
        self.row_wise = _over(norm(abs(r)[used] / rows[used]), norm(abs(b)[used] / rows[used]))
        size = norm(a.data)
        self.backward = _over(norm(r), size * norm(x) + norm(b))
        self.componentwise = float(np.max(np.divide(np.abs(r), sizes, out=np.zeros(len(r)), where=r != 0)))
        self.normal = _over(norm(a.conj().T @ r), size * norm(r))


def _over(above: float, below: float) -> float:
    return float(above / below) if above else 0.0


def path(n: int, ends: float) -> sparse.csr_array:
    """The Laplacian of a path. With `ends` = 1 nothing is fixed; with 2 both ends are tied to zero."""
    diagonal = np.full(n, 2.0)
    diagonal[[0, -1]] = ends
    return sparse.diags_array([-np.ones(n - 1), diagonal, -np.ones(n - 1)], offsets=[-1, 0, 1]).tocsr()


def grid(n: int, ends: float = 2.0) -> sparse.csr_array:
    one, line = sparse.eye_array(n), path(n, ends)
    return sparse.csr_array(sparse.kron(one, line) + sparse.kron(line, one))


def plane_stress(m: int, ratio: float = 0.3) -> sparse.csr_array:
    """m by m bilinear squares with nothing fixed: three rigid motions are the null space."""
    law = np.array([[1, ratio, 0], [ratio, 1, 0], [0, 0, (1 - ratio) / 2]]) / (1 - ratio**2)
    point, stiffness = 1 / math.sqrt(3), np.zeros((8, 8))
    for x in (-point, point):
        for y in (-point, point):
            strain = np.zeros((3, 8))
            strain[0, ::2] = strain[2, 1::2] = np.array([y - 1, 1 - y, 1 + y, -1 - y]) / 2
            strain[1, 1::2] = strain[2, ::2] = np.array([x - 1, -1 - x, 1 + x, 1 - x]) / 2
            stiffness += strain.T @ law @ strain / 4
    n = m + 1
    corner = (np.arange(m)[:, None] * n + np.arange(m)).reshape(-1)
    nodes = np.stack([corner, corner + 1, corner + n + 1, corner + n], axis=1)
    unknowns = np.stack([2 * nodes, 2 * nodes + 1], axis=2).reshape(-1, 8)
    rows, columns = np.repeat(unknowns, 8, axis=1).reshape(-1), np.tile(unknowns, (1, 8)).reshape(-1)
    shape = (2 * n * n, 2 * n * n)
    return sparse.coo_array((np.tile(stiffness.reshape(-1), m * m), (rows, columns)), shape=shape).tocsr()


def all_cases() -> list[Case]:
    """All cases, of each type and size."""
    makers = (_cancelling, _leaking, _chains, _rows_in_units, _eigenvalues, _least_squares, _denormal)
    return [case for make in makers for case in make()]


def _case(name: str, a, b, allowed: tuple[str, ...] = SOLVED, **right) -> Case:
    a = sparse.csr_array(a, dtype=np.float64)
    a.sort_indices()
    return Case(name, a, np.asarray(b, dtype=np.float64), allowed, **right)


def _cancelling():
    """Matrices in which the terms of a row nearly cancel; a certificate must notice it."""
    rng = np.random.default_rng(11)
    pairs = [(0.97, 0.28, 1.5e-15), (0.12, 0.17, 1e-14), (0.52, 0.57, 4.6e-15), (0.3, 0.7, 1e-12)]
    for k, (g, ell, d) in enumerate(pairs):
        a = np.array([[-g, ell], [g * (1 - d), -ell]])
        # With the smaller d, A is within a few hundred rounding errors of a singular matrix.
        allowed = NEARLY_SINGULAR if d < 2e-13 else SOLVED
        yield _case(f"pair-{k}", a, np.ones(2), allowed)
        network = grid(30) + 0.1 * sparse.eye_array(900, k=1)
        b = np.r_[0.01 * rng.random(900), 1, 1]
        yield _case(f"pair-in-a-network-{k}", sparse.block_diag([network, a]), b, allowed)
    row = ([1e17, 1, -1e17, 1, 1, 1], ([0, 0, 0, 1, 2, 3], [0, 1, 2, 1, 2, 3]))
    yield _case("cancelling-row", sparse.csr_array(row, shape=(4, 4)), [0, 1, 1, 1e5])


def _leaking():
    """Regular matrices whose rows nearly add up to zero."""
    n = 40
    for g in (1e-8, 1e-10, 1e-11, 1e-12):
        b = np.eye(1, n * n)[0]
        # The error of the mean comes from the condition, and from a residual that just meets the tolerance.
        mean = np.ones(n * n), 1 / (n * n * g), max(100 * np.finfo(float).eps / g, 1e-6)
        yield _case(f"leak-{g:.0e}", grid(n, 1) + g * sparse.eye_array(n * n), b, mean=mean)
    x = 1 / 3e-8 + np.array([5, -1, -4]) / 9
    yield _case("leak-of-three", path(3, 1) + 1e-8 * sparse.eye_array(3), [1, 0, 0], x=x, relative=1e-6)


def _chains():
    """Unit lower bidiagonal and growing: substitution gives x to the last bits."""
    for f, n in ((1000.0, 9), (1.1, 320), (7.0, 25)):
        a = sparse.eye_array(n) - f * sparse.eye_array(n, k=-1)
        yield _case(f"chain-{f:g}-{n}", a, np.eye(1, n)[0], x=f ** np.arange(n), relative=1e-10)


def _rows_in_units():
    """Fixed values as identity rows, penalties, two fields in different units."""
    rng = np.random.default_rng(12)
    n = 61
    i, j = np.arange(n * n) % n, np.arange(n * n) // n
    fixed = (i == 0) | (i == n - 1)
    for d in (1e-3, 1e-6, 1e-9):
        a = sparse.diags_array(1.0 * ~fixed) @ (d * grid(n, 1)) + sparse.diags_array(1.0 * fixed)
        b = np.where(i == 0, 1000.0, np.where(fixed, 500.0, 0.0))
        yield _case(f"identity-rows-{d:.0e}", a, b, x=1000 - 500 * i / (n - 1), within=0.1)
    rim = fixed | (j == 0) | (j == n - 1)
    for p in (1e6, 1e12, 1e30):
        a = grid(n) + sparse.diags_array(np.where(rim, p, 0.0))
        yield _case(f"penalty-{p:.0e}", a, np.where(rim, p * (1 + i / n), 0.0), x=1 + i / n, within=1e-3)
    for s in (1e-10, 1e-16, 1e-20):
        field = path(60, 2) + 2 * sparse.eye_array(60)
        a = sparse.block_array([[field, sparse.diags_array(rng.random(60))], [None, s * field]])
        yield _case(f"two-fields-{s:.0e}", a, np.r_[np.zeros(60), s * rng.random(60)], componentwise=1e-13)


def _eigenvalues():
    """Shifts close to an eigenvalue: a factorisation must reach the accuracy of double precision."""
    k = 60
    b = np.random.default_rng(13).standard_normal(k * k)
    eigenvalue = 4 - 4 * math.cos(math.pi / (k + 1))
    for off in (1e-8, 1e-10, 1e-12):
        a = grid(k) - (eigenvalue - off) * sparse.eye_array(k * k)
        yield _case(f"near-an-eigenvalue-{off:.0e}", a, b, backward=1e-14)


def _least_squares():
    rng = np.random.default_rng(14)
    a = plane_stress(24)
    yield _case("free-body", a, rng.standard_normal(a.shape[0]), LEAST)
    tall = rng.standard_normal((400, 60)) * 10 ** rng.uniform(-8, 0, (400, 1))
    yield _case("tall-rows-scaled", tall, rng.standard_normal(400), ())
    left, right = (np.linalg.qr(rng.standard_normal((m, 60)))[0] for m in (400, 60))
    yield _case("tall-ill-conditioned", left * 10.0 ** -np.linspace(0, 11, 60) @ right, rng.standard_normal(400), ())


def _denormal():
    """Entries below the normal numbers: symmetric, and not."""
    for name, other, last in (("symmetric", 1.0, 0.2), ("unsymmetric", 0.5, 0.75 / 2.75)):
        a = np.array([[4e-310, 0, 0], [0, 2, 1], [0, other, 3]])
        x = np.array([1, (1 - last) / 2, last])
        yield _case(f"denormal-diagonal-{name}", a, [4e-310, 1, 1], x=x, relative=1e-7)


def turned(case: Case, seed: int = 3) -> Case:
    """The same with complex numbers: P A P^H (P x) = P b with powers of i in P. Nothing is rounded."""
    size = max(case.a.shape)
    turns = np.array([1, 1j, -1, -1j])[np.random.default_rng(seed).integers(0, 4, size)]
    rows, columns = turns[: case.a.shape[0]], turns[: case.a.shape[1]]
    a = case.a.astype(np.complex128)
    a.data = np.repeat(rows, np.diff(a.indptr)) * a.data * columns[a.indices].conj()
    return replace(
        case,
        name=f"{case.name}-complex",
        a=a,
        b=rows * case.b,
        x=None if case.x is None else columns * case.x,
        mean=None if case.mean is None else (columns, *case.mean[1:]),
    )


def permuted(case: Case, seed: int = 4) -> Case:
    """The same system with its rows in another order, and its columns too if the matrix is square."""
    rng = np.random.default_rng(seed)
    rows = rng.permutation(case.a.shape[0])
    columns = rows if case.square else rng.permutation(case.a.shape[1])
    a = sparse.csr_array(case.a[rows][:, columns])
    a.sort_indices()
    x = None if case.x is None else case.x[columns]
    return replace(case, name=f"{case.name}-permuted", a=a, b=case.b[rows], x=x)
