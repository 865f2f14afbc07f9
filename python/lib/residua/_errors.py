"""Exceptions and warnings for a tolerance that is not met, and reports from another process."""

from __future__ import annotations

import types
from typing import Any

from ._residua import Report


class PrecisionWarning(UserWarning):
    """x is as accurate as the precision of A allows, but misses the tolerance: A is ill-conditioned."""


class NotConverged(ArithmeticError):
    """A solve did not meet its tolerance.

    Attributes
    ----------
    x : numpy.ndarray
        The last iterate.
    report : Report or list of Report
        The outcome of the solve; a list if there were several right-hand sides.
    """

    def __init__(self, x: Any, report: Any) -> None:
        worst = report
        if isinstance(report, list):
            worst = next((each for each in report if not each.converged), report[0])
        super().__init__(
            f"{worst.message}: relative residual {worst.relative_residual:.3e} after {worst.iterations} iterations "
            f"of {worst.method} with {worst.preconditioner}, the tolerance was {worst.tolerance:.1e}"
        )
        self.x = x
        self.report = report

    def __reduce__(self) -> Any:
        return (NotConverged, (self.x, self.report))


class RestoredReport(types.SimpleNamespace):
    """A :class:`Report` from another process, with the same attributes."""

    def __reduce__(self) -> Any:
        return (restored, (vars(self),))

    def to_dict(self) -> dict[str, Any]:
        """The contents by name, in types that JSON supports."""
        return {**vars(self), "history": [float(norm) for norm in self.history]}


def attributes(report: Any) -> dict[str, Any]:
    """The contents of a report by name."""
    names = (name for name in dir(type(report)) if not name.startswith("_"))
    return {name: value for name in names if not callable(value := getattr(report, name))}


def to_dict(report: Any) -> dict[str, Any]:
    """The contents of a report by name, in types that JSON supports: numbers, words, lists and dictionaries.

    ``history`` is a list of residual norms.
    """
    told = attributes(report)
    told["history"] = [float(norm) for norm in told["history"]]
    return told


def restored(told: dict[str, Any]) -> RestoredReport:
    """Makes a report from its contents."""
    return RestoredReport(**told)


# These methods need only the report's attributes, so they are written here and added to the compiled class.
Report.to_dict = to_dict  # type: ignore
