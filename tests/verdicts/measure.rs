//! Measures of b - A x, in arithmetic without rounding.

use crate::exact::{Dyadic, Exact, norm_squared};
use residua::{Csr, Scalar};

/// b - A x and related measures. Squares are exact; the others are rounded once.
pub struct Measures {
    /// ||b - A x||^2 and ||b||^2.
    pub residual: Dyadic,
    pub b: Dyadic,
    /// ||D (b - A x)|| / ||D b||, D = 1 / ||a_i||: rows of zeros are left out.
    pub row_wise: f64,
    /// ||A^H (b - A x)||^2 and ||A||_F^2.
    pub normal: Dyadic,
    pub matrix: Dyadic,
    /// ||b - A x|| / (||A||_F ||x|| + ||b||).
    pub backward: f64,
    /// The largest of |b - A x|_i / (|A||x| + |b|)_i.
    pub componentwise: f64,
    /// || |A||x| + |b| || / ||b||, to which the rounding errors of b - A x in working precision are proportional.
    pub terms: f64,
}

impl Measures {
    pub fn new<T: Scalar>(a: &Csr<T>, b: &[T], x: &[T]) -> Self {
        let (right, x) = (Exact::of_all(b), Exact::of_all(x));
        let mut normal = vec![Exact::zero(); a.columns()];
        let (mut residual, mut matrix) = (Dyadic::zero(), Dyadic::zero());
        let (mut row_residual, mut row_b) = (0.0, 0.0);
        let (mut componentwise, mut terms) = (0_f64, 0.0);
        for (i, right) in right.iter().enumerate() {
            let (columns, values) = a.row(i);
            let entries = Exact::of_all(values);
            let (mut r, mut size) = (right.clone(), right.abs());
            for (&j, entry) in columns.iter().zip(&entries) {
                let x = &x[j as usize];
                r = r.minus(&entry.times(x));
                size += entry.abs() * x.abs();
            }
            for (&j, entry) in columns.iter().zip(&entries) {
                normal[j as usize] = normal[j as usize].plus(&entry.conj().times(&r));
            }
            let (row, square) = (norm_squared(&entries), r.square());
            if !row.is_zero() {
                row_residual += square.over(&row);
                row_b += right.square().over(&row);
            }
            if !square.is_zero() {
                componentwise = componentwise.max(r.abs() / size);
            }
            terms += size * size;
            residual = &residual + &square;
            matrix = &matrix + &row;
        }
        let b = norm_squared(&right);
        let scale = (matrix.to_f64() * norm_squared(&x).to_f64()).sqrt() + b.to_f64().sqrt();
        let backward = if residual.is_zero() { 0.0 } else { residual.to_f64().sqrt() / scale };
        Self {
            row_wise: if row_residual == 0.0 { 0.0 } else { (row_residual / row_b).sqrt() },
            normal: norm_squared(&normal),
            terms: (terms / b.to_f64()).sqrt(),
            residual,
            b,
            matrix,
            backward,
            componentwise,
        }
    }

    /// ||b - A x|| / ||b||, to the last digit of a double.
    pub fn relative(&self) -> f64 {
        self.residual.over(&self.b).sqrt()
    }

    /// ||A^H (b - A x)|| / (||A||_F ||b - A x||).
    pub fn normal_residual(&self) -> f64 {
        self.normal.over(&(&self.matrix * &self.residual)).sqrt()
    }

    /// Returns whether ||b - A x|| <= tolerance ||b||, compared without rounding, and the same for rows divided by
    /// their norms.
    pub fn meets(&self, tolerance: f64) -> bool {
        let allowed = &Dyadic::new(tolerance).square() * &self.b;
        self.residual <= allowed && self.row_wise <= tolerance * (1.0 + 1e-12)
    }

    /// Returns whether ||A^H (b - A x)|| <= tolerance ||A||_F ||b - A x||, compared without rounding.
    pub fn is_least(&self, tolerance: f64) -> bool {
        let allowed = &(&Dyadic::new(tolerance).square() * &self.matrix) * &self.residual;
        self.normal <= allowed
    }
}

#[test]
fn measures_see_what_working_precision_does_not() {
    // The first row cancels: its residual is -1, and 0 in doubles.
    let a = Csr::from_parts(2, 2, vec![0, 2, 3], vec![0, 1, 1], vec![1e17, -1e17, 1.0]).unwrap();
    let measures = Measures::new(&a, &[1.0, 1.0], &[1.0, 1.0]);
    assert_eq!(measures.residual, Dyadic::new(1.0));
    assert!((measures.relative() - 0.5_f64.sqrt()).abs() < 1e-15);
    // D b is (1 / sqrt(2) 1e-17, 1), and D (b - A x) is its first part.
    assert!((measures.row_wise / (0.5_f64.sqrt() * 1e-17) - 1.0).abs() < 1e-15);
    assert!(measures.meets(0.75) && !measures.meets(0.7));
    // A^H r is along the first row, which is nearly all of A.
    assert!((measures.normal_residual() - 1.0).abs() < 1e-15 && !measures.is_least(0.99));
}
