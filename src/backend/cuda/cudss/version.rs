//! Releases of cuDSS, with the codes of settings and phases in each.

use std::ffi::c_int;
use std::fmt;

/// A release, as the library reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Version {
    pub(super) major: c_int,
    pub(super) minor: c_int,
    pub(super) patch: c_int,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// The codes that differ between releases; `None` for a setting that a release does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Numbers {
    // Parameters of a configuration.
    pub(super) pivot_type: c_int,
    pub(super) nd_levels: Option<c_int>,
    pub(super) deterministic: Option<c_int>,
    /// The setting that selects a matching of rows with columns. Before 0.8 no matching is used unless one is
    /// requested.
    pub(super) matching: Option<c_int>,
    /// The value of `pivot_type` for Bunch-Kaufman pivots.
    pub(super) bunch_kaufman: Option<c_int>,
    // Parameters of the data object.
    pub(super) memory_estimates: c_int,
    /// The setting for the parts of the caller's ordering.
    pub(super) parts: Option<c_int>,
    pub(super) flops: Option<c_int>,
    // Phases of a solve.
    pub(super) analysis: c_int,
    pub(super) factorisation: c_int,
    pub(super) refactorisation: c_int,
    pub(super) solve: c_int,
    /// True if the description of a matrix has a separate type for offsets.
    pub(super) offset_type: bool,
}

// Codes that are the same in all releases.
pub(super) const INFO: c_int = 0;
pub(super) const ENTRIES: c_int = 1;
pub(super) const USER_PERMUTATION: c_int = 9;
/// The value of `matching` for no matching.
pub(super) const NO_MATCHING: c_int = 0;

/// The oldest release whose codes are known here, and the last major one.
const OLDEST: (c_int, c_int) = (0, 5);
const LAST_MAJOR: c_int = 1;

impl Version {
    /// Returns the codes of this release, from the headers of 0.5.0, 0.6.0, 0.7.1, 0.8.0 and 1.0.0.
    ///
    /// # Errors
    /// A message if the release is too old or too new.
    pub(super) fn numbers(self) -> Result<Numbers, String> {
        let of_0_8 = Numbers {
            pivot_type: 7,
            nd_levels: Some(17),
            deterministic: Some(24),
            matching: Some(3),
            bunch_kaufman: Some(6),
            memory_estimates: 13,
            parts: Some(21),
            flops: Some(26),
            analysis: 3,
            factorisation: 4,
            refactorisation: 8,
            solve: 1008,
            offset_type: true,
        };
        let of_0_7 = Numbers {
            pivot_type: 8,
            nd_levels: Some(18),
            deterministic: Some(25),
            matching: None,
            bunch_kaufman: None,
            memory_estimates: 12,
            // 0.7.0 defines the number of this parameter, but only 0.7.1 implements it.
            parts: (self.patch >= 1).then_some(20),
            flops: None,
            offset_type: false,
            ..of_0_8
        };
        let of_0_6 = Numbers { deterministic: None, parts: None, solve: 112, ..of_0_7 };
        let of_0_5 = Numbers {
            pivot_type: 7,
            nd_levels: None,
            analysis: 1,
            factorisation: 2,
            refactorisation: 4,
            solve: 8,
            ..of_0_6
        };
        match (self.major, self.minor) {
            (0, 5) => Ok(of_0_5),
            (0, 6) => Ok(of_0_6),
            (0, 7) => Ok(of_0_7),
            (0, 8..) | (LAST_MAJOR, _) => Ok(of_0_8),
            (major, minor) if (major, minor) < OLDEST => {
                Err(format!("it is release {self}, but residua needs {}.{} or later", OLDEST.0, OLDEST.1))
            }
            _ => {
                Err(format!("it is release {self}, but residua supports releases only up to {LAST_MAJOR}.x"))
            }
        }
    }
}

/// Returns the library's name of a status code.
pub(super) fn words(status: c_int) -> String {
    let name = match status {
        1 => "CUDSS_STATUS_NOT_INITIALIZED",
        2 => "CUDSS_STATUS_ALLOC_FAILED",
        3 => "CUDSS_STATUS_INVALID_VALUE",
        4 => "CUDSS_STATUS_NOT_SUPPORTED",
        5 => "CUDSS_STATUS_EXECUTION_FAILED",
        6 => "CUDSS_STATUS_INTERNAL_ERROR",
        7 => "CUDSS_STATUS_IR_FAILED",
        other => return format!("status {other}"),
    };
    name.to_string()
}

/// The status for failed memory allocation.
pub(super) const ALLOC_FAILED: c_int = 2;

#[cfg(test)]
mod tests {
    use super::*;

    fn version(major: c_int, minor: c_int, patch: c_int) -> Version {
        Version { major, minor, patch }
    }

    #[test]
    fn each_release_has_the_numbers_of_its_header() {
        let of = |major, minor, patch| version(major, minor, patch).numbers().unwrap();
        let phases = |n: Numbers| [n.analysis, n.factorisation, n.refactorisation, n.solve];
        assert_eq!(phases(of(0, 5, 0)), [1, 2, 4, 8]);
        assert_eq!(phases(of(0, 6, 0)), [3, 4, 8, 112]);
        assert_eq!(phases(of(0, 7, 1)), [3, 4, 8, 1008]);
        assert_eq!(phases(of(1, 0, 0)), [3, 4, 8, 1008]);
        assert_eq!((of(0, 7, 0).parts, of(0, 7, 1).parts, of(0, 8, 0).parts), (None, Some(20), Some(21)));
        assert_eq!((of(0, 5, 0).pivot_type, of(0, 6, 0).pivot_type, of(0, 8, 0).pivot_type), (7, 8, 7));
        assert_eq!((of(0, 7, 1).deterministic, of(1, 0, 0).deterministic), (Some(25), Some(24)));
        assert_eq!((of(0, 7, 1).memory_estimates, of(0, 8, 0).memory_estimates), (12, 13));
        assert!(!of(0, 7, 1).offset_type && of(0, 8, 0).offset_type);
        assert_eq!(of(1, 3, 2), of(1, 0, 0));
    }

    #[test]
    fn too_old_and_too_new_are_told() {
        assert!(
            version(0, 4, 0).numbers().unwrap_err().contains("release 0.4.0, but residua needs 0.5 or later")
        );
        assert!(version(2, 0, 0).numbers().unwrap_err().contains("up to 1.x"));
        assert_eq!(words(6), "CUDSS_STATUS_INTERNAL_ERROR");
        assert_eq!(words(99), "status 99");
    }
}
