//! The host's primitives beside their sequential twins. The same cases run on every backend.

#[path = "common/primitives/mod.rs"]
mod common;
#[path = "common/random.rs"]
mod random;

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
    reduce_cases,
    segmented_reduce_cases,
    reduce_by_key_cases,
    scan_cases,
    segmented_scan_cases,
    histogram_cases,
    offsets_cases,
    select_cases,
    radix_sort_cases,
    segmented_sort_cases,
    merge_cases,
    merge_sort_cases,
    gather_scatter_cases,
    gather_sum_cases,
    pack_cases,
    same_bits_cases,
    refusals
);

#[test]
fn one_thread_and_several_agree() {
    for threads in [1, 3] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| common::all_cases(&Host));
    }
}
