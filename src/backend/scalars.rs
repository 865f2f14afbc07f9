//! Arithmetic on the scalars of a recurrence, in the backend's memory.
//!
//! In each iteration a Krylov method computes a few numbers (step lengths, norms, rotations) from its inner products.
//! They are not copied to the host. A small buffer in the backend's memory, the *state*, contains them, and a
//! [`ScalarProgram`], straight-line code on that buffer, computes them there, so every method is written once, and no
//! backend has a kernel for a particular method.
//!
//! ```text
//! state    0 status | 1 r.r | 2 curvature | 3 threshold | 4 ended | the method's own scalars | temporaries, constants
//! ```
//!
//! Once the status says that the recurrence has ended, further iterations in the queue change nothing: each iteration's
//! first program copies the status to `ended` ([`Writer::begin`]), and programs and [updates](super::LinearUpdate) do
//! nothing if `ended` is not zero, so the iteration that meets the threshold is completed, and the next one is not
//! begun.

use super::{Backend, CgStatus};
use crate::error::Result;
use crate::scalar::{Real, Scalar};
use num_traits::{Float, Zero};
use std::cell::{Cell, RefCell};
use std::ops::{Add, Div, Mul, Neg, Sub};
use std::sync::OnceLock;

/// The position of a scalar in the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot(pub(crate) u32);

impl Slot {
    /// A [`CgStatus`], as a number.
    pub const STATUS: Slot = Slot(0);
    /// ||r||^2 after this iteration, or the method's estimate of it.
    pub const RR: Slot = Slot(1);
    /// p.Ap, if the method computes it.
    pub const CURVATURE: Slot = Slot(2);
    /// The iteration converges when `RR` is at most this.
    pub const THRESHOLD: Slot = Slot(3);
    /// Nonzero after the last iteration. Further iterations change nothing.
    pub const ENDED: Slot = Slot(4);
    /// The number of scalars in the message of an iteration: status, r.r, curvature.
    pub const MESSAGE: usize = 3;
    /// The position of the first scalar of the method itself.
    const FIRST: u32 = 5;
    /// The maximum number of scalars in a state, which must fit a kernel's shared memory.
    pub const MOST: usize = 192;

    /// Returns the index in the buffer.
    pub fn place(self) -> usize {
        self.0 as usize
    }
}

/// The operation of an instruction on its operands a and b.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Code {
    /// a
    Copy,
    /// a + b
    Add,
    /// a - b
    Subtract,
    /// a b
    Multiply,
    /// a / b
    Divide,
    /// -a
    Negate,
    /// conj(a)
    Conjugate,
    /// The square root of a's real part.
    Root,
    /// |a|
    Magnitude,
    /// |a|^2
    Square,
    /// The real part.
    RealPart,
    /// 1 if re(a) < re(b), else 0
    Less,
    /// 1 if a is finite, else 0
    Finite,
    /// (|a|^2 + |b|^2)^(1/2), without overflow
    Hypotenuse,
    /// b if re(a) is not zero, else the previous value of the target
    Where,
    /// The larger of the real parts.
    Larger,
    /// ended = status; runs even if the recurrence has ended
    Begin,
    /// If re(a) is not zero: status = b, and the program ends
    Finish,
    /// If re(a) is not zero: status = ended = b, and the program ends
    Fail,
}

impl Code {
    fn from_word(word: u32) -> Self {
        const ALL: [Code; 19] = [
            Code::Copy,
            Code::Add,
            Code::Subtract,
            Code::Multiply,
            Code::Divide,
            Code::Negate,
            Code::Conjugate,
            Code::Root,
            Code::Magnitude,
            Code::Square,
            Code::RealPart,
            Code::Less,
            Code::Finite,
            Code::Hypotenuse,
            Code::Where,
            Code::Larger,
            Code::Begin,
            Code::Finish,
            Code::Fail,
        ];
        ALL[word as usize]
    }
}

/// The number of codes.
#[cfg(feature = "cuda")]
pub(crate) const CODES: u32 = Code::Fail as u32 + 1;

/// The number of words of an instruction: code, target, a, b.
pub(crate) const WORDS: usize = 4;

/// Straight-line code on a state, in the backend's memory. [`ScalarLayout::program`] creates it.
#[derive(Debug)]
pub struct ScalarProgram<B: Backend> {
    pub(crate) words: B::Vec<u32>,
    /// The same code on the host, for a backend that compiles it, and the number by which that backend identifies it.
    #[cfg_attr(not(feature = "cuda"), expect(dead_code, reason = "the host interprets words"))]
    pub(crate) code: Vec<u32>,
    #[cfg_attr(not(feature = "cuda"), expect(dead_code, reason = "the host interprets words"))]
    pub(crate) number: OnceLock<u32>,
}

/// Assigns the positions of a state and writes the programs on it.
///
/// ```
/// use residua::{Backend, Host, backend::{ScalarLayout, Slot, VectorOps}};
/// let layout = ScalarLayout::new();
/// let (rho, pq, alpha) = (layout.slot(6.0), layout.slot(2.0), layout.slot(0.0));
/// let step = layout.program(&Host, |p| p.set(alpha, p.get(rho) / p.get(pq)))?;
/// let mut state: Vec<f64> = layout.initial(1e-16);
/// Host.run_program(&step, &mut state)?;
/// assert_eq!(state[alpha.place()], 3.0);
/// # Ok::<(), residua::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct ScalarLayout {
    initial: RefCell<Vec<f64>>,
    /// The constants of all programs, each stored once.
    constants: RefCell<Vec<(f64, Slot)>>,
    /// Temporaries, which are shared by all programs.
    temporaries: RefCell<Vec<Slot>>,
}

impl ScalarLayout {
    /// Creates a state with the five scalars of every method.
    pub fn new() -> Self {
        Self { initial: RefCell::new(vec![0.0; Slot::FIRST as usize]), ..Self::default() }
    }

    /// Adds a scalar with this value at the start of a recurrence.
    ///
    /// # Panics
    /// If there are more than [`Slot::MOST`] scalars. A method has a few dozen.
    // Not inlined, like everything that writes programs: a method calls it a few dozen times, and is compiled for each
    // scalar type and backend.
    #[inline(never)]
    pub fn slot(&self, initial: f64) -> Slot {
        let mut all = self.initial.borrow_mut();
        assert!(all.len() < Slot::MOST, "a recurrence of more than {} scalars", Slot::MOST);
        all.push(initial);
        Slot(all.len() as u32 - 1)
    }

    /// Returns the number of scalars of the state, including the temporaries and constants of all programs.
    pub fn len(&self) -> usize {
        self.initial.borrow().len()
    }

    /// Always false: a state contains at least the status.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Returns the state at the start of a recurrence that converges when the squared residual is at most `threshold`.
    /// Must be called after all programs are written.
    pub fn initial<T: Scalar>(&self, threshold: T::Real) -> Vec<T> {
        let mut state: Vec<T> = self.initial.borrow().iter().map(|&value| T::from_f64(value)).collect();
        state[Slot::THRESHOLD.place()] = T::from_real(threshold);
        state
    }

    /// Creates the program whose instructions `write` emits.
    ///
    /// # Errors
    /// If memory runs out, or if the device fails.
    pub fn program<B: Backend>(
        &self,
        backend: &B,
        write: impl FnOnce(&Writer<'_>),
    ) -> Result<ScalarProgram<B>> {
        let writer = Writer { layout: self, words: RefCell::default(), used: Cell::new(0) };
        write(&writer);
        let code = writer.words.into_inner();
        Ok(ScalarProgram { words: backend.upload(code.clone())?, code, number: OnceLock::new() })
    }
}

/// Records the instructions of a program while Rust code computes with [`Value`]s.
#[derive(Debug)]
pub struct Writer<'l> {
    layout: &'l ScalarLayout,
    words: RefCell<Vec<u32>>,
    /// The number of temporaries that the program has used so far.
    used: Cell<usize>,
}

/// A number that a program will compute.
#[derive(Debug, Clone, Copy)]
pub struct Value<'w> {
    writer: &'w Writer<'w>,
    at: Slot,
}

impl<'l> Writer<'l> {
    #[inline(never)]
    fn emit(&self, code: Code, to: Slot, a: Slot, b: Slot) {
        self.words.borrow_mut().extend([code as u32, to.0, a.0, b.0]);
    }

    #[inline(never)]
    fn value(&self, code: Code, a: Slot, b: Slot) -> Value<'_> {
        let number = self.used.replace(self.used.get() + 1);
        let known = self.layout.temporaries.borrow().get(number).copied();
        let at = known.unwrap_or_else(|| {
            let new = self.layout.slot(0.0);
            self.layout.temporaries.borrow_mut().push(new);
            new
        });
        self.emit(code, at, a, b);
        Value { writer: self, at }
    }

    /// Begins an iteration. Must be the first statement of its first program.
    pub fn begin(&self) {
        self.emit(Code::Begin, Slot::ENDED, Slot::STATUS, Slot::STATUS);
    }

    /// Returns the current value at a position of the state. A later [`Writer::set`] does not change it.
    pub fn get(&self, slot: Slot) -> Value<'_> {
        self.value(Code::Copy, slot, slot)
    }

    /// A constant.
    #[inline(never)]
    pub fn constant(&self, value: f64) -> Value<'_> {
        let constants = &self.layout.constants;
        let known = constants.borrow().iter().find(|known| known.0.to_bits() == value.to_bits()).map(|k| k.1);
        let at = known.unwrap_or_else(|| {
            let new = self.layout.slot(value);
            constants.borrow_mut().push((value, new));
            new
        });
        Value { writer: self, at }
    }

    /// Writes a number to the state.
    pub fn set(&self, slot: Slot, value: Value<'_>) {
        self.emit(Code::Copy, slot, value.at, value.at);
    }

    /// Writes a number to the state if `condition` is not zero.
    pub fn set_where(&self, condition: Value<'_>, slot: Slot, value: Value<'_>) {
        self.emit(Code::Where, slot, condition.at, value.at);
    }

    /// If `condition` is not zero, ends the recurrence with this status after the current iteration is completed.
    pub fn finish(&self, condition: Value<'_>, status: CgStatus) {
        let status = self.constant(f64::from(status as u8));
        self.emit(Code::Finish, Slot::STATUS, condition.at, status.at);
    }

    /// If `condition` is not zero, ends the recurrence here with this status; nothing changes any more.
    pub fn fail(&self, condition: Value<'_>, status: CgStatus) {
        let status = self.constant(f64::from(status as u8));
        self.emit(Code::Fail, Slot::STATUS, condition.at, status.at);
    }

    /// If `value` is not finite, ends the recurrence with status `NotFinite`.
    pub fn need_finite(&self, value: Value<'_>) {
        let bad = self.constant(1.0) - value.is_finite();
        self.fail(bad, CgStatus::NotFinite);
    }

    /// Records ||r||^2. If it is at most the threshold, this iteration is the last, with status `Converged`.
    pub fn residual(&self, rr: Value<'_>) {
        self.need_finite(rr);
        self.set(Slot::RR, rr);
        let above = self.get(Slot::THRESHOLD).less_than(rr);
        self.finish(self.constant(1.0) - above, CgStatus::Converged);
    }
}

impl<'w> Value<'w> {
    /// Returns its position in the state.
    pub fn slot(self) -> Slot {
        self.at
    }

    /// The complex conjugate.
    #[must_use]
    pub fn conj(self) -> Self {
        self.writer.value(Code::Conjugate, self.at, self.at)
    }

    /// The square root of the real part.
    #[must_use]
    pub fn sqrt(self) -> Self {
        self.writer.value(Code::Root, self.at, self.at)
    }

    /// The magnitude.
    #[must_use]
    pub fn abs(self) -> Self {
        self.writer.value(Code::Magnitude, self.at, self.at)
    }

    /// The squared magnitude.
    #[must_use]
    pub fn abs2(self) -> Self {
        self.writer.value(Code::Square, self.at, self.at)
    }

    /// The real part.
    #[must_use]
    pub fn re(self) -> Self {
        self.writer.value(Code::RealPart, self.at, self.at)
    }

    /// 1 if the real part is less than that of `other`, else 0 (also if one of them is NaN).
    #[must_use]
    pub fn less_than(self, other: Self) -> Self {
        self.writer.value(Code::Less, self.at, other.at)
    }

    /// 1 if the number is finite, else 0.
    #[must_use]
    pub fn is_finite(self) -> Self {
        self.writer.value(Code::Finite, self.at, self.at)
    }

    /// (|a|^2 + |b|^2)^(1/2), without intermediate overflow.
    #[must_use]
    pub fn hypot(self, other: Self) -> Self {
        self.writer.value(Code::Hypotenuse, self.at, other.at)
    }

    /// The larger of the two real parts.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        self.writer.value(Code::Larger, self.at, other.at)
    }

    /// `self` if `condition` is not zero, else `other`.
    #[must_use]
    pub fn where_else(self, condition: Self, other: Self) -> Self {
        let chosen = self.writer.value(Code::Copy, other.at, other.at);
        self.writer.emit(Code::Where, chosen.at, condition.at, self.at);
        chosen
    }
}

macro_rules! arithmetic {
    ($($operator:ident $method:ident $code:ident),*) => {$(
        impl<'w> $operator for Value<'w> {
            type Output = Value<'w>;
            fn $method(self, other: Self) -> Self {
                self.writer.value(Code::$code, self.at, other.at)
            }
        }
    )*};
}
arithmetic!(Add add Add, Sub sub Subtract, Mul mul Multiply, Div div Divide);

impl Neg for Value<'_> {
    type Output = Self;
    fn neg(self) -> Self {
        self.writer.value(Code::Negate, self.at, self.at)
    }
}

/// Runs a program on a state in the host's memory. This defines what each instruction does. A device executes the same
/// instructions in the same order, but may round differently if its compiler fuses a product with a sum.
pub(crate) fn interpret<T: Scalar>(words: &[u32], state: &mut [T]) {
    for word in words.as_chunks::<WORDS>().0 {
        let [code, to, a, b] = *word;
        let code = Code::from_word(code);
        let (to, a, b) = (to as usize, state[a as usize], state[b as usize]);
        if code == Code::Begin {
            state[to] = a;
        }
        if state[Slot::ENDED.place()] != T::zero() {
            return;
        }
        let truth = |holds: bool| if holds { T::one() } else { T::zero() };
        let given = a.re() != T::Real::zero();
        match code {
            Code::Begin => {}
            Code::Copy => state[to] = a,
            Code::Add => state[to] = a + b,
            Code::Subtract => state[to] = a - b,
            Code::Multiply => state[to] = a * b,
            Code::Divide => state[to] = a / b,
            Code::Negate => state[to] = -a,
            Code::Conjugate => state[to] = a.conj(),
            Code::Root => state[to] = T::from_real(Float::sqrt(a.re())),
            Code::Magnitude => state[to] = T::from_real(Scalar::abs(a)),
            Code::Square => state[to] = T::from_real(a.abs2()),
            Code::RealPart => state[to] = T::from_real(a.re()),
            Code::Less => state[to] = truth(a.re() < b.re()),
            Code::Finite => state[to] = truth(Scalar::is_finite(a)),
            Code::Hypotenuse => {
                state[to] = T::from_real(hypotenuse::<T::Real>(Scalar::abs(a), Scalar::abs(b)))
            }
            Code::Where if given => state[to] = b,
            Code::Where => {}
            Code::Larger => state[to] = T::from_real(if a.re() < b.re() { b.re() } else { a.re() }),
            Code::Finish if given => {
                state[to] = b;
                return;
            }
            Code::Fail if given => {
                (state[to], state[Slot::ENDED.place()]) = (b, b);
                return;
            }
            Code::Finish | Code::Fail => {}
        }
    }
}

/// (a^2 + b^2)^(1/2) for a and b >= 0.
fn hypotenuse<R: Real>(a: R, b: R) -> R {
    let (large, small) = if a < b { (b, a) } else { (a, b) };
    if large == R::zero() || !Float::is_finite(large) {
        return large + small;
    }
    let ratio = small / large;
    large * Float::sqrt(R::one() + ratio * ratio)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Host;

    #[test]
    fn programs_compute_what_their_text_says() {
        let layout = ScalarLayout::new();
        let (x, y, z) = (layout.slot(3.0), layout.slot(-4.0), layout.slot(0.0));
        let program = layout
            .program(&Host, |p| {
                p.begin();
                let (a, b) = (p.get(x), p.get(y));
                p.set(x, a.hypot(b) + a * b - b.abs() / p.constant(2.0));
                p.set(z, a.where_else(a.less_than(b), b.abs2().sqrt().max(a)));
                p.residual(a);
            })
            .unwrap();
        let mut state: Vec<f64> = layout.initial(3.0);
        interpret(&program.words, &mut state);
        assert_eq!((state[x.place()], state[z.place()]), (5.0 - 12.0 - 2.0, 4.0));
        assert_eq!((state[0], state[1], state[4]), (1.0, 3.0, 0.0));
        // Another iteration must change nothing.
        interpret(&program.words, &mut state);
        assert_eq!((state[x.place()], state[4]), (-9.0, 1.0));
    }

    #[test]
    fn a_failure_ends_the_recurrence_at_once() {
        let layout = ScalarLayout::new();
        let x = layout.slot(f64::NAN);
        let program = layout
            .program(&Host, |p| {
                p.begin();
                p.need_finite(p.get(x));
                p.set(x, p.constant(1.0));
            })
            .unwrap();
        let mut state: Vec<f64> = layout.initial(0.0);
        interpret(&program.words, &mut state);
        assert_eq!(CgStatus::from_real(state[0]), CgStatus::NotFinite);
        assert!(state[x.place()].is_nan() && state[4] != 0.0);
    }
}
