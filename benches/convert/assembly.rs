//! Assembly of triplets on the device to CSR, and new values with the map of an earlier assembly.

use crate::measure::{hash, median, only, peak};
use rayon::prelude::*;
use residua::assemble::{Assembler, ResidentTriplets};
use residua::backend::{Backend, Replay};
use residua::matrix::Coo;
use residua::{Cuda, Result, Scalar};

type CudaSlice<T> = <Cuda as Backend>::Slice<T>;

fn resident<T: Scalar>(
    b: &Cuda,
    n: usize,
    m: usize,
    place: impl Fn(usize) -> (u32, u32) + Sync,
) -> Result<ResidentTriplets<T, Cuda>> {
    let all = || (0..m).into_par_iter();
    let is = b.upload(all().map(|t| place(t).0).collect::<Vec<u32>>())?;
    let js = b.upload(all().map(|t| place(t).1).collect::<Vec<u32>>())?;
    let value = |t| T::from_f64((hash(t as u64) >> 11) as f64 * 1e-16);
    let values = b.upload(all().map(value).collect::<Vec<T>>())?;
    ResidentTriplets::from_parts(b, n, n, is, js, values)
}

/// The same triplets as in the peer benchmark: every position twice, in random order.
fn twice<T: Scalar>(b: &Cuda, n: usize, m: usize) -> Result<ResidentTriplets<T, Cuda>> {
    // The stride and m have no common factor, so that all triplets are used once, and neighbours are far apart.
    let stride = (1_000_003..).step_by(2).map(|s| s * (m / 5_000_000).max(1) + 1).find(|&s| gcd(s, m) == 1);
    let stride = stride.unwrap_or(1);
    resident(b, n, m, |t| {
        let h = hash((t * stride % m % (m / 2)) as u64);
        ((h >> 32) as u32 % n as u32, h as u32 % n as u32)
    })
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// 64 triplets for each trilinear element, one element after another.
fn elements<T: Scalar>(b: &Cuda, side: usize) -> Result<ResidentTriplets<T, Cuda>> {
    let points = side + 1;
    resident(b, points * points * points, side * side * side * 64, |t| {
        let (e, i, j) = (t / 64, t / 8 % 8, t % 8);
        let (x, y, z) = (e % side, e / side % side, e / side / side);
        let at = |k: usize| ((x + (k & 1)) + points * ((y + (k >> 1 & 1)) + points * (z + (k >> 2)))) as u32;
        (at(i), at(j))
    })
}

pub fn assembly(b: &Cuda) -> Result<()> {
    println!("triplets, what, ms, M triplets/s, peak memory in parts of the triplets");
    let (in_order, twice_1e7, twice_1e8) = (
        "trilinear elements, 115^3",
        "2^20 rows, each place twice, shuffled",
        "2^23 rows, each place twice, shuffled",
    );
    let only = only();
    let asked = |name: &str| only.as_ref().is_none_or(|only| name.contains(&**only));
    if asked(in_order) {
        triplets::<f64>(b, in_order, elements(b, 115)?)?;
        triplets::<f32>(b, in_order, elements(b, 115)?)?;
    }
    for (name, by_column) in [("27 points, 155^3, by rows", false), ("27 points, 155^3, by columns", true)] {
        if asked(name) {
            triplets::<f64>(b, name, stored(b, 155, by_column)?)?;
            triplets::<f32>(b, name, stored(b, 155, by_column)?)?;
        }
    }
    if asked(twice_1e7) {
        triplets::<f64>(b, twice_1e7, twice(b, 1 << 20, 10_000_000)?)?;
    }
    if asked(twice_1e8) {
        triplets::<f64>(b, twice_1e8, twice(b, 1 << 23, 100_000_000)?)?;
        triplets::<f32>(b, twice_1e8, twice(b, 1 << 23, 100_000_000)?)?;
    }
    Ok(())
}

/// Copies rows, columns and values into new triplets.
fn copied<T: Scalar>(
    b: &Cuda,
    (rows, columns): (usize, usize),
    (is, js, values): (&CudaSlice<u32>, &CudaSlice<u32>, &CudaSlice<T>),
) -> Result<ResidentTriplets<T, Cuda>> {
    let m = Cuda::len(values);
    let (mut i, mut j, mut v) = (b.buffer(m)?, b.buffer(m)?, b.buffer(m)?);
    b.copy(is, &mut i)?;
    b.copy(js, &mut j)?;
    b.copy(values, &mut v)?;
    ResidentTriplets::from_parts(b, rows, columns, i, j, v)
}

/// Triplets in the order of a file, by rows or by columns.
fn stored<T: Scalar>(b: &Cuda, side: usize, by_column: bool) -> Result<ResidentTriplets<T, Cuda>> {
    let a = Coo::from_csr(b, &b.poisson3d_27::<T>(side, side, side)?)?;
    let from = a.parts();
    let (is, js) = (from.row_indices, from.column_indices);
    let (is, js) = if by_column { (js, is) } else { (is, js) };
    copied(b, (a.rows(), a.columns()), (is, js, from.values))
}

/// Number of updates in a recording, as in a time loop that does not wait for each.
const STEPS: usize = 8;

fn triplets<T: Scalar>(b: &Cuda, name: &str, t: ResidentTriplets<T, Cuda>) -> Result<()> {
    let m = t.len();
    let name = format!("{name}, {}", T::NAME);
    let bytes = ((8 + size_of::<T>()) * m) as f64;
    let assembler = Assembler::default();
    let line = |what: &str, ms: f64, memory: f64| {
        println!("{m}, {name}: {what}, {ms:.3}, {:.0}, {memory:.2}", m as f64 / ms * 1e-3);
    };
    let copied = || copied(b, (t.rows(), t.columns()), t.parts());
    let input = copied()?;
    let (_, extra) = peak(b, || assembler.resident_to_csr(b, input))?;
    let ms = median(b, 5, copied, |t| assembler.resident_to_csr(b, t))?;
    line("to CSR", ms, 1.0 + extra / bytes);
    let ((mut a, map), extra) = peak(b, || assembler.resident_assembly(b, &t))?;
    let ms = median(b, 5, || Ok(()), |()| assembler.resident_assembly(b, &t))?;
    line("to CSR and map", ms, 1.0 + extra / bytes);
    let ms = median(b, 9, || Ok(()), |()| map.update(b, t.parts().2, &mut a))?;
    line("new values", ms, 0.0);
    let recorded = {
        let values = t.parts().2;
        let mut steps = b.record(|| (0..STEPS).try_for_each(|_| map.update(b, values, &mut a)))?;
        median(b, 9, || Ok(()), |()| steps.replay())? / STEPS as f64
    };
    line("new values, recorded", recorded, 0.0);
    // The time to read the triplets' values once and to write the matrix's values once, at the bandwidth of a copy.
    let mut to = b.buffer::<T>(m)?;
    let copy = median(b, 9, || Ok(()), |()| b.copy(t.parts().2, &mut to))?;
    let once = copy * (m + a.nonzeros()) as f64 / (2 * m) as f64;
    println!(
        "{m}, {name}: values read and written once, {once:.3}; new values take {:.2} times that, recorded {:.2}",
        ms / once,
        recorded / once
    );
    Ok(())
}
