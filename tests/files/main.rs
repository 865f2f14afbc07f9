//! Binary files: data is read back as it was written, by whatever program, and damaged files are refused.

#[path = "../common/archives.rs"]
mod archives;
mod damage;
mod entries;
mod others;
mod reading;
#[path = "../market/scratch.rs"]
#[allow(dead_code)]
mod scratch;
mod writing;
