//! Vector operations that read their scalars from the backend's memory: linear updates with inner products, programs,
//! steps with a basis and its Hessenberg matrix. Each case beside plain sequential arithmetic.

use crate::random::Random;
use num_complex::Complex;
use num_traits::Float;
use residua::backend::{
    CgStatus, Coefficient, Hessenberg, InnerProduct, LinearUpdate, Replay, ScalarLayout, ScalarProgram, Slot,
    VectorOps,
};
use residua::scalar::{Real, Scalar};

const LENGTHS: [usize; 6] = [0, 1, 3, 127, 1000, 65537];
/// Elements before and behind each vector that nothing may touch.
const GUARD: usize = 5;

type Wide = Complex<f64>;

/// The one list of cases: hands their names to a macro, behind the words that are for it.
#[allow(unused_macros)] // not every program of tests lists the cases
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

/// `got` is `want` up to the rounding of `T` in sums whose terms have magnitudes of `scale` together.
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

// ---- linear updates ----

/// What an update works on: vectors with guards around them, coefficients, products, a state and a program.
struct Case<T: Scalar> {
    n: usize,
    shift: usize,
    inputs: Vec<Vec<T>>,
    outputs: Vec<Vec<T>>,
    coefficients: Vec<Coefficient>,
    products: Vec<InnerProduct>,
    state: Vec<T>,
}

/// The slots of a case: factors, where sums go, and what the program computes of the first factor and sum.
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
        // What nothing reads may hold anything.
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
        // Programs are written by now, so that the state has room for what they need.
        let mut state: Vec<T> = slots.layout.initial(T::Real::from_f64(0.0));
        slots.factors.iter().for_each(|slot| state[slot.place()] = random.scalar());
        slots.sums.iter().for_each(|slot| state[slot.place()] = random.scalar());
        Case { n, shift, inputs, outputs, coefficients, products, state }
    }

    /// Outputs with their guards, and the state, as the backend leaves them.
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
            // What lies behind are the program's own numbers.
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

    /// Nothing changes where the recurrence has ended.
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

/// Updates of these counts and length, in each type.
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

// ---- programs ----

/// The state that a program leaves when it is run at once, and the same when it is recorded: a backend may carry
/// recorded programs out in another way.
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

/// All instructions on two numbers, beside Rust's own arithmetic. Numbers of real types are compared bit by bit.
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

/// Programs stop where they are told to, and an ended state stays as it is.
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
    // Finished: what was begun is carried out, and the next iteration is not begun.
    let once = run(&with(done, 1.0), &[&program]);
    assert_eq!(told(&once), [1.0, 0.0, 1.0, 0.0]);
    let twice = run(&once, &[&residual, &program]);
    assert_eq!(told(&twice), [1.0, 0.0, 1.0, 1.0]);
    assert_eq!(twice[Slot::RR.place()], 1.0);
    // Failed: nothing is carried out any more.
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

/// More instructions than a device keeps beside its processor at a time, and a state of as many scalars as there can
/// be.
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

// ---- bases ----

fn basis_case<T: Scalar, B: VectorOps>(b: &B, count: usize, n: usize) {
    let mut random = Random((1000 * count + n) as u64);
    let what = format!("{} {count} vectors of {n}", T::NAME);
    let shift = count % 2;
    // One more vector than asked for, which is not to be read.
    let mut basis = random.vector::<T>(shift + (count + 1) * n);
    basis[shift + count * n..].fill(T::from_f64(f64::NAN));
    let w = random.vector::<T>(n + 2 * GUARD);
    let h = random.vector::<T>(count + 1);
    let (v, inner) = (&basis[shift..], &w[GUARD..GUARD + n]);
    let (there, mut w_there) = (b.upload(basis.clone()).unwrap(), b.upload(w.clone()).unwrap());
    let basis_there = B::part::<T>(&there, shift..shift + (count + 1) * n);
    let mut out = b.upload(h.clone()).unwrap();
    let mut products = || {
        b.basis_products(basis_there, count, B::part::<T>(&w_there, GUARD..GUARD + n), &mut out).unwrap();
        b.download(&out).unwrap()
    };
    let first = products();
    assert!(same(&first, &products()), "{what}: other bits");
    assert!(same(&first[count..], &h[count..]), "{what}");
    for (j, &got) in first[..count].iter().enumerate() {
        let terms = v[j * n..(j + 1) * n].iter().zip(inner).map(|(&v, &w)| wide(v.conj()) * wide(w));
        let (exact, size) = sum(terms);
        close(got, exact, size, &format!("{what}: product {j}"));
    }
    let h_there = b.upload(h.clone()).unwrap();
    let alpha = random.scalar::<T>();
    let mut square = b.upload(vec![T::from_f64(-1.0); 1]).unwrap();
    for (alpha, asks) in [(T::from_f64(-1.0), true), (alpha, false)] {
        b.write(&w, &mut w_there).unwrap();
        let part = B::part_mut::<T>(&mut w_there, GUARD..GUARD + n);
        let to = asks.then_some(&mut *square);
        b.basis_update(alpha, basis_there, count, &h_there, part, to).unwrap();
        let got = b.download(&w_there).unwrap();
        assert!(same(&got[..GUARD], &w[..GUARD]) && same(&got[GUARD + n..], &w[GUARD + n..]), "{what}");
        for i in 0..n {
            let terms = (0..count).map(|j| wide(alpha) * wide(h[j]) * wide(v[j * n + i]));
            let (exact, size) = sum(terms.chain([wide(inner[i])]));
            close(got[GUARD + i], exact, size, &format!("{what}: update at {i}"));
        }
        if asks {
            let (exact, size) = sum(got[GUARD..GUARD + n].iter().map(|&w| wide(w).norm_sqr().into()));
            close(b.download(&square).unwrap()[0], exact, size, &format!("{what}: norm"));
        }
    }
    // The update and the products of what it leaves, in one step.
    let mut project = || {
        b.write(&w, &mut w_there).unwrap();
        let part = B::part_mut::<T>(&mut w_there, GUARD..GUARD + n);
        b.basis_project(basis_there, count, &h_there, part, &mut out).unwrap();
        (b.download(&w_there).unwrap(), b.download(&out).unwrap())
    };
    let (left, found) = project();
    let again = project();
    assert!(same(&left, &again.0) && same(&found, &again.1), "{what}: other bits");
    assert!(same(&left[..GUARD], &w[..GUARD]) && same(&left[GUARD + n..], &w[GUARD + n..]), "{what}");
    assert!(same(&found[count..], &h[count..]), "{what}");
    for i in 0..n {
        let terms = (0..count).map(|j| -wide(h[j]) * wide(v[j * n + i]));
        let (exact, size) = sum(terms.chain([wide(inner[i])]));
        close(left[GUARD + i], exact, size, &format!("{what}: projection at {i}"));
    }
    for (j, &got) in found[..count].iter().enumerate() {
        let rows = v[j * n..(j + 1) * n].iter().zip(&left[GUARD..]);
        let (exact, size) = sum(rows.map(|(&v, &w)| wide(v.conj()) * wide(w)));
        close(got, exact, size, &format!("{what}: product {j} after the update"));
    }
    let too_short = B::part::<T>(&there, 0..(count * n).saturating_sub(1));
    if n > 0 {
        let w = B::part::<T>(&w_there, GUARD..GUARD + n);
        assert!(b.basis_products(too_short, count, w, &mut out).is_err());
    }
    let w = B::part::<T>(&w_there, GUARD..GUARD + n);
    assert!(b.basis_products(basis_there, count, w, B::part_mut::<T>(&mut out, 0..count - 1)).is_err());
}

pub fn basis_of<B: VectorOps>(b: &B, counts: &[usize], lengths: &[usize]) {
    for &count in counts {
        for &n in lengths {
            basis_case::<f32, B>(b, count, n);
            basis_case::<f64, B>(b, count, n);
            basis_case::<Complex<f32>, B>(b, count, n);
            basis_case::<Complex<f64>, B>(b, count, n);
        }
    }
}

pub fn basis_cases<B: VectorOps>(b: &B) {
    basis_of(b, &[1, 2, 7, 8, 9, 31], &[0, 1, 3, 127, 1001, 10_001]);
    basis_of(b, &[2, 9], &[65537]);
    // More than a device's block multiplies, and more coefficients than it keeps.
    basis_case::<f64, B>(b, 65, 1001);
    basis_case::<Complex<f32>, B>(b, 300, 131);
    basis_case::<f64, B>(b, 2100, 3);
}

/// Vectors so long that a device takes tiles of several elements a thread.
pub fn long_basis<B: VectorOps>(b: &B) {
    basis_of(b, &[3], &[1_000_003]);
}

// ---- small dense steps ----

/// The Hessenberg matrix of an Arnoldi process, column by column: entries down to the subdiagonal.
fn hessenberg_columns<T: Scalar>(random: &mut Random, m: usize) -> Vec<Vec<T>> {
    (0..m)
        .map(|j| {
            let mut column = random.vector::<T>(j + 2);
            column[j + 1] = T::from_f64(0.5 + random.signed().abs());
            column
        })
        .collect()
}

/// The least |b - H y|, by Gram and Schmidt, twice.
fn least_residual<T: Scalar>(columns: &[Vec<T>], beta: f64) -> f64 {
    let rows = columns.len() + 1;
    let mut basis: Vec<Vec<Wide>> = Vec::new();
    let dot = |x: &[Wide], y: &[Wide]| x.iter().zip(y).map(|(x, y)| x.conj() * y).sum::<Wide>();
    let clear = |x: &mut Vec<Wide>, basis: &[Vec<Wide>]| {
        for q in basis.iter().chain(basis) {
            let along = dot(q, x);
            x.iter_mut().zip(q).for_each(|(x, q)| *x -= along * q);
        }
    };
    for column in columns {
        let mut x: Vec<Wide> = column.iter().map(|&v| wide(v)).collect();
        x.resize(rows, Wide::default());
        clear(&mut x, &basis);
        let norm = dot(&x, &x).re.sqrt();
        x.iter_mut().for_each(|x| *x /= norm);
        basis.push(x);
    }
    let mut right = vec![Wide::default(); rows];
    right[0] = beta.into();
    clear(&mut right, &basis);
    dot(&right, &right).re.sqrt()
}

/// The buffers of a factorisation of at most m columns.
struct Factors<T: Scalar, B: VectorOps> {
    m: usize,
    first: B::Vec<T>,
    second: B::Vec<T>,
    r: B::Vec<T>,
    rotations: B::Vec<T>,
    g: B::Vec<T>,
    state: B::Vec<T>,
    norm: Slot,
}

impl<T: Scalar, B: VectorOps> Factors<T, B> {
    fn new(b: &B, m: usize, beta: f64, threshold: f64) -> Self {
        let layout = ScalarLayout::new();
        let norm = layout.slot(0.0);
        let zeros = |n| b.zeros::<T>(n).unwrap();
        let mut g = vec![T::zero(); m + 1];
        g[0] = T::from_f64(beta);
        Factors {
            m,
            first: zeros(m + 1),
            second: zeros(m + 1),
            r: zeros(m * (m + 1)),
            rotations: zeros(2 * m),
            g: b.upload(g).unwrap(),
            state: b.upload(layout.initial(T::Real::from_f64(threshold))).unwrap(),
            norm,
        }
    }

    /// Takes a column in, whose entries come as the sums of two passes, and returns the state.
    fn step(&mut self, b: &B, j: usize, column: &[T]) -> Vec<T> {
        let part = |share: f64| {
            let mut all = vec![T::zero(); self.m + 1];
            all.iter_mut().zip(&column[..=j]).for_each(|(to, &v)| *to = v * T::from_f64(share));
            all
        };
        b.write(&part(0.75), &mut self.first).unwrap();
        b.write(&part(0.25), &mut self.second).unwrap();
        let mut state = b.download(&self.state).unwrap();
        state[self.norm.place()] = T::from_real(column[j + 1].abs2());
        b.write(&state, &mut self.state).unwrap();
        let hessenberg = Hessenberg {
            columns: self.m,
            passes: [&*self.first, &*self.second],
            r: &mut *self.r,
            rotations: &mut *self.rotations,
            g: &mut *self.g,
            state: &mut *self.state,
            norm: self.norm,
        };
        b.hessenberg_step(j, hessenberg).unwrap();
        b.download(&self.state).unwrap()
    }
}

fn hessenberg_case<T: Scalar, B: VectorOps>(b: &B, m: usize, checked: &[usize]) {
    let mut random = Random(m as u64);
    let (columns, beta) = (hessenberg_columns::<T>(&mut random, m), 3.0);
    let mut factors = Factors::<T, B>::new(b, m, beta, -1.0);
    for j in 0..m {
        let state = factors.step(b, j, &columns[j]);
        let what = format!("{} column {j} of {m}", T::NAME);
        assert!(
            state[Slot::STATUS.place()] == T::zero() && state[Slot::ENDED.place()] == T::zero(),
            "{what}"
        );
        let inverse = state[factors.norm.place()].re().to_f64() * columns[j][j + 1].re().to_f64();
        assert!((inverse - 1.0).abs() < 8.0 * epsilon::<T>(), "{what}: {inverse}");
        if !checked.contains(&j) {
            continue;
        }
        let tolerance = 64.0 * (j + 2) as f64 * epsilon::<T>();
        let got = state[Slot::RR.place()].re().to_f64().sqrt();
        let least = least_residual(&columns[..=j], beta);
        assert!((got - least).abs() <= tolerance * beta, "{what}: {got} instead of {least}");
        // The solution of the triangular system has that residual.
        let mut y = b.zeros::<T>(m).unwrap();
        b.triangular_solve(j + 1, m + 1, &factors.r, &factors.g, &mut y).unwrap();
        let y: Vec<Wide> = b.download(&y).unwrap()[..=j].iter().map(|&y| wide(y)).collect();
        let mut residual = vec![Wide::default(); j + 2];
        residual[0] = beta.into();
        for (column, y) in columns[..=j].iter().zip(&y) {
            residual.iter_mut().zip(column).for_each(|(r, &h)| *r -= wide(h) * y);
        }
        let norm = |x: &[Wide]| x.iter().map(|x| x.norm_sqr()).sum::<f64>().sqrt();
        let size: f64 = columns[..=j].iter().flatten().map(|&h| wide(h).norm_sqr()).sum::<f64>().sqrt();
        let room = tolerance * (beta + size * norm(&y));
        assert!((norm(&residual) - least).abs() <= room, "{what}: {} instead of {least}", norm(&residual));
    }
}

pub fn hessenberg_of<B: VectorOps>(b: &B, m: usize, checked: &[usize]) {
    hessenberg_case::<f32, B>(b, m, checked);
    hessenberg_case::<f64, B>(b, m, checked);
    hessenberg_case::<Complex<f32>, B>(b, m, checked);
    hessenberg_case::<Complex<f64>, B>(b, m, checked);
}

pub fn hessenberg_cases<B: VectorOps>(b: &B) {
    hessenberg_of(b, 1, &[0]);
    hessenberg_of(b, 9, &[0, 1, 2, 5, 8]);
    // More rotations than a device has near at a time.
    hessenberg_of(b, 140, &[31, 33, 127, 128, 129, 139]);
}

pub fn hessenberg_ends<B: VectorOps>(b: &B) {
    let column = |x: f64, y: f64, below: f64| [Complex::new(x, 0.0), Complex::new(0.0, y), below.into()];
    let told = |state: &[Wide]| {
        let [status, ended] =
            [Slot::STATUS, Slot::ENDED].map(|slot| CgStatus::from_real(state[slot.place()].re));
        (status, ended)
    };
    let start = || {
        let mut factors = Factors::<Wide, B>::new(b, 3, 2.0, 1e-20);
        factors.step(b, 0, &column(2.0, 0.0, 1.0)[..2].iter().map(|x| x + 1.0).collect::<Vec<_>>());
        factors
    };
    // The space is whole: the residual is zero, and no vector follows.
    let mut factors = start();
    let state = factors.step(b, 1, &column(1.0, 3.0, 0.0));
    assert_eq!(told(&state), (CgStatus::Converged, CgStatus::Running));
    assert_eq!((state[Slot::RR.place()].re, state[factors.norm.place()].re), (0.0, 0.0));
    // Then nothing changes but the flag.
    let all = |f: &Factors<Wide, B>| [&f.r, &f.rotations, &f.g].map(|x| b.download(x).unwrap());
    let before = all(&factors);
    let after = factors.step(b, 2, &[Complex::new(1.0, 0.0); 4]);
    assert_eq!(told(&after), (CgStatus::Converged, CgStatus::Converged));
    assert_eq!(after[factors.norm.place()].re, 1.0);
    assert!(all(&factors) == before);
    // A column that depends on those before it.
    let mut factors = start();
    let state = factors.step(b, 1, &column(0.0, 0.0, 0.0));
    assert_eq!(told(&state), (CgStatus::Breakdown, CgStatus::Breakdown));
    let mut factors = start();
    let state = factors.step(b, 1, &column(f64::NAN, 0.0, 1.0));
    assert_eq!(told(&state), (CgStatus::NotFinite, CgStatus::NotFinite));
}

fn triangular_case<T: Scalar, B: VectorOps>(b: &B, count: usize) {
    let (stride, mut random) = (count + 3, Random(count as u64));
    // What lies below the diagonal is not to be read.
    let mut r = vec![T::from_f64(f64::NAN); stride * count];
    for j in 0..count {
        (0..j).for_each(|i| r[j * stride + i] = random.scalar::<T>() * T::from_f64(1.0 / count as f64));
        r[j * stride + j] = random.scalar::<T>() + T::from_f64(2.0);
    }
    let g = random.vector::<T>(count);
    let mut y = b.upload(vec![T::from_f64(-7.0); count + 3]).unwrap();
    let (r_there, g_there) = (b.upload(r.clone()).unwrap(), b.upload(g.clone()).unwrap());
    b.triangular_solve(count, stride, &r_there, &g_there, &mut y).unwrap();
    let y = b.download(&y).unwrap();
    assert!(same(&y[count..], &[T::from_f64(-7.0); 3]));
    for i in 0..count {
        let (product, size) = sum((i..count).map(|j| wide(r[j * stride + i]) * wide(y[j])));
        close(g[i], product, size + wide(g[i]).norm(), &format!("{} row {i} of {count}", T::NAME));
    }
    if count > 0 {
        let mut short = b.zeros::<T>(count - 1).unwrap();
        assert!(b.triangular_solve(count, stride, &r_there, &g_there, &mut short).is_err());
        assert!(b.triangular_solve(count, 2 * stride + 9, &r_there, &g_there, &mut short).is_err());
    }
}

pub fn triangular_cases<B: VectorOps>(b: &B) {
    for count in [0, 1, 2, 7, 8, 9, 31, 256, 257, 600] {
        triangular_case::<f32, B>(b, count);
        triangular_case::<f64, B>(b, count);
        triangular_case::<Complex<f32>, B>(b, count);
        triangular_case::<Complex<f64>, B>(b, count);
    }
}

// ---- together ----

/// An iteration that a backend records: it counts itself, and ends in its fourth turn.
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
                // h = (v1.y, v2.y), v1 += h1 v2 / 2^40, of which nothing knows when to end.
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
    // Four turns: steps of 1/2, -1/2, 1/2, -1/2.
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
