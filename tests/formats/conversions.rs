//! To every format and back, storage figures, refusals.

use crate::cases::{HOST, example, with_lengths};
use crate::common::conversions::{large_cases, round_trip_cases, transposes};
use residua::Error;
use residua::matrix::{self, Coo, Csc, Csr, Ell, FORMAT_NAMES, Hybrid, Jds, Sell};

#[test]
fn every_format_round_trips() {
    round_trip_cases(&HOST);
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
    assert_eq!(format!("{:?}", csc.transpose_parts().offsets), "Narrow([0, 2, 3, 6, 7])");
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
    assert_eq!(format!("{:?}", jds.parts().offsets), "Narrow([0, 4, 7])");
    assert_eq!(jds.parts().indices, [0, 1, 0, 2, 2, 2, 3]);
    assert_eq!(jds.parts().values, [1.0, 4.0, 2.0, 8.0, 7.0, 3.0, 1.0]);

    let sell = Sell::with_sections(&HOST, &a, 2, 4).unwrap();
    assert_eq!(sell.parts().order.unwrap().as_slice(), [0, 2, 3, 1]);
    assert_eq!(sell.parts().lengths, [2, 2, 2, 1]);
    assert_eq!(format!("{:?}", sell.parts().offsets), "Narrow([0, 4, 8])");
    assert_eq!(sell.parts().indices, [0, 1, 2, 2, 0, 2, 3, 0]);
    assert_eq!(sell.parts().values, [1.0, 4.0, 7.0, 3.0, 2.0, 8.0, 1.0, 0.0]);
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
         (108012000 bytes), more than 2 a nonzero"
    );
    for name in FORMAT_NAMES.iter().filter(|name| !["ell", "sell"].contains(name)) {
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
    assert!(matches!(Sell::with_sections(&HOST, &a, 32, 32), Err(Error::Refused { .. })));
}

#[test]
fn an_unknown_format_names_those_that_there_are() {
    let error = matrix::build::<f64, _, f64>(&HOST, "elll", &example()).unwrap_err().to_string();
    assert!(error.ends_with("there are csr, coo, csc, ell, hybrid, jds, sell, slim"), "{error}");
}

#[test]
fn sections_that_fit_no_window_are_refused() {
    for (height, window) in [(0, 1), (4, 0), (4, 6), (4, 2)] {
        assert!(matches!(
            Sell::with_sections(&HOST, &example::<f64>(), height, window),
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
