//! Conjugate gradients on the GPUs of a machine, with one process for each, compared with one GPU: microseconds per
//! iteration, and the time of sums and halos alone.
//!
//! `cargo bench --bench ranks_device [-- RANKS CASE...]`. A case is `KxK` (5 points), `KxKxK` (7 points) or `mesh:K`
//! (linear elements on K x K points that are moved at random). `1:CASE` runs the local work of one rank without
//! communication: half a system on one GPU, to compare with the whole system on two. In `own:KxKxK` (7 points) each
//! rank generates only its own planes, and `certified:KxKxK` solves it to 1e-8. `amg:KxKxK` is solved to 1e-8 with
//! multigrid, `jumps:KxKxK` likewise with coefficients over three decades, constant on blocks of 16^3 points, and
//! `aggregates:KxKxK` likewise without treating it as a grid. `there-amg:KxKxK` and `there-own:KxKxK` are `amg` and
//! `own` with rows that each rank makes on its GPU. `bfs:N:K` is breadth-first search on an R-MAT graph with
//! N vertices and K N edges, from 16 sources with neighbours, on one GPU and on all. With the prefix `several-`,
//! nothing is run on one GPU alone. Where the time of a build went is told by rank 0, of the first build in the process
//! and of the fastest of three later ones.

#[cfg(all(unix, feature = "ranks"))]
mod run;
#[cfg(all(unix, feature = "ranks"))]
mod systems;

#[cfg(all(unix, feature = "ranks"))]
fn main() -> residua::Result<()> {
    run::main()
}

#[cfg(not(all(unix, feature = "ranks")))]
fn main() {}
