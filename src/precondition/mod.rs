//! Preconditioners: cheap approximations of the inverse.
