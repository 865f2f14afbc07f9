//! The host as a backend. The same cases run on every backend.

#[path = "common/backend.rs"]
mod common;

use residua::Host;

macro_rules! cases {
    ($($name:ident),*) => {$(
        #[test]
        fn $name() {
            common::$name(&Host);
        }
    )*};
}
cases!(
    memory_cases,
    part_cases,
    recording_cases,
    mailbox_cases,
    vector_cases,
    interleaved_cases,
    product_cases,
    infinite_entries_stay_in_their_rows,
    refusals
);

#[test]
fn one_thread_does_it_too() {
    rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap().install(|| common::all_cases(&Host));
}
