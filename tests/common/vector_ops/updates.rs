//! Linear updates: combinations of vectors and their inner products in one pass.

use super::{GUARD, LENGTHS, Wide, close, same, sum, wide};
use crate::random::Random;
use num_complex::Complex;
use residua::backend::{
    Coefficient, InnerProduct, LinearUpdate, ScalarLayout, ScalarProgram, Slot, VectorOps,
};
use residua::scalar::Scalar;

/// The data of an update: vectors with guards around them, coefficients, products, a state and a program.
struct Case<T: Scalar> {
    n: usize,
    shift: usize,
    inputs: Vec<Vec<T>>,
    outputs: Vec<Vec<T>>,
    coefficients: Vec<Coefficient>,
    products: Vec<InnerProduct>,
    state: Vec<T>,
}

/// The slots of a case: factors, sums, and the results of the program that uses the first of each.
struct Slots {
    layout: ScalarLayout,
    factors: Vec<Slot>,
    sums: Vec<Slot>,
    result: Slot,
}

impl Slots {
    fn new() -> Self {
        let layout = ScalarLayout::new();
        let factors = (0..6).map(|_| layout.slot(0.0)).collect();
        let sums = (0..4).map(|_| layout.slot(0.0)).collect();
        let result = layout.slot(0.0);
        Slots { layout, factors, sums, result }
    }

    fn program<B: VectorOps>(&self, b: &B) -> ScalarProgram<B> {
        self.layout
            .program(b, |p| {
                p.set(self.result, p.get(self.factors[0]) * p.get(self.sums[0]) + p.constant(2.0))
            })
            .unwrap()
    }
}

impl<T: Scalar> Case<T> {
    fn new(random: &mut Random, slots: &Slots, n: usize, shift: usize, counts: [usize; 3]) -> Self {
        let [inputs, outputs, products] = counts;
        let vectors = inputs + outputs;
        let coefficients: Vec<Coefficient> = (0..outputs * vectors)
            .map(|_| {
                let slot = slots.factors[random.below(6)];
                match random.below(6) {
                    0 | 1 => Coefficient::Zero,
                    2 => Coefficient::One,
                    3 => Coefficient::MinusOne,
                    4 => Coefficient::At(slot),
                    _ => Coefficient::Minus(slot),
                }
            })
            .collect();
        let products: Vec<InnerProduct> = (0..products)
            .map(|p| InnerProduct {
                left: random.below(vectors),
                right: random.below(vectors),
                to: slots.sums[p],
            })
            .collect();
        // Vectors that are not read may contain anything.
        let read = |v: usize| {
            let by_product = |p: &InnerProduct| v < inputs && (p.left == v || p.right == v);
            coefficients.iter().skip(v).step_by(vectors).any(|c| *c != Coefficient::Zero)
                || products.iter().any(by_product)
        };
        let mut vector = |v: usize| {
            let mut all = random.vector::<T>(n + shift + 2 * GUARD);
            if !read(v) {
                all[GUARD + shift..GUARD + shift + n].fill(T::from_f64(f64::NAN));
            }
            all
        };
        let (inputs, outputs) =
            ((0..inputs).map(&mut vector).collect(), (inputs..vectors).map(vector).collect());
        // The programs were created before, so the state includes all their slots.
        let mut state: Vec<T> = slots.layout.initial(T::Real::from_f64(0.0));
        slots.factors.iter().for_each(|slot| state[slot.place()] = random.scalar());
        slots.sums.iter().for_each(|slot| state[slot.place()] = random.scalar());
        Case { n, shift, inputs, outputs, coefficients, products, state }
    }

    /// Outputs with their guards, and the state, after the update on the backend.
    fn run<B: VectorOps>(&self, b: &B, then: Option<&ScalarProgram<B>>) -> (Vec<Vec<T>>, Vec<T>) {
        let up = |x: &Vec<T>| b.upload(x.clone()).unwrap();
        let (inputs, mut outputs) =
            (self.inputs.iter().map(up).collect::<Vec<_>>(), self.outputs.iter().map(up).collect::<Vec<_>>());
        let mut state = up(&self.state);
        let range = || GUARD + self.shift..GUARD + self.shift + self.n;
        {
            let inputs: Vec<&B::Slice<T>> = inputs.iter().map(|x| B::part::<T>(x, range())).collect();
            let mut outputs: Vec<&mut B::Slice<T>> =
                outputs.iter_mut().map(|y| B::part_mut::<T>(y, range())).collect();
            let update = LinearUpdate {
                inputs: &inputs,
                outputs: &mut outputs,
                coefficients: &self.coefficients,
                products: &self.products,
            };
            b.linear_update(update, &mut state, then).unwrap();
        }
        (outputs.iter().map(|y| b.download(y).unwrap()).collect(), b.download(&state).unwrap())
    }

    fn factor(&self, coefficient: Coefficient) -> Option<Wide> {
        match coefficient {
            Coefficient::Zero => None,
            Coefficient::One => Some(Complex::new(1.0, 0.0)),
            Coefficient::MinusOne => Some(Complex::new(-1.0, 0.0)),
            Coefficient::At(slot) => Some(wide(self.state[slot.place()])),
            Coefficient::Minus(slot) => Some(-wide(self.state[slot.place()])),
        }
    }

    fn check<B: VectorOps>(&self, b: &B, slots: &Slots, then: Option<&ScalarProgram<B>>, what: &str) {
        let (outputs, state) = self.run(b, then);
        let range = || GUARD + self.shift..GUARD + self.shift + self.n;
        let old: Vec<&[T]> = self.inputs.iter().chain(&self.outputs).map(|x| &x[range()]).collect();
        for (o, (new, before)) in outputs.iter().zip(&self.outputs).enumerate() {
            let (start, end) = (range().start, range().end);
            assert!(same(&new[..start], &before[..start]) && same(&new[end..], &before[end..]), "{what}");
            let row = &self.coefficients[o * old.len()..(o + 1) * old.len()];
            let factors: Vec<Option<Wide>> = row.iter().map(|&c| self.factor(c)).collect();
            for i in 0..self.n {
                let terms = factors.iter().zip(&old).filter_map(|(f, x)| f.map(|f| f * wide(x[i])));
                let (exact, size) = sum(terms);
                close(new[start + i], exact, size, &format!("{what}, output {o} at {i}"));
            }
        }
        let new: Vec<&[T]> = self.inputs.iter().chain(&outputs).map(|x| &x[range()]).collect();
        let mut expected = self.state.clone();
        for product in &self.products {
            let terms = new[product.left].iter().zip(new[product.right]);
            let (exact, size) = sum(terms.map(|(&x, &y)| wide(x.conj()) * wide(y)));
            let got = state[product.to.place()];
            close(got, exact, size, &format!("{what}, {product:?}"));
            expected[product.to.place()] = got;
        }
        if then.is_some() {
            let (factor, sum) = (expected[slots.factors[0].place()], expected[slots.sums[0].place()]);
            let exact = wide(factor) * wide(sum) + 2.0;
            let got = state[slots.result.place()];
            close(got, exact, wide(factor).norm() * wide(sum).norm() + 2.0, &format!("{what}, program"));
            // The slots after these are the program's own numbers.
            let own = slots.result.place();
            assert!(same(&state[..own], &expected[..own]), "{what}");
        } else {
            assert!(same(&state, &expected), "{what}");
        }
        let (again, state_again) = self.run(b, then);
        assert!(outputs.iter().zip(&again).all(|(x, y)| same(x, y)), "{what}: other bits");
        assert!(same(&state, &state_again), "{what}: other bits of sums");
        self.check_ended(b, then, what);
    }

    /// Nothing changes if the recurrence has ended.
    fn check_ended<B: VectorOps>(&self, b: &B, then: Option<&ScalarProgram<B>>, what: &str) {
        let mut state = self.state.clone();
        state[Slot::ENDED.place()] = T::one();
        let ended = Case {
            state,
            inputs: self.inputs.clone(),
            outputs: self.outputs.clone(),
            coefficients: self.coefficients.clone(),
            products: self.products.clone(),
            ..*self
        };
        let (outputs, state) = ended.run(b, then);
        assert!(outputs.iter().zip(&self.outputs).all(|(x, y)| same(x, y)), "{what}: an ended update");
        assert!(same(&state, &ended.state), "{what}: the state of an ended update");
    }
}

fn update_case<T: Scalar, B: VectorOps>(b: &B, seed: u64, n: usize, shift: usize, counts: [usize; 3]) {
    let slots = Slots::new();
    let program = slots.program(b);
    let case = Case::<T>::new(&mut Random(seed), &slots, n, shift, counts);
    for then in [None, Some(&program)] {
        let what = format!("{} of {n} from {shift}, {counts:?}, program {}", T::NAME, then.is_some());
        case.check(b, &slots, then, &what);
    }
}

/// Tests updates with these numbers of vectors and these lengths, in each type.
pub fn updates_of<B: VectorOps>(b: &B, lengths: &[usize], counts: [usize; 3]) {
    for (k, &n) in lengths.iter().enumerate() {
        let shift = k % 2;
        update_case::<f32, B>(b, 1, n, shift, counts);
        update_case::<f64, B>(b, 2, n, shift, counts);
        update_case::<Complex<f32>, B>(b, 3, n, shift, counts);
        update_case::<Complex<f64>, B>(b, 4, n, shift, counts);
    }
}

/// Every count of vectors and products, each with one type and two lengths.
pub fn updates_of_all_counts<B: VectorOps>(b: &B) {
    let counts = (0..125_usize).map(|k| [k / 25, k / 5 % 5, k % 5]);
    for (k, counts) in counts.filter(|c| c[0] + c[1] > 0 || c[2] == 0).enumerate() {
        for n in [LENGTHS[k % 5], 1003] {
            let seed = 100 + k as u64;
            match k % 4 {
                0 => update_case::<f32, B>(b, seed, n, k / 4 % 2, counts),
                1 => update_case::<f64, B>(b, seed, n, k / 4 % 2, counts),
                2 => update_case::<Complex<f32>, B>(b, seed, n, k / 4 % 2, counts),
                _ => update_case::<Complex<f64>, B>(b, seed, n, k / 4 % 2, counts),
            }
        }
    }
}

/// All types and lengths, aligned and not, with counts of short recurrences.
pub fn updates_of_all_types<B: VectorOps>(b: &B) {
    for counts in [[1, 1, 0], [2, 2, 1], [3, 2, 2]] {
        updates_of(b, &LENGTHS, counts);
        updates_of(b, &[65537, 1000, 127, 3], counts);
    }
}

pub fn updates_refuse<B: VectorOps>(b: &B) {
    let (x, mut y, mut z) =
        (b.zeros::<f64>(3).unwrap(), b.zeros::<f64>(3).unwrap(), b.zeros::<f64>(4).unwrap());
    let mut state = b.upload(ScalarLayout::new().initial::<f64>(0.0)).unwrap();
    let far = Slots::new().result;
    let mut refused = |inputs: usize, coefficients: &[Coefficient], products: &[InnerProduct], long: bool| {
        let y = if long { &mut z } else { &mut y };
        let update =
            LinearUpdate { inputs: &vec![&*x; inputs], outputs: &mut [&mut **y], coefficients, products };
        assert!(b.linear_update(update, &mut state, None).is_err(), "{inputs} {coefficients:?} {products:?}");
    };
    let (one, product) = (Coefficient::One, InnerProduct { left: 0, right: 2, to: Slot::RR });
    refused(1, &[one, one], &[], true);
    refused(1, &[one], &[], false);
    refused(5, &[one; 6], &[], false);
    refused(1, &[one, Coefficient::At(far)], &[], false);
    refused(1, &[one, one], &[product], false);
    refused(1, &[one, one], &[InnerProduct { left: 0, right: 0, to: far }], false);
}
