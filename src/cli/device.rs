//! Where to compute.

use super::Failure;
pub(crate) use crate::solver::Opened as Device;

/// What a report adds to the name of the CPU, where a GPU was looked for: why none was taken. What to install is told
/// by `residua devices`.
pub(crate) fn not_on_gpu(reason: Option<&str>) -> String {
    let first = |reason: &str| format!("; not on a GPU: {}", reason.split(';').next().unwrap_or(reason));
    reason.map(first).unwrap_or_default()
}

/// The name of a device: auto, cpu, cuda (the first one) or cuda:N.
pub(crate) fn parse(text: &str) -> Result<String, String> {
    match text.parse::<crate::solver::Device>() {
        Ok(_) => Ok(text.to_string()),
        Err(_) => Err("choose auto, cpu, cuda or cuda:N".into()),
    }
}

/// To be called before anything else of a command that uses one stream. The driver prepares eight connections to a
/// device; with one it opens in 0.16 s instead of 0.23, and the process ends 0.03 s sooner. What the user set stays.
#[cfg(feature = "cuda")]
pub(crate) fn ask_for_one_connection() {
    const NAME: &str = "CUDA_DEVICE_MAX_CONNECTIONS";
    if std::env::var_os(NAME).is_none() {
        // SAFETY: the process has no other thread yet that could read the environment meanwhile.
        unsafe { std::env::set_var(NAME, "1") };
    }
}

/// The device of that name, see [`residua::solver::Device::open`].
pub(crate) fn open(name: &str) -> Result<Device, Failure> {
    Ok(name.parse::<crate::solver::Device>()?.open()?)
}

/// Why the CPU will probably have solved this system before a GPU has started, if so.
#[cfg(feature = "cuda")]
pub(crate) fn too_small(header: &crate::market::Header) -> Option<String> {
    let general = header.symmetry() == crate::market::Symmetry::General;
    let entries = header.entries() * if general { 1 } else { 2 };
    crate::solver::Device::too_small(header.rows(), entries as usize, 1)
}
