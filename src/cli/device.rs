//! Where to compute.

use super::Failure;
#[cfg(feature = "cuda")]
use residua::Cuda;

/// What a command computes on.
pub(crate) enum Device {
    /// The CPU, and why no other device was taken, where one was looked for.
    Cpu(Option<String>),
    /// An NVIDIA device.
    #[cfg(feature = "cuda")]
    Cuda(Cuda),
}

/// What a report adds to the name of the CPU, where a GPU was looked for: why none was taken. What to install is told
/// by `residua devices`.
pub(crate) fn not_on_gpu(reason: Option<&str>) -> String {
    let first = |reason: &str| format!("; not on a GPU: {}", reason.split(';').next().unwrap_or(reason));
    reason.map(first).unwrap_or_default()
}

/// The name of a device: auto, cpu, cuda (the first one) or cuda:N.
pub(crate) fn parse(text: &str) -> Result<String, String> {
    let known = ["auto", "cpu", "cuda"].contains(&text) || number(text).is_some();
    if known { Ok(text.to_string()) } else { Err("choose auto, cpu, cuda or cuda:N".into()) }
}

fn number(name: &str) -> Option<usize> {
    if name == "cuda" { Some(0) } else { name.strip_prefix("cuda:")?.parse().ok() }
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

/// The device of that name. `auto` takes the first CUDA device where everything that it needs is there, else the CPU.
#[cfg(feature = "cuda")]
pub(crate) fn open(name: &str) -> Result<Device, Failure> {
    match (name, number(name)) {
        (_, Some(ordinal)) => Ok(Device::Cuda(Cuda::new(ordinal)?)),
        ("auto", _) => Ok(match first_cuda() {
            Ok(device) => Device::Cuda(device),
            Err(reason) => Device::Cpu(Some(reason)),
        }),
        _ => Ok(Device::Cpu(None)),
    }
}

/// The first CUDA device, or why there is none to compute on.
#[cfg(feature = "cuda")]
fn first_cuda() -> Result<Cuda, String> {
    let told = |reason: String| reason.trim_start_matches("cuda: ").to_string();
    let device = Cuda::new(0).map_err(|error| told(error.to_string()))?;
    residua::backend::cuda::status().compiler.map_err(told)?;
    Ok(device)
}

/// The CPU; this build knows no other device.
#[cfg(not(feature = "cuda"))]
pub(crate) fn open(name: &str) -> Result<Device, Failure> {
    match number(name) {
        Some(_) => Err(Failure::Input(format!("{name}: this build has no CUDA (feature `cuda`)"))),
        None => Ok(Device::Cpu(None)),
    }
}

/// Bytes that a CPU moves while a GPU starts and does its part: 0.3 s at 16 GB/s (docs/benchmarks/cg.md).
#[cfg(feature = "cuda")]
const STARTING: f64 = 5e9;

/// Iterations for each point that a grid in two dimensions has in a row: even grids take 2, uneven meshes 8 and more.
#[cfg(feature = "cuda")]
const ITERATIONS: f64 = 3.0;

/// Why the CPU will probably have solved this system before a GPU has started, if so. An iteration moves 12 bytes an
/// entry.
#[cfg(feature = "cuda")]
pub(crate) fn too_small(header: &residua::market::Header) -> Option<String> {
    let entries = header.entries() as f64
        * if header.symmetry() == residua::market::Symmetry::General { 1.0 } else { 2.0 };
    let bytes = 12.0 * entries * ITERATIONS * (header.rows() as f64).sqrt();
    (bytes < STARTING).then(|| {
        "so small that the CPU is probably done before a GPU has started (--device cuda takes it)".into()
    })
}
