use super::*;
use crate::backend::ProductModel;
use crate::matrix::FORMAT_NAMES;
use crate::{Host, generate};
use trial::Step;

/// A clock that runs each step and returns its time from a table: seconds of a conversion, seconds of a product.
fn told(
    times: &'static [(&'static str, f64, f64)],
) -> impl FnMut(Step, &str, &mut dyn FnMut() -> Result<()>) -> Result<f64> {
    move |step, name, body| {
        body()?;
        let (_, convert, product) = times.iter().find(|(known, ..)| *known == name).expect(name);
        Ok(match step {
            Step::Conversion => *convert,
            Step::Products(count) => *product * count as f64,
        })
    }
}

/// Formats that are tried whatever time the model expects.
fn whatever(names: &[&'static str]) -> Vec<trial::Proposal> {
    names.iter().map(|&name| (name, 0.0)).collect()
}

/// Few entries in many rows: coordinates need no row offsets.
fn hollow() -> Csr<f64> {
    let rows = 40_000;
    let mut offsets = vec![0; rows + 1];
    offsets.iter_mut().enumerate().for_each(|(row, offset)| *offset = row.div_ceil(100));
    let count = offsets[rows];
    Csr::from_parts(rows, rows, offsets, vec![3; count], vec![2.0; count]).unwrap()
}

#[test]
fn the_fastest_by_its_own_measurement_wins() {
    let a = || generate::poisson2d(20, 20).unwrap();
    let proposals = whatever(&["sell", "coo"]);
    for (times, winner) in [
        (&[("csr", 0.0, 3.0), ("sell", 1.0, 2.0), ("coo", 1.0, 1.0)][..], "coo"),
        (&[("csr", 0.0, 3.0), ("sell", 1.0, 1.0), ("coo", 1.0, 2.0)], "sell"),
        (&[("csr", 0.0, 1.0), ("sell", 1.0, 2.0), ("coo", 1.0, 3.0)], "csr"),
        // A difference of one percent is noise.
        (&[("csr", 0.0, 1.0), ("sell", 1.0, 0.99), ("coo", 1.0, 3.0)], "csr"),
    ] {
        for _ in 0..2 {
            let (matrix, trials) =
                trial::run::<f64, f64, _>(&Host, a(), &proposals, 4, &mut told(times)).unwrap();
            assert_eq!(matrix.format(), winner);
            let order: Vec<&str> = trials.iter().map(|t| t.format).collect();
            assert_eq!(order, ["csr", "sell", "coo"]);
            assert_eq!(trials[1].convert_seconds, 1.0);
        }
    }
}

/// The model's forecast for the first format decides whether others are tried only if it was right.
#[test]
fn a_promise_that_is_not_kept_brings_the_next_format_into_the_trial() {
    let a = || generate::poisson2d(20, 20).unwrap();
    let proposals = [("compressed", 0.2), ("sell", 0.8), ("coo", 1.15)];
    for (times, tried, winner) in [
        (&[("csr", 0.0, 1.0), ("compressed", 1.0, 0.3)][..], &["csr", "compressed"][..], "compressed"),
        (
            &[("csr", 0.0, 1.0), ("compressed", 1.0, 0.9), ("sell", 1.0, 0.7)],
            &["csr", "compressed", "sell"],
            "sell",
        ),
        (
            &[("csr", 0.0, 1.0), ("compressed", 1.0, 1.1), ("sell", 1.0, 1.2), ("coo", 1.0, 0.9)],
            &["csr", "compressed", "sell", "coo"],
            "coo",
        ),
    ] {
        let (matrix, trials) =
            trial::run::<f64, f64, _>(&Host, a(), &proposals, 4, &mut told(times)).unwrap();
        let order: Vec<&str> = trials.iter().map(|t| t.format).collect();
        assert_eq!((order.as_slice(), matrix.format()), (tried, winner));
    }
}

#[test]
fn a_format_that_refuses_the_matrix_is_told_and_the_others_go_on() {
    let a = generate::arrow(6000).unwrap();
    let mut clock = trial::wall_clock(&Host);
    let (matrix, trials) =
        trial::run::<f64, f64, _>(&Host, a, &whatever(FORMAT_NAMES), 4, &mut clock).unwrap();
    let ell = trials.iter().find(|t| t.format == "ell").unwrap();
    assert!(ell.product_seconds.is_none() && ell.refused.as_ref().unwrap().contains("padded"), "{ell:?}");
    let measured: Vec<&Trial> = trials.iter().filter(|t| t.product_seconds.is_some()).collect();
    assert!(measured.len() > 3 && measured.iter().any(|t| t.format == matrix.format()));
}

#[test]
fn what_kernels_cost_at_their_first_use_is_told_apart() {
    let times = &[("csr", 0.0, 2.0), ("coo", 10.0, 1.0), ("sell", 10.0, 3.0), ("hybrid", 10.0, 4.0)];
    let options = ChoiceOptions::default().products(1_000_000).compression(false).cache(false);
    let decided = decide::<f64, f64, _>(&Host, hollow(), &options, &mut told(times)).unwrap();
    let report = ChoiceReport { seconds: 40.0, first_use_seconds: 30.0, ..decided.into_parts().1 };
    assert_eq!((report.pays_after(), report.pays_again_after()), (Some(40), Some(10)));
    let text = report.to_string();
    assert!(text.contains("repaid after 40 products, or after 10 once the kernels are compiled"), "{text}");
    let text = ChoiceReport { first_use_seconds: 0.0, ..report }.to_string();
    assert!(text.ends_with("repaid after 40 products"), "{text}");
}

#[test]
fn a_trial_is_made_only_where_it_pays() {
    let times = &[("csr", 0.0, 2.0), ("coo", 10.0, 1.0), ("sell", 10.0, 3.0), ("hybrid", 10.0, 4.0)];
    let decided = |products: usize| {
        let options = ChoiceOptions::default().products(products).compression(false).cache(false);
        decide::<f64, f64, _>(&Host, hollow(), &options, &mut told(times)).unwrap().into_parts()
    };
    let (matrix, report) = decided(20);
    assert_eq!((matrix.format(), report.basis, report.trials.len()), ("csr", Basis::Model, 0));
    assert_eq!(report.pays_after(), Some(0));
    let (matrix, report) = decided(1_000_000);
    assert_eq!((matrix.format(), report.basis), ("coo", Basis::Measured), "{report}");
    assert_eq!(report.saved(), 1.0);
    assert!(report.to_string().starts_with("coo: 1.00 s a product, csr 2.00 s"), "{report}");
}

#[test]
fn what_was_remembered_decides_by_the_products_that_are_expected() {
    let trials = || vec![Trial::measured("csr", 0.0, 1.0), Trial::measured("coo", 10.0, 0.5)];
    for (products, winner) in [(10, "csr"), (30, "coo")] {
        let options = ChoiceOptions::default().products(products);
        let (matrix, report) =
            recall::<f64, f64, _>(&Host, hollow(), trials(), &options).unwrap().into_parts();
        assert_eq!((matrix.format(), report.basis), (winner, Basis::Remembered));
    }
    // If a stored format no longer accepts the matrix, CSR is kept.
    let trials = vec![Trial::measured("csr", 0.0, 1.0), Trial::measured("ell", 0.0, 0.1)];
    let arrow = generate::arrow(6000).unwrap();
    let choice = recall::<f64, f64, _>(&Host, arrow, trials, &ChoiceOptions::default()).unwrap();
    assert_eq!(choice.matrix().format(), "csr");
}

#[test]
fn the_sample_sees_clusters_and_repeated_values() {
    let of = |a: Result<Csr<f64>>| {
        let sample = sample::sample(&Host, &a.unwrap()).unwrap();
        (sample.variety, sample.fingerprint)
    };
    let (stencil, key) = of(generate::poisson3d(20, 20, 20));
    assert_eq!((stencil.distances, stencil.values, stencil.near), (7, 2, 1.0));
    assert!(stencil.rows > 900 && stencil.lines == stencil.kinds && stencil.kinds <= 27, "{stencil:?}");
    let (jumping, _) = of(generate::jumping([20, 20, 20], 1e6, 2, 1));
    assert!(jumping.kinds <= 27 && jumping.lines > 200, "{jumping:?}");
    let lengths = generate::RowLengths::Constant(9);
    let (random, other) = of(generate::random(50_000, 5_000_000, lengths, 1));
    assert!(random.distances > 1000 && random.values > 256 && random.near < 0.1, "{random:?}");
    let bytes = |variety: &Variety| variety.bytes(1000, 9000, 8);
    assert_eq!([bytes(&stencil), bytes(&jumping), bytes(&random)], [1000.0, 73_000.0, 108_000.0]);
    assert_ne!(key.0, other.0);
    let again = of(generate::poisson3d(20, 20, 20)).1;
    assert_eq!(key.0, again.0);
    let none = Csr::<f64>::from_parts(0, 0, vec![0], vec![], vec![]).unwrap();
    assert_eq!(of(Ok(none)).0.entries, 0);
}

/// The choice for a large matrix from a sample is the same as from all rows.
#[test]
fn some_rows_stand_for_all() {
    let a = generate::poisson2d(700, 700).unwrap();
    let sample::Sample { lengths: some, .. } = sample::sample(&Host, &a).unwrap();
    assert!(some.rows() < a.rows() / 4);
    let all = crate::matrix::RowLengths::of(&Host, &a).unwrap();
    let sizes = (a.rows(), a.columns(), a.nonzeros());
    let times = |lengths| {
        let traits = Traits::new::<f64, Host>(sizes, lengths, None);
        let mut all = model::forecasts(&crate::backend::Products::model(&Host), &traits);
        all.sort_by_key(|forecast| forecast.format);
        all
    };
    for (some, all) in times(&some).iter().zip(&times(&all)) {
        assert!(some.format == all.format && (some.time / all.time - 1.0).abs() < 0.02, "{some:?} {all:?}");
    }
}

/// A format that was far slower in its first two products is not measured further.
#[test]
fn a_hopeless_format_is_multiplied_three_times_and_no_more() {
    let a = generate::poisson2d(20, 20).unwrap();
    let (mut sell, mut coo) = (Vec::new(), Vec::new());
    let mut clock = |step: Step, name: &str, body: &mut dyn FnMut() -> Result<()>| {
        body()?;
        match name {
            "sell" => sell.push(step),
            "coo" => coo.push(step),
            _ => {}
        }
        let product = if name == "coo" { 3.1 } else { 1.0 };
        Ok(if let Step::Products(count) = step { product * count as f64 } else { 0.0 })
    };
    let proposals = whatever(&["sell", "coo"]);
    let (matrix, trials) = trial::run::<f64, f64, _>(&Host, a, &proposals, 10, &mut clock).unwrap();
    assert_eq!(matrix.format(), "csr");
    assert_eq!(sell[..2], [Step::Conversion, Step::Products(1)]);
    assert_eq!(sell[2..], [Step::Products(2); 4]);
    assert_eq!(coo, [Step::Conversion, Step::Products(1), Step::Products(1)]);
    assert_eq!(trials[2].product_seconds, Some(3.1));
}

/// A model of a GPU, on which starting a product and waiting for memory take time in addition to its bytes.
fn waiting() -> ProductModel {
    let shares = &[("csr", 0.92), ("ell", 1.0), ("jds", 0.75), ("sell", 1.08), ("compressed", 0.9)];
    let waits = &[
        ("csr", 6e5, 0.0),
        ("ell", 0.0, 3e5),
        ("jds", 7e6, 6e5),
        ("sell", 5e5, 3e5),
        ("compressed", 8.5e6, 0.0),
    ];
    ProductModel::new(5e6, 1.7e10, 6.0, shares).waits(waits)
}

/// For a small matrix the start of a product decides, not its bytes: ELL may then pad, and a format with a slow start
/// is not worth a trial.
#[test]
fn small_matrices_are_judged_by_what_products_wait_for() {
    let promises = |n: usize| {
        let a = generate::poisson2d(n, n).unwrap();
        let sample::Sample { variety, lengths, .. } = sample::sample(&Host, &a).unwrap();
        let traits = Traits::new::<f64, Host>((a.rows(), a.columns(), a.nonzeros()), &lengths, Some(variety));
        let all = model::forecasts(&waiting(), &traits);
        let of = |name: &str| all.iter().find(|f| f.format == name).unwrap().time;
        ["ell", "sell", "jds", "compressed"].map(|name| of(name) / of("csr"))
    };
    let [ell, sell, jds, compressed] = promises(150);
    assert!(ell < 1.0 && sell < 1.0 && jds > 1.5 && compressed > 1.2, "{ell} {sell} {jds} {compressed}");
    let [ell, sell, jds, compressed] = promises(1000);
    assert!(sell < ell && jds < 1.3 && compressed < 0.5, "{ell} {sell} {jds} {compressed}");
}

/// A long row that no sample sees delays a kernel that gives it to one thread.
#[test]
fn the_longest_of_all_rows_counts() {
    let (rows, long) = (80_000_usize, 20_000_usize);
    let length = |row: usize| if row == 0 { long } else { 3 };
    let mut offsets = vec![0];
    (0..rows).for_each(|row| offsets.push(offsets[row] + length(row)));
    let first = |row: usize| row.min(rows - length(row));
    let indices =
        (0..rows).flat_map(|row| (first(row)..first(row) + length(row)).map(|column| column as u32));
    let a = Csr::<f64>::from_parts(rows, rows, offsets, indices.collect(), vec![1.0; long + 3 * (rows - 1)])
        .unwrap();
    let sample::Sample { lengths, .. } = sample::sample(&Host, &a).unwrap();
    assert_eq!(lengths.longest(), 3);
    let traits = Traits::new::<f64, Host>((a.rows(), a.columns(), a.nonzeros()), &lengths, None);
    let first = |traits: &Traits| model::forecasts(&waiting(), traits)[0].format;
    assert_ne!(first(&traits), "csr");
    let longest = longest_of(&Host, &lengths_of(&Host, &a).unwrap()).unwrap();
    assert_eq!(first(&traits.longest(longest as usize)), "csr");
}

/// On a GPU, sell was once chosen although csr takes a third of its time: products of 3 us were measured one at a time
/// with a clock that takes 20.
#[test]
fn short_products_are_measured_many_at_a_time() {
    assert_eq!([trial::each(1, 16, 0.0), trial::each(7, 16, 0.0)], [8, 6]);
    assert_eq!(trial::each(2, 16, 0.5), 250);
    let mut products = Vec::new();
    let mut clock = |step: Step, _: &str, body: &mut dyn FnMut() -> Result<()>| {
        body()?;
        let Step::Products(count) = step else { return Ok(0.0) };
        products.push(count);
        Ok(1e-6 * count as f64)
    };
    let options = ChoiceOptions::default().products(1_000_000).compression(false).cache(false);
    decide::<f64, f64, _>(&Host, hollow(), &options, &mut clock).unwrap();
    // Starting is a tenth of such a product; the budget alone would give batches of three.
    assert_eq!(products, [[1, 12, 12, 12, 12]; 3].concat());
}

/// On the CPU an entry of the compressed format costs time unless equal rows come in runs.
#[test]
fn the_cpu_compresses_runs_of_like_rows_and_nothing_else() {
    let proposed = |a: Result<Csr<f64>>| {
        let a = a.unwrap();
        let sample::Sample { variety, lengths, .. } = sample::sample(&Host, &a).unwrap();
        let traits =
            Traits::new::<f64, Host>((a.rows(), a.columns(), a.nonzeros()), &lengths, Some(variety.clone()));
        let all = model::forecasts(&crate::backend::Products::model(&Host), &traits);
        let names: Vec<&str> = model::candidates(&all, true).iter().map(|f| f.format).collect();
        (variety, names.contains(&"compressed"))
    };
    for grid in
        [generate::poisson3d(40, 40, 40), generate::poisson2d(300, 300), generate::poisson3d_27(30, 30, 30)]
    {
        let (variety, compressed) = proposed(grid);
        assert!(compressed && 8 * variety.runs < variety.rows, "{variety:?}");
    }
    // With three unknowns at a point, every row differs from its neighbours. With general values, all rows differ.
    let (elasticity, compressed) = proposed(generate::elasticity3d(12, 12, 12, 0.3));
    assert!(!compressed && 2 * elasticity.runs > elasticity.rows, "{elasticity:?}");
    assert!(!proposed(generate::jumping([20, 20, 20], 1e6, 2, 1)).1);
    // The contents of the rows were not sampled.
    let a = generate::poisson3d(40, 40, 40).unwrap();
    assert_ne!(advise::<f64, _>(&Host, &a.row_lengths(&Host).unwrap()).format, "compressed");
}

/// Diagonals are proposed first if there are few, and not if columns are scattered.
#[test]
fn grids_with_general_values_are_proposed_by_diagonals() {
    let first = |a: Result<Csr<f64>>| {
        let a = a.unwrap();
        let sample::Sample { variety, lengths, .. } = sample::sample(&Host, &a).unwrap();
        let traits = Traits::new::<f64, Host>((a.rows(), a.columns(), a.nonzeros()), &lengths, Some(variety));
        let all = model::forecasts(&crate::backend::Products::model(&Host), &traits);
        (model::candidates(&all, true).first().map(|f| f.format), lengths.diagonals())
    };
    assert_eq!(first(generate::jumping([40, 40, 40], 1e6, 2, 1)), (Some("dia"), Some(7)));
    assert_eq!(first(generate::elasticity3d(20, 20, 20, 0.3)).1, Some(99));
    let lengths = generate::RowLengths::Constant(9);
    let (random, seen) = first(generate::random(50_000, 50_000, lengths, 1));
    assert!(random != Some("dia") && seen.is_some_and(|n| n > 1000), "{random:?} {seen:?}");
}

/// Columns in layers that are far apart, as in a three-dimensional mesh, do not count as scattered: they fit 16 bits.
#[test]
fn layers_far_apart_are_compressed() {
    let (rows, layer) = (130_000_usize, 40_000);
    let of_row = |i: usize| {
        let places = [0, layer, 2 * layer].map(|first| i + first + 37 * i % 300);
        [places[0], i + layer - 1, places[1], places[2]].map(|j| j as u32)
    };
    let mut entries: Vec<[u32; 4]> = (0..rows).map(of_row).collect();
    entries.iter_mut().for_each(|row| row.sort_unstable());
    let (offsets, values) =
        ((0..=rows).map(|i| 4 * i).collect(), (0..4 * rows).map(|k| k as f64 / 3.0).collect());
    let a = Csr::from_parts(rows, rows + 2 * layer + 300, offsets, entries.concat(), values).unwrap();
    let sample::Sample { variety, lengths, .. } = sample::sample(&Host, &a).unwrap();
    assert_eq!((variety.held, variety.near), (1.0, 1.0), "{variety:?}");
    let model =
        ProductModel::new(1e5, 1e7, 6.0, &[("csr", 0.92), ("sell", 1.03), ("compressed", 0.9)]).far(17.5);
    let traits = Traits::new::<f64, Host>((a.rows(), a.columns(), a.nonzeros()), &lengths, Some(variety));
    let proposed: Vec<&str> =
        model::candidates(&model::forecasts(&model, &traits), true).iter().map(|f| f.format).collect();
    assert!(proposed.contains(&"compressed"), "{proposed:?}");
}

/// If runs of the sample start at the boundary of a grid's planes, their first rows lack neighbours: 9 of 27 diagonals
/// are not seen there.
#[test]
fn rows_at_the_edge_of_a_grid_do_not_hide_its_diagonals() {
    let a = generate::poisson3d_27(200, 8, 16).unwrap();
    let sample::Sample { lengths, variety, .. } = sample::sample(&Host, &a).unwrap();
    assert_eq!((lengths.diagonals(), variety.distances), (Some(27), 18));
    let traits = Traits::new::<f64, Host>((a.rows(), a.columns(), a.nonzeros()), &lengths, None);
    let all = model::forecasts(&crate::backend::Products::model(&Host), &traits);
    assert_eq!(all.first().map(|f| f.format), Some("dia"), "{all:?}");
}

#[test]
fn a_grid_is_compressed_on_the_cpu_where_the_trial_agrees() {
    for (times, winner) in [
        (&[("csr", 0.0, 3.0), ("compressed", 1.0, 1.0)][..], "compressed"),
        (&[("csr", 0.0, 1.0), ("compressed", 1.0, 2.0), ("dia", 1.0, 2.0), ("sell", 1.0, 2.0)], "csr"),
    ] {
        let options = ChoiceOptions::default().products(100_000).cache(false);
        let a = generate::poisson3d(40, 40, 40).unwrap();
        let choice = decide::<f64, f64, _>(&Host, a, &options, &mut told(times)).unwrap();
        assert_eq!((choice.matrix.format(), choice.report.basis), (winner, Basis::Measured));
    }
}
