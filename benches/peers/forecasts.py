"""Compares forecasts of a factorisation's memory and time with measurements, on systems to which they were not fitted.

    python3 benches/peers/forecasts.py BINARY [--matrices FOLDER] [--only REGEX] [--json FILE]

Model problems of other sizes than those in the documentation, in natural and in random order, and real files with rows
and columns scaled over twelve decades, are solved by `residua solve --method direct` on one thread. Forecast and
measured are seconds of processor time of the setup and the solve (ordering, factors, refinement and the condition
number), and bytes of the factor. The forecast is that of the first type of factorisation; if another one solved the
system, the row says so and does not count.
"""

import argparse
import gzip
import json
import pathlib
import random
import re
import subprocess
import tempfile

from processor_time import environment

MODELS = [
    "poisson2d --size 233x171",
    "poisson2d-9 --size 190x140 --shuffle 3",
    "poisson3d --size 27x24x31",
    "poisson3d-27 --size 19x22x17 --shuffle 5",
    "anisotropic2d --size 310x97",
    "jumping3d --size 23x25x21 --shuffle 2",
    "elasticity2d --size 83x47",
    "elasticity3d --size 11x9x14 --shuffle 4",
    "wathen --size 51x43",
    "rmat-laplacian --size 3000",
    "arrow --size 30011",
    "tridiagonal --size 71003 --shuffle 1",
    "convection2d --size 203x177 --peclet 30",
    "convection2d --size 91x411 --peclet 3 --shuffle 6",
    "convection3d --size 21x19x23 --peclet 20",
    "convection3d --size 16x17x15 --peclet 200 --shuffle 7",
    "helmholtz2d --size 161x143 --wavelength 9",
    "helmholtz3d --size 17x19x15 --shuffle 8",
    "helmholtz2d-absorbing --size 97x83",
    "helmholtz3d-absorbing --size 13x14x12",
    "stokes2d --size 71x53",
    "stokes3d --size 9x11x8 --shuffle 9",
    "kkt --size 2700x800 --seed 5",
    "circuit --size 23000 --seed 4",
    "circuit --size 41000 --seed 9 --shuffle 3",
    "rmat-directed --size 700 --edge-factor 4",
    "random --size 900x900 --row-lengths 3..7",
]
REAL = ["orsreg_1", "memplus", "bayer10", "add32", "jpwh_991", "cage8", "bcsstk16", "1138_bus", "fem_rae2822_poisson"]


def scaled(source, target, seed):
    """D A E with random factors from 1e-6 to 1e6; D A D if the file declares the matrix symmetric."""
    opened = gzip.open if source.name.endswith(".gz") else open
    lines = opened(source, "rt").read().splitlines()
    symmetric = "general" not in lines[0].lower()
    first = next(k for k, line in enumerate(lines) if not line.startswith("%"))
    rows, columns, _ = map(int, lines[first].split())
    drawn = random.Random(seed)
    left = [10 ** drawn.uniform(-6, 6) for _ in range(rows)]
    right = left if symmetric else [10 ** drawn.uniform(-6, 6) for _ in range(columns)]
    for k in range(first + 1, len(lines)):
        row, column, value = lines[k].split()[:3]
        lines[k] = f"{row} {column} {float(value) * left[int(row) - 1] * right[int(column) - 1]!r}"
    target.write_text("\n".join(lines) + "\n")


def solved(binary, file, surroundings):
    """(forecast seconds, seconds, forecast bytes, bytes, remark) of the fastest of three runs."""
    runs = []
    for _ in range(3):
        with tempfile.NamedTemporaryFile(suffix=".json") as report:
            command = [binary, "solve", str(file), "--rhs", "a-random:1", "--device", "cpu", "--method", "direct", "-q"]
            subprocess.run([*command, "--json", report.name], env=surroundings, capture_output=True, check=False)
            text = open(report.name).read()
        if not text:
            return None
        told = json.loads(text)
        stage = told["trail"]["stages"][0]
        seconds = told["seconds"]["setup"] + told["seconds"]["solve"]
        runs.append((stage["predicted_seconds"], seconds, stage["predicted_bytes"], stage["bytes"], stage["remark"]))
    return min(runs, key=lambda run: run[1])


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("binary")
    arguments.add_argument("--matrices", type=pathlib.Path)
    arguments.add_argument("--only", default=".")
    arguments.add_argument("--json")
    wishes = arguments.parse_args()
    surroundings, _library = environment()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "a.mtx"
        systems = [(model, None) for model in MODELS]
        if wishes.matrices:
            found = {path.name.split(".")[0]: path for path in wishes.matrices.iterdir()}
            systems += [(f"{name}, scaled", found[name]) for name in REAL if name in found]
        for name, source in systems:
            if not re.search(wishes.only, name):
                continue
            if source is None:
                subprocess.run(
                    [wishes.binary, "generate", *name.split(), "-o", str(file)], check=True, capture_output=True
                )
            else:
                scaled(source, file, len(name))
            run = solved(wishes.binary, file, surroundings)
            if run is None:
                print(f"{name}: refused", flush=True)
                continue
            told, took, expected, made, remark = run
            # The types that failed before are listed after the first semicolon.
            counts = ";" not in remark
            rows.append({"name": name, "seconds": [told, took], "bytes": [expected, made], "first": counts})
            print(
                f"{name}: {1e3 * took:.2f} ms, {took / told:.2f} times the forecast; {made / 1e6:.2f} MB, "
                f"{made / expected:.3f} times{'' if counts else '; not counted: ' + remark}",
                flush=True,
            )
    first = [row for row in rows if row["first"]]
    in_time = sum(0.5 <= row["seconds"][1] / row["seconds"][0] <= 2 for row in first)
    in_memory = sum(abs(row["bytes"][1] / row["bytes"][0] - 1) <= 0.1 for row in first)
    print(f"of {len(first)} systems {in_time} within a factor of 2 in time, {in_memory} within 10 % in memory")
    if wishes.json:
        json.dump(rows, open(wishes.json, "w"), indent=1)


if __name__ == "__main__":
    main()
