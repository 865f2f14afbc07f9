"""Decisions and attempts of solves, for Python's logging: the logger ``residua``."""

from __future__ import annotations

import logging
from typing import Any

#: Decisions and outcomes at INFO, each attempt at DEBUG.
LOG = logging.getLogger("residua")
LOG.addHandler(logging.NullHandler())


def log(report: Any) -> None:
    """Logs a report, or each of a list, if the logger is enabled."""
    if not LOG.isEnabledFor(logging.INFO):
        return
    for each in report if isinstance(report, list) else [report]:
        trail = each.trail
        for decision in trail.get("decisions", ()):
            LOG.info("%s: %s (%s)", decision["subject"], decision["chosen"], decision["why"])
        for stage in trail.get("stages", ()):
            end = stage["refused"] or stage["outcome"] or "not needed"
            remark = f": {stage['remark']}" if stage["remark"] else ""
            LOG.debug(
                "tried %s with %s (%s): %s%s", stage["method"], stage["preconditioner"], stage["why"], end, remark
            )
        LOG.info("%s", repr(each).strip("<>"))
