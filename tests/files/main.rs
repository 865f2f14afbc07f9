//! Binary files: what is written comes back, whoever wrote it, and what is damaged is refused.

#[path = "../common/archives.rs"]
mod archives;
mod damage;
mod entries;
mod reading;
#[path = "../market/scratch.rs"]
#[allow(dead_code)]
mod scratch;
mod writing;
