"""Compares the automatic choice of `residua solve` with the fastest of the methods that can be named.

    python3 benches/peers/own_methods.py BINARY FOLDER [--only REGEX] [--json FILE]

Each matrix of the folder is solved on the CPU without options, then with each method and preconditioner below; b = A x
with a random x. A time is the sum of reordering, conversion, setup and solve in the report, in processor time of one
thread (`processor_time.py`); reading is the same for all. The automatic choice is timed five times, a named method
once, and four times more if it may be faster by a factor of 1.3; the smallest time counts. A named method that takes
longer than the automatic choice is stopped by its time limit, since it can't be the fastest. If there are fewer rows
than columns, LSMR with scaled columns is not compared: it finds another solution than that of least norm, which the
automatic choice finds. Misses are files on which the automatic choice takes more than 1.5 times as long as the fastest
method. Times below 1 ms count as 1 ms, which a process takes to start.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

from processor_time import environment

NAMED = [
    ("cg", ["none", "jacobi", "ilu", "fsai", "amg"]),
    ("minres", ["jacobi", "ilu"]),
    ("gmres", ["jacobi", "ilu", "ilut", "amg"]),
    ("bicgstab", ["jacobi", "ilu", "ilut"]),
    ("lsmr", ["jacobi"]),
    ("direct", ["none"]),
]
ALLOWED = 1.5
SUSPECT = 1.3
FLOOR = 1e-3


SURROUNDINGS, _LIBRARY = environment()


def seconds(binary, file, options, limit=None):
    """Seconds and the report if the system was solved, else None."""
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        command = [binary, "solve", str(file), "--rhs", "a-random:1", "--device", "cpu", "-q"]
        command += ["--json", report.name, *options]
        if limit is not None:
            command += ["--time-limit", f"{limit:.4f}"]
        wait = 120 if limit is None else 20 + 5 * limit
        try:
            ended = subprocess.run(command, env=SURROUNDINGS, capture_output=True, timeout=wait, check=False)
        except subprocess.TimeoutExpired:
            return None
        if ended.returncode != 0:
            return None
        told = json.load(open(report.name))
    if told["status"] != "converged":
        return None
    spent = told["seconds"]
    total = sum(spent[part] for part in ("reorder", "convert", "setup", "solve"))
    told["trail"] = [stage for stage in told["trail"]["stages"] if stage["outcome"] or stage["refused"]]
    del told["history"]
    return total, told


def least(binary, file, options, times, limit=None):
    runs = [seconds(binary, file, options, limit) for _ in range(times)]
    solved = [run for run in runs if run]
    return min(solved, key=lambda run: run[0]) if solved else None


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("binary")
    arguments.add_argument("folder", type=pathlib.Path)
    arguments.add_argument("--only", default=".")
    arguments.add_argument("--json")
    wishes = arguments.parse_args()
    rows = []
    for file in sorted(wishes.folder.iterdir()):
        if not re.search(r"\.mtx(\.gz)?$", file.name) or not re.search(wishes.only, file.name):
            continue
        auto = least(wishes.binary, file, [], 5)
        if auto is None:
            print(f"{file.name}: not solved", flush=True)
            continue
        best, name, runs = auto[0], "auto", {"auto": auto}
        for method, preconditioners in NAMED:
            for preconditioner in preconditioners:
                if method == "lsmr" and auto[1]["rows"] < auto[1]["columns"]:
                    continue
                options = ["--method", method]
                options += [] if method == "direct" else ["--preconditioner", preconditioner]
                limit = max(1.2 * auto[0], 5e-3)
                run = seconds(wishes.binary, file, options, limit)
                if run and max(run[0], FLOOR) * SUSPECT < max(auto[0], FLOOR):
                    run = min(run, least(wishes.binary, file, options, 4, limit) or run, key=lambda run: run[0])
                if run:
                    runs[f"{method}/{preconditioner}"] = run
                if run and run[0] < best:
                    best, name = run[0], f"{method}/{preconditioner}"
        ratio = max(auto[0], FLOOR) / max(best, FLOOR)
        rows.append({"file": file.name, "auto": auto[0], "best": best, "name": name, "ratio": ratio, "runs": runs})
        if ratio > ALLOWED:
            trail = ", ".join(
                f"{stage['method']}/{stage['preconditioner']} {stage['outcome'] or 'refused'} {stage['seconds']:.4f}"
                for stage in auto[1]["trail"]
            )
            print(f"{file.name}: {auto[0]:.4f} s, {name} {best:.4f} s, {ratio:.2f} times: {trail}", flush=True)
    within = sum(row["ratio"] <= ALLOWED for row in rows)
    print(f"{within} of {len(rows)} within {ALLOWED} times the fastest ({100 * within / max(len(rows), 1):.0f} %)")
    if wishes.json:
        json.dump(rows, open(wishes.json, "w"), indent=1)


if __name__ == "__main__":
    sys.exit(main())
