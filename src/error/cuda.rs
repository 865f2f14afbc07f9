//! The ways in which CUDA can be absent, unfit or broken. The type exists in every build, so that a program can say
//! why it went on with the CPU.

/// Why a CUDA device cannot be used, or stopped working. Each message says what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CudaError {
    /// The program was built without the feature `cuda`.
    #[error("this build of residua has no CUDA support; build it with the feature `cuda`")]
    NotBuilt,
    /// The driver's library could not be loaded.
    #[error("no NVIDIA driver: libcuda.so.1 was not found; install the driver (`nvidia-smi` must work)")]
    NoDriver,
    /// A library of the driver's name was loaded, but it does not serve.
    #[error(
        "the NVIDIA driver does not start ({cause}); check that `nvidia-smi` works, and reinstall the driver if not"
    )]
    BrokenDriver {
        /// The driver's own words.
        cause: String,
    },
    /// The driver is older than the functions that residua calls.
    #[error("the NVIDIA driver serves CUDA {found} and residua needs {needed}; update the driver")]
    DriverTooOld {
        /// What the driver serves.
        found: String,
        /// What is needed.
        needed: &'static str,
    },
    /// The driver runs, and there is no device.
    #[error("the NVIDIA driver finds no device; check `nvidia-smi` and the variable CUDA_VISIBLE_DEVICES")]
    NoDevice,
    /// There is no device of this number.
    #[error("there is no device cuda:{ordinal}; the driver finds {count}, numbered from 0")]
    NoSuchDevice {
        /// The number that was asked for.
        ordinal: usize,
        /// How many there are.
        count: usize,
    },
    /// Another process holds the device, or its compute mode forbids it.
    #[error(
        "{device} is busy or reserved ({cause}); end the process that holds it, or choose another device"
    )]
    Busy {
        /// Name and number of the device.
        device: String,
        /// The driver's own words.
        cause: String,
    },
    /// The run-time compiler could not be found.
    #[error(
        "no CUDA run-time compiler (NVRTC); `pip install nvidia-cuda-nvrtc`, or install the CUDA toolkit and set \
             CUDA_HOME, or name the library in RESIDUA_NVRTC; looked in {searched}"
    )]
    NoCompiler {
        /// Where it was looked for.
        searched: String,
    },
    /// The library of factorisations could not be found.
    #[error(
        "no cuDSS, which factorises on the GPU; `pip install nvidia-cudss-cu13` (or -cu12, as the driver has it), or \
             name the library in RESIDUA_CUDSS; looked in {searched}"
    )]
    NoDirectSolver {
        /// Where it was looked for.
        searched: String,
    },
    /// A library of that name was found, and does not serve.
    #[error("cuDSS in {path} does not serve: {cause}; `pip install --upgrade nvidia-cudss-cu13` (or -cu12)")]
    UnfitDirectSolver {
        /// The file.
        path: String,
        /// Why.
        cause: String,
    },
    /// The run-time compiler does not know the chip, or the driver does not take what it made.
    #[error(
        "NVRTC {compiler} does not fit {chip} ({cause}); install another release of nvidia-cuda-nvrtc, not newer than the driver"
    )]
    CompilerMismatch {
        /// The compiler's version.
        compiler: String,
        /// The chip, as `sm_90`.
        chip: String,
        /// What was refused.
        cause: String,
    },
    /// The file of compiled kernels that packages carry is damaged, or none. What is missing is compiled.
    #[error(
        "the compiled kernels in {path} are not used: {cause}; install residua again, or set RESIDUA_KERNELS=off"
    )]
    KernelArchive {
        /// The file.
        path: String,
        /// What is wrong with it.
        cause: String,
    },
    /// A kernel's source was refused: an error of residua's own.
    #[error("kernel {source_name} does not compile, please report it:\n{log}")]
    Compilation {
        /// The source's name.
        source_name: String,
        /// The compiler's log.
        log: String,
    },
    /// A kernel failed while it ran. The driver gives the device up for this process.
    #[error(
        "a kernel failed on {device} ({cause}); the device is lost to this process: restart it, and report this"
    )]
    KernelFault {
        /// Name and number of the device.
        device: String,
        /// The driver's own words.
        cause: String,
    },
    /// Waiting work inside of a recording, or something else that cannot be recorded.
    #[error("{what} cannot be recorded: do it before or after the recording")]
    NotRecordable {
        /// The operation.
        what: &'static str,
    },
    /// Any other failed call of the driver.
    #[error("{call} failed on {device}: {cause}")]
    Call {
        /// The driver's function.
        call: &'static str,
        /// Name and number of the device.
        device: String,
        /// The driver's own words.
        cause: String,
    },
}
