//! Linear updates of vectors and scalar programs, on the device.

use super::compile::program_number;
use super::launch::{Constants, kernels};
use super::slice::Slice;
use super::workspace::Reduction;
use super::{Cuda, capture, tuning};
use crate::backend::scalars::WORDS;
use crate::backend::{Coefficient, LinearUpdate, ScalarProgram, Slot};
use crate::error::{Error, Result};
use crate::scalar::Scalar;

/// The number of words of a `Table` in `kernels/linear_update.cu`, and the starts of its parts.
const TABLE: usize = REFERENCES + 3 * MOST + 1;
const REFERENCES: usize = 2 * MOST * MOST;
const MOST: usize = 4;

/// The maximum number of instructions in a compiled program. It takes 0.9 s to compile 200 instructions, and 14 s for
/// 1000.
const MOST_COMPILED: usize = 256;

mod kernel {
    use super::*;
    kernels! {
        "linear_update.cu", types(T: Scalar as SCALAR);
        fn linear_update(
            table: Constants<u32, TABLE>,
            x0: Option<&Slice<T>>,
            x1: Option<&Slice<T>>,
            x2: Option<&Slice<T>>,
            x3: Option<&Slice<T>>,
            y0: Option<&mut Slice<T>>,
            y1: Option<&mut Slice<T>>,
            y2: Option<&mut Slice<T>>,
            y3: Option<&mut Slice<T>>,
            state: &mut Slice<T>,
            size: u32,
            words: Option<&Slice<u32>>,
            instructions: u32,
            n: usize,
            reduction: Reduction,
        );
    }
    kernels! {
        "scalars.cu", types(T: Scalar as SCALAR);
        fn run_program(
            words: &Slice<u32>,
            instructions: u32,
            state: &mut Slice<T>,
            size: u32,
            if_running: u32,
        );
    }
}

/// Returns a coefficient as the kernel reads it: its kind, and its position in the state.
fn encoded(coefficient: Coefficient) -> u32 {
    let (kind, place) = match coefficient {
        Coefficient::Zero => (0, 0),
        Coefficient::One => (1, 0),
        Coefficient::MinusOne => (2, 0),
        Coefficient::At(slot) => (3, slot.place()),
        Coefficient::Minus(slot) => (4, slot.place()),
    };
    kind << 8 | place as u32
}

/// Returns the class of the units for a program. While iterations are being recorded, each program has its own class,
/// because it will be repeated so often that compiling pays. Otherwise the class is that of the interpreter.
fn class(cuda: Cuda, program: &ScalarProgram<Cuda>) -> u32 {
    let instructions = program.code.len() / WORDS;
    if !(1..=MOST_COMPILED).contains(&instructions) || capture::stream(cuda.0.ordinal).is_none() {
        return 0;
    }
    *program.number.get_or_init(|| program_number(&program.code))
}

fn check_state(size: usize) -> Result<()> {
    if size <= Slot::ENDED.place() || size > Slot::MOST {
        let (least, most) = (Slot::ENDED.place() + 1, Slot::MOST);
        return Err(Error::InvalidArgument(format!(
            "a state of {size} scalars: {least} to {most} are possible"
        )));
    }
    Ok(())
}

/// See [`VectorOps::run_program`](crate::backend::VectorOps::run_program). With `if_running`, the program does not
/// change a state that has ended, even if it does not begin with [`Writer::begin`](crate::backend::Writer::begin).
pub(super) fn run_program<T: Scalar>(
    cuda: Cuda,
    program: &ScalarProgram<Cuda>,
    state: &mut Slice<T>,
    if_running: bool,
) -> Result<()> {
    check_state(state.len())?;
    let (words, size) = (&*program.words, state.len() as u32);
    let instructions = (words.len() / WORDS) as u32;
    let shape = tuning::scalars().class(class(cuda, program));
    kernel::run_program(cuda, shape, words, instructions, state, size, u32::from(if_running))
}

/// See [`VectorOps::linear_update`](crate::backend::VectorOps::linear_update).
pub(super) fn linear_update<T: Scalar>(
    cuda: Cuda,
    update: LinearUpdate<'_, '_, T, Cuda>,
    state: &mut Slice<T>,
    then: Option<&ScalarProgram<Cuda>>,
) -> Result<()> {
    check_state(state.len())?;
    update.check(state.len())?;
    let n = update.len();
    let LinearUpdate { inputs, outputs, coefficients, products } = update;
    let vectors = inputs.len() + outputs.len();
    if vectors == 0 {
        return then.map_or(Ok(()), |program| run_program(cuda, program, state, true));
    }
    let mut table = [0; TABLE];
    let mut reads = 0;
    for (k, &coefficient) in coefficients.iter().enumerate() {
        table[k] = encoded(coefficient);
        reads |= u32::from(coefficient != Coefficient::Zero) << (k % vectors);
    }
    for (p, product) in products.iter().enumerate() {
        let words = [product.left, product.right, product.to.place()];
        for (part, word) in words.into_iter().enumerate() {
            table[REFERENCES + MOST * part + p] = word as u32;
        }
        // A product may have an input that no update reads. The new values of outputs are already in registers.
        for vector in [product.left, product.right].into_iter().filter(|&v| v < inputs.len()) {
            reads |= 1 << vector;
        }
    }
    table[TABLE - 1] = reads;
    let counts = [inputs.len(), outputs.len(), products.len()];
    let words = then.map(|program| &*program.words);
    let instructions = words.map_or(0, |words| words.len() / WORDS) as u32;
    let shape = tuning::linear_update(cuda.0.chip, n, size_of::<T>(), counts, instructions > 0)
        .class(then.map_or(0, |program| class(cuda, program)));
    let reduction = cuda.0.workspaces.reduction();
    let x = |k: usize| inputs.get(k).copied();
    let mut outputs = outputs.iter_mut().map(|y| &mut **y);
    let y = [outputs.next(), outputs.next(), outputs.next(), outputs.next()];
    let [y0, y1, y2, y3] = y;
    let size = state.len() as u32;
    kernel::linear_update(
        cuda,
        shape,
        Constants(table),
        x(0),
        x(1),
        x(2),
        x(3),
        y0,
        y1,
        y2,
        y3,
        state,
        size,
        words,
        instructions,
        n,
        reduction,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Host;
    use crate::backend::cuda::compile::{Unit, listed_units};
    use crate::backend::host::asked::{self, Asked};
    use crate::krylov::{BiCgStab, Cg, Gmres, Lsmr, Minres, SolveOptions};
    use crate::matrix::Csr;
    use crate::precondition::{Identity, Jacobi, Preconditioner};
    use num_complex::Complex;
    use std::collections::HashSet;
    use std::ops::ControlFlow;

    /// A preconditioner without a fused step.
    struct General<M>(M);

    impl<T: Scalar, M: Preconditioner<T, Host>> Preconditioner<T, Host> for General<M> {
        fn rows(&self) -> Option<usize> {
            self.0.rows()
        }

        fn apply(&self, backend: &Host, r: &[T], z: &mut [T]) -> Result<()> {
            self.0.apply(backend, r, z)
        }

        fn bytes(&self) -> usize {
            self.0.bytes()
        }
    }

    fn tridiagonal<T: Scalar>(n: usize, beside: [f64; 2]) -> Csr<T> {
        let (mut offsets, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
        for i in 0..n {
            for (j, value) in [(i.wrapping_sub(1), beside[0]), (i, 2.5), (i + 1, beside[1])] {
                if j < n {
                    indices.push(j as u32);
                    values.push(T::from_f64(value));
                }
            }
            offsets.push(values.len());
        }
        Csr::from_parts(n, n, offsets, indices, values).unwrap()
    }

    /// Runs some iterations of every method, with each form of preconditioner.
    fn solves<T: Scalar>() {
        let n = 60;
        let (symmetric, general) = (tridiagonal::<T>(n, [-1.0, -1.0]), tridiagonal::<T>(n, [-1.5, -0.5]));
        let jacobi = Jacobi::new(&Host, &symmetric).unwrap();
        let unknown = General(Jacobi::new(&Host, &symmetric).unwrap());
        let forms: [&dyn Preconditioner<T, Host>; 3] = [&Identity, &jacobi, &unknown];
        let options = || SolveOptions::default().tolerance(1e-6).max_iterations(50);
        let b: Vec<T> = (0..n).map(|i| T::from_f64(1.0 + (i % 7) as f64)).collect();
        for m in forms {
            // Starts from zero, and from another vector.
            for start in [0.0, 1.0] {
                let on = |_, _| ControlFlow::Continue(());
                let x = || vec![T::from_f64(start); n];
                let _ = Cg::new(&Host, n, options()).unwrap().solve(&symmetric, m, &b, &mut x(), on).unwrap();
                let _ =
                    Minres::new(&Host, n, options()).unwrap().solve(&symmetric, m, &b, &mut x(), on).unwrap();
                let _ =
                    Gmres::new(&Host, n, 7, options()).unwrap().solve(&general, m, &b, &mut x(), on).unwrap();
                let _ =
                    BiCgStab::new(&Host, n, options()).unwrap().solve(&general, m, &b, &mut x(), on).unwrap();
                let _ =
                    Lsmr::new(&Host, n, n, options()).unwrap().solve(&general, m, &b, &mut x(), on).unwrap();
            }
        }
    }

    /// Returns the unit that a device would load for this.
    fn unit(asked: &Asked) -> Unit {
        const COUNTS: [&str; 5] = ["0", "1", "2", "3", "4"];
        let instructions = asked.code.len() / WORDS;
        let compiled = asked.recorded && (1..=MOST_COMPILED).contains(&instructions);
        let file = if asked.update.is_some() { "linear_update.cu" } else { "scalars.cu" };
        let mut unit = Unit::new(file).with("SCALAR", asked.scalar);
        if let Some([inputs, outputs, products]) = asked.update {
            unit = unit.with("INPUTS", COUNTS[inputs]).with("OUTPUTS", COUNTS[outputs]);
            unit = unit.with("PRODUCTS", COUNTS[products]);
        }
        unit.class(if compiled { program_number(&asked.code) } else { 0 })
    }

    /// The list of units contains the programs of all methods. A changed program is a new unit, which packages have
    /// only if it is listed.
    #[test]
    fn programs_of_all_methods_are_listed() {
        asked::take();
        solves::<f32>();
        solves::<f64>();
        solves::<Complex<f32>>();
        solves::<Complex<f64>>();
        let needed: HashSet<Unit> = asked::take().iter().map(unit).collect();
        assert!(needed.len() > 40, "{} units", needed.len());
        let listed: HashSet<Unit> = listed_units().into_iter().collect();
        let mut missing: Vec<String> =
            needed.iter().filter(|unit| !listed.contains(unit)).map(Unit::describe).collect();
        missing.sort_unstable();
        assert!(missing.is_empty(), "to be added to units.txt:\n{}", missing.join("\n"));
    }
}
