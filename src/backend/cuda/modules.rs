//! Loaded kernels. They are compiled or found at their first use, and kept as long as the process lives.

use super::compile::{Ahead, Compiler, CompilingAhead, Unit, packed_kernels};
use super::driver::{attribute, call, configuration, words};
use super::shape::{Shape, Together};
use super::stream::Stream;
use super::{Cuda, driver, tuning};
use crate::error::{CudaError, Error, Result};
use crate::lock::lock;
use cudarc::driver::sys::{self, CUfunction, CUfunction_attribute, CUmodule, CUresult};
use std::collections::{BTreeSet, HashMap};
use std::ffi::CString;
use std::fs::OpenOptions;
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

/// The largest cluster that every chip with clusters supports.
const PORTABLE_CLUSTER: u32 = 8;

/// The first driver that can capture launches that start early: CUDA 12.3.
const EARLY_DRIVER: i32 = 12_030;

/// A loaded kernel, and how many of its blocks the device can run at the same time.
#[derive(Clone, Copy)]
pub(super) struct Kernel {
    pub(super) function: CUfunction,
    pub(super) resident: u32,
    /// True if its blocks may start before the previous launch has ended. The kernel then waits for that launch itself
    /// (`common.cuh`).
    pub(super) early: bool,
    /// Set when the kernel is launched.
    pub(super) launched: &'static AtomicBool,
}

// SAFETY: the handle of a function is valid in every thread while its module is loaded, and modules are never unloaded.
unsafe impl Send for Kernel {}
// SAFETY: as above.
unsafe impl Sync for Kernel {}

/// How soon this process can use a unit.
pub(super) enum Readiness {
    Loaded,
    /// Its code is in the archive or in the cache.
    Compiled,
    Source,
}

/// A loaded unit, and a line about it that has not been written yet.
struct Module {
    handle: CUmodule,
    story: Option<String>,
}

// SAFETY: as for `Kernel`.
unsafe impl Send for Module {}

/// The kernels that were used so far, by unit, name and shared memory.
#[derive(Default)]
pub(super) struct Kernels {
    loaded: RwLock<HashMap<(Unit, &'static str, u32), Kernel>>,
    modules: Mutex<HashMap<Unit, Module>>,
    /// Total time of first uses of kernels (compiling and loading), in nanoseconds.
    spent: AtomicU64,
    ahead: Ahead,
}

impl Kernels {
    fn modules(&self) -> MutexGuard<'_, HashMap<Unit, Module>> {
        lock(&self.modules)
    }
}

impl Cuda {
    /// Returns the kernel `name` of a unit. The first use compiles and loads it.
    pub(super) fn kernel(self, unit: Unit, name: &'static str, shape: &Shape) -> Result<Kernel> {
        let kernels = &self.0.kernels;
        let key = (unit, name, shape.shared);
        let known = || kernels.loaded.read().unwrap_or_else(PoisonError::into_inner).get(&key).copied();
        if let Some(kernel) = known() {
            return Ok(kernel);
        }
        let _ours = kernels.ahead.take(&unit);
        // Another thread may have loaded it while this one waited for the lock.
        if let Some(kernel) = known() {
            return Ok(kernel);
        }
        let start = Instant::now();
        let module = self.module(&unit)?;
        let early = self.0.chip.capability >= (9, 0) && self.0.driver >= EARLY_DRIVER;
        let kernel =
            Kernel { early: early && tuning::starts_early(&unit), ..self.find(module, name, shape)? };
        if tuning::wants_cache(&unit) {
            self.leave_cache(kernel, shape)?;
        }
        kernels.loaded.write().unwrap_or_else(PoisonError::into_inner).insert(key, kernel);
        kernels.spent.fetch_add(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
        Ok(kernel)
    }

    /// Returns the seconds that first uses of kernels have taken so far.
    pub(super) fn spent_on_first_uses(self) -> f64 {
        self.0.kernels.spent.load(Ordering::Relaxed) as f64 * 1e-9
    }

    /// Returns a unit's module, and compiles and loads it if necessary. The calling thread must have reserved the unit.
    fn module(self, unit: &Unit) -> Result<CUmodule> {
        let kernels = &self.0.kernels;
        if !kernels.modules().contains_key(unit) {
            let module = load(self.0, unit)?;
            kernels.modules().insert(*unit, module);
        }
        let mut modules = kernels.modules();
        let module = modules.get_mut(unit).expect("it was there or was put there");
        if let Some(story) = module.story.take() {
            record_unit(&story);
        }
        Ok(module.handle)
    }

    /// Compiles and loads kernel files on other threads, so that their first use takes less time: for example
    /// [`units_of_a_solve`](super::compile::units_of_a_solve).
    pub fn compile_ahead(&self, units: Vec<Unit>) -> CompilingAhead {
        let device = self.0;
        device.kernels.ahead.start(units, |unit| {
            // A failure is ignored here: a thread that needs the unit compiles it again and gets the error.
            if !device.kernels.modules().contains_key(unit)
                && let Ok(module) = load(device, unit)
            {
                device.kernels.modules().insert(*unit, module);
            }
        })
    }

    /// Why the device can't be used, if neither this package has kernels for it nor a compiler is found.
    pub fn lacks_kernels(&self) -> Option<String> {
        match packed_kernels(self.0.chip.capability) {
            Ok(Some(_)) => None,
            _ => Compiler::get().err().map(|error| error.to_string()),
        }
    }

    /// Returns how soon a unit can be used.
    pub(super) fn readiness(self, unit: &Unit) -> Readiness {
        let chip = self.0.chip.capability;
        let packed = || packed_kernels(chip).ok().flatten().is_some_and(|kernels| kernels.has(unit));
        let cached = |compiler: &Compiler| compiler.has_cached(unit, chip);
        if self.0.kernels.modules().contains_key(unit) {
            Readiness::Loaded
        } else if packed() || Compiler::get().is_ok_and(cached) {
            Readiness::Compiled
        } else {
            Readiness::Source
        }
    }

    /// Returns the kernels that this process has launched on the device so far, by file and name. A profiler or
    /// sanitizer can have seen only these.
    pub fn launched_kernels(&self) -> BTreeSet<(&'static str, &'static str)> {
        let loaded = self.0.kernels.loaded.read().unwrap_or_else(PoisonError::into_inner);
        let launched = loaded.iter().filter(|(_, kernel)| kernel.launched.load(Ordering::Relaxed));
        launched.map(|((unit, name, _), _)| (unit.source(), *name)).collect()
    }

    /// Returns whether the device can run all blocks of a launch at the same time. A kernel that is in no package and
    /// cannot be compiled is held by no device, so that the caller takes another way.
    pub(super) fn holds(self, unit: Unit, name: &'static str, shape: &Shape) -> Result<bool> {
        let kernel = match self.kernel(shape.unit(unit), name, shape) {
            Err(Error::Cuda(CudaError::NoCompiler { .. })) => return Ok(false),
            kernel => kernel?,
        };
        match shape.together {
            // The driver returns an error for a cluster size that it does not support.
            Together::Cluster => Ok(self.clusters(kernel.function, shape, shape.blocks)?.unwrap_or(0) > 0),
            Together::Clusters(_) => Ok(kernel.resident > 0),
            Together::No | Together::Grid => Ok(shape.blocks <= kernel.resident),
        }
    }

    /// Returns the first of several shapes of which this device can run all blocks at the same time.
    pub(super) fn first_held(
        self,
        unit: Unit,
        name: &'static str,
        shapes: impl Iterator<Item = Shape>,
    ) -> Result<Shape> {
        self.first_of_clusters(unit, name, shapes, 1)
    }

    /// Returns the first of several shapes of which this device can run `least` clusters (or blocks without clusters)
    /// at the same time.
    pub(super) fn first_of_clusters(
        self,
        unit: Unit,
        name: &'static str,
        shapes: impl Iterator<Item = Shape>,
        least: u32,
    ) -> Result<Shape> {
        for shape in shapes {
            let enough = match shape.together {
                Together::Clusters(size) => {
                    let resident = self.kernel(shape.unit(unit), name, &shape)?.resident;
                    resident.min(shape.blocks) >= least * size
                }
                _ => true,
            };
            if enough && self.holds(unit, name, &shape)? {
                return Ok(shape);
            }
        }
        Err(Error::Unsupported(format!(
            "kernel {name} on {}, which cannot run enough of its blocks at a time",
            self.0.name
        )))
    }

    /// Returns how many clusters of this many blocks the device can run at the same time; `None` if the driver returns
    /// an error.
    fn clusters(self, function: CUfunction, shape: &Shape, blocks: u32) -> Result<Option<u32>> {
        let mut clusters = 0;
        let mut cluster = attribute(sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
        cluster.value.clusterDim.x = blocks;
        cluster.value.clusterDim.y = 1;
        cluster.value.clusterDim.z = 1;
        let config = configuration((blocks, shape.threads, shape.shared), std::ptr::null_mut(), &mut cluster);
        self.0.bind()?;
        // SAFETY: the function is loaded; the configuration and its one attribute outlive the call, which writes a
        // number.
        let code =
            unsafe { sys::cuOccupancyMaxActiveClusters(&raw mut clusters, function, &raw const config) };
        Ok((code == CUresult::CUDA_SUCCESS).then_some(clusters as u32))
    }

    fn find(self, module: CUmodule, name: &'static str, shape: &Shape) -> Result<Kernel> {
        use CUfunction_attribute as Attribute;
        let device = &self.0.name;
        let (mut function, mut blocks) = (std::ptr::null_mut(), 0);
        let entry = CString::new(name).unwrap_or_default();
        self.0.bind()?;
        // SAFETY: the module is loaded and the name is terminated; the calls write one handle and one integer. A kernel
        // has to request more than 48 KiB of shared memory explicitly.
        unsafe {
            call!(device, cuModuleGetFunction(&raw mut function, module, entry.as_ptr()))?;
            if shape.shared > 0 {
                // A function has one limit for launches of all sizes, so it is set to the largest possible value.
                let (bytes, mut fixed) = (Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 0);
                let declared = Attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES;
                call!(device, cuFuncGetAttribute(&raw mut fixed, declared, function))?;
                let room = (self.0.chip.shared_a_block as i32 - fixed).max(shape.shared as i32);
                call!(device, cuFuncSetAttribute(function, bytes, room))?;
            }
            let cluster = match shape.together {
                Together::Cluster => shape.blocks,
                Together::Clusters(size) => size,
                Together::No | Together::Grid => 1,
            };
            if cluster > PORTABLE_CLUSTER {
                let large = Attribute::CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED;
                call!(device, cuFuncSetAttribute(function, large, 1))?;
            }
            call!(
                device,
                cuOccupancyMaxActiveBlocksPerMultiprocessor(
                    &raw mut blocks,
                    function,
                    shape.threads as i32,
                    shape.shared as usize
                )
            )?;
        }
        let resident = match shape.together {
            Together::Clusters(size) if size > 1 => self.clusters(function, shape, size)?.unwrap_or(0) * size,
            _ => blocks.max(1) as u32 * self.0.chip.multiprocessors,
        };
        // Leaked, because kernels live as long as the process.
        Ok(Kernel { function, resident, early: false, launched: Box::leak(Box::default()) })
    }
}

impl Cuda {
    /// Gives the memory that a kernel's blocks do not need as shared memory to the first-level cache. By default the
    /// driver reserves more.
    fn leave_cache(self, kernel: Kernel, shape: &Shape) -> Result<()> {
        use CUfunction_attribute as Attribute;
        let (chip, device, mut declared) = (self.0.chip, &self.0.name, 0);
        let size = Attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES;
        // SAFETY: the function is loaded, and the call writes one integer.
        unsafe { call!(device, cuFuncGetAttribute(&raw mut declared, size, kernel.function)) }?;
        let a_block = declared as u32 + shape.shared + chip.shared_reserved;
        let needed = kernel.resident / chip.multiprocessors * a_block;
        let percent = (100 * needed).div_ceil(chip.shared_a_multiprocessor).min(100);
        let share = Attribute::CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT;
        // SAFETY: the function is loaded; the call sets a preference, in percent.
        unsafe { call!(device, cuFuncSetAttribute(kernel.function, share, percent as i32)) }
    }
}

/// Appends a line to the file that `RESIDUA_UNITS` names, if it is set. Such files are lists for
/// [`Cuda::compile_ahead`].
fn record_unit(story: &str) {
    let Some(path) = std::env::var_os("RESIDUA_UNITS") else { return };
    let file = OpenOptions::new().append(true).create(true).open(path);
    // The log is only for diagnosis, so a failed write is ignored.
    let _ = file.and_then(|mut file| file.write_all(story.as_bytes()));
}

fn load(device: &Stream, unit: &Unit) -> Result<Module> {
    let chip = device.chip.capability;
    let start = Instant::now();
    // If the archive can't be used, `residua devices` reports it. Here, units that are missing from the archive, or
    // that the driver rejects, are compiled instead.
    let packed = packed_kernels(chip).ok().flatten().and_then(|kernels| kernels.code(unit));
    if let Some(code) = packed {
        // The driver reads aligned numbers in the code, so the code is copied to a separate allocation.
        let (from, code) = (start.elapsed(), code.to_vec());
        if let Ok(module) = Module::load(device, unit, &code, from, "from the archive")? {
            return Ok(module);
        }
    }
    let compiler = Compiler::get()?;
    let image = compiler.image(unit, chip)?;
    let origin = if image.cached { "from the cache" } else { "compiled" };
    Module::load(device, unit, &image.code, image.time, origin)?.map_err(|refused| {
        CudaError::CompilerMismatch {
            compiler: compiler.version_text(),
            chip: format!("sm_{}{}", chip.0, chip.1),
            cause: format!(
                "the driver of CUDA {} refused its code: {}",
                driver::version_text(device.driver),
                words(refused)
            ),
        }
        .into()
    })
}

impl Module {
    /// Loads the code of a unit. `time` is the time that it took to compile or find the code. The inner result is an
    /// error if the driver rejects code of this kind.
    fn load(
        device: &Stream,
        unit: &Unit,
        code: &[u8],
        time: Duration,
        origin: &str,
    ) -> Result<Result<Module, CUresult>> {
        let start = Instant::now();
        let mut handle = std::ptr::null_mut();
        device.enter()?;
        // SAFETY: machine code contains its own length, and PTX ends with a zero byte.
        let answer = unsafe { sys::cuModuleLoadData(&raw mut handle, code.as_ptr().cast()) };
        match answer {
            CUresult::CUDA_ERROR_INVALID_IMAGE
            | CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU
            | CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION
            | CUresult::CUDA_ERROR_INVALID_PTX => return Ok(Err(answer)),
            answer => driver::check(&device.name, "cuModuleLoadData", answer)?,
        }
        let story = format!(
            "{}\t{:.1} ms, {origin}, {:.1} ms to load\n",
            unit.describe(),
            time.as_secs_f64() * 1e3,
            start.elapsed().as_secs_f64() * 1e3
        );
        Ok(Ok(Module { handle, story: Some(story) }))
    }
}
