//! Matrix Market files: reading and writing.
