//! Chooses the next kind of factorisation.

use super::super::analysis;
use super::super::factor::Factor;
use super::super::options::Kind;
use super::super::report::Reason;
use super::super::steps::caught;
use super::Direct;
use crate::direct::Factorable;
use crate::work;
use std::time::Instant;

/// For a singular matrix of up to this many rows, a dense factorisation is faster than another LU and its 360
/// iterations of GMRES.
const SOONER_DENSE: usize = 300;

impl<T: Factorable> Direct<T> {
    /// Sets a deadline: kinds that are expected to end after it are not started. (A library that is running can't be
    /// stopped.)
    pub(crate) fn until(&mut self, deadline: Option<Instant>) {
        self.deadline = deadline;
    }

    /// Lowers the limits on multiplications, of any factorisation and of a dense one.
    pub(crate) fn allow(&mut self, flops: f64, dense: f64) {
        self.options.flop_limit = self.options.flop_limit.min(flops);
        self.options.dense_flop_limit = self.options.dense_flop_limit.min(dense);
    }

    /// The kinds that failed and would fail even with more memory and time.
    pub(crate) fn failed(&self) -> Vec<Kind> {
        let failed = self.reasons.iter().filter(|(kind, reason)| reason.is_final(*kind));
        let others = |kind: Kind| self.reasons.iter().all(|(k, reason)| *k != kind || reason.is_final(kind));
        failed.map(|(kind, _)| *kind).filter(|&kind| others(kind)).collect()
    }

    /// Returns why there is not enough time for a kind, or `None` if there is.
    fn too_late(&mut self, kind: Kind) -> Option<Reason> {
        let left = self.deadline?.saturating_duration_since(Instant::now()).as_secs_f64();
        let Self { a, options, structures, .. } = self;
        // If the forecast fails, the factorisation itself reports why.
        let seconds = caught(|| analysis::forecast(a, kind, options, structures)).ok()?.seconds();
        (seconds > left).then_some(Reason::TooLate { seconds, left })
    }

    /// Returns whether this LU is to be skipped: an earlier kind has found the matrix singular, it is small, and the
    /// dense QR that comes later in the chain is faster than another LU and the refinement that would follow it in
    /// vain.
    fn is_for_dense(&self, kind: Kind) -> bool {
        let is_lu = matches!(kind, Kind::FrontalLu | Kind::Lu | Kind::SupernodalLu);
        let is_singular = |reason: &Reason| {
            matches!(reason, Reason::NumericallySingular | Reason::StructurallySingular { .. })
        };
        is_lu
            && self.a.rows() <= SOONER_DENSE
            && self.chain[self.at..].contains(&Kind::DenseQr)
            && self.reasons.iter().any(|(_, reason)| is_singular(reason))
    }

    /// Returns whether there are kinds left to try.
    pub(super) fn has_more(&mut self) -> bool {
        if self.at == 1 && self.chain == [Kind::Banded] && self.options.kind == Kind::Auto {
            let Self { a, options, structures, chain, .. } = self;
            chain.extend(analysis::behind_band(a, options, structures));
        }
        self.at < self.chain.len()
    }

    /// Tries the next kinds until one gives a factor, or `going` returns false.
    pub(super) fn factorise(&mut self, going: &mut dyn FnMut() -> bool) {
        let start = Instant::now();
        self.inverse = None;
        self.factor = None;
        while self.factor.is_none() && self.has_more() {
            let kind = self.chain[self.at];
            let again = self.chain[..self.at].contains(&kind);
            if !going() {
                self.reasons.push((kind, Reason::Stopped));
                self.at = self.chain.len();
                break;
            }
            self.at += 1;
            if self.inconsistent && !matches!(kind, Kind::Regularised | Kind::DenseQr) {
                continue;
            }
            if self.is_for_dense(kind) {
                continue;
            }
            if (kind == Kind::SupernodalLu || (kind == Kind::Lu && again)) && self.is_structurally_singular()
            {
                // If rows have no matching column, another choice of pivots does not help.
                continue;
            }
            if let Some(reason) = work::looking(|| self.too_late(kind)) {
                self.reasons.push((kind, reason));
                continue;
            }
            let factor = work::looking(|| {
                Factor::new(&self.a, kind, again, &self.options, &mut self.structures, going)
            });
            match factor {
                Ok(factor) => self.factor = Some(factor),
                Err(reason) => {
                    if reason == Reason::Stopped {
                        self.at = self.chain.len();
                    }
                    self.reasons.push((kind, reason));
                }
            }
        }
        self.seconds += start.elapsed().as_secs_f64();
    }
}
