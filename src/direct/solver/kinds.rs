//! Which kind of factorisation comes next.

use super::super::analysis;
use super::super::factor::{Factor, caught};
use super::super::options::Kind;
use super::super::report::Reason;
use super::Direct;
use crate::direct::Factorable;
use crate::work;
use std::time::Instant;

/// Rows of a singular matrix up to which a dense factorisation is made sooner than one more LU and 360 iterations
/// around it.
const SOONER_DENSE: usize = 300;

impl<T: Factorable> Direct<T> {
    /// Kinds that are expected to take longer than until then are not begun. (A library that has begun can't be asked
    /// to stop.)
    pub(crate) fn until(&mut self, deadline: Option<Instant>) {
        self.deadline = deadline;
    }

    /// A factorisation, and a dense one, may take so many multiplications, and no more than it might before.
    pub(crate) fn allow(&mut self, flops: f64, dense: f64) {
        self.options.flop_limit = self.options.flop_limit.min(flops);
        self.options.dense_flop_limit = self.options.dense_flop_limit.min(dense);
    }

    /// Kinds that failed, and would with more memory and time.
    pub(crate) fn failed(&self) -> Vec<Kind> {
        let failed = self.reasons.iter().filter(|(kind, reason)| reason.is_final(*kind));
        let others = |kind: Kind| self.reasons.iter().all(|(k, reason)| *k != kind || reason.is_final(kind));
        failed.map(|(kind, _)| *kind).filter(|&kind| others(kind)).collect()
    }

    /// Why there is no time for a kind, where there is none.
    fn too_late(&mut self, kind: Kind) -> Option<Reason> {
        let left = self.deadline?.saturating_duration_since(Instant::now()).as_secs_f64();
        let Self { a, options, structures, .. } = self;
        // What has no forecast is refused in its own words.
        let seconds = caught(|| analysis::forecast(a, kind, options, structures)).ok()?.seconds();
        (seconds > left).then_some(Reason::TooLate { seconds, left })
    }

    /// Whether a dense factorisation comes behind this kind of LU which is made sooner than another LU of a small
    /// singular matrix and the iterations around it that lead nowhere.
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

    /// The next kind that gives a factor, as long as `going` says so.
    pub(super) fn factorise(&mut self, going: &mut dyn FnMut() -> bool) {
        let start = Instant::now();
        self.inverse = None;
        self.factor = None;
        while self.factor.is_none() && self.at < self.chain.len() {
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
                // Where rows have no column, no other choice of pivots gives them one.
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
