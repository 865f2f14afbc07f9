//! What the host has no kernels for: `direct` factorises, and `multigrid` has the classical interpolation.

use super::Host;
use crate::backend::{ClassicalSteps, FactorSteps};

impl FactorSteps for Host {}

impl ClassicalSteps for Host {}
