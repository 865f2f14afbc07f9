"""Runs each program with SciPy's functions and with residua's, and prints what differs."""

import pathlib
import subprocess
import sys
import tempfile

import numpy as np
from programs import PROGRAMS

#: How far a result may be from SciPy's, relative to its largest entry: many solves in a row differ in rounding.
NEAR = 1e-6


def run(name: str, whose: str, path: pathlib.Path) -> str:
    """Runs a program, and returns the last line of its error; an empty text if it succeeded."""
    command = [sys.executable, str(pathlib.Path(__file__).with_name("programs.py")), name, whose, str(path)]
    ended = subprocess.run(command, capture_output=True, text=True)
    return ended.stderr.strip().splitlines()[-1] if ended.returncode else ""


def main() -> int:
    failed = 0
    print(f"{'program':18} {'result':34} {'difference':>10} {'SciPy s':>8} {'residua s':>9}  calls")
    with tempfile.TemporaryDirectory() as folder:
        for program in PROGRAMS:
            name = program.__name__
            files = {whose: pathlib.Path(folder, f"{name}-{whose}.npz") for whose in ("scipy", "residua")}
            faults = {whose: run(name, whose, path) for whose, path in files.items()}
            if any(faults.values()):
                # If SciPy's own run fails too, the program is not available here.
                failed += not faults["scipy"]
                print(f"{name:18} {next(f'{whose}: {words}' for whose, words in faults.items() if words)}")
                continue
            theirs, ours = (dict(np.load(path)) for path in files.values())
            times, calls = [float(each.pop("seconds")) for each in (theirs, ours)], str(ours.pop("calls"))
            for result, expected in theirs.items():
                if result == "calls":
                    continue
                difference = np.nanmax(np.abs(ours[result] - expected)) / (np.nanmax(np.abs(expected)) or 1.0)
                same_gaps = (np.isnan(ours[result]) == np.isnan(expected)).all()
                bad = not same_gaps or not difference <= NEAR
                failed += bad
                figures = f"{difference:10.1e} {times[0]:8.2f} {times[1]:9.2f}  {calls}"
                print(f"{name:18} {result:34} {figures}{'  differs' if bad else ''}")
    print(f"{failed} differ" if failed else "all as with SciPy")
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
