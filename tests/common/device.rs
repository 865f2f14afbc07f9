//! The CUDA device for tests, or a printed skip. `RESIDUA_TEST_DEVICE` names another device than cuda:0,
//! `RESIDUA_NEED_DEVICE=1` makes a skip a failure.

use residua::Cuda;

/// The device, if there is one.
pub fn device() -> Option<Cuda> {
    let ordinal = std::env::var("RESIDUA_TEST_DEVICE").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    match Cuda::new(ordinal) {
        Ok(device) => Some(device),
        Err(error) => {
            let needed = std::env::var_os("RESIDUA_NEED_DEVICE").is_some_and(|value| value == "1");
            assert!(!needed, "RESIDUA_NEED_DEVICE is set and there is no device: {error}");
            eprintln!("SKIPPED, nothing was tested on a device: {error}");
            None
        }
    }
}
