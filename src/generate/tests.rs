use super::*;
use crate::backend::OffsetsRef;
use crate::error::Error;
use proptest::prelude::*;

/// Entries in row order; fails if the matrix violates the invariants of CSR.
fn entries(a: &Csr<f64>) -> Vec<(usize, usize, f64)> {
    let parts = a.parts();
    let offsets: Vec<usize> = match parts.offsets {
        OffsetsRef::Lower(offsets) => offsets.iter().map(|&o| o as usize).collect(),
        OffsetsRef::Wide(offsets) => offsets.iter().map(|&o| o as usize).collect(),
    };
    Csr::from_parts(a.rows(), a.columns(), offsets.clone(), parts.indices.to_vec(), parts.values.to_vec())
        .unwrap();
    (0..a.rows())
        .flat_map(|i| (offsets[i]..offsets[i + 1]).map(move |k| (i, k)))
        .map(|(i, k)| (i, parts.indices[k] as usize, parts.values[k]))
        .collect()
}

fn dense(a: &Csr<f64>) -> nalgebra::DMatrix<f64> {
    let mut dense = nalgebra::DMatrix::zeros(a.rows(), a.columns());
    for (i, j, value) in entries(a) {
        dense[(i, j)] = value;
    }
    dense
}

fn small(model: &Model) -> Csr<f64> {
    let size = match model.size.len() {
        1 => vec![64],
        2 if model.name == "random" => vec![50, 40],
        2 => vec![7, 5],
        _ => vec![4, 3, 5],
    };
    model.build(&Parameters::default().size(size).block(2).seed(11)).unwrap()
}

#[test]
fn each_model_is_what_the_table_says() {
    for model in MODELS {
        let a = dense(&small(model));
        assert_eq!(a == a.transpose(), model.symmetric, "{}", model.name);
        if model.positive_definite {
            assert!(a.cholesky().is_some(), "{} is not positive definite", model.name);
        }
    }
}

#[test]
fn each_model_repeats_and_its_default_size_works() {
    for model in MODELS {
        let (a, b) =
            (model.build(&Parameters::default()).unwrap(), model.build(&Parameters::default()).unwrap());
        assert_eq!(entries(&a), entries(&b), "{}", model.name);
        assert!(a.nonzeros() > 0, "{}", model.name);
        let other = model.build(&Parameters::default().seed(2)).unwrap();
        assert_eq!(
            entries(&a) == entries(&other),
            !model.options.contains(&"seed"),
            "{} against another seed",
            model.name
        );
    }
}

#[test]
fn options_change_exactly_the_models_that_name_them() {
    let changed = [
        ("anisotropy", Parameters::default().anisotropy(0.5)),
        ("contrast", Parameters::default().contrast(10.0)),
        ("block", Parameters::default().block(3)),
        ("diffusion", Parameters::default().diffusion(1.0)),
        ("poisson-ratio", Parameters::default().poisson_ratio(0.2)),
        ("edge-factor", Parameters::default().edge_factor(4)),
        ("row-lengths", Parameters::default().row_lengths(RowLengths::Uniform(1, 9))),
        ("peclet", Parameters::default().peclet(50.0)),
        ("wavelength", Parameters::default().wavelength(20.0)),
        ("viscosity", Parameters::default().viscosity(3.0)),
    ];
    for model in MODELS {
        let before = entries(&model.build(&Parameters::default()).unwrap());
        for (option, parameters) in &changed {
            let after = entries(&model.build(parameters).unwrap());
            assert_eq!(before != after, model.options.contains(option), "{} and {option}", model.name);
        }
    }
}

#[test]
fn the_five_point_matrix_is_the_one_in_the_docs() {
    let expected = [
        [4., -1., 0., -1., 0., 0.],
        [-1., 4., -1., 0., -1., 0.],
        [0., -1., 4., 0., 0., -1.],
        [-1., 0., 0., 4., -1., 0.],
        [0., -1., 0., -1., 4., -1.],
        [0., 0., -1., 0., -1., 4.],
    ];
    assert_eq!(dense(&poisson2d(3, 2).unwrap()), nalgebra::DMatrix::from_fn(6, 6, |i, j| expected[i][j]));
}

/// The Laplacian as a sum of Kronecker products of one-dimensional stencils.
fn kronecker_laplacian(size: &[usize], weights: &[f64]) -> nalgebra::DMatrix<f64> {
    let n: usize = size.iter().product();
    let mut sum = nalgebra::DMatrix::zeros(n, n);
    for (d, &weight) in weights.iter().enumerate() {
        let mut term = nalgebra::DMatrix::identity(1, 1);
        for (e, &m) in size.iter().enumerate() {
            let factor = nalgebra::DMatrix::from_fn(m, m, |i, j| match (e == d, i.abs_diff(j)) {
                (true, 0) => 2.0 * weight,
                (true, 1) => -weight,
                (false, 0) => 1.0,
                _ => 0.0,
            });
            term = factor.kronecker(&term);
        }
        sum += term;
    }
    sum
}

#[test]
fn laplacians_are_kronecker_sums() {
    assert_eq!(dense(&poisson2d(4, 3).unwrap()), kronecker_laplacian(&[4, 3], &[1.0, 1.0]));
    assert_eq!(dense(&poisson3d(4, 3, 2).unwrap()), kronecker_laplacian(&[4, 3, 2], &[1.0; 3]));
    assert_eq!(dense(&anisotropic2d(4, 3, 0.25).unwrap()), kronecker_laplacian(&[4, 3], &[1.0, 0.25]));
    assert_eq!(
        dense(&anisotropic3d(2, 3, 4, 0.25).unwrap()),
        kronecker_laplacian(&[2, 3, 4], &[1.0, 1.0, 0.25])
    );
    assert_eq!(dense(&tridiagonal(9).unwrap()), kronecker_laplacian(&[9], &[1.0]));
}

#[test]
fn box_stencils_sum_to_the_number_of_missing_neighbours() {
    for (a, full) in [(poisson2d_9(5, 4).unwrap(), 9), (poisson3d_27(4, 3, 5).unwrap(), 27)] {
        let mut lengths = vec![0; a.rows()];
        let mut sums = vec![0.0; a.rows()];
        for (i, _, value) in entries(&a) {
            lengths[i] += 1;
            sums[i] += value;
        }
        for (length, sum) in lengths.into_iter().zip(sums) {
            assert_eq!(sum, f64::from(full - length));
        }
    }
}

#[test]
fn equal_coefficients_make_jumping_a_poisson_matrix_inside() {
    let n = [5, 4, 3];
    let (jump, plain) = (jumping(n, 1.0, 2, 9).unwrap(), poisson3d(5, 4, 3).unwrap());
    for ((i, j, value), (pi, pj, plain)) in entries(&jump).into_iter().zip(entries(&plain)) {
        assert_eq!((i, j), (pi, pj));
        // At the boundary the wall is half a cell away, so the flux is 2 instead of 1.
        let p = grid::point(n, i);
        let walls = (0..3).map(|d| f64::from(u8::from(p[d] == 0) + u8::from(p[d] + 1 == n[d]))).sum::<f64>();
        assert_eq!(value, if i == j { plain + walls } else { plain });
    }
}

#[test]
fn contrast_spans_the_coefficients() {
    let a = jumping([64, 64, 1], 1e6, 4, 3).unwrap();
    let off: Vec<f64> = entries(&a).into_iter().filter(|(i, j, _)| i != j).map(|e| -e.2).collect();
    let (low, high) = off.iter().fold((f64::MAX, 0f64), |(low, high), &v| (low.min(v), high.max(v)));
    assert!((1.0..10.0).contains(&low) && (1e5..1e6).contains(&high), "{low} to {high}");
}

#[test]
fn convection_has_m_matrix_signs_and_positive_row_sums_at_walls() {
    for a in [convection_diffusion([9, 8, 1], 1e-2).unwrap(), convection_diffusion([5, 4, 3], 1e-2).unwrap()]
    {
        let mut sums = vec![0.0; a.rows()];
        for (i, j, value) in entries(&a) {
            assert!((i == j) == (value > 0.0));
            sums[i] += value;
        }
        assert!(sums.iter().all(|&sum| sum > -1e-9));
    }
}

/// Rigid body motions have no energy: away from the clamped side, K (translation) = 0 and K (rotation) = 0.
#[test]
fn elasticity_knows_rigid_motions() {
    let (nx, ny, nz) = (4, 3, 3);
    let a = dense(&elasticity3d(nx, ny, nz, 0.3).unwrap());
    let mut rotation = nalgebra::DVector::zeros(a.nrows());
    for node in 0..a.nrows() / 3 {
        let p = grid::point([nx, ny + 1, nz + 1], node).map(|c| c as f64);
        rotation[3 * node] = -p[1] + 2.0;
        rotation[3 * node + 1] = p[0] + 1.0 - p[2];
        rotation[3 * node + 2] = p[1] + 4.0;
    }
    let force = &a * rotation;
    let scale = a.amax();
    for node in (0..a.nrows() / 3).filter(|node| node % nx > 0) {
        for c in 0..3 {
            assert!(force[3 * node + c].abs() < 1e-10 * scale, "node {node}: {}", force[3 * node + c]);
        }
    }
}

/// A mass matrix sums to the integral of the density: the element's entries sum to 1/45 * 45 = its area (here 4 / 4).
#[test]
fn wathen_sums_to_its_mass_and_matches_its_size() {
    let (nx, ny) = (6, 4);
    let a = wathen(nx, ny, 5).unwrap();
    assert_eq!(a.rows(), 3 * nx * ny + 2 * nx + 2 * ny + 1);
    let mass: f64 = (0..nx * ny).map(|e| 100.0 * Random::stream(5, e as u64).unit()).sum();
    let element: f64 = 180.0 / 45.0;
    let sum: f64 = entries(&a).iter().map(|e| e.2).sum();
    assert!((sum - element * mass).abs() < 1e-9 * sum, "{sum} against {}", element * mass);
    // Interior corners touch 21 nodes, mid-sides 13.
    assert_eq!(entries(&a).iter().filter(|e| e.0 == 2 * (3 * nx + 2) + 4).count(), 21);
}

#[test]
fn rmat_is_a_simple_graph_with_a_heavy_tail() {
    let a = rmat(1000, 8, RmatKind::Symmetric, 1).unwrap();
    let all = entries(&a);
    assert!(all.iter().all(|&(i, j, value)| i != j && value == 1.0));
    let mut degrees = vec![0; 1000];
    all.iter().for_each(|e| degrees[e.0] += 1);
    let mean = all.len() / 1000;
    assert!(*degrees.iter().max().unwrap() > 10 * mean, "the largest degree should be far above {mean}");
    let laplacian = rmat(1000, 8, RmatKind::Laplacian, 1).unwrap();
    let mut sums = vec![0.0; 1000];
    entries(&laplacian).iter().for_each(|e| sums[e.0] += e.2);
    assert!(sums.iter().all(|&sum| sum == 1.0));
    let directed = rmat(1000, 8, RmatKind::Directed, 1).unwrap();
    let undirected: std::collections::BTreeSet<_> = all.iter().map(|e| (e.0, e.1)).collect();
    assert!(entries(&directed).iter().all(|e| undirected.contains(&(e.0, e.1))));
}

#[test]
fn power_law_rows_fall_off_with_their_exponent() {
    let lengths: RowLengths = "power:1..1000:2".parse().unwrap();
    let a = random(20_000, 5_000, lengths, 3).unwrap();
    let mut counts = vec![0u32; 20_000];
    entries(&a).iter().for_each(|e| counts[e.0] += 1);
    assert!(counts.iter().all(|c| (1..=1000).contains(c)));
    // P(length = 1) of the drawn law is (1 - 1/2) / (1 - 1/1001); P(length >= 10) is (1/10 - 1/1001) / (same).
    let share =
        |f: &dyn Fn(u32) -> bool| f64::from(counts.iter().filter(|&&c| f(c)).count() as u32) / 20_000.0;
    assert!((share(&|c| c == 1) - 0.5005).abs() < 0.02);
    assert!((share(&|c| c >= 10) - 0.0991).abs() < 0.02);
}

#[test]
fn sizes_that_cannot_be_are_refused() {
    for (name, size) in [
        ("poisson2d", vec![1 << 20, 1 << 20]),
        ("poisson3d", vec![usize::MAX]),
        ("elasticity3d", vec![usize::MAX]),
        ("wathen", vec![usize::MAX]),
        ("rmat", vec![usize::MAX]),
        ("random", vec![usize::MAX]),
        ("diagonal", vec![(1 << 32) + 1]),
        ("poisson2d", vec![0, 4]),
        ("poisson2d", vec![4, 4, 4]),
    ] {
        let result = Model::find(name).unwrap().build(&Parameters::default().size(size.clone()));
        assert!(matches!(result, Err(Error::InvalidArgument(_))), "{name} {size:?}: {result:?}");
    }
    let contrasts = [f64::NAN, 0.0, 1e-300, 1e300].map(|contrast| Parameters::default().contrast(contrast));
    for parameters in contrasts.into_iter().chain([Parameters::default().block(0)]) {
        assert!(Model::find("jumping2d").unwrap().build(&parameters).is_err());
    }
    assert!(random(4, 4, RowLengths::Constant(5), 1).is_err());
    for error in [
        jumping([4, 4, 1], 10.0, 0, 1).unwrap_err(),
        elasticity2d(4, 4, 0.5).unwrap_err(),
        elasticity3d(2, 2, 2, 0.0).unwrap_err(),
        anisotropic3d(2, 2, 2, f64::INFINITY).unwrap_err(),
        wathen(0, 3, 1).unwrap_err(),
        "power:9..4:2".parse::<RowLengths>().unwrap_err(),
        "power:1..4:1".parse::<RowLengths>().unwrap_err(),
    ] {
        assert!(matches!(error, Error::InvalidArgument(_)), "{error}");
    }
    assert!(Model::find("nothing").unwrap_err().to_string().contains("poisson3d"));
}

proptest! {
    #[test]
    fn row_lengths_survive_printing(min in 1usize..50, more in 0usize..50, exponent in 1.1f64..4.0) {
        for lengths in [
            RowLengths::Constant(min),
            RowLengths::Uniform(min, min + more),
            RowLengths::PowerLaw { min, max: min + more, exponent },
        ] {
            prop_assert_eq!(lengths.to_string().parse::<RowLengths>().unwrap(), lengths);
        }
    }

    #[test]
    fn random_rows_have_their_lengths(rows in 0usize..40, columns in 1usize..60, seed: u64, share in 0.0f64..1.0) {
        let length = (share * columns as f64) as usize;
        let a = random(rows, columns, RowLengths::Constant(length), seed).unwrap();
        prop_assert_eq!(a.nonzeros(), rows * length);
        prop_assert_eq!(entries(&a).len(), rows * length);
    }
}

#[test]
fn copies_lie_along_the_diagonal() {
    let a = Csr::from_parts(2, 3, vec![0, 2, 3], vec![0, 2, 1], vec![1.0, 2.0, 3.0]).unwrap();
    let three = along_the_diagonal(&a, 3).unwrap();
    assert_eq!((three.rows(), three.columns()), (6, 9));
    let expected: Vec<_> = (0..3)
        .flat_map(|k| entries(&a).into_iter().map(move |(i, j, value)| (i + 2 * k, j + 3 * k, value)))
        .collect();
    assert_eq!(entries(&three), expected);
}

#[test]
fn copies_of_what_has_no_nonzeros_or_of_nothing() {
    let empty = Csr::<f64>::from_parts(2, 3, vec![0, 0, 0], vec![], vec![]).unwrap();
    let four = along_the_diagonal(&empty, 4).unwrap();
    assert_eq!((four.rows(), four.columns(), four.nonzeros()), (8, 12, 0));
    let none = along_the_diagonal(&poisson2d(3, 2).unwrap(), 0).unwrap();
    assert_eq!((none.rows(), none.columns(), none.nonzeros()), (0, 0, 0));
    let nothing = along_the_diagonal(&Csr::<f64>::from_parts(0, 0, vec![0], vec![], vec![]).unwrap(), 5);
    assert_eq!(nothing.unwrap().rows(), 0);
}

#[test]
fn more_copies_than_indices_count_are_refused() {
    let error = along_the_diagonal(&poisson2d(100, 100).unwrap(), 1 << 20).unwrap_err();
    assert!(matches!(&error, Error::InvalidArgument(text) if text.contains("2^32")), "{error}");
}

fn signs(a: &nalgebra::DMatrix<f64>) -> (usize, usize, usize) {
    let eigenvalues = a.symmetric_eigenvalues();
    let scale = eigenvalues.amax();
    let count = |is: &dyn Fn(f64) -> bool| eigenvalues.iter().filter(|&&e| is(e / scale)).count();
    (count(&|e| e > 1e-12), count(&|e| e < -1e-12), count(&|e| e.abs() <= 1e-12))
}

#[test]
fn saddle_points_have_a_negative_eigenvalue_for_each_constraint() {
    for seed in 0..5 {
        let a = dense(&quadratic_program(40, 25, 1e3, seed).unwrap());
        assert_eq!(signs(&a), (40, 25, 0), "seed {seed}");
        assert!((40..65).all(|k| a[(k, k)] == 0.0));
    }
    assert!(quadratic_program(3, 4, 10.0, 1).is_err() && quadratic_program(4, 3, 0.5, 1).is_err());
    assert_eq!(quadratic_program(5, 0, 10.0, 1).unwrap().rows(), 5);
}

#[test]
fn flow_that_is_free_of_pressure_has_one_null_vector() {
    for cells in [[5, 4, 1], [3, 4, 2]] {
        let cells_in_all = cells.iter().product::<usize>();
        let free = dense(&stokes(cells, 0.7, false).unwrap());
        let faces = free.nrows() - cells_in_all;
        assert_eq!(signs(&free), (faces, cells_in_all - 1, 1));
        let constant = nalgebra::DVector::from_fn(free.nrows(), |i, _| f64::from(u8::from(i >= faces)));
        assert_eq!((&free * constant).amax(), 0.0);
        let pinned = dense(&stokes(cells, 0.7, true).unwrap());
        assert_eq!(signs(&pinned), (faces, cells_in_all, 0));
        assert_eq!(pinned, pinned.transpose());
        // Away from the walls across it, a velocity's row is that of the Laplacian.
        assert_eq!(free[(0, 0)], 0.7 * if cells[2] > 1 { 8.0 } else { 5.0 });
    }
    assert!(stokes([1, 5, 1], 1.0, true).is_err() && stokes([2, 2, 1], 0.0, true).is_err());
}

#[test]
fn waves_are_indefinite_and_absorbed_in_the_layer_alone() {
    let a = helmholtz([12, 12, 1], 8.0).unwrap();
    let k2 = (std::f64::consts::TAU / 8.0_f64).powi(2);
    let shifted = dense(&poisson2d(12, 12).unwrap()) - nalgebra::DMatrix::identity(144, 144) * k2;
    assert!((dense(&a) - shifted).amax() < 1e-15);
    let (positive, negative, zero) = signs(&dense(&a));
    assert!(positive > 0 && negative > 0 && zero == 0);

    let absorbed = helmholtz_absorbing([40, 40, 1], 8.0).unwrap();
    let parts = absorbed.parts();
    let real = helmholtz([40, 40, 1], 8.0).unwrap();
    assert!(parts.values.iter().zip(real.parts().values).all(|(value, real)| value.re == *real));
    let at = |x: usize, y: usize| absorbed.get(40 * y + x, 40 * y + x).unwrap().im;
    assert!((at(0, 20) + 2.0 * k2).abs() < 1e-14 && at(20, 20) == 0.0 && at(8, 20) == 0.0 && at(7, 20) < 0.0);
    assert_eq!((at(3, 20), at(36, 20)), (at(20, 3), at(20, 36)));
    for model in COMPLEX_MODELS {
        let look = crate::look::Look::of(&model.build(&Parameters::default()).unwrap()).unwrap();
        assert_eq!(look.kind, crate::look::Kind::ComplexSymmetric, "{}", model.name);
    }
}

#[test]
fn circuits_are_regular_with_gaps_and_supplies() {
    let a = circuit(600, 1e3, 5).unwrap();
    let look = crate::look::Look::of(&a).unwrap();
    assert_eq!((a.rows(), look.structure.rank), (625, 625));
    assert_eq!((look.facts.diagonal_missing, look.structure.components), (25, 1));
    assert!(!look.kind.is_hermitian() && look.by_column.longest_row > 60, "{look:?}");
    let lu = dense(&a).lu();
    let x = nalgebra::DVector::from_fn(625, |i, _| (i as f64).sin());
    let error = (lu.solve(&(dense(&a) * &x)).unwrap() - x).amax();
    assert!(error < 1e-6, "{error}");
    assert!(circuit(7, 10.0, 1).is_err() && circuit(100, f64::NAN, 1).is_err());
}

#[test]
fn the_mesh_peclet_number_gives_the_diffusion() {
    let model = Model::find("convection2d").unwrap();
    let size = Parameters::default().size(vec![19]);
    let one = model.build(&size.clone().peclet(10.0)).unwrap();
    let other = model.build(&size.diffusion(0.005)).unwrap();
    assert_eq!(entries(&one), entries(&other));
}

#[test]
fn transport_loses_nothing_but_at_its_contact() {
    let sums = |a: Csr<f64>| dense(&a).row_sum();
    let electrons = sums(drift_diffusion(9, 7, 1e3).unwrap());
    for (i, sum) in electrons.iter().enumerate() {
        assert_eq!(i % 9 == 0, *sum > 1e-9, "column {i}: {sum:e}");
    }
    let pages = sums(pagerank(64, 8, 3).unwrap());
    assert!(pages.iter().all(|&sum| (sum - 0.15).abs() < 1e-12 || sum == 1.0));
}

#[test]
fn gradients_have_no_curl() {
    let cells = [3, 2, 4];
    let a = dense(&maxwell(cells, 1e4, 5).unwrap());
    // The gradient of x y + z at the two ends of each edge.
    let mut gradient = Vec::new();
    for d in 0..3 {
        let edges: [usize; 3] = std::array::from_fn(|e| cells[e] + 1 - usize::from(e == d));
        for k in 0..edges.iter().product() {
            let [x, y, _] = grid::point(edges, k).map(|at| at as f64);
            gradient.push([y, x, 1.0][d]);
        }
    }
    let g = nalgebra::DVector::from_vec(gradient);
    assert!((&a * &g - &g * 1e-4).norm() < 1e-9 * g.norm());
}

#[test]
fn a_mesh_knows_constants_and_a_cube_rigid_motions() {
    let a = dense(&mesh([6, 5, 0], 100.0, 0.0, 2).unwrap());
    let flux = &a * nalgebra::DVector::from_element(a.ncols(), 1.0);
    for (i, value) in flux.iter().enumerate() {
        // Nodes next to the side where the solution is given are coupled with it.
        assert_eq!(i % 6 == 0, value.abs() > 1e-9, "{i}: {value:e}");
    }
    let a = dense(&elasticity_mesh([3, 2, 2], 0.3, 2).unwrap());
    let moved = nalgebra::DVector::from_fn(a.ncols(), |i, _| f64::from(u8::from(i % 3 == 1)));
    let force = &a * moved;
    assert!(force.iter().enumerate().all(|(i, value)| i / 3 % 3 == 0 || value.abs() < 1e-9));
}
