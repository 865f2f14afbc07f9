"""Files, model problems, analyses of matrices, devices."""

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sparse
import scipy.sparse.linalg as linalg

import residua
from systems import dominant, random_vector, residual

REAL = ["bcsstk13", "memplus", "add32", "fem_helmholtz_cplx", "crack", "rajat01", "mhd1280b", "qc324_cua"]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("name", ["a.mtx", "a.mtx.gz"])
def test_matrices_come_back_to_the_bit(tmp_path, dtype, name):
    for symmetric in (False, True):
        a = dominant(40, dtype, symmetric=symmetric)
        residua.write(tmp_path / name, a.tocsc() if symmetric else a, comment="two\nlines")
        back = residua.read(tmp_path / name)
        assert isinstance(back, sparse.csr_array)
        assert abs(back.astype(dtype) - a).sum() == 0 and back.nnz == a.nnz
        assert abs(scipy.io.mmread(tmp_path / name).tocsr().astype(dtype) - a).sum() == 0


def test_vectors_come_back_to_the_bit(tmp_path):
    b = np.random.default_rng(0).standard_normal((7, 3))
    residua.write(tmp_path / "b.mtx", b)
    assert np.array_equal(residua.read(tmp_path / "b.mtx"), b)
    residua.write(tmp_path / "c.mtx", b[:, 0])
    assert np.array_equal(residua.read(tmp_path / "c.mtx"), b[:, :1])


def test_both_triangles_of_a_symmetric_file_are_warned_of(tmp_path):
    (tmp_path / "both.mtx").write_text(
        "%%MatrixMarket matrix coordinate real symmetric\n2 2 4\n1 1 4.0\n2 1 1.0\n1 2 1.0\n2 2 3.0\n"
    )
    with pytest.warns(UserWarning, match="both.mtx: given in both triangles of a symmetric matrix.*1 entries"):
        a = residua.read(tmp_path / "both.mtx")
    assert np.array_equal(a.toarray(), [[4, 1], [1, 3]])


def test_files_that_are_none(tmp_path):
    with pytest.raises(FileNotFoundError):
        residua.read(tmp_path / "nowhere.mtx")
    (tmp_path / "bad.mtx").write_text("%%MatrixMarket matrix coordinate real general\n2 2 1\n3 1 1.0\n")
    with pytest.raises(ValueError, match="bad.mtx:3"):
        residua.read(tmp_path / "bad.mtx")
    with pytest.raises(OSError):
        residua.write(tmp_path / "no" / "folder.mtx", np.eye(2))
    with pytest.raises(ValueError):
        residua.write(tmp_path / "x.mtx", np.ones((2, 2, 2)))


@pytest.mark.parametrize("name", REAL)
@pytest.mark.filterwarnings("ignore::scipy.sparse.linalg.MatrixRankWarning")
def test_real_files_are_read_and_solved(matrices, name):
    path = matrices / f"{name}.mtx.gz"
    a = residua.read(path)
    theirs = scipy.io.mmread(path).tocsr()
    assert a.shape == theirs.shape and abs(a - theirs).max() <= 1e-15 * abs(theirs).max()
    info = residua.info(a)
    assert info.facts["nonzeros"] == a.nnz and info.words and info.methods
    b = a @ np.ones(a.shape[1], a.dtype)
    x, report = residua.Solver(a, device="cpu", maxiter=3000).solve(b)
    if report.converged:
        assert residual(a, x, b) <= 1.01e-8
    direct = residua.spsolve(a, b)
    own = np.linalg.norm(b - a @ direct)
    scipys = np.linalg.norm(b - a @ linalg.spsolve(theirs.tocsc(), b))
    if np.isnan(scipys):
        # A is singular and b in its range: x is NaN, or one of the solutions.
        assert np.isnan(own) or own <= 1e-10 * np.linalg.norm(b)
        return
    assert own <= max(10 * scipys, 1e-12 * np.linalg.norm(b))


def test_model_problems():
    for name, about in residua.models().items():
        a = residua.generate(name, [20 if len(about["size"]) < 3 else 6] * len(about["size"]))
        assert a.nnz > 0 and a.has_canonical_format, name
    assert residua.generate("poisson2d", 5).shape == (25, 25)
    assert abs(residua.generate("random", 50, seed=1) - residua.generate("random", 50, seed=2)).nnz > 0
    with pytest.raises(ValueError, match="choose one of"):
        residua.generate("nothing")
    with pytest.raises(TypeError, match="no parameter 'contrast'"):
        residua.generate("poisson2d", 5, contrast=2.0)
    with pytest.raises(ValueError):
        residua.generate("poisson2d", (-1, 3))


def test_a_look_shows_itself():
    info = residua.info(residua.generate("convection2d", 10))
    assert info.facts["rows"] == 100 and "gmres" in str(info)
    page = info._repr_html_()
    assert "<svg" in page and "<table" in page
    assert residua.info(np.ones((3, 2))).facts["kind"] == "rectangular"


def test_devices_begin_with_the_cpu():
    cpu = residua.devices()[0]
    assert cpu["name"] == "cpu" and cpu["threads"] >= 1 and ("driver" in cpu["cuda"] or "driver_missing" in cpu["cuda"])


def test_a_gpu_that_is_not_there_is_an_error():
    if any(device["name"].startswith("cuda") for device in residua.devices()):
        pytest.skip("this machine has a GPU")
    with pytest.raises(RuntimeError, match="cuda"):
        residua.Solver(dominant(10), device="cuda")
    x = residua.solve(dominant(10), random_vector(10, float), device="auto")
    assert np.isfinite(x).all()
