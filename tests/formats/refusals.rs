//! Invalid arrays: kernels read offsets and columns without checks, so all invalid ones are rejected when a matrix is
//! created, with a message that names the first invalid position.

use crate::cases::{HOST, example};
use residua::matrix::{Csr, Sell};
use residua::{Error, Triplets};

/// A 3 x 4 CSR matrix with three values.
fn csr(offsets: &[usize], indices: &[u32]) -> Result<Csr<f64>, Error> {
    Csr::from_parts(3, 4, offsets.to_vec(), indices.to_vec(), vec![1.0; 3])
}

#[test]
fn arrays_that_are_no_csr_matrix_are_refused_with_the_row() {
    assert!(csr(&[0, 1, 1, 3], &[3, 0, 2]).is_ok());
    for (offsets, indices, word) in [
        (&[0, 1, 3][..], &[3, 0, 2][..], "number of row offsets"),
        (&[0, 1, 1, 3], &[3, 0], "number of values"),
        (&[1, 1, 1, 3], &[3, 0, 2], "first row offset"),
        (&[0, 1, 1, 2], &[3, 0, 2], "last row offset"),
        (&[0, 2, 1, 3], &[3, 0, 2], "row 0: column 0 comes after column 3"),
        (&[0, 2, 1, 3], &[0, 3, 2], "row 1 spans offsets 2 to 1"),
        (&[0, 1, 9, 3], &[3, 0, 2], "row 1 spans offsets 1 to 9"),
        (&[0, 1, 1, 3], &[3, 2, 2], "row 2: column 2 comes after column 2"),
        (&[0, 1, 1, 3], &[4, 0, 2], "row 0 has column 4, but the 4 columns count from 0"),
        (&[0, 1, 1, 3], &[3, 0, u32::MAX], "row 2 has column 4294967295"),
    ] {
        let error = csr(offsets, indices).unwrap_err().to_string();
        assert!(error.contains(word), "{word:?} is missing: {error}");
    }
    for columns in [(1 << 32) + 1, usize::MAX] {
        let wide = Csr::from_parts(1, columns, vec![0, 1], vec![7], vec![1.0]);
        assert!(wide.unwrap_err().to_string().contains("32 bits"), "{columns}");
    }
    assert!(Csr::from_parts(1, 1 << 32, vec![0, 1], vec![u32::MAX], vec![1.0]).is_ok());
    assert!(Csr::from_parts(usize::MAX, 4, vec![0], Vec::new(), Vec::<f64>::new()).is_err());
    assert!(Csr::from_parts(0, 0, Vec::new(), Vec::new(), Vec::<f64>::new()).is_err());
}

#[test]
fn triplets_outside_of_the_matrix_are_refused_with_their_place() {
    let of = |rows, columns: Vec<u32>, values| Triplets::from_parts(3, 4, rows, columns, values);
    assert!(of(vec![2, 0], vec![3, 0], vec![1.0, 2.0]).is_ok());
    for (triplets, word) in [
        (of(vec![2, 0], vec![3], vec![1.0, 2.0]), "number of column indices"),
        (of(vec![2, 0], vec![3, 0], vec![1.0]), "number of values"),
        (of(vec![2, 3], vec![3, 0], vec![1.0, 2.0]), "triplet 1 has row 3, but there are 3 rows"),
        (of(vec![2, 0], vec![4, 0], vec![1.0, 2.0]), "triplet 0 has column 4, but there are 4 columns"),
    ] {
        let error = triplets.unwrap_err().to_string();
        assert!(error.contains(word), "{word:?} is missing: {error}");
    }
    let mut triplets = Triplets::new(3, 4).unwrap();
    triplets.reserve(2);
    triplets.push(2, 3, 1.0).unwrap();
    for (row, column) in [(3, 0), (0, 4), (usize::MAX, 0), (0, 1 << 32)] {
        let error = triplets.push(row, column, 1.0).unwrap_err().to_string();
        assert!(error.contains(&format!("entry ({row}, {column}) is outside of a 3 x 4 matrix")), "{error}");
    }
    assert_eq!(triplets.len(), 1, "what was refused is not there");
    for (rows, columns) in [((1 << 32) + 1, 1), (1, (1 << 32) + 1)] {
        let error = Triplets::<f64>::new(rows, columns).unwrap_err().to_string();
        assert!(error.contains("32 bits"), "{error}");
    }
}

#[test]
fn sections_that_nothing_holds_are_refused() {
    let a = example::<f64>();
    for (height, window) in [(0, 1), (1, 0), (2, 3), (usize::MAX, 1), ((1 << 31) + 1, 1), (1, usize::MAX)] {
        let error = Sell::with_chunks(&HOST, &a, height, window).unwrap_err().to_string();
        assert!(error.contains(&format!("sell-{height}-{window}")), "{error}");
    }
    let tallest = Sell::with_chunks(&HOST, &a, 1 << 31, 1);
    assert!(matches!(tallest, Err(Error::Refused { .. })), "padded, but counted");
}

#[test]
fn so_many_vectors_at_once_as_no_kernel_takes_are_refused() {
    let a = example::<f64>();
    for vectors in [0, 33] {
        let (x, mut y) = (vec![1.0; 4 * vectors], vec![0.0; 4 * vectors]);
        let error = a.block_product(&HOST, vectors, 1.0, &x, 0.0, &mut y).unwrap_err().to_string();
        assert!(error.contains(&format!("{vectors} vectors were given")), "{error}");
    }
    assert!(a.block_product(&HOST, 2, 1.0, &[1.0; 7], 0.0, &mut [0.0; 8]).is_err());
    assert!(a.block_product(&HOST, 2, 1.0, &[1.0; 8], 0.0, &mut [0.0; 9]).is_err());
}
