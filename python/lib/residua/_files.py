"""Files, model problems, the analysis of a matrix, and the list of devices."""

from __future__ import annotations

import html
import os
from typing import Any

import numpy as np
import scipy.sparse as sparse

from . import _device, _matrix, _residua


def _csr(parts: Any) -> sparse.csr_array:
    _, shape, offsets, indices, values = parts
    matrix = sparse.csr_array((values, indices, offsets), shape=shape)
    # The library's rows are sorted and have no duplicates, so SciPy need not check.
    matrix.has_sorted_indices = True
    matrix.has_canonical_format = True
    return matrix


def read(path: str | os.PathLike[str]) -> Any:
    """Reads a file: Matrix Market, a SuiteSparse archive, Rutherford-Boeing, Harwell-Boeing, SciPy's ``.npz``, NumPy's
    ``.npy`` or PETSc's binary. Its content decides, not its name; all but ``.npz`` may be compressed by gzip.

    Parameters
    ----------
    path : path
        The file, or "-" for standard input, which must be Matrix Market.

    Returns
    -------
    scipy.sparse.csr_array, or numpy.ndarray of shape (m, k) for a full array
        float64 or complex128. Symmetric files give both triangles; entries that are listed twice are added up.

    Raises
    ------
    OSError
        If the file cannot be read.
    ValueError
        If it has none of these formats; the message names file, line and cause.

    Warns
    -----
    UserWarning
        If a symmetric file lists both triangles, with values that agree: each entry is taken once, but other
        programs may add them up.

    Examples
    --------
    >>> import os, tempfile, residua
    >>> path = os.path.join(tempfile.mkdtemp(), "a.mtx")
    >>> residua.write(path, residua.generate("poisson2d", (4, 4)))
    >>> residua.read(path).shape
    (16, 16)
    """
    parts = _residua.read(os.fspath(path))
    if parts[0] == "dense":
        _, shape, values = parts
        return values.reshape(shape, order="F")
    return _csr(parts)


def write(path: str | os.PathLike[str], a: Any, *, comment: str | None = None, detect_symmetry: bool = True) -> None:
    """Writes a matrix or a vector as a Matrix Market file; a name that ends in .gz is compressed.

    Parameters
    ----------
    path : path
        The file, which appears when it is complete; "-" is standard output.
    a : sparse matrix, or array of shape (m,) or (m, k)
        Sparse ones are written as coordinates, arrays as arrays. Reading gives the same bits.
    comment : str, optional
        Text below the banner.
    detect_symmetry : bool
        Whether a symmetric matrix is written as its lower triangle.

    Raises
    ------
    OSError
        If the file cannot be written; the target is then unchanged.
    ValueError, TypeError
        If `a` is not a matrix or vector.

    Examples
    --------
    >>> import os, tempfile, numpy as np, residua
    >>> path = os.path.join(tempfile.mkdtemp(), "b.mtx")
    >>> residua.write(path, np.ones(3))
    >>> residua.read(path).ravel()
    array([1., 1., 1.])
    """
    a = _matrix.from_foreign(a)
    if sparse.issparse(a):
        _residua.write_matrix(os.fspath(path), *_matrix.arrays_of(a), comment, detect_symmetry)
        return
    a = _matrix.to_numpy(a)
    if a.ndim not in (1, 2):
        raise ValueError(f"the array has shape {a.shape}, but one or two dimensions are needed")
    columns = a.reshape(a.shape[0], -1) if a.size else a.reshape(a.shape[0], a.shape[1] if a.ndim == 2 else 1)
    values = np.ascontiguousarray(columns.reshape(-1, order="F"), dtype=_matrix.scalar_type(a.dtype))
    _residua.write_dense(os.fspath(path), columns.shape, values, comment)


def generate(name: str, size: int | tuple[int, ...] | None = None, **parameters: Any) -> sparse.csr_array:
    """Generates the matrix of a model problem.

    Parameters
    ----------
    name : str
        One of :func:`models`: "poisson2d", "elasticity3d", "convection3d", "circuit", ...
    size : int or tuple of int, optional
        Points, elements or rows in each dimension; one number stands for all of them.
    **parameters
        The parameters of the model: seed, anisotropy, contrast, ...

    Returns
    -------
    scipy.sparse.csr_array
        float64, complex128 for complex models.

    Raises
    ------
    ValueError
        If there is no such model, or a parameter is out of range.
    TypeError
        If the model has no such parameter.

    Examples
    --------
    >>> import residua
    >>> residua.generate("poisson2d", (3, 3)).shape
    (9, 9)
    """
    sizes = [] if size is None else [int(extent) for extent in np.atleast_1d(size)]
    if any(extent < 0 for extent in sizes):
        raise ValueError(f"size is {size}, but all its numbers must be at least 1")
    return _csr(_residua.generate(name, sizes, parameters))


def models() -> dict[str, dict[str, Any]]:
    """The model problems by name, each with the keys "about", "size" (default) and "parameters".

    Examples
    --------
    >>> import residua
    >>> residua.models()["poisson2d"]["size"]
    (64, 64)
    """
    return {
        name: {"about": about, "size": tuple(size), "parameters": tuple(parameters)}
        for name, about, size, parameters in _residua.models()
    }


class Info:
    """The analysis of a matrix.
    Attributes
    ----------
    facts : dict
        Figures by name: rows, columns, nonzeros, kind, definiteness, structure, ...
    words : list of str
        The same in sentences. Rows and columns count from 1 here, as in files.
    methods : list of dict
        Methods with "fit" ("suits", "possible", "impossible") and "reason", the best first.
    """

    def __init__(self, arrays: _matrix.Arrays) -> None:
        self.facts, self.words, self.methods = _residua.look(*arrays)
        self._arrays = arrays

    def spy_svg(self, name: str = "matrix") -> str:
        """A picture of the pattern, as the text of an SVG file."""
        return _residua.spy(*self._arrays, name)

    def __repr__(self) -> str:
        facts = self.facts
        return f"<residua.Info: {facts['rows']} x {facts['columns']}, {facts['nonzeros']} entries, {facts['kind']}>"

    def __str__(self) -> str:
        fits = [f"{each['method']}: {each['fit']}, {each['reason']}" for each in self.methods]
        return "\n".join([repr(self), *self.words, *fits])

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{html.escape(each['method'])}</td><td>{html.escape(each['fit'])}</td>"
            f"<td>{html.escape(each['reason'])}</td></tr>"
            for each in self.methods
        )
        words = "".join(f"<p>{html.escape(sentence)}</p>" for sentence in self.words)
        table = f"<table><tr><th>method</th><th>fit</th><th>why</th></tr>{rows}</table>"
        return f"<div>{html.escape(repr(self))}{words}{table}{self.spy_svg()}</div>"


def info(A: Any) -> Info:
    """Analyses a matrix, and lists the methods that can solve with it.

    Parameters
    ----------
    A : sparse or dense matrix, shape (m, n)

    Returns
    -------
    Info
        A notebook shows it with a picture of the matrix.

    Examples
    --------
    >>> import residua
    >>> residua.info(residua.generate("poisson2d", (30, 30))).facts["kind"]
    'symmetric'
    """
    return Info(_matrix.arrays_of(A))


def devices() -> list[dict[str, Any]]:
    """Lists the devices: the CPU first, then each GPU.

    Returns
    -------
    list of dict
        "name" is the value for ``device=``. The CPU has "threads", and "cuda" with the releases of the driver, of the
        compiler and of cuDSS (which factorises on a GPU; nothing else needs it), or the reason why one is missing, and
        "kernels", how many kernel files came compiled with this package, by chip; GPUs have "product", "memory"
        (bytes), "capability", and "kernels", how many of them are for it (others are compiled at first use).

    Examples
    --------
    >>> import residua
    >>> residua.devices()[0]["name"]
    'cpu'
    """
    _device.find_compiler()
    threads, gpus, software = _residua.devices()
    return [{"name": "cpu", "threads": threads, "cuda": software}, *gpus]
