//! The results of the analysis as sentences.

use super::{Definiteness, Kind, Look, Triangle};
use crate::report::count;

/// Scaling is recommended for magnitudes that span at least this many decades.
const WIDE: f64 = 4.0;

/// At most this many rows or columns are listed.
const NAMED: usize = 8;

fn n(number: usize) -> String {
    count(number as u64)
}

/// Lists the first few of some numbers, counted from 1 as in a file.
fn named(numbers: &[u32]) -> String {
    let mut text: Vec<String> = numbers.iter().take(NAMED).map(|&k| (u64::from(k) + 1).to_string()).collect();
    if numbers.len() > NAMED {
        text.push(format!("and {} more", n(numbers.len() - NAMED)));
    }
    text.join(", ")
}

fn plural<'a>(number: usize, one: &'a str, several: &'a str) -> &'a str {
    if number == 1 { one } else { several }
}

impl Look {
    /// Describes the matrix and what follows for solving, in a sentence or two each. Rows and columns are counted from
    /// 1, as in files.
    pub fn words(&self) -> Vec<String> {
        let parts = [
            self.about_entries(),
            self.about_symmetry(),
            self.about_definiteness(),
            self.about_dominance(),
            self.about_rank(),
            self.about_blocks(),
            self.about_points(),
            self.about_long_lines(),
            self.about_scale(),
        ];
        parts.into_iter().flatten().collect()
    }

    fn about_entries(&self) -> Option<String> {
        let facts = &self.facts;
        if let Some((row, column)) = facts.first_non_finite {
            return Some(format!(
                "{} {} infinite or not a number, the first in row {}, column {}: nothing can be solved with them.",
                n(facts.non_finite),
                plural(facts.non_finite, "entry is", "entries are"),
                row + 1,
                column + 1
            ));
        }
        let empty = facts.empty_rows + facts.empty_columns;
        (empty > 0).then(|| {
            format!(
                "{} {} and {} {} empty: an empty row is an equation 0 = b_i, an empty column an unknown without an \
                 equation.",
                n(facts.empty_rows),
                plural(facts.empty_rows, "row", "rows"),
                n(facts.empty_columns),
                plural(facts.empty_columns, "column are", "columns are")
            )
        })
    }

    fn about_symmetry(&self) -> Option<String> {
        let rounding = if self.exact { "" } else { " up to rounding" };
        Some(match self.kind {
            Kind::Rectangular if self.rows > self.columns => {
                "More equations than unknowns: most right-hand sides have no solution, only a least-squares solution."
                    .into()
            }
            Kind::Rectangular => {
                "More unknowns than equations: there are many solutions or none; lsmr finds the one of least \
                 norm.".into()
            }
            Kind::Symmetric => format!("Symmetric{rounding}."),
            Kind::Hermitian => format!("Hermitian{rounding}."),
            Kind::ComplexSymmetric => {
                format!("Complex symmetric{rounding}, not Hermitian: a factorisation takes half the work, but \
                    conjugate gradients do not apply.")
            }
            Kind::SkewSymmetric => format!("Skew-symmetric{rounding}: all eigenvalues are imaginary."),
            Kind::SymmetricPattern => {
                "Not symmetric, but its pattern is: it needs methods for unsymmetric matrices, and can use orderings \
                 for symmetric ones."
                    .into()
            }
            Kind::Unsymmetric => "Not symmetric, and neither is its pattern.".into(),
        })
    }

    fn about_definiteness(&self) -> Option<String> {
        let m = if self.m_matrix_signs {
            " With nothing positive off the diagonal it is an M-matrix."
        } else {
            ""
        };
        Some(match self.definiteness {
            Definiteness::Positive => format!(
                "Positive definite, because it is diagonally dominant with a positive diagonal: conjugate gradients \
                 and Cholesky's factorisation work.{m}"
            ),
            Definiteness::Negative => "Negative definite: solve -A x = -b by conjugate gradients.".into(),
            Definiteness::PositiveOrZero if self.has_constant_null_vector() => {
                "No eigenvalue is negative.".into()
            }
            Definiteness::PositiveOrZero => {
                "No eigenvalue is negative, because it is diagonally dominant; one may be zero.".into()
            }
            Definiteness::Indefinite => {
                let mut reason = self.why_indefinite();
                reason.replace_range(..1, "T");
                format!("{reason}. Conjugate gradients and Cholesky's factorisation fail; MINRES and L D L^T work.")
            }
            Definiteness::PerhapsPositive => {
                "Perhaps positive definite: its diagonal and all its minors of order 2 allow it; conjugate gradients \
                 and Cholesky's factorisation report it if it is not."
                    .into()
            }
            Definiteness::PerhapsNegative => "Perhaps negative definite: try -A x = -b.".into(),
            Definiteness::Unknown => {
                let gaps = self.facts.diagonal_zero;
                return (self.is_square() && gaps > 0 && self.structure.rank == self.rows).then(|| {
                    format!(
                        "{} diagonal {} zero or missing: rows must be exchanged before an elimination (a matching \
                         finds an order).",
                        n(gaps),
                        plural(gaps, "entry is", "entries are")
                    )
                });
            }
        })
    }

    fn about_dominance(&self) -> Option<String> {
        if self.kind.is_hermitian() || !(self.row_dominant() || self.column_dominant()) || self.rows == 0 {
            return None;
        }
        let what = if self.row_dominant() { "rows" } else { "columns" };
        let signs = if self.m_matrix_signs { " with the signs of an M-matrix" } else { "" };
        Some(format!(
            "Diagonally dominant by {what}{signs}: elimination needs no pivoting, and simple preconditioners converge."
        ))
    }

    fn about_rank(&self) -> Option<String> {
        let structure = &self.structure;
        if self.is_square() && self.is_structurally_singular() {
            let missing = self.rows - structure.rank;
            return Some(format!(
                "Structurally singular: for any values, the rank is at most {}. {} {} no column to be matched with \
                 (such as row {}), and column {} has no row. If b is not consistent, there is only a least-squares \
                 solution.",
                n(structure.rank),
                n(missing),
                plural(missing, "row has", "rows have"),
                named(&structure.unmatched_rows),
                named(&structure.unmatched_columns),
            ));
        }
        if !self.is_square() && structure.rank < self.rows.min(self.columns) {
            return Some(format!(
                "Structurally rank-deficient: the rank is at most {} of {}.",
                n(structure.rank),
                n(self.rows.min(self.columns))
            ));
        }
        (self.is_square() && self.has_constant_null_vector()).then(|| {
            let each = if structure.components > 1 { " in each component" } else { "" };
            format!(
                "Singular: all rows add up to zero, so constants{each} are mapped to zero. A solution is known up to a constant{each}."
            )
        })
    }

    fn about_blocks(&self) -> Option<String> {
        let structure = &self.structure;
        match structure.triangle {
            Triangle::Diagonal => return Some("Diagonal: a division solves.".into()),
            Triangle::Lower => return Some("Lower triangular: forward substitution solves.".into()),
            Triangle::Upper => return Some("Upper triangular: backward substitution solves.".into()),
            Triangle::Permuted => {
                return Some("Triangular in another order of rows and columns: substitution solves.".into());
            }
            Triangle::None => {}
        }
        if structure.components > 1 {
            return Some(format!(
                "It consists of {} independent systems; the largest square block has {} rows.",
                n(structure.components),
                n(structure.largest_square)
            ));
        }
        (structure.square_blocks > 1).then(|| {
            format!(
                "Block triangular: {} square blocks, the largest of {} rows, can be solved one after the other.",
                n(structure.square_blocks),
                n(structure.largest_square)
            )
        })
    }

    fn about_points(&self) -> Option<String> {
        (self.block_size > 1)
            .then(|| format!("Blocks of {0} x {0}: {0} unknowns belong to a point.", self.block_size))
    }

    fn about_long_lines(&self) -> Option<String> {
        let by = &self.by_column;
        (by.dense_rows + by.dense_columns > 0).then(|| {
            format!(
                "{} {} and {} {} far longer than others (up to {} and {} entries): orderings put them last, and A^T A \
                 would be dense.",
                n(by.dense_rows),
                plural(by.dense_rows, "row", "rows"),
                n(by.dense_columns),
                plural(by.dense_columns, "column is", "columns are"),
                n(by.longest_row),
                n(by.longest_column)
            )
        })
    }

    fn about_scale(&self) -> Option<String> {
        let (rows, columns) = (self.row_decades(), self.column_decades());
        (rows.max(columns) >= WIDE).then(|| {
            format!(
                "The largest entries of rows differ by {rows:.0} decades, those of columns by {columns:.0}: ||b - A x|| \
                 says little about rows with small entries, unless each row is divided by its norm (row-wise residual)."
            )
        })
    }
}
