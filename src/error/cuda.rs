//! The ways in which CUDA can be missing, unsuitable or broken. The type exists in every build, so that a program can
//! say why it uses the CPU.

/// The reason why a CUDA device cannot be used, or stopped working. Each message says what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CudaError {
    /// The program was built without the feature `cuda`.
    #[error("this build of residua has no CUDA support; build it with the feature `cuda`")]
    NotBuilt,
    /// The driver's library could not be loaded.
    #[error("no NVIDIA driver: libcuda.so.1 was not found; install the driver (`nvidia-smi` must work)")]
    NoDriver,
    /// A library with the driver's name was loaded, but it does not work.
    #[error(
        "the NVIDIA driver does not start ({cause}); check that `nvidia-smi` works, and reinstall the driver if not"
    )]
    BrokenDriver {
        /// The driver's message.
        cause: String,
    },
    /// The driver is older than the functions that residua calls.
    #[error("the NVIDIA driver supports CUDA {found}, but residua needs {needed}; update the driver")]
    DriverTooOld {
        /// The version that was found.
        found: String,
        /// The version that is needed.
        needed: &'static str,
    },
    /// The driver works, but there is no device.
    #[error("the NVIDIA driver finds no device; check `nvidia-smi` and the variable CUDA_VISIBLE_DEVICES")]
    NoDevice,
    /// There is no device with this number.
    #[error("there is no device cuda:{ordinal}; the driver finds {count}, numbered from 0")]
    NoSuchDevice {
        /// The number that was requested.
        ordinal: usize,
        /// The number of devices.
        count: usize,
    },
    /// Another process holds the device, or its compute mode forbids it.
    #[error(
        "{device} is busy or reserved ({cause}); end the process that holds it, or choose another device"
    )]
    Busy {
        /// Name and number of the device.
        device: String,
        /// The driver's message.
        cause: String,
    },
    /// The run-time compiler could not be found.
    #[error(
        "no CUDA run-time compiler (NVRTC); `pip install nvidia-cuda-nvrtc`, or install the CUDA toolkit and set \
             CUDA_HOME, or name the library in RESIDUA_NVRTC; looked in {searched}"
    )]
    NoCompiler {
        /// The places that were searched.
        searched: String,
    },
    /// The library of factorisations could not be found.
    #[error(
        "no cuDSS, which factorises on the GPU; `pip install nvidia-cudss-cu13` (or -cu12, as the driver has it), or \
             name the library in RESIDUA_CUDSS; looked in {searched}"
    )]
    NoDirectSolver {
        /// The places that were searched.
        searched: String,
    },
    /// A library with the right name was found, but it can't be used.
    #[error("cuDSS in {path} cannot be used: {cause}; `pip install --upgrade nvidia-cudss-cu13` (or -cu12)")]
    UnfitDirectSolver {
        /// The file.
        path: String,
        /// The reason.
        cause: String,
    },
    /// The run-time compiler does not support the chip, or the driver does not accept its output.
    #[error(
        "NVRTC {compiler} does not support {chip} ({cause}); install another release of nvidia-cuda-nvrtc, not newer \
         than the driver"
    )]
    CompilerMismatch {
        /// The compiler's version.
        compiler: String,
        /// The chip, as `sm_90`.
        chip: String,
        /// The reason.
        cause: String,
    },
    /// The archive of compiled kernels in a package is damaged or invalid. Missing kernels are compiled.
    #[error(
        "the compiled kernels in {path} are not used: {cause}; install residua again, or set RESIDUA_KERNELS=off"
    )]
    KernelArchive {
        /// The file.
        path: String,
        /// The reason.
        cause: String,
    },
    /// A kernel failed to compile, which is an error of residua.
    #[error("kernel {source_name} does not compile, please report it:\n{log}")]
    Compilation {
        /// The source's name.
        source_name: String,
        /// The compiler's log.
        log: String,
    },
    /// A kernel failed while it ran. The device cannot be used any more in this process.
    #[error(
        "a kernel failed on {device} ({cause}); the device is lost to this process: restart it, and report this"
    )]
    KernelFault {
        /// Name and number of the device.
        device: String,
        /// The driver's message.
        cause: String,
    },
    /// An operation that cannot be recorded, such as waiting for work.
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
        /// The driver's message.
        cause: String,
    },
}
