"""What is raised and warned of where a tolerance is not met, and reports that come from another process."""

from __future__ import annotations

import types
from typing import Any

from ._residua import Report


class PrecisionWarning(UserWarning):
    """x is as near as the precision of A allows, and does not meet the tolerance: A is ill-conditioned."""


class NotConverged(ArithmeticError):
    """A solve that has not met its tolerance.

    Attributes
    ----------
    x : numpy.ndarray
        The last iterate.
    report : Report or list of Report
        How the solve ended, one for each right-hand side where there were several.
    """

    def __init__(self, x: Any, report: Any) -> None:
        worst = report
        if isinstance(report, list):
            worst = next((each for each in report if not each.converged), report[0])
        super().__init__(
            f"{worst.message}: relative residual {worst.relative_residual:.3e} after {worst.iterations} iterations "
            f"of {worst.method} with {worst.preconditioner}, {worst.tolerance:.1e} was asked for"
        )
        self.x = x
        self.report = report

    def __reduce__(self) -> Any:
        return (NotConverged, (self.x, self.report))


class RestoredReport(types.SimpleNamespace):
    """A :class:`Report` that came from another process: the attributes that it had there."""

    def __reduce__(self) -> Any:
        return (restored, (vars(self),))

    def to_dict(self) -> dict[str, Any]:
        """What it tells, by name, as JSON takes it."""
        return {**vars(self), "history": [float(norm) for norm in self.history]}


def attributes(report: Any) -> dict[str, Any]:
    """What a report tells, by name."""
    names = (name for name in dir(type(report)) if not name.startswith("_"))
    return {name: value for name in names if not callable(value := getattr(report, name))}


def to_dict(report: Any) -> dict[str, Any]:
    """What a report tells, by name, as JSON takes it: numbers, words, lists and dictionaries.

    ``history`` is a list of residual norms.
    """
    told = attributes(report)
    told["history"] = [float(norm) for norm in told["history"]]
    return told


def restored(told: dict[str, Any]) -> RestoredReport:
    """The report that told this."""
    return RestoredReport(**told)


# The compiled class takes what needs no more than its attributes.
Report.to_dict = to_dict  # type: ignore
