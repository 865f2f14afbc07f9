//! Multigrid beside plain conjugate gradients: of meshes, and of grids.

/// Iterations for each edge of the shortest path between the nodes that are farthest from each other, to 1e-8: 1.9 of a
/// grid's side were seen in the plane, 2.0 to 2.5 in space, where the path is estimated as one side.
pub(crate) const EDGE: f64 = 1.25;

/// More of them for each decade between small and large diagonal entries: two decades of coefficients double them on
/// triangulations, six make them fourfold on grids.
pub(crate) const DECADE: f64 = 0.5;

/// Iterations of multigrid, and those of conjugate gradients that one of them is worth beside launches: on the host,
/// and on a device, where one on a triangulation of 10^6 points takes 0.86 ms and one of conjugate gradients 0.075 (H200,
/// 2026-11-26).
pub(crate) const MESH_ITERATIONS: f64 = 20.0;
pub(crate) const MESH_PRODUCTS: f64 = 8.0;
pub(crate) const MESH_DEVICE_PRODUCTS: f64 = 7.5;

/// Iterations of conjugate gradients that the setup on the host is worth with an order for it, about: 150 to 230 on
/// triangulations of 3 10^5 points. A few flat triangles make iterations ten times as many as the path tells, so that
/// the lower end counts.
pub(crate) const MESH_SETUP: f64 = 150.0;

/// Products in which rows in random order wait for memory as long as in all of that: where multigrid is going to be
/// taken on the host, an order pays for so many. The order saved as much as 1200 of them on a triangulation of 3 10^5
/// points and 600 on one of 4 10^4 (2026-11-26).
pub(crate) const PRODUCTS_OF_LEVELS: usize = 500;

/// Seconds of launches in an iteration of multigrid, and bytes a second of conjugate gradients on a device.
pub(crate) const MESH_LAUNCHES: f64 = 3e-4;
pub(crate) const MESH_BANDWIDTH: f64 = 2e12;

/// By how much the one has to be faster by forecast: on the host, and on a device, where both take about as long on
/// good triangles, 43 and 35 ms for 10^6 points, and a few flat ones take conjugate gradients 330 ms and multigrid 58
/// (H200, 2026-11-26).
pub(crate) const MESH_MARGIN: f64 = 1.25;
pub(crate) const MESH_DEVICE_MARGIN: f64 = 1.0;

/// Magnitudes of the sums of rows, as a part of the sums of magnitudes, from which on conjugate gradients are expected
/// to be soon done on a mesh of any size: 1 of mass matrices, next to nothing of what has constants near its null
/// space.
pub(crate) const SOON_DONE: f64 = 0.02;

/// Iterations with multigrid on a grid, about, where points between interpolate and where boxes are levels; and those
/// of conjugate gradients for each point of a grid's longest side (316 for 128^3 points, 518 for 256^3, 2216 for
/// 4096^2, 975 for 512^2, to 1e-8); fewer where a point is coupled to all 26 around (193 for 160^3).
pub(crate) const GRID_ITERATIONS: [f64; 2] = [8.0, 12.0];
pub(crate) const GRID_PLAIN_ITERATIONS: f64 = 1.7;
pub(crate) const GRID_PLAIN_ITERATIONS_DENSE: f64 = 1.2;
pub(crate) const GRID_DENSE: f64 = 15.0;

/// Products with the matrix in half the precision that a cycle's levels are worth together, and vectors that they move.
pub(crate) const GRID_PRODUCTS: f64 = 6.5;
pub(crate) const GRID_VECTORS: f64 = 40.0;

/// Passes over the matrix for the setup.
pub(crate) const GRID_SETUP: f64 = 4.0;

/// Seconds of an iteration beyond what bytes cost: all launches of a cycle on a GPU (two cycles for each of the first
/// levels where these are boxes), handing work to threads on a CPU.
pub(crate) const GRID_LAUNCHES: [f64; 2] = [3e-4, 8e-4];
pub(crate) const GRID_HANDING: f64 = 5e-5;

/// Seconds of a setup on a GPU beyond what bytes cost: launches, and the inverse of the coarsest matrix.
pub(crate) const GRID_SMALL_SETUP: f64 = 2e-3;
