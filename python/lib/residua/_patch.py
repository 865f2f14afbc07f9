"""residua's functions under SciPy's names, for programs that should not be changed."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterable
from typing import Any

import scipy.sparse.linalg

from . import linalg

#: The names that are replaced: all functions of ``residua.linalg``.
NAMES = tuple(name for name in linalg.__all__ if name.islower())

#: SciPy's modules that define these names. They are left unchanged, so that SciPy's functions go on calling each other.
DEFINING = ("scipy.sparse.linalg._dsolve.linsolve", "scipy.sparse.linalg._isolve.")


def _copy(function: types.FunctionType) -> types.FunctionType:
    """Copies a function. The copy is another object, which shows which modules got it from here, not from residua.

    It is pickled under SciPy's name, so that other processes can unpickle it.
    """
    copy = types.FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    copy.__kwdefaults__, copy.__doc__ = function.__kwdefaults__, function.__doc__
    copy.__annotations__ = function.__annotations__
    copy.__module__ = "scipy.sparse.linalg"
    return copy


#: SciPy's functions as they were when residua was loaded, and their replacements.
ORIGINALS: dict[str, Any] = {name: getattr(scipy.sparse.linalg, name) for name in NAMES}
OURS: dict[str, Any] = {name: _copy(getattr(linalg, name)) for name in NAMES}


def _replace(old: dict[str, Any], new: dict[str, Any], names: Iterable[str]) -> None:
    """Replaces functions by others in all modules, under any name."""
    changes = {id(old[name]): new[name] for name in names}
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "residua" or name.startswith(DEFINING):
            continue
        space = getattr(module, "__dict__", None)
        if not isinstance(space, dict):
            continue
        for key, value in list(space.items()):
            if id(value) in changes:
                space[key] = changes[id(value)]


class Patch:
    """Functions of residua under SciPy's names, until :meth:`undo` or the end of a ``with``."""

    #: The number of active patches that replace each name.
    _held: dict[str, int] = dict.fromkeys(NAMES, 0)

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names: tuple[str, ...] = names
        _replace(ORIGINALS, OURS, [name for name in names if not self._held[name]])
        for name in names:
            self._held[name] += 1

    def undo(self) -> None:
        """Restores SciPy's functions, in modules loaded since then too; a second call does nothing."""
        names, self.names = self.names, ()
        for name in names:
            self._held[name] -= 1
        _replace(OURS, ORIGINALS, [name for name in names if not self._held[name]])

    def __enter__(self) -> Patch:
        return self

    def __exit__(self, *_: object) -> None:
        self.undo()

    def __repr__(self) -> str:
        return f"<residua.patch: {', '.join(self.names) or 'undone'}>"


def patch(*names: str) -> Patch:
    """Puts the functions of ``residua.linalg`` into ``scipy.sparse.linalg``, for programs that should not be changed.

    All loaded modules that hold one of SciPy's functions by name get residua's in its place, whether they did
    ``from scipy.sparse.linalg import spsolve`` before or do so later, and so do SciPy's own: ``eigsh`` with ``sigma``,
    implicit ODE solvers, ``expm``. Functions that a program stored in variables, default arguments or classes before
    stay SciPy's. ``python -m residua.patch program.py`` runs an unchanged program in this way.

    Parameters
    ----------
    *names : str
        "spsolve", "splu", ...; by default all functions of ``residua.linalg``.

    Returns
    -------
    patch : context manager
        ``undo()``, or the end of a ``with``, puts SciPy's functions back.

    Raises
    ------
    ValueError
        If ``residua.linalg`` has no such name.

    Examples
    --------
    >>> import numpy as np, residua, scipy.sparse.linalg
    >>> with residua.patch():
    ...     lu = scipy.sparse.linalg.splu(residua.generate("poisson2d", (30, 30)))
    >>> lu
    <residua.linalg.LU: 900 x 900, float64>
    """
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        raise ValueError(f"{unknown[0]!r} cannot be patched: choose one of {', '.join(NAMES)}")
    return Patch(tuple(dict.fromkeys(names)) or NAMES)
