"""What is raised where a tolerance is not met."""

from __future__ import annotations

from typing import Any


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
        # A report is of this process; what it says in words goes along.
        return (_Restored, (str(self), self.x))


class _Restored(NotConverged):
    """A :class:`NotConverged` that came from another process, without its report."""

    def __init__(self, message: str, x: Any) -> None:
        ArithmeticError.__init__(self, message)
        self.x = x
        self.report = None
