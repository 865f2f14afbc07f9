//! The report of a choice of format.

use crate::units::seconds;
use std::fmt;

/// A format that was tried.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Trial {
    /// The format's name.
    pub format: &'static str,
    /// Seconds of converting from CSR, including compiling kernels for the first time; zero for CSR itself.
    pub convert_seconds: f64,
    /// Seconds of one product; `None` if none was measured.
    pub product_seconds: Option<f64>,
    /// Why it was not measured.
    pub refused: Option<String>,
}

impl Trial {
    pub(super) fn measured(format: &'static str, convert: f64, product: f64) -> Self {
        Self { format, convert_seconds: convert, product_seconds: Some(product), refused: None }
    }

    pub(super) fn refused(format: &'static str, convert: f64, reason: String) -> Self {
        Self { format, convert_seconds: convert, product_seconds: None, refused: Some(reason) }
    }
}

/// The basis of a choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Basis {
    /// The model: no other format is expected to save more than its trial would cost.
    Model,
    /// A trial in this process.
    Measured,
    /// An earlier trial of the same pattern on the same device.
    Remembered,
}

/// The chosen format, the reason, and the cost.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ChoiceReport {
    /// The format.
    pub format: &'static str,
    /// The basis of the choice.
    pub basis: Basis,
    /// The model's reason, in a sentence.
    pub reason: String,
    /// The measured times, now or earlier, CSR first; empty if nothing was measured.
    pub trials: Vec<Trial>,
    /// Seconds of the choice and the conversion, including all trials.
    pub seconds: f64,
    /// The part of `seconds` in which kernels were compiled and loaded for the first time; another choice on this
    /// machine does not need it.
    pub first_use_seconds: f64,
}

impl ChoiceReport {
    /// A report without the seconds, which [`choose`](super::choose) sets later.
    pub(super) fn new(format: &'static str, basis: Basis, reason: String, trials: Vec<Trial>) -> Self {
        Self { format, basis, reason, trials, seconds: 0.0, first_use_seconds: 0.0 }
    }

    fn time(&self, format: &str) -> Option<f64> {
        self.trials.iter().find(|trial| trial.format == format)?.product_seconds
    }

    /// Seconds that each product saves compared to CSR; zero if CSR was chosen.
    pub fn saved(&self) -> f64 {
        match (self.time("csr"), self.time(self.format)) {
            (Some(csr), Some(chosen)) => csr - chosen,
            _ => 0.0,
        }
    }

    /// The number of products after which the choice has paid for itself; `None` if it never does, and 0 if CSR was
    /// kept without a measurement.
    pub fn pays_after(&self) -> Option<u64> {
        self.paid_after(self.seconds)
    }

    /// As [`pays_after`](Self::pays_after), if all kernels have been compiled before.
    pub fn pays_again_after(&self) -> Option<u64> {
        self.paid_after(self.seconds - self.first_use_seconds)
    }

    fn paid_after(&self, seconds: f64) -> Option<u64> {
        match self.saved() {
            saved if saved > 0.0 => Some((seconds / saved).ceil() as u64),
            _ if self.basis == Basis::Model => Some(0),
            _ => None,
        }
    }
}

impl fmt::Display for ChoiceReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let when = match self.basis {
            Basis::Model => return write!(f, "{}: {}", self.format, self.reason),
            Basis::Measured => "",
            Basis::Remembered => " (from an earlier measurement)",
        };
        let others: Vec<String> = self
            .trials
            .iter()
            .filter(|trial| trial.format != self.format)
            .map(|trial| match trial.product_seconds {
                Some(time) => format!("{} {}", trial.format, seconds(time)),
                None => format!("{} refused", trial.format),
            })
            .collect();
        let own = self.time(self.format).map_or_else(String::new, seconds);
        let all: Vec<String> = std::iter::once(format!("{own} a product")).chain(others).collect();
        write!(f, "{}: {}{when}", self.format, all.join(", "))?;
        write!(f, "; choosing took {}", seconds(self.seconds))?;
        let compiled = self.first_use_seconds > 0.1 * self.seconds;
        if compiled {
            write!(f, " ({} of it for kernels used for the first time)", seconds(self.first_use_seconds))?;
        }
        match (self.pays_after(), self.pays_again_after()) {
            (Some(first), Some(again)) if compiled => {
                write!(f, ", repaid after {first} products, or after {again} once the kernels are compiled")
            }
            (Some(products), _) => write!(f, ", repaid after {products} products"),
            (None, _) => Ok(()),
        }
    }
}
