//! Programs on the scalars of a recurrence.

use super::{epsilon, same, wide};
use crate::random::Random;
use num_complex::Complex;
use num_traits::Float;
use residua::backend::{CgStatus, Replay, ScalarLayout, ScalarProgram, Slot, VectorOps};
use residua::scalar::Scalar;

/// The state after a program that is run directly, and after the same program in a recording: a backend may execute
/// recorded programs in another way.
fn after<T: Scalar, B: VectorOps>(b: &B, program: &ScalarProgram<B>, state: &[T]) -> Vec<T> {
    let (mut once, mut replayed) = (b.upload(state.to_vec()).unwrap(), b.upload(state.to_vec()).unwrap());
    b.run_program(program, &mut once).unwrap();
    b.record(|| b.run_program(program, &mut replayed)).unwrap().replay().unwrap();
    let (once, replayed) = (b.download(&once).unwrap(), b.download(&replayed).unwrap());
    for (place, (x, y)) in once.iter().zip(&replayed).enumerate() {
        let nan = |x: &T| Float::is_nan(x.re()) || Float::is_nan(x.im());
        assert!(same(&[*x], &[*y]) || nan(x) && nan(y), "{} at {place}: {x} and {y}, recorded", T::NAME);
    }
    once
}

/// All instructions on two numbers, compared with Rust's own arithmetic. Results of real types are compared bit by bit.
fn instructions<T: Scalar, B: VectorOps>(b: &B, x: T, y: T) {
    let layout = ScalarLayout::new();
    let (a, c) = (layout.slot(0.0), layout.slot(0.0));
    let results: Vec<Slot> = (0..18).map(|_| layout.slot(-7.0)).collect();
    let program = layout
        .program(b, |p| {
            p.begin();
            let (x, y) = (p.get(a), p.get(c));
            let values = [
                x,
                x + y,
                x - y,
                x * y,
                x / y,
                -x,
                x.conj(),
                x.abs2().sqrt(),
                x.abs(),
                x.abs2(),
                x.re(),
                x.less_than(y),
                x.is_finite(),
                x.hypot(y),
                x.where_else(y, p.constant(3.0)),
                x.max(y),
            ];
            values.into_iter().zip(&results).for_each(|(value, &slot)| p.set(slot, value));
            p.set_where(x, results[16], y);
            // Each operand as the target of its own instruction.
            p.set(results[17], p.get(results[0]));
        })
        .unwrap();
    let mut state: Vec<T> = layout.initial(T::Real::from_f64(0.0));
    (state[a.place()], state[c.place()]) = (x, y);
    let got = after(b, &program, &state);
    let real = T::from_real;
    let truth = |holds: bool| if holds { T::one() } else { T::zero() };
    let hypotenuse = {
        let (u, v) = (Scalar::abs(x), Scalar::abs(y));
        let (large, small) = if u < v { (v, u) } else { (u, v) };
        let ratio = small / large;
        if large == T::Real::from_f64(0.0) || !Float::is_finite(large) {
            large + small
        } else {
            large * Float::sqrt(T::Real::from_f64(1.0) + ratio * ratio)
        }
    };
    let zero = T::Real::from_f64(0.0);
    let expected = [
        x,
        x + y,
        x - y,
        x * y,
        x / y,
        -x,
        x.conj(),
        real(Float::sqrt(x.abs2())),
        real(Scalar::abs(x)),
        real(x.abs2()),
        real(x.re()),
        truth(x.re() < y.re()),
        truth(Scalar::is_finite(x)),
        real(hypotenuse),
        if y.re() != zero { x } else { T::from_f64(3.0) },
        real(if x.re() < y.re() { y.re() } else { x.re() }),
        if x.re() != zero { y } else { T::from_f64(-7.0) },
        x,
    ];
    for (k, (&want, slot)) in expected.iter().zip(&results).enumerate() {
        let got = got[slot.place()];
        let nan = |x: T| Float::is_nan(x.re()) || Float::is_nan(x.im());
        let right = same(&[got], &[want])
            || nan(got) && nan(want)
            || T::COMPLEX && (wide(got) - wide(want)).norm() <= 8.0 * epsilon::<T>() * wide(want).norm();
        assert!(right, "{} instruction {k} of {x} and {y}: {got} instead of {want}", T::NAME);
    }
}

pub fn programs_with_every_instruction<B: VectorOps>(b: &B) {
    fn of<T: Scalar, B: VectorOps>(b: &B) {
        let special = [0.0, -0.0, 1.0, -2.5, 1e30, 1e-30, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
        // Complex infinities may be NaN in one order of operations and infinite in another.
        let special: Vec<f64> = special.into_iter().filter(|v| !T::COMPLEX || v.abs() <= 10.0).collect();
        for &x in &special {
            special.iter().for_each(|&y| instructions(b, T::from_f64(x), T::from_f64(y)));
        }
        let mut random = Random(17);
        for _ in 0..20 {
            let scale = T::from_f64(10.0_f64.powf(8.0 * random.signed()));
            instructions(b, random.scalar::<T>() * scale, random.scalar::<T>());
        }
    }
    of::<f32, B>(b);
    of::<f64, B>(b);
    of::<Complex<f32>, B>(b);
    of::<Complex<f64>, B>(b);
}

/// Programs stop at their conditions, and an ended state does not change.
pub fn programs_end<B: VectorOps>(b: &B) {
    let layout = ScalarLayout::new();
    let (x, y, done, failed) = (layout.slot(0.0), layout.slot(0.0), layout.slot(0.0), layout.slot(0.0));
    let program = layout
        .program(b, |p| {
            p.begin();
            p.set(x, p.get(x) + p.constant(1.0));
            p.finish(p.get(done), CgStatus::Converged);
            p.fail(p.get(failed), CgStatus::Breakdown);
            p.set(y, p.get(x));
        })
        .unwrap();
    let residual = layout.program(b, |p| p.residual(p.get(x))).unwrap();
    let nothing = layout.program(b, |_| ()).unwrap();
    let start: Vec<f64> = layout.initial(2.5);
    let run = |state: &[f64], programs: &[&ScalarProgram<B>]| {
        programs.iter().fold(state.to_vec(), |state, program| after(b, program, &state))
    };
    let with = |slot: Slot, value: f64| {
        let mut state = start.clone();
        state[slot.place()] = value;
        state
    };
    let told = |state: &[f64]| [x, y, Slot::STATUS, Slot::ENDED].map(|slot| state[slot.place()]);
    assert_eq!(run(&start, &[&nothing]), start);
    assert_eq!(told(&run(&start, &[&program, &program])), [2.0, 2.0, 0.0, 0.0]);
    // Converged: the iteration is completed, and the next is not begun.
    let once = run(&with(done, 1.0), &[&program]);
    assert_eq!(told(&once), [1.0, 0.0, 1.0, 0.0]);
    let twice = run(&once, &[&residual, &program]);
    assert_eq!(told(&twice), [1.0, 0.0, 1.0, 1.0]);
    assert_eq!(twice[Slot::RR.place()], 1.0);
    // Failed: nothing more is executed.
    let once = run(&with(failed, 1.0), &[&program]);
    assert_eq!(told(&once), [1.0, 0.0, 4.0, 4.0]);
    assert_eq!(run(&once, &[&residual, &program]), once);
    for (value, status) in
        [(2.5, CgStatus::Converged), (2.6, CgStatus::Running), (f64::NAN, CgStatus::NotFinite)]
    {
        let state = run(&with(x, value), &[&residual]);
        assert_eq!(CgStatus::from_real(state[0]), status, "{value}");
    }
}

/// More instructions than a device loads at a time, and a state with the maximum number of scalars.
pub fn long_programs<B: VectorOps>(b: &B) {
    const STEPS: usize = 1000;
    let layout = ScalarLayout::new();
    let (stop, targets) = (layout.slot(0.0), (0..50).map(|_| layout.slot(-1.0)).collect::<Vec<_>>());
    let value_of = |step: usize| step % 7;
    let program = layout
        .program(b, |p| {
            let values: Vec<_> = (0..7).map(|k| p.constant(k as f64)).collect();
            let stop = p.get(stop);
            for step in 0..STEPS {
                p.set(targets[step * 13 % 50], values[value_of(step)]);
                if step == 700 {
                    p.finish(stop, CgStatus::Converged);
                }
            }
        })
        .unwrap();
    while layout.len() < Slot::MOST {
        layout.slot(3.0);
    }
    let mut state: Vec<f64> = layout.initial(0.0);
    for (stops, steps) in [(0.0, STEPS), (1.0, 701)] {
        state[stop.place()] = stops;
        let got = after(b, &program, &state);
        let mut expected = [-1.0; 50];
        (0..steps).for_each(|step| expected[step * 13 % 50] = value_of(step) as f64);
        for (target, expected) in targets.iter().zip(expected) {
            assert_eq!(got[target.place()], expected);
        }
        assert_eq!((got[0], got[Slot::MOST - 1]), (stops, 3.0));
    }
}
