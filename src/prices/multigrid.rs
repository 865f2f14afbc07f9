//! Prices of multigrid compared to plain conjugate gradients, on meshes and on grids.

/// Iterations (to 1e-8) per edge of the path between the two nodes that are farthest from each other. Measured were 1.9
/// per point of a grid's side in two dimensions, and 2.0 to 2.5 in three, where the path is estimated as one side.
pub(crate) const EDGE: f64 = 1.25;

/// The increase per decade between small and large diagonal entries: two decades of coefficients double the iterations
/// on triangulations, six multiply them by four on grids.
pub(crate) const DECADE: f64 = 0.5;

/// Iterations of multigrid, and the number of iterations of conjugate gradients that take as long as one of them
/// without launches: on the host, and on a device, where one takes 0.86 ms on a triangulation of 10^6 points and one of
/// conjugate gradients 0.075 (H200, 2026-11-26).
pub(crate) const MESH_ITERATIONS: f64 = 20.0;
pub(crate) const MESH_PRODUCTS: f64 = 8.0;
pub(crate) const MESH_DEVICE_PRODUCTS: f64 = 7.5;

/// The number of iterations of conjugate gradients that take about as long as the setup on the host, including an
/// ordering for it: 150 to 230 on triangulations of 3 10^5 points. With a few flat triangles there are ten times as
/// many iterations as the path suggests, so the lower end is used.
pub(crate) const MESH_SETUP: f64 = 150.0;

/// If multigrid is going to be used on the host, renumbering is worth this many products, because rows in random order
/// make its steps wait for memory. Renumbering saved as much as 1200 products on a triangulation of 3 10^5 points and
/// 600 on one of 4 10^4 (2026-11-26).
pub(crate) const PRODUCTS_OF_LEVELS: usize = 500;

/// Seconds of launches in an iteration of multigrid, and bytes per second of conjugate gradients on a device.
pub(crate) const MESH_LAUNCHES: f64 = 3e-4;
pub(crate) const MESH_BANDWIDTH: f64 = 2e12;

/// The factor by which multigrid has to be faster in the forecast, on the host and on a device. On a device, multigrid
/// and conjugate gradients take about the same time on a mesh of 10^6 points with well-shaped triangles (43 and 35 ms),
/// but with a few flat triangles conjugate gradients take 330 ms and multigrid 58 ms (H200, 2026-11-26).
pub(crate) const MESH_MARGIN: f64 = 1.25;
pub(crate) const MESH_DEVICE_MARGIN: f64 = 1.0;

/// If row sums relative to the sums of magnitudes are at least this, conjugate gradients are expected to need few
/// iterations on a mesh of any size: 1 for mass matrices, almost nothing if constants are near the null space.
pub(crate) const SOON_DONE: f64 = 0.02;

/// Approximate iterations with multigrid on a grid, with interpolation and with boxes; and those of conjugate gradients
/// per point of a grid's longest side (316 for 128^3 points, 518 for 256^3, 2216 for 4096^2, 975 for 512^2, to 1e-8),
/// which are fewer if a point is coupled to all 26 around it (193 for 160^3).
pub(crate) const GRID_ITERATIONS: [f64; 2] = [8.0, 12.0];
pub(crate) const GRID_PLAIN_ITERATIONS: f64 = 1.7;
pub(crate) const GRID_PLAIN_ITERATIONS_DENSE: f64 = 1.2;
pub(crate) const GRID_DENSE: f64 = 15.0;

/// The cost of a cycle in products with the matrix in half the precision, and in vectors moved.
pub(crate) const GRID_PRODUCTS: f64 = 6.5;
pub(crate) const GRID_VECTORS: f64 = 40.0;

/// The cost of the setup, in passes over the matrix.
pub(crate) const GRID_SETUP: f64 = 4.0;

/// Seconds of an iteration in addition to its bytes: all launches of a cycle on a GPU (with two cycles for each of the
/// first levels for boxes), dividing work among threads on a CPU.
pub(crate) const GRID_LAUNCHES: [f64; 2] = [3e-4, 8e-4];
pub(crate) const GRID_HANDING: f64 = 5e-5;

/// Seconds of a setup on a GPU in addition to its bytes: launches, and the inverse of the coarsest matrix.
pub(crate) const GRID_SMALL_SETUP: f64 = 2e-3;
