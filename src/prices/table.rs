//! The table of prices for `residua devices --prices`.

use super::machine::{self, Factors};
use super::{budgets, factors, iterations, multigrid, order};

/// A price: its description, its value, and its unit.
pub(crate) type Row = (String, f64, &'static str);

/// All prices, in groups with titles.
pub(crate) fn table() -> Vec<(&'static str, Vec<Row>)> {
    let kinds = [
        ("Cholesky", factors::CHOLESKY),
        ("L D L^H, column by column", factors::SYMMETRIC),
        ("L D L^T, in fronts", factors::SYMMETRIC_FRONTS),
        ("LU, column by column", factors::BY_COLUMNS),
        ("LU, in fronts", factors::BY_BLOCKS),
        ("LU of diagonal blocks", factors::DIAGONAL_BLOCKS),
        ("dense QR", factors::DENSE),
    ];
    let Factors { bytes, launch, .. } = machine::cpu();
    let on_device = |multiplications, bytes| factors::seconds_on_device(multiplications, bytes);
    let factors = kinds.into_iter().flat_map(|(name, price)| {
        let price = price.here();
        [
            (format!("{name}: any"), price.any, "s"),
            (format!("{name}: a row"), price.row, "s"),
            (format!("{name}: an entry of A"), price.entry, "s"),
            (format!("{name}: an entry of the factor"), price.entry_of_factor, "s"),
            (format!("{name}: a multiplication"), price.multiplication, "s"),
        ]
    });
    let row = |name: &str, value: f64, unit| (name.to_string(), value, unit);
    vec![
        (
            "iterations on a CPU",
            vec![
                row("any", launch * iterations::START, "s"),
                row("from the caches", iterations::CACHED / bytes, "bytes/s"),
                row("size of the caches", iterations::CACHE, "bytes"),
                row("from memory: times as long, at most", iterations::UNCACHED, ""),
                row(
                    "with incomplete factors, beside their bytes",
                    launch * iterations::WITH_INCOMPLETE.0,
                    "s",
                ),
                row("with multigrid, beside its bytes", launch * iterations::WITH_LEVELS.0, "s"),
                row("making incomplete factors: a row", bytes * iterations::WITHOUT_FILL[0], "s"),
                row("making incomplete factors: an entry", bytes * iterations::WITHOUT_FILL[1], "s"),
            ],
        ),
        ("factorisations on a CPU", factors.collect()),
        (
            "factorisations on a GPU, beside the order, which the CPU finds",
            vec![
                row("a multiplication", on_device(1.0, 0.0), "s"),
                row("a byte of the factors", on_device(0.0, 1.0), "s"),
            ],
        ),
        (
            "multigrid",
            vec![
                row("iterations on a mesh", multigrid::MESH_ITERATIONS, ""),
                row("setup on a CPU: iterations of conjugate gradients", multigrid::MESH_SETUP, ""),
                row("setup and solve on a CPU: an entry of A", budgets::seconds_of_levels(1), "s"),
                row("setup on a GPU: 10^6 unknowns", budgets::device_setup(1_000_000), "s"),
                row("iterations on a grid, symmetric", multigrid::GRID_ITERATIONS[0], ""),
                row("iterations on a grid, others", multigrid::GRID_ITERATIONS[1], ""),
            ],
        ),
        (
            "budgets",
            vec![
                row("a factorisation tried first", budgets::QUICK, "multiplications"),
                row("one that iterations are compared with", budgets::IN_RACE, "multiplications"),
                row("one before incomplete factors", budgets::BEFORE_INCOMPLETE, "multiplications"),
                row("one where iterations did not serve", budgets::PATIENT, "multiplications"),
                row("multigrid", budgets::LEVELS_ITERATIONS, "iterations"),
                row("GMRES and BiCGSTAB", budgets::PATIENCE, "iterations"),
                row("multigrid is taken from", budgets::LEVELS_FROM as f64, "unknowns"),
                row("an order on the CPU: a row", order::least_order_seconds([1, 0]), "s"),
                row("an order on the CPU: an entry", order::least_order_seconds([0, 1]), "s"),
            ],
        ),
    ]
}
