//! Kernels as typed functions.
//!
//! [`kernels!`] declares the kernels of a file beside its name, with the types of their arguments. Each becomes a Rust
//! function of that name, so a wrong argument does not compile; the first call compiles and loads the file for the
//! types at hand, later ones find it in a table.

use super::compile::{Compiler, Unit};
use super::device::Device;
use super::driver::{call, words};
use super::slice::Slice;
use super::{Cuda, driver};
use crate::error::{CudaError, Result};
use crate::scalar::Element;
use cudarc::driver::sys::{self, CUfunction, CUmodule, CUresult};
use std::collections::HashMap;
use std::ffi::{CString, c_void};
use std::sync::{Mutex, PoisonError, RwLock};

/// Blocks of a launch, threads of a block, and shared memory beyond what the kernel declares.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    pub(super) blocks: u32,
    pub(super) threads: u32,
    pub(super) shared: u32,
    pub(super) class: u32,
}

impl Shape {
    pub(super) fn new(blocks: u32, threads: u32) -> Self {
        Shape { blocks, threads, shared: 0, class: 0 }
    }

    /// For the unit of this class ([`Unit::class`]).
    pub(super) fn class(mut self, class: u32) -> Self {
        self.class = class;
        self
    }
}

/// What a kernel can be given, and the bits that it receives.
pub(super) trait Argument {
    type Bits: Copy;
    fn bits(self) -> Self::Bits;
}

impl<T> Argument for &Slice<T> {
    type Bits = u64;
    fn bits(self) -> u64 {
        self.address()
    }
}

impl<T> Argument for &mut Slice<T> {
    type Bits = u64;
    fn bits(self) -> u64 {
        self.address()
    }
}

/// Null where there is none.
impl<A: Argument<Bits = u64>> Argument for Option<A> {
    type Bits = u64;
    fn bits(self) -> u64 {
        self.map_or(0, A::bits)
    }
}

impl<T: Element> Argument for T {
    type Bits = T;
    fn bits(self) -> T {
        self
    }
}

/// Declares kernels: the file, the types that it is compiled for (macro name, Rust parameter and bound), and the
/// arguments of each kernel in order. A launch of no blocks does nothing.
macro_rules! kernels {
    ($file:literal, types $types:tt; $($(#[$doc:meta])* fn $name:ident $arguments:tt;)*) => {
        $($crate::backend::cuda::launch::kernel! { $file, $types, $(#[$doc])* $name $arguments })*
    };
}

macro_rules! kernel {
    ($file:literal, ($($macro_name:ident: $bound:path),*), $(#[$doc:meta])* $name:ident ($($argument:ident: $type:ty),* $(,)?)) => {
        $(#[$doc])*
        #[allow(clippy::too_many_arguments, non_camel_case_types)]
        pub(super) fn $name<$($macro_name: $bound),*>(
            cuda: $crate::backend::cuda::Cuda,
            shape: $crate::backend::cuda::launch::Shape,
            $($argument: $type),*
        ) -> $crate::error::Result<()> {
            use $crate::backend::cuda::{compile::Unit, launch};
            let unit = const { Unit::new($file)$(.with(stringify!($macro_name), <$macro_name as $crate::scalar::Element>::NAME))* };
            let kernel = cuda.kernel(unit.class(shape.class), stringify!($name))?;
            $(let $argument = launch::Argument::bits($argument);)*
            let mut arguments: [*mut std::ffi::c_void; _] = [$((&raw const $argument).cast_mut().cast()),*];
            // SAFETY: the declaration above gives the arguments of the kernel of this name, in order; each pointer is
            // to a local that outlives the call.
            unsafe { launch::enqueue(cuda, kernel, shape, &mut arguments) }
        }
    };
}
pub(super) use {kernel, kernels};

/// A loaded kernel.
#[derive(Clone, Copy)]
pub(super) struct Kernel(CUfunction);

// SAFETY: a function's handle is valid in every thread, for as long as its module is loaded: here, for ever.
unsafe impl Send for Kernel {}
// SAFETY: as above.
unsafe impl Sync for Kernel {}

struct Module(CUmodule);

// SAFETY: as for `Kernel`.
unsafe impl Send for Module {}

/// The kernels that were used so far.
#[derive(Default)]
pub(super) struct Kernels {
    loaded: RwLock<HashMap<(Unit, &'static str), Kernel>>,
    modules: Mutex<HashMap<Unit, Module>>,
}

impl Cuda {
    /// The kernel `name` of a unit, compiled and loaded if this is its first use.
    pub(super) fn kernel(self, unit: Unit, name: &'static str) -> Result<Kernel> {
        let kernels = &self.0.kernels;
        let known = kernels.loaded.read().unwrap_or_else(PoisonError::into_inner).get(&(unit, name)).copied();
        if let Some(kernel) = known {
            return Ok(kernel);
        }
        let mut modules = kernels.modules.lock().unwrap_or_else(PoisonError::into_inner);
        let module = match modules.get(&unit) {
            Some(module) => module.0,
            None => modules.entry(unit).or_insert(Module(load(self.0, &unit)?)).0,
        };
        let mut function = std::ptr::null_mut();
        let entry = CString::new(name).unwrap_or_default();
        // SAFETY: a loaded module and a terminated name; writes one handle.
        unsafe { call!(&self.0.name, cuModuleGetFunction(&raw mut function, module, entry.as_ptr())) }?;
        let kernel = Kernel(function);
        kernels.loaded.write().unwrap_or_else(PoisonError::into_inner).insert((unit, name), kernel);
        Ok(kernel)
    }
}

fn load(device: &Device, unit: &Unit) -> Result<CUmodule> {
    let compiler = Compiler::get()?;
    let image = compiler.image(unit, device.chip.capability)?;
    let mut module = std::ptr::null_mut();
    device.bind()?;
    // SAFETY: machine code carries its own length, PTX ends with a zero byte.
    let code = unsafe { sys::cuModuleLoadData(&raw mut module, image.code.as_ptr().cast()) };
    match code {
        CUresult::CUDA_ERROR_INVALID_IMAGE
        | CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU
        | CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION
        | CUresult::CUDA_ERROR_INVALID_PTX => Err(CudaError::CompilerMismatch {
            compiler: compiler.version_text(),
            chip: format!("sm_{}{}", device.chip.capability.0, device.chip.capability.1),
            cause: format!("the driver of CUDA {}: {}", driver::version_text(device.driver), words(code)),
        }
        .into()),
        code => driver::check(&device.name, "cuModuleLoadData", code).map(|()| module),
    }
}

/// Enqueues a kernel.
///
/// # Safety
/// `arguments` point to the kernel's arguments, in order and of its types, and the addresses among them are of
/// allocations as long as the kernel reads and writes.
pub(super) unsafe fn enqueue(
    cuda: Cuda,
    kernel: Kernel,
    shape: Shape,
    arguments: &mut [*mut c_void],
) -> Result<()> {
    if shape.blocks == 0 {
        return Ok(());
    }
    cuda.0.bind()?;
    // SAFETY: by the caller; the driver copies the arguments before it returns.
    unsafe {
        call!(
            &cuda.0.name,
            cuLaunchKernel(
                kernel.0,
                shape.blocks,
                1,
                1,
                shape.threads,
                1,
                1,
                shape.shared,
                cuda.0.stream(),
                arguments.as_mut_ptr(),
                std::ptr::null_mut()
            )
        )
    }
}
