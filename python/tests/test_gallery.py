"""The gallery: each program checks its own result and draws one picture."""

import importlib.util
import os
import pathlib
import subprocess
import sys

import pytest

GALLERY = pathlib.Path(__file__).resolve().parent.parent / "examples" / "gallery"
PROGRAMS = sorted(GALLERY.glob("*.py"))


def test_the_gallery_has_programs():
    assert len(PROGRAMS) >= 5


@pytest.mark.skipif(importlib.util.find_spec("matplotlib") is None, reason="matplotlib is not installed")
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_program_checks_its_result_and_draws_it(program, tmp_path):
    """The program writes its picture into the current folder; each run has its own, so that runs do not collide."""
    done = subprocess.run(
        [sys.executable, str(program)],
        cwd=tmp_path,
        env={**os.environ, "MPLBACKEND": "Agg"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout, "nothing is told"
    picture = tmp_path / f"{program.stem}.png"
    assert picture.read_bytes().startswith(b"\x89PNG") and picture.stat().st_size > 5000
