//! The kernels of factorisations in fronts, with their arguments.

use super::super::launch::kernels;
use super::super::slice::Slice;
use crate::scalar::Scalar;

kernels! {
    "fronts_small.cu", types(T: Scalar as SCALAR);
    fn front_entries(entries: u64, values: &Slice<T>, scales: Option<&Slice<f64>>, targets: &Slice<u64>,
        factors: &mut Slice<T>, largest: &mut Slice<u64>);
    fn small_fronts(first: u32, fronts: &Slice<u64>, children: &Slice<u32>, places: &Slice<u32>,
        factors: &mut Slice<T>, below: &Slice<T>, above: &mut Slice<T>, mirror: u32, preference: T::Real,
        least: T::Real, largest: &Slice<u64>, made_up: &mut Slice<u32>);
}
kernels! {
    "fronts.cu", types(T: Scalar as SCALAR);
    fn assemble_fronts(first: u32, count: u32, starts: &Slice<u32>, fronts: &Slice<u64>,
        children: &Slice<u32>, places: &Slice<u32>, factors: &mut Slice<T>, below: &Slice<T>,
        above: &mut Slice<T>);
    fn invert_pivots(first: u32, fronts: &Slice<u64>, steps: &Slice<u32>, factors: &mut Slice<T>,
        preference: T::Real, least: T::Real, largest: &Slice<u64>, made_up: &mut Slice<u32>);
    fn divide_fronts(first: u32, count: u32, starts: &Slice<u32>, step: u32, fronts: &Slice<u64>,
        steps: &Slice<u32>, factors: &mut Slice<T>);
    fn update_fronts(first: u32, count: u32, starts: &Slice<u32>, step: u32, fronts: &Slice<u64>,
        steps: &Slice<u32>, factors: &mut Slice<T>, mirror: u32, preference: T::Real, least: T::Real,
        largest: &Slice<u64>, made_up: &mut Slice<u32>);
    fn contribute_fronts(first: u32, count: u32, starts: &Slice<u32>, fronts: &Slice<u64>, factors: &Slice<T>,
        above: &mut Slice<T>, mirror: u32);
    fn join_rows(half: u32, blocks: &Slice<u64>, fronts: &Slice<u64>, steps: &Slice<u32>,
        factors: &mut Slice<T>);
    fn join_columns(half: u32, blocks: &Slice<u64>, fronts: &Slice<u64>, steps: &Slice<u32>,
        factors: &mut Slice<T>);
}
kernels! {
    "fronts_pivots.cu", types(T: Scalar as SCALAR);
    fn front_determinants(fronts: &Slice<u64>, steps: &Slice<u32>, factors: &Slice<T>, hermitian: u32,
        signs: &mut Slice<T>, logarithms: &mut Slice<f64>, negatives: &mut Slice<u32>);
}
kernels! {
    "fronts_solve.cu", types(T: Scalar as SCALAR);
    fn fronts_up(first: u32, count: u32, fronts: &Slice<u64>, children: &Slice<u32>, places: &Slice<u32>,
        steps: &Slice<u32>, factors: &Slice<T>, n: u64, all_rows: u64, y: &mut Slice<T>, u: &mut Slice<T>);
    fn fronts_down(first: u32, count: u32, fronts: &Slice<u64>, rows: &Slice<u32>, steps: &Slice<u32>,
        factors: &Slice<T>, n: u64, y: &Slice<T>, x: &mut Slice<T>);
}
kernels! {
    "fronts_solve_large.cu", types(T: Scalar as SCALAR);
    fn gather_vectors(n: u64, count: u64, from: &Slice<u32>, scales: Option<&Slice<f64>>, b: &Slice<T>,
        y: &mut Slice<T>);
    fn scatter_vectors(n: u64, count: u64, to: &Slice<u32>, scales: Option<&Slice<f64>>, y: &Slice<T>,
        x: &mut Slice<T>);
    fn large_gather(first: u32, fronts_here: u32, starts: &Slice<u32>, count: u32, fronts: &Slice<u64>,
        children: &Slice<u32>, places: &Slice<u32>, n: u64, all_rows: u64, y: &mut Slice<T>,
        u: &mut Slice<T>);
    fn group_up(first: u32, fronts_here: u32, starts: &Slice<u32>, group: u32, count: u32, fronts: &Slice<u64>,
        steps: &Slice<u32>, factors: &Slice<T>, n: u64, y: &Slice<T>, z: &mut Slice<T>);
    fn rows_up(first: u32, fronts_here: u32, starts: &Slice<u32>, group: u32, count: u32, fronts: &Slice<u64>,
        steps: &Slice<u32>, factors: &Slice<T>, n: u64, all_rows: u64, y: &mut Slice<T>, u: &mut Slice<T>,
        z: &Slice<T>);
    fn rest_down(first: u32, fronts_here: u32, starts: &Slice<u32>, count: u32, fronts: &Slice<u64>,
        rows: &Slice<u32>, steps: &Slice<u32>, factors: &Slice<T>, n: u64, y: &mut Slice<T>, x: &Slice<T>);
    fn group_down(first: u32, fronts_here: u32, starts: &Slice<u32>, group: u32, count: u32,
        fronts: &Slice<u64>, steps: &Slice<u32>, factors: &Slice<T>, n: u64, y: &Slice<T>, x: &mut Slice<T>);
    fn rows_down(first: u32, fronts_here: u32, starts: &Slice<u32>, group: u32, count: u32,
        fronts: &Slice<u64>, steps: &Slice<u32>, factors: &Slice<T>, n: u64, y: &mut Slice<T>, x: &Slice<T>);
}
