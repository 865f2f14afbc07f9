"""Reports as dictionaries, in logs and in notebooks."""

import json
import logging
import pickle

import numpy as np

import residua
from systems import dominant


def test_a_report_is_a_dictionary_for_json():
    solver = residua.Solver(dominant(50))
    report = solver.solve(np.ones(50))[1]
    told = report.to_dict()
    assert json.loads(json.dumps(told)) == told
    assert told["converged"] is True and told["method"] == report.method
    assert told["history"] == report.history.tolist()
    assert "converged" in [stage["outcome"] for stage in told["trail"]["stages"]]
    assert pickle.loads(pickle.dumps(report)).to_dict() == told


def test_decisions_are_logged_as_info_and_attempts_for_debugging(caplog):
    solver = residua.Solver(dominant(50))
    with caplog.at_level(logging.INFO, "residua"):
        report = solver.solve(np.ones(50))[1]
        for decision in report.trail["decisions"]:
            assert decision["why"] in caplog.text
        assert "converged" in caplog.messages[-1] and "tried" not in caplog.text
    caplog.clear()
    with caplog.at_level(logging.DEBUG, "residua"):
        residua.gmres(dominant(50), np.ones(50))
        residua.linalg.splu(dominant(300))
        assert "tried gmres" in caplog.text
        assert "tried direct" in caplog.text
    caplog.clear()
    with caplog.at_level(logging.WARNING, "residua"):
        residua.Solver(dominant(50), "gmres", maxiter=1, rtol=1e-14).solve(np.ones((50, 2)))
        assert not caplog.records
    assert logging.getLogger("residua").handlers


def test_a_solver_is_a_table_in_a_notebook():
    solver = residua.Solver(dominant(50), "gmres", maxiter=1, rtol=1e-14)
    page = solver._repr_html_()
    assert "50 x 50" in page and "float64" in page and page.count("<table>") == page.count("</table>") == 1
    solver.solve(np.ones((50, 2)))
    assert "<svg" in solver._repr_html_() and solver.report[0].message in solver._repr_html_()
