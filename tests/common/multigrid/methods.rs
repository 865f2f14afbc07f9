//! Methods for general matrices, applied to a Hermitian one: the same levels, and about as many iterations as with
//! conjugate gradients.

use super::matrices::{triangles, triangles_in_wind};
use super::{Able, applied, options, solved, solved_by, solved_by_gmres};
use crate::collection;
use residua::krylov::{BiCgStab, SolveOptions};
use residua::market::read_csr;
use residua::multigrid::Multigrid;
use residua::precondition::Preconditioner;
use residua::{Csr, Error, Host, Triplets, assemble, generate};
use std::cmp::Ordering;
use std::sync::Arc;

/// Iterations of GMRES as a multiple of those of conjugate gradients, and of BiCGSTAB, each of whose iterations counts
/// for two.
const MORE: f64 = 1.3;
const OF_TWO: f64 = 0.8;

pub fn methods_on_hermitian_matrices<B: Able>(backend: &B) {
    let mut matrices = vec![
        ("5 points", generate::poisson2d(150, 140).unwrap(), options()),
        ("7 points", generate::poisson3d(30, 31, 32).unwrap(), options().narrow(true)),
        ("9 points, no grid", generate::poisson2d_9(90, 80).unwrap(), options().boxes(false)),
        ("rough", generate::jumping([24, 24, 24], 32.0, 1, 2).unwrap(), options()),
        ("jumps", generate::jumping([24, 24, 24], 1e6, 6, 2).unwrap(), options().boxes(false)),
        ("one strong axis", generate::anisotropic2d(120, 120, 1e-3).unwrap(), options().narrow(true)),
        ("triangles", triangles(110), options()),
        ("elasticity", generate::elasticity3d(7, 7, 7, 0.3).unwrap(), options().unknowns_a_node(3)),
    ];
    let files = ["fem_flatplate_poisson.mtx.gz", "pdn_map21.mtx.gz", "fem_bunny_poisson_r1.mtx.gz"];
    for (file, folder) in collection::folder().iter().flat_map(|folder| files.map(|file| (file, folder))) {
        let path = folder.join(file);
        if path.is_file() {
            matrices.push((file, read_csr(path).unwrap(), options()));
        } else {
            println!("skipped: no {}", path.display());
        }
    }
    for (what, a, options) in matrices {
        let a = a.to_backend(backend).unwrap();
        let [known, found] = [true, false]
            .map(|real| Multigrid::new(backend, &a, &options.clone().real_eigenvalues(real)).unwrap());
        assert_eq!(known.facts(), found.facts(), "{what}");
        assert!(applied(backend, &known) == applied(backend, &found), "{what}");
        let of_cg = solved(backend, &a, &found);
        let of_gmres = solved_by_gmres(backend, &a, &found);
        let bicgstab = BiCgStab::new(backend, a.rows(), SolveOptions::default().max_iterations(100));
        let of_bicgstab = solved_by(bicgstab.unwrap(), backend, &a, &found);
        let most = MORE * of_cg as f64;
        let told = format!("{what}: {of_cg} iterations, {of_gmres} of GMRES, {of_bicgstab} of BiCGSTAB");
        println!("{told}");
        assert!(of_gmres as f64 <= most && of_bicgstab as f64 <= OF_TWO * most, "{told}");
    }
}

/// Linear elements in a wind, including flat ones: cell Peclet numbers up to about 0.5 and 5 without upwinding, and
/// about 50 with it.
pub fn meshes_in_a_wind<B: Able>(backend: &B) {
    for (wind, is_upwinded, most) in [(0.1, false, 18), (1.0, false, 22), (10.0, true, 52)] {
        let on_host = triangles_in_wind(110, wind);
        let on_host = if is_upwinded { upwinded(&on_host) } else { on_host };
        let a = on_host.to_backend(backend).unwrap();
        let general = options().boxes(false).narrow(true).real_eigenvalues(false);
        let mut m = Multigrid::new(backend, &a, &general).unwrap();
        let took = solved_by_gmres(backend, &a, &m);
        println!("wind {wind}: {took} iterations, {}", m.facts());
        assert!(took <= most, "wind {wind}: {took} iterations, {}", m.facts());
        // Its levels belong to another matrix, which is computed again for new values.
        let before = applied(backend, &m);
        m.share(Arc::new(on_host.to_backend(backend).unwrap())).unwrap();
        assert!(applied(backend, &m) == before);
        m.update(backend, &a).unwrap();
        assert!(applied(backend, &m) == before);
    }
}

/// A with |n_ij| of its antisymmetric part N added as diffusion along each coupling, which is first-order upwinding.
fn upwinded(a: &Csr<f64>) -> Csr<f64> {
    let mut entries = Triplets::new(a.rows(), a.columns()).unwrap();
    for (i, j, value) in a.iter() {
        let added = 0.5 * (value - a.get(j, i).unwrap_or(0.0)).abs();
        entries.push(i, j, value - added).unwrap();
        entries.push(i, i, added).unwrap();
    }
    assemble::to_csr(&Host, entries).unwrap()
}

/// The same pattern with values that are not those of a Hermitian matrix.
fn with_a_wind(a: &Csr<f64>) -> Csr<f64> {
    let (mut offsets, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
    for i in 0..a.rows() {
        let (of_row, entries) = a.row(i);
        columns.extend_from_slice(of_row);
        let blown = |(&j, &value): (&u32, &f64)| match (j as usize).cmp(&i) {
            Ordering::Less => 1.1 * value,
            Ordering::Equal => value,
            Ordering::Greater => 0.9 * value,
        };
        values.extend(of_row.iter().zip(entries).map(blown));
        offsets.push(columns.len());
    }
    Csr::from_parts(a.rows(), a.columns(), offsets, columns, values).unwrap()
}

/// If a hierarchy for general matrices was set up for a Hermitian matrix, an update with non-Hermitian values gives the
/// same as a new hierarchy for these.
pub fn new_values_that_are_not_hermitian<B: Able>(backend: &B) {
    let on = |a: &Csr<f64>| a.to_backend(backend).unwrap();
    for (a, options) in [
        (generate::poisson3d(12, 13, 14).unwrap(), options()),
        (triangles(40), options()),
        (generate::poisson2d(40, 50).unwrap(), options().boxes(false).narrow(true)),
    ] {
        let general = options.real_eigenvalues(false);
        let of = |a: &Csr<f64>| Multigrid::new(backend, &on(a), &general).unwrap();
        let mut m = of(&a);
        for new in [&with_a_wind(&a), &a] {
            m.update(backend, &on(new)).unwrap();
            assert!(applied(backend, &m) == applied(backend, &of(new)), "{}", m.facts());
        }
    }
    // Given vectors are not kept for another hierarchy.
    let a = generate::poisson2d(40, 40).unwrap();
    let general = options().real_eigenvalues(false);
    let mut m = Multigrid::with_near_null(backend, &on(&a), 1, vec![1.0; a.rows()], &general).unwrap();
    let before = applied(backend, &m);
    let refused = m.update(backend, &on(&with_a_wind(&a)));
    assert!(matches!(refused, Err(Error::Unsupported(_))) && applied(backend, &m) == before);
    m.update(backend, &on(&a)).unwrap();
    assert!(applied(backend, &m) == before);
}
