//! The speeds of the machine to which prices are scaled: those of the machines on which prices were measured, or those
//! in a file that `residua devices --measure-prices` has written, if `RESIDUA_PRICES` names it.
//!
//! The file is read once in a process, so that all solves of a process have the same prices, and every process with the
//! same file chooses the same methods.

use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::sync::OnceLock;

/// The environment variable with the name of the file.
const VARIABLE: &str = "RESIDUA_PRICES";

/// The speeds of a processor or a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Speeds {
    /// Bytes a second of copies in memory, read and written bytes both counted.
    pub(crate) copies: f64,
    /// Seconds of a step on a short vector: handing it to threads, or launching a kernel.
    pub(crate) launch: f64,
    /// Multiplications a second of a factorisation in dense fronts, with copies and solves.
    pub(crate) multiplications: f64,
}

/// A machine, as it is written to a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Machine {
    /// What reports call these prices.
    pub(crate) name: String,
    pub(crate) cpu: Speeds,
    /// Those of the first GPU, if there is one.
    pub(crate) gpu: Option<Speeds>,
}

/// The speeds of the machines on which the constants of this folder were measured (2026-11-28). Two virtual cores of an
/// EPYC: copies vary from 6 to 15 GB/s there, and factorisations of 7 points 28^3 and 30^3 take what is here. An H200:
/// its copies and launches are those of docs/internals/benchmarks/device.md, and new values of 7 points 64^3, 1.2e11
/// multiplications, take 0.12 s with their solve.
pub(super) const CPU: Speeds = Speeds { copies: 1.2e10, launch: 2e-7, multiplications: 6.5e9 };
pub(super) const GPU: Speeds = Speeds { copies: 4.2e12, launch: 3e-6, multiplications: 1e12 };

/// The factors by which times of the shipped prices are multiplied.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Factors {
    /// Of what moves bytes.
    pub(crate) bytes: f64,
    /// Of what is the same for any size.
    pub(crate) launch: f64,
    pub(crate) multiplication: f64,
}

impl Speeds {
    fn factors(self, shipped: Self) -> Factors {
        Factors {
            bytes: shipped.copies / self.copies,
            launch: self.launch / shipped.launch,
            multiplication: shipped.multiplications / self.multiplications,
        }
    }

    /// Whether all speeds are positive numbers.
    fn is_sound(self) -> bool {
        [self.copies, self.launch, self.multiplications].iter().all(|speed| *speed > 0.0 && speed.is_finite())
    }
}

impl Machine {
    /// The prices as they are shipped.
    fn shipped() -> Self {
        let name = format!("shipped with residua {}", env!("CARGO_PKG_VERSION"));
        Self { name, cpu: CPU, gpu: Some(GPU) }
    }

    fn read(text: &str) -> std::result::Result<Self, String> {
        let machine: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let is_sound = machine.cpu.is_sound() && machine.gpu.is_none_or(Speeds::is_sound);
        if is_sound { Ok(machine) } else { Err("speeds must be positive numbers".into()) }
    }
}

/// The machine of this process, or why its file can't be used.
fn chosen() -> &'static std::result::Result<Machine, String> {
    static CHOSEN: OnceLock<std::result::Result<Machine, String>> = OnceLock::new();
    CHOSEN.get_or_init(|| match std::env::var_os(VARIABLE).filter(|name| !name.is_empty()) {
        None => Ok(Machine::shipped()),
        Some(name) => {
            let text = std::fs::read_to_string(&name).map_err(|error| error.to_string());
            let machine = text.and_then(|text| Machine::read(&text));
            machine.map_err(|why| format!("{VARIABLE}={}: {why}", name.display()))
        }
    })
}

/// The name of the prices in use.
///
/// # Errors
/// [`Error::InvalidArgument`] if the file that the environment names can't be used.
pub(crate) fn name() -> Result<&'static str> {
    match chosen() {
        Ok(machine) => Ok(&machine.name),
        Err(why) => Err(Error::InvalidArgument(why.clone())),
    }
}

/// The factors of times on the CPU.
pub(crate) fn cpu() -> Factors {
    chosen().as_ref().map_or(CPU, |machine| machine.cpu).factors(CPU)
}

/// The factors of times on a GPU.
pub(crate) fn gpu() -> Factors {
    chosen().as_ref().map_or(GPU, |machine| machine.gpu.unwrap_or(GPU)).factors(GPU)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_scaled_by_what_a_machine_does_faster_and_a_damaged_file_is_refused() {
        let faster = Speeds { copies: 4.0 * CPU.copies, launch: 0.5 * CPU.launch, ..CPU };
        let machine = Machine { name: "mine".into(), cpu: faster, gpu: None };
        let text = serde_json::to_string(&machine).unwrap();
        let read = Machine::read(&text).unwrap();
        assert_eq!(read, machine);
        let factors = read.cpu.factors(CPU);
        assert_eq!(factors, Factors { bytes: 0.25, launch: 0.5, multiplication: 1.0 });
        assert!(Machine::read(&text.replace("copies", "copy")).is_err());
        assert!(Machine::read(&text[..text.len() / 2]).is_err());
        let still = Machine { cpu: Speeds { launch: 0.0, ..faster }, ..machine };
        assert!(Machine::read(&serde_json::to_string(&still).unwrap()).unwrap_err().contains("positive"));
        // The shipped prices are not changed by a rounding error.
        assert_eq!(CPU.factors(CPU), Factors { bytes: 1.0, launch: 1.0, multiplication: 1.0 });
    }
}
