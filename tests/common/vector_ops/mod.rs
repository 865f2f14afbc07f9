//! Vector operations that read their scalars from the backend's memory: linear updates with inner products, programs,
//! steps with a basis and its Hessenberg matrix. Each case is compared with plain sequential arithmetic.

mod bases;
mod dense;
mod pairs;
mod programs;
mod updates;

#[allow(unused_imports)] // not every test program calls all of them
pub use self::{bases::*, dense::*, pairs::*, programs::*, updates::*};

use num_complex::Complex;
use num_traits::Float;
use residua::backend::{
    CgStatus, Coefficient, InnerProduct, LinearUpdate, Replay, ScalarLayout, Slot, VectorOps,
};
use residua::scalar::{Real, Scalar};

const LENGTHS: [usize; 6] = [0, 1, 3, 127, 1000, 65537];
/// Elements before and after each vector that must not be changed.
const GUARD: usize = 5;

type Wide = Complex<f64>;

/// Calls a macro with its own arguments, followed by the names of all cases.
#[allow(unused_macros)] // not every test program uses this list
macro_rules! each_vector_case {
    ($then:ident $($words:tt)*) => {
        $then! {
            $($words)*
            updates_of_all_counts,
            updates_of_all_types,
            updates_refuse,
            programs_with_every_instruction,
            programs_end,
            long_programs,
            basis_cases,
            long_basis,
            hessenberg_cases,
            hessenberg_ends,
            triangular_cases,
            pair_cases,
            pair_processes,
            pair_ends,
            recorded_recurrence
        }
    };
}
#[allow(unused_imports)] // as above
pub(crate) use each_vector_case;

fn wide<T: Scalar>(x: T) -> Wide {
    Complex::new(x.re().to_f64(), x.im().to_f64())
}

fn epsilon<T: Scalar>() -> f64 {
    <T::Real as Float>::epsilon().to_f64()
}

/// Checks that `got` is `want` up to the rounding of `T` in sums whose terms have total magnitude `scale`.
fn close<T: Scalar>(got: T, want: Wide, scale: f64, what: &str) {
    let error = (wide(got) - want).norm();
    assert!(error <= 64.0 * epsilon::<T>() * scale, "{what}: {got} instead of {want}, beside {scale}");
}

/// The sum of some terms, and of their magnitudes.
fn sum(terms: impl Iterator<Item = Wide>) -> (Wide, f64) {
    let (mut sum, mut lost, mut size) = (Wide::default(), Wide::default(), 0.0);
    for term in terms {
        size += term.norm();
        let term = term - lost;
        let next = sum + term;
        lost = (next - sum) - term;
        sum = next;
    }
    (sum, size)
}

fn same<T: Scalar>(a: &[T], b: &[T]) -> bool {
    let bits = |x: &T| (x.re().to_f64().to_bits(), x.im().to_f64().to_bits());
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| bits(a) == bits(b))
}

/// An iteration that a backend records: it counts its iterations, and ends in the fourth.
pub fn recorded_recurrence<B: VectorOps>(b: &B) {
    const N: usize = 1001;
    let layout = ScalarLayout::new();
    let (turn, dot, step) = (layout.slot(0.0), layout.slot(0.0), layout.slot(0.5));
    let begin = layout
        .program(b, |p| {
            p.begin();
            p.set(turn, p.get(turn) + p.constant(1.0));
        })
        .unwrap();
    let end = layout
        .program(b, |p| {
            p.set(step, -p.get(step));
            p.finish(p.constant(3.5).less_than(p.get(turn)), CgStatus::Converged);
        })
        .unwrap();
    let mut state = b.upload(layout.initial::<f64>(0.0)).unwrap();
    let x = b.upload((0..N).map(|i| (i % 7) as f64).collect()).unwrap();
    let (mut y, mut v) = (b.upload(vec![1.0; N]).unwrap(), b.upload(vec![2.0; 2 * N]).unwrap());
    let (mut h, mut square) = (b.zeros::<f64>(2).unwrap(), b.zeros::<f64>(1).unwrap());
    {
        let mut iteration = b
            .record(|| {
                b.run_program(&begin, &mut state)?;
                // y += step x; x.y
                let update = LinearUpdate {
                    inputs: &[&*x],
                    outputs: &mut [&mut *y],
                    coefficients: &[Coefficient::At(step), Coefficient::One],
                    products: &[InnerProduct { left: 0, right: 1, to: dot }],
                };
                b.linear_update(update, &mut state, Some(&end))?;
                // h = (v1.y, v2.y), v1 += h1 v2 / 2^40, which have no condition to end.
                b.basis_products(&v, 2, &y, &mut h)?;
                let (first, second) = B::split_mut::<f64>(&mut v, N);
                let scale = 1.0 / (1_u64 << 40) as f64;
                b.basis_update(scale, second, 1, &h, first, Some(&mut square))
            })
            .unwrap();
        (0..6).for_each(|_| iteration.replay().unwrap());
    }
    let state = b.download(&state).unwrap();
    assert_eq!((state[0], state[Slot::ENDED.place()], state[turn.place()]), (1.0, 1.0, 4.0));
    // Four iterations, with steps of 1/2, -1/2, 1/2, -1/2.
    assert_eq!(b.download(&y).unwrap(), vec![1.0; N]);
    let total: f64 = (0..N).map(|i| (i % 7) as f64).sum();
    assert_eq!((state[step.place()], state[dot.place()]), (0.5, total));
    let h = b.download(&h).unwrap();
    assert_eq!(h[1], 2.0 * N as f64);
    assert!(h[0] > h[1] && (h[0] - h[1]) < 1e-3, "{h:?}");
    let first = b.download(&v).unwrap()[0];
    let (exact, _) = sum((0..N).map(|_| Complex::from(first * first)));
    close(b.download(&square).unwrap()[0], exact, exact.re, "the last norm");
}
