//! Conversions to every format and back, figures of storage, and refusals.

use crate::cases::{HOST, example, ragged, with_lengths};
use crate::common::conversions::{large_cases, round_trip_cases, transposes};
use residua::backend::{DIA_SECTION, Op};
use residua::matrix::{self, Coo, Csc, Csr, Dia, Ell, FORMAT_NAMES, Hybrid, Jds, RowLengths, Sell};
use residua::{Error, Host};

#[test]
fn every_format_round_trips() {
    round_trip_cases(&HOST);
}

#[test]
fn csc_takes_and_gives_the_transpose_as_it_is() {
    let a = example::<f64>();
    let transpose = a.transpose(&HOST).unwrap();
    let csc = Csc::from_transpose(a.transpose(&HOST).unwrap());
    assert_eq!((csc.rows(), csc.columns(), csc.nonzeros()), (a.rows(), a.columns(), a.nonzeros()));
    assert!(csc.to_csr(&HOST).unwrap() == a);
    assert!(csc.into_transpose() == transpose);
}

#[test]
fn estimates_are_what_the_formats_say() {
    for (name, a) in ragged::<f64>() {
        let lengths = RowLengths::of(&HOST, &a).unwrap();
        let estimates = matrix::storage_estimates::<f64, Host>(&lengths);
        for (format, (of, storage)) in matrix::formats::<f64, Host, f64>().iter().zip(estimates) {
            assert_eq!((format.name(), format.storage(&lengths)), (of, storage), "{name}");
        }
    }
}

#[test]
fn special_values_survive_every_format() {
    let values = vec![f64::NAN, -0.0, 0.0, f64::INFINITY, 5e-324, -1.0, f64::MAX];
    let a = Csr::from_parts(4, 4, vec![0, 2, 3, 5, 7], vec![0, 2, 2, 1, 2, 0, 3], values).unwrap();
    for format in matrix::formats::<f64, _, f64>() {
        let again = format.build(&HOST, &a).unwrap().to_csr(&HOST).unwrap();
        let bits = |a: &Csr<f64>| a.parts().values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&again), bits(&a), "{}", format.name());
    }
}

#[test]
fn the_example_lies_in_memory_as_drawn() {
    let a = example::<f64>();
    let coo = Coo::from_csr(&HOST, &a).unwrap();
    assert_eq!(coo.parts().row_indices, [0, 0, 1, 2, 2, 3, 3]);
    assert_eq!(coo.parts().column_indices, [0, 2, 2, 1, 2, 0, 3]);

    let csc = Csc::from_csr(&HOST, &a).unwrap();
    assert_eq!(format!("{:?}", csc.transpose_parts().offsets), "Lower([0, 2, 3, 6, 7])");
    assert_eq!(csc.transpose_parts().indices, [0, 3, 2, 0, 1, 2, 3]);
    assert_eq!(csc.transpose_parts().values, [1.0, 2.0, 4.0, 7.0, 8.0, 3.0, 1.0]);

    let ell = Ell::from_csr(&HOST, &a).unwrap();
    assert_eq!((ell.width(), ell.padding()), (2, 1));
    assert_eq!(ell.parts().lengths, [2, 1, 2, 2]);
    assert_eq!(ell.parts().indices, [0, 2, 1, 0, 2, 0, 2, 3]);
    assert_eq!(ell.parts().values, [1.0, 8.0, 4.0, 2.0, 7.0, 0.0, 3.0, 1.0]);

    let hybrid = Hybrid::from_csr(&HOST, &a).unwrap();
    assert_eq!((hybrid.head().width(), hybrid.tail().nonzeros()), (2, 0));

    let jds = Jds::from_csr(&HOST, &a).unwrap();
    assert_eq!(jds.parts().order.as_slice(), [0, 2, 3, 1]);
    assert_eq!(format!("{:?}", jds.parts().offsets), "Lower([0, 4, 7])");
    assert_eq!(jds.parts().indices, [0, 1, 0, 2, 2, 2, 3]);
    assert_eq!(jds.parts().values, [1.0, 4.0, 2.0, 8.0, 7.0, 3.0, 1.0]);

    let sell = Sell::with_chunks(&HOST, &a, 2, 4).unwrap();
    assert_eq!(sell.parts().order.unwrap().as_slice(), [0, 2, 3, 1]);
    assert_eq!(sell.parts().lengths, [2, 2, 2, 1]);
    assert_eq!(format!("{:?}", sell.parts().offsets), "Lower([0, 4, 8])");
    assert_eq!(sell.parts().indices, [0, 1, 2, 2, 0, 2, 3, 0]);
    assert_eq!(sell.parts().values, [1.0, 4.0, 7.0, 3.0, 2.0, 8.0, 1.0, 0.0]);

    let dia = Dia::from_csr(&HOST, &a).unwrap();
    assert_eq!(dia.parts().distances, [-3, -1, 0, 1, 2]);
    let drawn = [
        [None, None, None, Some(2.0)],
        [None, None, Some(4.0), None],
        [Some(1.0), None, Some(3.0), Some(1.0)],
        [None, Some(8.0), None, None],
        [Some(7.0), None, None, None],
    ];
    for (diagonal, drawn) in dia.parts().values.chunks(DIA_SECTION).zip(drawn) {
        let entries = diagonal.iter().map(|&v| (v.to_bits() != u64::MAX).then_some(v));
        assert!(entries.eq(drawn.into_iter().chain([None; DIA_SECTION - 4])));
    }
}

#[test]
fn the_value_that_stands_for_no_entry_is_refused_and_other_nans_are_kept() {
    let with = |value: f64| Csr::from_parts(2, 2, vec![0, 1, 2], vec![0, 1], vec![1.0, value]).unwrap();
    let error = Dia::from_csr(&HOST, &with(f64::from_bits(u64::MAX))).err().unwrap().to_string();
    assert_eq!(error, "format dia refused: a value has every bit set, which here stands for no entry");
    for bits in [u64::MAX - 1, u64::MAX >> 1, f64::NAN.to_bits(), 0xffff_ffff, 0xffff_ffff << 32] {
        let a = with(f64::from_bits(bits));
        let again = Dia::from_csr(&HOST, &a).unwrap().to_csr(&HOST).unwrap();
        assert_eq!(again.parts().values[1].to_bits(), bits);
        let mut y = [0.0; 2];
        a.product(&HOST, 1.0, &[2.0, 3.0], 0.0, &mut y).unwrap();
        let mut by_diagonals = [0.0; 2];
        let dia = Dia::from_csr(&HOST, &a).unwrap();
        dia.product_op(&HOST, Op::None, 1.0, &[2.0, 3.0], 0.0, &mut by_diagonals).unwrap();
        assert_eq!(y[1].is_nan(), by_diagonals[1].is_nan());
        assert_eq!(y[0], by_diagonals[0]);
    }
}

#[test]
fn too_many_diagonals_are_refused_in_figures() {
    let a = with_lengths::<f64>(3000, &[4; 3000], 3);
    let error = matrix::build::<f64, _, f64>(&HOST, "dia", &a).unwrap_err().to_string();
    let count = matrix::RowLengths::of(&HOST, &a).unwrap().diagonals().unwrap();
    let places = count * 3008;
    assert_eq!(
        error,
        format!(
            "format dia refused: {count} diagonals of 3000 rows: {} padded entries for 12000 nonzeros ({} bytes), more than \
             2 per nonzero",
            places - 12_000,
            8 * places + 8 * count
        )
    );
}

#[test]
fn hybrid_takes_the_width_that_a_third_of_the_rows_reach() {
    // 30 rows: 20 of length 1, 6 of length 3, 4 of length 8: a third of the rows reaches 3, but not 4.
    let mut lengths = vec![1; 20];
    lengths.extend([3; 6]);
    lengths.extend([8; 4]);
    let hybrid = Hybrid::from_csr(&HOST, &with_lengths::<f64>(50, &lengths, 1)).unwrap();
    assert_eq!(hybrid.head().width(), 3);
    assert_eq!(hybrid.tail().nonzeros(), 4 * 5);
    assert_eq!(hybrid.padding(), 20 * 2);
}

#[test]
fn an_arrow_in_ell_is_refused_in_figures() {
    let mut lengths = vec![2; 3000];
    lengths[0] = 3000;
    let a = with_lengths::<f64>(3000, &lengths, 3);
    let error = matrix::build::<f64, _, f64>(&HOST, "ell", &a).unwrap_err().to_string();
    assert_eq!(
        error,
        "format ell refused: 3000 rows padded to the longest one's 3000: 8991002 padded entries for 8998 nonzeros \
         (108012000 bytes), more than 2 per nonzero"
    );
    for name in FORMAT_NAMES.iter().filter(|name| !["ell", "sell", "dia"].contains(name)) {
        let stored = matrix::build::<f64, _, f64>(&HOST, name, &a).unwrap();
        assert!(stored.storage_bytes() < 3 * a.storage_bytes(), "{name} takes {}", stored.storage_bytes());
    }
}

#[test]
fn a_padded_size_that_overflows_is_refused_before_anything_is_allocated() {
    // 2^21 rows, one of them 2^21 long: 2^42 places.
    let n = 1 << 21;
    let mut lengths = vec![0; n];
    lengths[5] = n;
    let (mut offsets, indices) = (vec![0; n + 1], (0..n as u32).collect());
    offsets[6..].fill(n);
    let a = Csr::from_parts(n, n, offsets, indices, vec![1.0f32; n]).unwrap();
    assert!(matches!(Ell::from_csr(&HOST, &a), Err(Error::Refused { .. })));
    assert!(matches!(Sell::with_chunks(&HOST, &a, 32, 32), Err(Error::Refused { .. })));
}

#[test]
fn an_unknown_format_names_those_that_there_are() {
    let error = matrix::build::<f64, _, f64>(&HOST, "elll", &example()).unwrap_err().to_string();
    assert!(error.ends_with("there are csr, coo, csc, ell, hybrid, jds, sell, dia, compressed"), "{error}");
}

#[test]
fn sections_that_fit_no_window_are_refused() {
    for (height, window) in [(0, 1), (4, 0), (4, 6), (4, 2)] {
        assert!(matches!(
            Sell::with_chunks(&HOST, &example::<f64>(), height, window),
            Err(Error::InvalidArgument(_))
        ));
    }
}

#[test]
fn transposing_twice_gives_the_matrix_back() {
    transposes(&HOST);
}

#[test]
fn every_format_takes_long_rows_and_many() {
    large_cases(&HOST);
}
