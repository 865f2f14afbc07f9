//! Matrix Market files that users may have: valid, unusual and broken ones.

#[path = "market/collection.rs"]
mod collection;
#[path = "market/faults.rs"]
mod faults;
#[path = "market/forms.rs"]
mod forms;
#[path = "market/scratch.rs"]
mod scratch;
#[path = "market/writing.rs"]
mod writing;
