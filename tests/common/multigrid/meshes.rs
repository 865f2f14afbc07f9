//! Meshes and graphs: flat elements, nodes with several unknowns, hubs, and files.

use super::matrices::triangles;
use super::{Able, applied, at_most, options, solved};
use crate::collection;
use crate::random::Random;
use residua::market::read_csr;
use residua::multigrid::{Multigrid, MultigridOptions, Prolongation};
use residua::precondition::Preconditioner;
use residua::{Csr, Error, generate};

pub fn flat_elements<B: Able>(backend: &B) {
    let a = triangles(110).to_backend(backend).unwrap();
    let least = options().prolongation(Prolongation::LeastEnergy);
    let of = |options: &MultigridOptions| {
        let m = Multigrid::new(backend, &a, options).unwrap();
        (solved(backend, &a, &m), m)
    };
    let ((smoothed, _), (energy, m)) = (of(&options()), of(&least));
    assert!(smoothed <= 60 && energy <= 40, "{smoothed} and {energy} iterations");
    let entries = m.facts().operator_complexity();
    assert!(entries < 2.0, "{}", m.facts());
    let (narrow, in_half) = of(&least.clone().narrow(true));
    assert!(narrow <= energy + 2, "{energy} iterations, {narrow} where half the precision is allowed");
    // Flat elements require full precision; without them it is not needed.
    assert_eq!(in_half.narrow_work_len(), 0);
    let plain = generate::poisson2d(40, 50).unwrap().to_backend(backend).unwrap();
    let plain = Multigrid::new(backend, &plain, &options().boxes(false).narrow(true)).unwrap();
    assert!(plain.narrow_work_len() > 0);
    // New values give the same as a new hierarchy.
    let (before, mut m) = (applied(backend, &m), m);
    m.update(backend, &a).unwrap();
    assert_eq!(before, applied(backend, &m));
}

pub fn what_has_no_prolongation_of_least_energy<B: Able>(backend: &B) {
    let a = generate::tridiagonal(1000).unwrap().to_backend(backend).unwrap();
    let least = options().prolongation(Prolongation::LeastEnergy);
    let nodes = Multigrid::new(backend, &a, &least.clone().unknowns_a_node(2));
    assert!(matches!(nodes, Err(Error::Unsupported(_))));
    let wind = generate::convection_diffusion([10, 10, 10], 0.1).unwrap().to_backend(backend).unwrap();
    let general = Multigrid::new(backend, &wind, &least.clone().boxes(false).real_eigenvalues(false));
    assert!(matches!(general, Err(Error::Unsupported(_))));
    let given = Multigrid::with_near_null(backend, &a, 1, vec![1.0; 1000], &least);
    assert!(matches!(given, Err(Error::Unsupported(_))));
}

pub fn elasticity<B: Able>(backend: &B) {
    let elements = 12;
    let a = generate::elasticity3d(elements, elements, elements, 0.3).unwrap();
    let options = options().unknowns_a_node(3);
    at_most(backend, 28, &a, &options, "elasticity, translations alone");
    let a = a.to_backend(backend).unwrap();
    let m = Multigrid::with_near_null(backend, &a, 6, rigid_body_modes(elements), &options).unwrap();
    let took = solved(backend, &a, &m);
    assert!(took <= 16, "elasticity with rigid body modes: {took} iterations");
}

/// Rigid body modes of [`generate::elasticity3d`]: translations and rotations about the middle.
fn rigid_body_modes(elements: usize) -> Vec<f64> {
    let side = elements + 1;
    let middle = elements as f64 / 2.0;
    let mut modes = Vec::with_capacity(elements * side * side * 18);
    for node in 0..elements * side * side {
        let at = [node % elements + 1, node / elements % side, node / elements / side];
        let [x, y, z] = at.map(|place| place as f64 - middle);
        modes.extend([1.0, 0.0, 0.0, y, 0.0, z]);
        modes.extend([0.0, 1.0, 0.0, -x, z, 0.0]);
        modes.extend([0.0, 0.0, 1.0, 0.0, -y, -x]);
    }
    modes
}

/// Skipped, with a message, if the collection does not exist.
pub fn real_matrices<B: Able>(backend: &B) {
    let Some(folder) = collection::folder() else { return };
    for (file, most) in [
        ("fem_flatplate_poisson.mtx.gz", 14),
        ("fem_rae2822_poisson.mtx.gz", 12),
        ("bcsstk16.mtx.gz", 50),
        ("pdn_map21.mtx.gz", 16),
        ("fem_bunny_poisson_r1.mtx.gz", 65),
    ] {
        let path = folder.join(file);
        if !path.is_file() {
            println!("skipped: no {}", path.display());
            continue;
        }
        at_most(backend, most, &read_csr(path).unwrap(), &options(), file);
    }
    let elastic = folder.join("fem_bunny_elast.mtx.gz");
    if elastic.is_file() {
        let nodes = options().unknowns_a_node(3);
        at_most(backend, 80, &read_csr(elastic).unwrap(), &nodes, "tetrahedra, elastic");
    }
}

/// Graphs in which a few vertices have a large part of all vertices as neighbours: levels do not fill up, and
/// iterations are a small fraction of those with the diagonal.
pub fn graphs_with_hubs<B: Able>(backend: &B) {
    with_hubs(backend, 6000, &options());
    // The 12 000 entries of the largest hub have no exact sum in single precision.
    with_hubs(backend, 60_000, &options().narrow(true));
}

fn with_hubs<B: Able>(backend: &B, n: usize, options: &MultigridOptions) {
    let mut random = Random(5);
    let mut unit = || random.signed().abs().min(0.999_999);
    let (mut entries, mut sums) = (std::collections::BTreeMap::new(), vec![1e-3; n]);
    for _ in 0..4 * n {
        let [i, j] = [unit(), unit()].map(|at| (at.powi(4) * n as f64) as usize);
        let weight = 10_f64.powf(6.0 * unit() - 3.0);
        if i != j {
            for (row, column) in [(i, j), (j, i)] {
                *entries.entry((row, column)).or_insert(0.0) -= weight;
                sums[row] += weight;
            }
        }
    }
    entries.extend(sums.iter().enumerate().map(|(i, &sum)| ((i, i), sum)));
    let mut offsets = vec![0];
    for row in 0..n {
        offsets.push(offsets[row] + entries.range((row, 0)..(row + 1, 0)).count());
    }
    let (columns, values) = entries.iter().map(|(&(_, column), &value)| (column as u32, value)).unzip();
    let a = Csr::from_parts(n, n, offsets, columns, values).unwrap();
    assert!((0..n).any(|row| a.row(row).0.len() > n / 6));
    let on_backend = a.to_backend(backend).unwrap();
    let m = Multigrid::new(backend, &on_backend, options).unwrap();
    assert!(m.facts().operator_complexity() <= 3.0, "{}", m.facts());
    let took = solved(backend, &on_backend, &m);
    assert!(took <= 60, "{took} iterations, {}", m.facts());
}
