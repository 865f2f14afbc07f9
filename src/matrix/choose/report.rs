//! What a choice came to.

use crate::units::seconds;
use std::fmt;

/// A format that was tried.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Trial {
    /// The format's name.
    pub format: &'static str,
    /// Seconds of converting from CSR, compiling kernels for the first time included; zero for CSR itself.
    pub convert_seconds: f64,
    /// Seconds of one product; `None` where there was none.
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

/// On what a choice rests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Basis {
    /// No other format promises more than its trial would cost.
    Model,
    /// Products were measured here and now.
    Measured,
    /// An earlier trial of the same pattern on the same device was remembered.
    Remembered,
}

/// What was chosen, why, at what cost.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ChoiceReport {
    /// The format.
    pub format: &'static str,
    /// On what the choice rests.
    pub basis: Basis,
    /// The model's reason, in a sentence.
    pub reason: String,
    /// What was measured, now or earlier, CSR first; empty where nothing was.
    pub trials: Vec<Trial>,
    /// Seconds that the choice and the conversion took, all trials included.
    pub seconds: f64,
    /// Those of them in which kernels were compiled and loaded for the first time; another choice on this machine does
    /// not take them.
    pub first_use_seconds: f64,
}

impl ChoiceReport {
    /// Of a choice that [`choose`](super::choose) has still to time.
    pub(super) fn new(format: &'static str, basis: Basis, reason: String, trials: Vec<Trial>) -> Self {
        Self { format, basis, reason, trials, seconds: 0.0, first_use_seconds: 0.0 }
    }

    fn time(&self, format: &str) -> Option<f64> {
        self.trials.iter().find(|trial| trial.format == format)?.product_seconds
    }

    /// Seconds that each product saves against CSR; zero where CSR was chosen.
    pub fn saved(&self) -> f64 {
        match (self.time("csr"), self.time(self.format)) {
            (Some(csr), Some(chosen)) => csr - chosen,
            _ => 0.0,
        }
    }

    /// The number of products after which the choice has paid for itself; `None` where it never does, and 0 where it
    /// cost nothing worth telling because CSR was kept unmeasured.
    pub fn pays_after(&self) -> Option<u64> {
        self.paid_after(self.seconds)
    }

    /// As [`pays_after`](Self::pays_after), where all kernels are there before.
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
            Basis::Measured => "measured",
            Basis::Remembered => "measured earlier",
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
        write!(f, "{}, {when}: {own} a product ({})", self.format, others.join(", "))?;
        write!(f, "; choosing took {}", seconds(self.seconds))?;
        let compiled = self.first_use_seconds > 0.1 * self.seconds;
        if compiled {
            write!(f, " ({} of it for kernels used for the first time)", seconds(self.first_use_seconds))?;
        }
        match (self.pays_after(), self.pays_again_after()) {
            (Some(first), Some(again)) if compiled => {
                write!(f, ", which {first} products pay for, {again} where the kernels are there")
            }
            (Some(products), _) => write!(f, ", which {products} products pay for"),
            (None, _) => Ok(()),
        }
    }
}
