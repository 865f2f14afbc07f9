"""Reading to CSR: residua compared with SciPy (which uses fast_matrix_market), on the files that benches/reading.rs
makes, and on those that `scipy.sparse.save_npz` writes.

    cargo build --release --example read
    python benches/peers/reading.py target/release/examples/read FILE...

Each run is a separate process; runs alternate. Printed are the median, smallest and largest of five, and the peak
memory.
"""

import json
import re
import statistics
import subprocess
import sys

RUNS = 5
PEER = """
import json, sys, time
import scipy.io, scipy.io._fast_matrix_market as fmm, scipy.sparse
fmm.PARALLELISM = 0  # all threads
def peak():
    return next(int(l.split()[1]) * 1024 for l in open('/proc/self/status') if l.startswith('VmHWM'))
before = peak()
start = time.perf_counter()
a = scipy.sparse.load_npz(sys.argv[1]) if sys.argv[1].endswith('.npz') else scipy.io.mmread(sys.argv[1])
read = time.perf_counter()
a = a.tocsr()
a.sum_duplicates()
end = time.perf_counter()
print(json.dumps(dict(read=read - start, total=end - start, before=before, peak=peak(), nonzeros=int(a.nnz), rows=a.shape[0])))
"""


def ours(binary, path):
    text = subprocess.run([binary, path], check=True, capture_output=True, text=True).stdout
    seconds = {name: float(value) for name, value in re.findall(r"^(read|assemble|total) +([0-9.]+) s$", text, re.M)}
    peak = int(re.search(r"(\d+) after assembly", text).group(1))
    return dict(
        read=seconds["read"],
        total=seconds["total"],
        peak=peak,
        nonzeros=int(re.search(r"(\d+) nonzeros", text).group(1)),
    )


def peer(path):
    return json.loads(
        subprocess.run([sys.executable, "-c", PEER, path], check=True, capture_output=True, text=True).stdout
    )


def spread(runs, key):
    values = [run[key] for run in runs]
    return f"{statistics.median(values):.3f} ({min(values):.3f}-{max(values):.3f})"


binary, *paths = sys.argv[1:]
print(
    "| file | MB | nonzeros | SciPy read, total s | residua read, total s | ratio of totals | peak / CSR: SciPy, residua |"
)
print("|---|---|---|---|---|---|---|")
for path in paths:
    a, b = [], []
    for _ in range(RUNS):
        a.append(ours(binary, path))
        b.append(peer(path))
    assert a[0]["nonzeros"] == b[0]["nonzeros"], (a[0], b[0])
    csr = 12 * b[0]["nonzeros"] + 4 * (b[0]["rows"] + 1)
    ratio = statistics.median(r["total"] for r in b) / statistics.median(r["total"] for r in a)
    megabytes = subprocess.run(["stat", "-L", "-c", "%s", path], check=True, capture_output=True, text=True).stdout
    print(
        f"| {path.rsplit('/', 1)[-1]} | {int(megabytes) / 1e6:.0f} | {a[0]['nonzeros']} "
        f"| {spread(b, 'read')}, {spread(b, 'total')} | {spread(a, 'read')}, {spread(a, 'total')} | {ratio:.2f} "
        f"| {max(r['peak'] - r['before'] for r in b) / csr:.2f}, {max(r['peak'] for r in a) / csr:.2f} |",
        flush=True,
    )
