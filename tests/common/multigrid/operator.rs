//! Properties of a cycle as an operator, and of matrices that are small or refused.

use super::{Able, options, solved};
use crate::random::Random;
use residua::multigrid::Multigrid;
use residua::precondition::Preconditioner;
use residua::{Csr, Error, Host, generate};

/// M^-1 is Hermitian to rounding: u.M^-1 v = v.M^-1 u.
pub fn hermitian<B: Able>(backend: &B) {
    let a = generate::jumping([20, 20, 20], 1e3, 4, 5).unwrap();
    let m = Multigrid::new(backend, &a.to_backend(backend).unwrap(), &options()).unwrap();
    let mut random = Random(11);
    let (u, v) = (random.vector::<f64>(8000), random.vector::<f64>(8000));
    let applied = |r: &[f64]| {
        let r = backend.upload(r.to_vec()).unwrap();
        let mut z = backend.zeros::<f64>(8000).unwrap();
        m.apply(backend, &r, &mut z).unwrap();
        backend.download(&z).unwrap()
    };
    let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
    let (one, other, size) = (dot(&u, &applied(&v)), dot(&v, &applied(&u)), dot(&u, &applied(&u)));
    assert!((one - other).abs() < 1e-12 * size && size > 0.0, "{one} {other} {size}");
}

/// The host's hierarchy has the same bits for any number of threads.
#[allow(dead_code)] // on the host only
pub fn the_same_bits(_: &Host) {
    let a = generate::jumping([24, 24, 24], 1e6, 6, 2).unwrap();
    let applied = |threads: usize| {
        rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(|| {
            let m = Multigrid::new(&Host, &a, &options()).unwrap();
            let r = Random(13).vector::<f64>(a.rows());
            let mut z = vec![0.0; a.rows()];
            m.apply(&Host, &r, &mut z).unwrap();
            z
        })
    };
    let one = applied(1);
    for threads in [1, 2, 3, 8] {
        assert!(one == applied(threads), "{threads} threads");
    }
}

pub fn small_and_strange<B: Able>(backend: &B) {
    let of = |a: &Csr<f64>| {
        let a = a.to_backend(backend).unwrap();
        Multigrid::new(backend, &a, &options().coarsest_rows(10)).map(|m| solved(backend, &a, &m))
    };
    assert_eq!(of(&Csr::identity(0).unwrap()).unwrap(), 0);
    assert!(of(&Csr::identity(1).unwrap()).unwrap() <= 1);
    // No couplings at all, and one unknown without couplings among others.
    assert!(of(&Csr::from_diagonal((1..2000).map(f64::from).collect()).unwrap()).unwrap() < 150);
    assert!(of(&generate::arrow(500).unwrap()).unwrap() < 60);
    assert!(of(&generate::tridiagonal(3001).unwrap()).unwrap() < 25);
    let infinite = Csr::from_diagonal(vec![1.0, f64::INFINITY]).unwrap();
    assert!(matches!(of(&infinite), Err(Error::InvalidMatrix(_))));
    // Entries whose squares overflow are finite all the same.
    let large = generate::poisson2d(40, 40).unwrap().map(|value: f64| value * 1e160);
    let large = large.to_backend(backend).unwrap();
    Multigrid::new(backend, &large, &options().boxes(false).narrow(false)).unwrap();
    let wide = Csr::from_parts(1, 2, vec![0, 1], vec![1], vec![1.0]).unwrap();
    assert!(matches!(of(&wide), Err(Error::Dimension { .. })));
    let a = generate::poisson2d(4, 4).unwrap().to_backend(backend).unwrap();
    for bad in [options().steps(0), options().strength(2.0), options().most_entries(f64::NAN)] {
        assert!(matches!(Multigrid::new(backend, &a, &bad), Err(Error::InvalidArgument(_))));
    }
}
