//! Every format of the table on ragged matrices, against a sequential reference. The bodies are generic over the
//! backend, so that a device runs the same cases.

mod choice;
#[path = "../common/collection.rs"]
mod collection;
#[path = "../common/formats/mod.rs"]
mod common;
mod compressed;
#[path = "../common/compressed_cases.rs"]
mod compressed_cases;
mod conversions;
mod entries;
mod products;
#[path = "../common/random.rs"]
mod random;
mod refusals;

use common::cases;
