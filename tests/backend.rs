//! The cases common to all backends, on the host.

#[path = "common/backend.rs"]
mod cases;
#[macro_use]
#[path = "common/on_host.rs"]
mod on_host;
#[path = "common/random.rs"]
mod random;

use residua::Host;

cases::each_case!(on_host);

#[test]
fn one_thread_does_it_too() {
    rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap().install(|| cases::all_cases(&Host));
}
