//! Linear updates, programs of scalars and steps with a basis: their bandwidth compared with that of a copy, and the
//! time of small ones in a recording.

use super::measure::median;
use residua::backend::{
    Backend, Coefficient, Hessenberg, InnerProduct, LinearUpdate, Replay, ScalarLayout, VectorOps,
};
use residua::{Cuda, Result, Scalar};
use std::time::Duration;

/// The number of steps in a recording.
const STEPS: u32 = 20;

/// The number of vectors in the basis.
const COLUMNS: usize = 30;

/// The time per step in a recording of several.
fn recorded(b: &Cuda, repeats: u32, mut step: impl FnMut() -> Result<()> + Send) -> Result<Duration> {
    let mut all = b.record(|| (0..STEPS).try_for_each(|_| step()))?;
    Ok(median(b, repeats, || all.replay())? / STEPS)
}

/// Measures the updates of MINRES and the steps of GMRES(30) with vectors of several lengths.
pub fn table<T: Scalar>(b: &Cuda, copy: f64) -> Result<()> {
    let layout = ScalarLayout::new();
    let (half, sum) = (layout.slot(0.5), layout.slot(0.0));
    // This program is somewhat longer than that of MINRES's rotation.
    let program = layout.program(b, |p| {
        let mut value = p.get(half);
        for _ in 0..15 {
            value = (value * value + p.get(sum).abs()).sqrt() / value.hypot(p.get(half));
        }
        p.set(sum, value);
    })?;
    let mut state = b.upload(layout.initial::<T>(T::Real::default()))?;
    let at = Coefficient::At(half);
    for n in [10_000_usize, 262_144, 1_000_003, 1 << 24] {
        let mut v: Vec<_> = (0..4).map(|_| b.zeros::<T>(n)).collect::<Result<_>>()?;
        let mut basis = b.zeros::<T>(n * COLUMNS)?;
        let (mut h, mut square) = (b.zeros::<T>(COLUMNS)?, b.zeros::<T>(1)?);
        let repeats = ((1_usize << 24) / n).clamp(2, 50) as u32;
        let report = |what: &str, words: usize, time: Duration| {
            let speed = (words * n * size_of::<T>()) as f64 / time.as_secs_f64() / 1e9;
            let us = time.as_secs_f64() * 1e6;
            let of_copy = speed / copy;
            println!(
                "{what:<34} {} n = {n:>9}  {us:>9.2} us  {speed:>6.0} GB/s  {of_copy:.3} of copy",
                T::NAME
            );
        };
        let [x, y, z, w] = &mut v[..] else { unreachable!("four were made") };
        let mut updates = |sums: bool, program| {
            recorded(b, repeats, || {
                let product = [InnerProduct { left: 2, right: 2, to: sum }];
                let update = LinearUpdate {
                    inputs: &[&**x, &**y],
                    outputs: &mut [&mut **z],
                    coefficients: &[at, at, at],
                    products: if sums { &product } else { &[] },
                };
                b.linear_update(update, &mut state, program)
            })
        };
        report("z = a x + b y + c z", 4, updates(false, None)?);
        report("the same, z.z", 4, updates(true, None)?);
        report("the same, z.z, a program", 4, updates(true, Some(&program))?);
        let both = recorded(b, repeats, || {
            let update = LinearUpdate {
                inputs: &[&**x, &**y],
                outputs: &mut [&mut **z, &mut **w],
                coefficients: &[at, at, at, Coefficient::Zero, at, at, at, Coefficient::One],
                products: &[],
            };
            b.linear_update(update, &mut state, None)
        })?;
        report("z and w of x, y, z, w", 6, both);
        for count in [1, 8, COLUMNS] {
            let products = recorded(b, repeats, || b.basis_products(&basis, count, w, &mut h))?;
            report(&format!("V^H w, {count} vectors"), count + 1, products);
            let update =
                recorded(b, repeats, || b.basis_update(-T::one(), &basis, count, &h, w, Some(&mut square)))?;
            report(&format!("w - V h, {count} vectors, ||w||^2"), count + 2, update);
        }
        b.fill(T::zero(), &mut basis)?;
    }
    let us = |time: Duration| time.as_secs_f64() * 1e6;
    let compiled = recorded(b, 50, || b.run_program(&program, &mut state))?;
    let interpreted = median(b, 200, || b.run_program(&program, &mut state))?;
    println!(
        "a program of 122 instructions: {:.2} us recorded, {:.2} us at once",
        us(compiled),
        us(interpreted)
    );
    let mut r = b.upload(vec![T::one(); COLUMNS * (COLUMNS + 1)])?;
    let (mut rotations, mut g) = (b.zeros::<T>(2 * COLUMNS)?, b.upload(vec![T::one(); COLUMNS + 1])?);
    let (first, second) = (b.upload(vec![T::one(); COLUMNS + 1])?, b.zeros::<T>(COLUMNS + 1)?);
    let mut y = b.zeros::<T>(COLUMNS)?;
    let solve = recorded(b, 50, || b.triangular_solve(COLUMNS, COLUMNS + 1, &r, &g, &mut y))?;
    let mut state = b.upload(layout.initial::<T>(T::Real::default()))?;
    let column = recorded(b, 50, || {
        let hessenberg = Hessenberg {
            columns: COLUMNS,
            passes: [&*first, &*second],
            r: &mut *r,
            rotations: &mut *rotations,
            g: &mut *g,
            state: &mut *state,
            norm: half,
        };
        b.hessenberg_step(COLUMNS - 1, hessenberg)
    })?;
    println!(
        "{COLUMNS} columns: a Hessenberg step {:.2} us, the triangular system {:.2} us",
        us(column),
        us(solve)
    );
    Ok(())
}
