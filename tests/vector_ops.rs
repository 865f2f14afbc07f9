//! Vector operations that read their scalars from the backend's memory, on the host. The same cases run on every
//! backend.

#[path = "common/vector_ops/mod.rs"]
mod cases;
#[macro_use]
#[path = "common/on_host.rs"]
mod on_host;
#[path = "common/random.rs"]
mod random;

cases::each_vector_case!(on_host);

/// Sums do not depend on the number of threads, so all cases pass with one.
#[test]
fn one_thread_does_it_too() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    pool.install(|| {
        cases::updates_of_all_types(&residua::Host);
        cases::basis_cases(&residua::Host);
    });
}
