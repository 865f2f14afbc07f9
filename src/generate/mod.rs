//! Model problems.
