//! Calls to the crate faer, for real and complex entries: one function for each step, compiled once.
//!
//! Arrays are passed as columns of A^T, which are the rows of A. faer may return `Ok` with factors that are not finite,
//! and some of its functions panic: callers check for the first and catch the second.

use super::report::Reason;
use crate::graph::Permutation;
use crate::scalar::Scalar;
use crate::work::{self, Stage};
use faer::dyn_stack::{MemBuffer, MemStack, StackReq};
use faer::linalg::cholesky::ldlt::factor::LdltRegularization;
use faer::linalg::householder as reflectors;
use faer::linalg::matmul::matmul;
use faer::linalg::triangular_solve::solve_unit_lower_triangular_in_place;
use faer::perm::PermRef;
use faer::prelude::*;
use faer::sparse::linalg::cholesky::{
    CholeskySymbolicParams, LdltRef, LltRef, SymbolicCholesky, SymbolicCholeskyRaw, SymmetricOrdering,
    factorize_symbolic_cholesky,
};
use faer::sparse::linalg::lu::{LuRef, LuSymbolicParams, NumericLu, SymbolicLu, factorize_symbolic_lu};
use faer::sparse::linalg::{SupernodalThreshold, amd, colamd};
use faer::sparse::{SparseColMatRef, SymbolicSparseColMatRef};
use faer::traits::ComplexField;
use faer::{Accum, Conj, Mat, MatMut, MatRef, Par, Side};
use num_complex::Complex;
use std::sync::Arc;
use std::time::Duration;

/// Smaller jobs finish before a caller could want to stop them. The limit on rows is lower for LU than for orderings
/// and structures, because the factors of LU may be full.
const LONG_ROWS: usize = 5000;
const LONG_LU_ROWS: usize = 500;
pub const LONG_FLOPS: f64 = 3e8;

/// Multiplications per second in dense blocks, as measured.
pub const IN_BLOCKS: f64 = 3e9;

/// A matrix by columns: offsets and row indices.
#[derive(Clone, Copy)]
pub struct Columns<'a> {
    pub rows: usize,
    pub columns: usize,
    pub starts: &'a [u32],
    pub indices: &'a [u32],
}

impl<'a> Columns<'a> {
    fn symbolic(self) -> SymbolicSparseColMatRef<'a, u32> {
        SymbolicSparseColMatRef::new_checked(self.rows, self.columns, self.starts, None, self.indices)
    }
}

/// A copy of the columns, which another thread can own.
struct Owned {
    rows: usize,
    columns: usize,
    starts: Vec<u32>,
    indices: Vec<u32>,
}

impl Owned {
    fn new(a: Columns<'_>) -> Self {
        Self { rows: a.rows, columns: a.columns, starts: a.starts.to_vec(), indices: a.indices.to_vec() }
    }

    fn columns(&self) -> Columns<'_> {
        Columns { rows: self.rows, columns: self.columns, starts: &self.starts, indices: &self.indices }
    }
}

/// Runs an ordering or a symbolic analysis. The library cannot be interrupted, so a long one runs on its own thread,
/// which is abandoned if the caller wants to stop.
fn structural<R: Send + 'static>(
    a: Columns<'_>,
    search: impl FnOnce(Columns<'_>) -> R + Send + 'static,
) -> R {
    if a.columns < LONG_ROWS || !work::is_watched() {
        return search(a);
    }
    let (a, _meter) = (Owned::new(a), work::begin(Stage::Ordering, 0, None));
    work::apart(move || search(a.columns()))
}

/// Runs code that calls the library's products of blocks, and then clears the upper halves of the vector registers. The
/// products are assembler code that leaves these halves in use; code that mixes both instruction encodings then waits
/// at each change between them (sums in twice the precision took 100 times as long on a Xeon of 2023).
fn cleared<R>(work: impl FnOnce() -> R) -> R {
    let done = work();
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx") {
        // SAFETY: the test above has shown that the processor has this instruction. It clears only the upper halves of
        // registers, in which this program keeps no value: code compiled for all processors uses the lower halves
        // alone, and code compiled for newer ones keeps nothing in the upper halves across a call.
        unsafe { std::arch::x86_64::_mm256_zeroupper() };
    }
    done
}

fn memory(request: StackReq) -> Result<MemBuffer, Reason> {
    let bytes = request.unaligned_bytes_required() as u64;
    MemBuffer::try_new(request).map_err(|_| Reason::TooLarge { bytes, limit: 0 })
}

fn refused(what: &str, why: impl std::fmt::Debug) -> Reason {
    Reason::Refused(format!("{what}: {why:?}"))
}

/// A fill-reducing ordering, and its expected cost.
pub struct Order {
    /// The old index of each new one.
    pub order: Vec<u32>,
    /// Entries of L below its diagonal, for the pattern of A + A^T.
    pub entries: f64,
    /// Multiplications of an LU factorisation with pivots on the diagonal.
    pub flops: f64,
}

/// Approximate minimum degree on the pattern of A + A^T (Amestoy, Davis and Duff, SIAM J. Matrix Anal. Appl. 17, 1996).
pub fn minimum_degree(a: Columns<'_>) -> Result<Order, Reason> {
    structural(a, minimum_degree_of)
}

fn minimum_degree_of(a: Columns<'_>) -> Result<Order, Reason> {
    let n = a.columns;
    let (mut order, mut inverse) = (vec![0; n], vec![0; n]);
    let mut buffer = memory(amd::order_scratch::<u32>(n, a.indices.len()))?;
    let stack = MemStack::new(&mut buffer);
    let count = amd::order(&mut order, &mut inverse, a.symbolic(), Default::default(), stack)
        .map_err(|e| refused("minimum degree", e))?;
    Ok(Order { order, entries: count.n_div, flops: count.n_mult_subs_lu })
}

/// Column approximate minimum degree, which bounds the fill of A^T A and so of LU with any choice of pivots (Davis,
/// Gilbert, Larimore and Ng, ACM Trans. Math. Softw. 30, 2004).
pub fn column_minimum_degree(a: Columns<'_>) -> Result<Vec<u32>, Reason> {
    structural(a, column_minimum_degree_of)
}

fn column_minimum_degree_of(a: Columns<'_>) -> Result<Vec<u32>, Reason> {
    let (mut order, mut inverse) = (vec![0; a.columns], vec![0; a.columns]);
    let mut buffer = memory(colamd::order_scratch::<u32>(a.rows, a.columns, a.indices.len()))?;
    let stack = MemStack::new(&mut buffer);
    colamd::order(&mut order, &mut inverse, a.symbolic(), Default::default(), stack)
        .map_err(|e| refused("column minimum degree", e))?;
    Ok(order)
}

/// The structure of a Cholesky or LDL^H factor in the given ordering, or in a minimum degree ordering if there is none.
pub fn symmetric_structure(
    a: Columns<'_>,
    order: Option<&Permutation>,
) -> Result<SymbolicCholesky<u32>, Reason> {
    let order = order.cloned();
    structural(a, move |a| {
        let params = CholeskySymbolicParams::default();
        let order = match &order {
            Some(order) => SymmetricOrdering::Custom(PermRef::new_checked(
                order.new_to_old(),
                order.old_to_new(),
                a.columns,
            )),
            None => SymmetricOrdering::Amd,
        };
        factorize_symbolic_cholesky(a.symbolic(), Side::Upper, order, params)
            .map_err(|e| refused("symbolic Cholesky", e))
    })
}

/// The ordering of a structure, as the old index of each new one.
pub fn order_of(structure: &SymbolicCholesky<u32>) -> Option<Vec<u32>> {
    structure.perm().map(|order| order.arrays().0.to_vec())
}

/// The exact number of multiplications of a factorisation with this structure.
pub fn symmetric_flops(structure: &SymbolicCholesky<u32>) -> f64 {
    let square = |count: usize| (count as f64) * (count as f64 + 1.0) / 2.0;
    match structure.raw() {
        SymbolicCholeskyRaw::Simplicial(s) => {
            s.col_ptr().windows(2).map(|w| square((w[1] - w[0]) as usize)).sum()
        }
        SymbolicCholeskyRaw::Supernodal(s) => {
            let (begin, end, rows) = (s.supernode_begin(), s.supernode_end(), s.col_ptr_for_row_idx());
            (0..s.n_supernodes())
                .map(|k| {
                    let (width, below) = ((end[k] - begin[k]) as usize, (rows[k + 1] - rows[k]) as usize);
                    (1..=width).map(|column| square(column + below)).sum::<f64>()
                })
                .sum()
        }
    }
}

/// A supernodal LU factorisation of faer: structure and values.
pub struct Supernodal<T> {
    structure: SymbolicLu<u32>,
    numeric: NumericLu<u32, T>,
}

/// Q R = A P for a dense matrix, and its numerical rank.
pub struct DenseQr<T> {
    basis: Mat<T>,
    coefficients: Mat<T>,
    r: Mat<T>,
    order: Vec<usize>,
    pub rank: usize,
    /// Reflectors that eliminate the columns of R beyond the rank from its rows, for solutions of minimum norm.
    rows: Option<(Mat<T>, Mat<T>, Mat<T>)>,
}

impl<T> DenseQr<T> {
    /// Returns whether solutions have minimum norm.
    pub fn is_minimum_norm(&self) -> bool {
        self.rows.is_some() || self.rank == self.order.len()
    }
}

/// The types of entries that can be factorised: `f64` and `Complex<f64>`. Single precision is converted
/// ([`Scalar::Double`]): separate factorisations for it would be a tenth of this crate's compiled code, and factors in
/// double precision need fewer refinement steps.
pub trait Factorable: Scalar<Real = f64> {
    /// Cholesky without `epsilon` and `delta`, or LDL^H that replaces pivots of magnitude at most `epsilon` by `delta`.
    fn symmetric_factor(
        structure: &Arc<SymbolicCholesky<u32>>,
        a: (Columns<'_>, &[Self]),
        regularisation: Option<(f64, f64)>,
        values: &mut Vec<Self>,
    ) -> Result<(), Reason>;
    /// Replaces x by A^-1 x, or by A^-T x if `transposed`, for vectors one after another.
    fn symmetric_solve(
        structure: &SymbolicCholesky<u32>,
        values: &[Self],
        ldl: bool,
        transposed: bool,
        x: &mut [Self],
    );
    /// LU of the matrix with these columns, in a COLAMD ordering.
    fn lu_factor(a: (Columns<'_>, &[Self])) -> Result<Supernodal<Self>, Reason>;
    /// Replaces x by A^-1 x, or by A^-T x if `transposed`.
    fn lu_solve(lu: &Supernodal<Self>, transposed: bool, x: &mut [Self]);
    /// Solves with a triangle and updates, within columns of `height` rows: rows `from..from + width` of `right` are
    /// multiplied by L^-1, where L is the unit lower triangle in the same rows of `left`; then the product of the rows
    /// of `left` below L with them is subtracted from the rows below.
    fn eliminate_within(left: &[Self], height: usize, from: usize, width: usize, right: &mut [Self]);
    /// `eliminate_within` if the rows of L and the rows below are stored separately, with L in the top rows of `left`.
    fn eliminate_apart(left: &[Self], height: usize, width: usize, upper: &mut [Self], below: &mut [Self]);
    /// Subtracts a product from the last rows of `target`: rows `from..` of `left`, whose columns have `height` rows,
    /// times `right`.
    fn subtract_product(left: &[Self], height: usize, from: usize, right: &[Self], target: &mut [Self]);
    /// Dense QR with column pivoting; A is stored by columns.
    fn qr_factor(rows: usize, columns: usize, a: &[Self], minimum_norm: bool) -> DenseQr<Self>;
    /// The least-squares solution.
    fn qr_solve(qr: &DenseQr<Self>, b: &[Self]) -> Vec<Self>;
}

macro_rules! foreign {
    ($($t:ty),*) => {$(
        impl Factorable for $t {
            fn symmetric_factor(
                structure: &Arc<SymbolicCholesky<u32>>,
                a: (Columns<'_>, &[Self]),
                regularisation: Option<(f64, f64)>,
                values: &mut Vec<Self>,
            ) -> Result<(), Reason> {
                values.clear();
                values.resize(structure.len_val(), Self::default());
                let flops = symmetric_flops(structure);
                if flops < LONG_FLOPS || !work::is_watched() {
                    return symmetric(structure, a, regularisation, values);
                }
                let expected = Duration::try_from_secs_f64(flops / IN_BLOCKS).ok();
                let _meter = work::begin(Stage::Factorising, 0, expected);
                let (columns, entries, structure) = (Owned::new(a.0), a.1.to_vec(), Arc::clone(structure));
                let mut own = std::mem::take(values);
                let (done, own) = work::apart(move || {
                    let done = symmetric(&structure, (columns.columns(), &entries), regularisation, &mut own);
                    (done, own)
                });
                *values = own;
                done
            }
            fn symmetric_solve(
                structure: &SymbolicCholesky<u32>,
                values: &[Self],
                ldl: bool,
                transposed: bool,
                x: &mut [Self],
            ) {
                cleared(|| symmetric_solve(structure, values, ldl, transposed, x));
            }
            fn lu_factor(a: (Columns<'_>, &[Self])) -> Result<Supernodal<Self>, Reason> {
                if a.0.columns < LONG_LU_ROWS || !work::is_watched() {
                    return cleared(|| lu(a));
                }
                let (columns, entries) = (Owned::new(a.0), a.1.to_vec());
                let _meter = work::begin(Stage::Factorising, 0, None);
                work::apart(move || lu((columns.columns(), &entries)))
            }
            fn lu_solve(lu: &Supernodal<Self>, transposed: bool, x: &mut [Self]) {
                cleared(|| lu_solve(lu, transposed, x));
            }
            fn eliminate_within(left: &[Self], height: usize, from: usize, width: usize, right: &mut [Self]) {
                let left = MatRef::from_column_major_slice(left, height, width).split_at_row(from).1;
                let right = MatMut::from_column_major_slice_mut(right, height, right.len() / height);
                let (upper, below) = right.split_at_row_mut(from).1.split_at_row_mut(width);
                cleared(|| eliminate(left, upper, below, -<$t as num_traits::One>::one()));
            }
            fn eliminate_apart(
                left: &[Self],
                height: usize,
                width: usize,
                upper: &mut [Self],
                below: &mut [Self],
            ) {
                let columns = upper.len() / width;
                let left = MatRef::from_column_major_slice(left, height, width);
                let upper = MatMut::from_column_major_slice_mut(upper, width, columns);
                let below = MatMut::from_column_major_slice_mut(below, height - width, columns);
                cleared(|| eliminate(left, upper, below, -<$t as num_traits::One>::one()));
            }
            fn subtract_product(
                left: &[Self],
                height: usize,
                from: usize,
                right: &[Self],
                target: &mut [Self],
            ) {
                let inner = left.len() / height;
                let columns = right.len() / inner;
                let rows = target.len() / columns;
                let left = MatRef::from_column_major_slice(left, height, inner).split_at_row(from).1;
                let right = MatRef::from_column_major_slice(right, inner, columns);
                let target = MatMut::from_column_major_slice_mut(target, rows, columns);
                let target = target.split_at_row_mut(rows - left.nrows()).1;
                let minus_one = -<$t as num_traits::One>::one();
                cleared(|| matmul(target, Accum::Add, left, right, minus_one, Par::Seq));
            }
            fn qr_factor(rows: usize, columns: usize, a: &[Self], minimum_norm: bool) -> DenseQr<Self> {
                let a = Mat::from_fn(rows, columns, |i, j| a[i + j * rows]);
                let size = |v| f64::hypot($crate::scalar::Scalar::re(v), $crate::scalar::Scalar::im(v));
                cleared(|| qr(a, f64::EPSILON, minimum_norm, size))
            }
            fn qr_solve(qr: &DenseQr<Self>, b: &[Self]) -> Vec<Self> {
                cleared(|| qr_solve(qr, b))
            }
        }
    )*};
}
foreign!(f64, Complex<f64>);

/// Cholesky, or LDL^H with these pivot thresholds.
fn symmetric<T: ComplexField>(
    structure: &SymbolicCholesky<u32>,
    (columns, entries): (Columns<'_>, &[T]),
    pivots: Option<(T::Real, T::Real)>,
    values: &mut [T],
) -> Result<(), Reason> {
    let a = SparseColMatRef::new(columns.symbolic(), entries);
    cleared(|| match pivots {
        Some(pivots) => ldl(structure, a, pivots, values),
        None => cholesky(structure, a, values),
    })
}

fn cholesky<T: ComplexField>(
    structure: &SymbolicCholesky<u32>,
    a: SparseColMatRef<'_, u32, T>,
    values: &mut [T],
) -> Result<(), Reason> {
    let mut buffer = memory(structure.factorize_numeric_llt_scratch::<T>(Par::Seq, Default::default()))?;
    let stack = MemStack::new(&mut buffer);
    structure
        .factorize_numeric_llt(
            values,
            a,
            Side::Upper,
            Default::default(),
            Par::Seq,
            stack,
            Default::default(),
        )
        .map(|_| ())
        .map_err(|e| refused("Cholesky", e))
}

fn ldl<T: ComplexField>(
    structure: &SymbolicCholesky<u32>,
    a: SparseColMatRef<'_, u32, T>,
    (epsilon, delta): (T::Real, T::Real),
    values: &mut [T],
) -> Result<(), Reason> {
    let mut buffer = memory(structure.factorize_numeric_ldlt_scratch::<T>(Par::Seq, Default::default()))?;
    let stack = MemStack::new(&mut buffer);
    let regularisation = LdltRegularization {
        dynamic_regularization_signs: None,
        dynamic_regularization_delta: delta,
        dynamic_regularization_epsilon: epsilon,
    };
    structure
        .factorize_numeric_ldlt(values, a, Side::Upper, regularisation, Par::Seq, stack, Default::default())
        .map(|_| ())
        .map_err(|e| refused("LDL^H", e))
}

fn symmetric_solve<T: ComplexField>(
    structure: &SymbolicCholesky<u32>,
    values: &[T],
    ldl: bool,
    transposed: bool,
    x: &mut [T],
) {
    // The factorised columns are those of A^T = conj(A), since A is Hermitian.
    let conj = if transposed { Conj::No } else { Conj::Yes };
    let n = structure.nrows();
    let columns = x.len() / n.max(1);
    let mut buffer = MemBuffer::new(structure.solve_in_place_scratch::<T>(columns, Par::Seq));
    let stack = MemStack::new(&mut buffer);
    let x = MatMut::from_column_major_slice_mut(x, n, columns);
    if ldl {
        LdltRef::new(structure, values).solve_in_place_with_conj(conj, x, Par::Seq, stack);
    } else {
        LltRef::new(structure, values).solve_in_place_with_conj(conj, x, Par::Seq, stack);
    }
}

fn lu<T: ComplexField>((columns, entries): (Columns<'_>, &[T])) -> Result<Supernodal<T>, Reason> {
    let a = SparseColMatRef::new(columns.symbolic(), entries);
    let params = LuSymbolicParams {
        supernodal_flop_ratio_threshold: SupernodalThreshold::FORCE_SUPERNODAL,
        ..Default::default()
    };
    let structure = factorize_symbolic_lu(a.symbolic(), params).map_err(|e| refused("symbolic LU", e))?;
    let mut numeric = NumericLu::new();
    let mut buffer = memory(structure.factorize_numeric_lu_scratch::<T>(Par::Seq, Default::default()))?;
    let stack = MemStack::new(&mut buffer);
    structure
        .factorize_numeric_lu(&mut numeric, a, Par::Seq, stack, Default::default())
        .map_err(|e| refused("LU", e))?;
    Ok(Supernodal { structure, numeric })
}

fn lu_solve<T: ComplexField>(lu: &Supernodal<T>, transposed: bool, x: &mut [T]) {
    let n = x.len();
    let mut buffer = MemBuffer::new(lu.structure.solve_in_place_scratch::<T>(1, Par::Seq));
    let stack = MemStack::new(&mut buffer);
    let x = MatMut::from_column_major_slice_mut(x, n, 1);
    // The structure and the values come from one factorisation and are always kept together.
    let factors = LuRef::new_unchecked(&lu.structure, &lu.numeric);
    if transposed {
        factors.solve_transpose_in_place_with_conj(Conj::No, x, Par::Seq, stack);
    } else {
        factors.solve_in_place_with_conj(Conj::No, x, Par::Seq, stack);
    }
}

/// Computes U = L^-1 F and C - K U, where `left` holds L on top of K.
fn eliminate<T: ComplexField>(
    left: MatRef<'_, T>,
    mut upper: MatMut<'_, T>,
    below: MatMut<'_, T>,
    minus_one: T,
) {
    let (lower, rest) = left.split_at_row(upper.nrows());
    solve_unit_lower_triangular_in_place(lower, upper.rb_mut(), Par::Seq);
    matmul(below, Accum::Add, rest, upper.rb(), minus_one, Par::Seq);
}

fn qr<T: ComplexField + Copy>(a: Mat<T>, epsilon: f64, minimum_norm: bool, abs: fn(T) -> f64) -> DenseQr<T> {
    let (rows, columns) = (a.nrows(), a.ncols());
    let qr = a.col_piv_qr();
    let r = qr.thin_R().to_owned();
    let least = rows.max(columns) as f64 * epsilon * if r.nrows() > 0 { abs(r[(0, 0)]) } else { 0.0 };
    let rank = (0..r.nrows()).take_while(|&k| abs(r[(k, k)]) > least).count();
    let rows = (minimum_norm && rank > 0 && rank < columns).then(|| {
        let rest = r.get(..rank, ..).adjoint().to_owned().qr();
        (rest.Q_basis().to_owned(), rest.Q_coeff().to_owned(), rest.thin_R().to_owned())
    });
    DenseQr {
        basis: qr.Q_basis().to_owned(),
        coefficients: qr.Q_coeff().to_owned(),
        r,
        order: qr.P().arrays().0.to_vec(),
        rank,
        rows,
    }
}

fn qr_solve<T>(qr: &DenseQr<T>, b: &[T]) -> Vec<T>
where
    T: ComplexField + Copy + crate::scalar::Scalar,
{
    let (m, n, rank) = (b.len(), qr.order.len(), qr.rank);
    let mut c = Mat::from_fn(m, 1, |i, _| b[i]);
    let block = qr.coefficients.nrows();
    let mut buffer = MemBuffer::new(
        reflectors::apply_block_householder_sequence_transpose_on_the_left_in_place_scratch::<T>(m, block, 1),
    );
    reflectors::apply_block_householder_sequence_transpose_on_the_left_in_place_with_conj(
        qr.basis.as_ref(),
        qr.coefficients.as_ref(),
        Conj::Yes,
        c.as_mut(),
        Par::Seq,
        MemStack::new(&mut buffer),
    );
    let mut y = Mat::from_fn(n, 1, |i, _| if i < rank { c[(i, 0)] } else { T::default() });
    if let Some((basis, coefficients, r)) = &qr.rows {
        // [R11 R12] = R^H Q^H: first substitute forward with R^H, then apply Q.
        for i in 0..rank {
            let mut sum = y[(i, 0)];
            for j in 0..i {
                sum -= crate::scalar::Scalar::conj(r[(j, i)]) * y[(j, 0)];
            }
            y[(i, 0)] = sum / crate::scalar::Scalar::conj(r[(i, i)]);
        }
        let block = coefficients.nrows();
        let mut buffer = MemBuffer::new(
            reflectors::apply_block_householder_sequence_on_the_left_in_place_scratch::<T>(n, block, 1),
        );
        reflectors::apply_block_householder_sequence_on_the_left_in_place_with_conj(
            basis.as_ref(),
            coefficients.as_ref(),
            Conj::No,
            y.as_mut(),
            Par::Seq,
            MemStack::new(&mut buffer),
        );
    } else {
        for j in (0..rank).rev() {
            let value = y[(j, 0)] / qr.r[(j, j)];
            y[(j, 0)] = value;
            for i in 0..j {
                let change = qr.r[(i, j)] * value;
                y[(i, 0)] -= change;
            }
        }
    }
    let mut x = vec![T::default(); n];
    for (k, &column) in qr.order.iter().enumerate() {
        x[column] = y[(k, 0)];
    }
    x
}
