//! Written files read back with the same bits, for each of NumPy's types.

use crate::entries::bits;
use crate::scratch::Folder;
use num_complex::Complex;
use residua::generate::Random;
use residua::market::{Order, ReadOptions};
use residua::{Csr, Scalar, Triplets, files};

/// Random entries in at least every second row, including zeros of both signs and subnormal numbers.
fn random<T: Scalar>((rows, columns): (usize, usize), random: &mut Random) -> Csr<T> {
    let mut triplets = Triplets::new(rows, columns).unwrap();
    for row in (0..rows).filter(|row| row % 5 < 3) {
        for _ in 0..random.below(7) {
            let mut number = || match random.below(9) {
                0 => 0.0,
                1 => -0.0,
                2 => f64::from(f32::MIN_POSITIVE) / 8.0,
                _ => random.between(-1.0, 1.0),
            };
            let (re, im) = (number(), if T::COMPLEX { number() } else { 0.0 });
            let value = T::from_parts(re, im).unwrap();
            triplets.push(row, random.below(columns as u64) as usize, value).unwrap();
        }
    }
    Csr::from_triplets(triplets).unwrap()
}

fn comes_back<T: Scalar>(folder: &Folder) {
    let (path, options) = (folder.path("a.npz"), ReadOptions::default());
    let mut numbers = Random::new(11);
    for size in [(1, 1), (3, 400), (400, 3), (70, 90), (3000, 5000)] {
        let a = random::<T>(size, &mut numbers);
        files::write_npz(&path, &a).unwrap();
        assert!(bits(&files::read_csr::<T>(&path).unwrap()) == bits(&a), "{size:?}");
        let (_, triplets, order) = files::read_triplets::<T>(&path, &options).unwrap().into_parts();
        assert!(order == Order::Rows && bits(&Csr::from_triplets(triplets).unwrap()) == bits(&a), "{size:?}");
    }
    // Vectors, and full arrays column after column.
    let values = random::<T>((3000, 5000), &mut numbers).parts().values.to_vec();
    let of = |values: &[T]| values.iter().map(|value| value.bits()).collect::<Vec<_>>();
    for columns in [1, 2, 30] {
        let rows = values.len() / columns;
        let values = &values[..rows * columns];
        let array = folder.path("a.npy");
        files::write_npy(&array, rows, columns, values).unwrap();
        files::write_npz_array(&path, "x", rows, columns, values).unwrap();
        for path in [&array, &path] {
            let found = files::read_dense::<T>(path, &options).unwrap();
            assert_eq!((found.rows(), found.columns()), (rows, columns));
            assert!(of(found.values()) == of(values), "{columns}");
        }
    }
    for (rows, columns) in [(0, 0), (0, 7), (7, 0)] {
        let none = Csr::<T>::from_triplets(Triplets::new(rows, columns).unwrap()).unwrap();
        files::write_npz(&path, &none).unwrap();
        assert_eq!(bits(&files::read_csr::<T>(&path).unwrap()), bits(&none));
        files::write_npy(folder.path("a.npy"), rows, columns, &[] as &[T]).unwrap();
        let found = files::read_dense::<T>(folder.path("a.npy"), &options).unwrap();
        assert_eq!((found.rows(), found.columns()), (rows, columns));
    }
}

#[test]
fn matrices_and_arrays_of_every_type_come_back() {
    let folder = Folder::new();
    comes_back::<f64>(&folder);
    comes_back::<f32>(&folder);
    comes_back::<Complex<f64>>(&folder);
    comes_back::<Complex<f32>>(&folder);
}
