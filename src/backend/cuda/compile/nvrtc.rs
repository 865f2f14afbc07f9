//! The nine functions of NVRTC that residua calls, loaded by path.

use super::Target;
use super::sources::HEADERS;
use crate::backend::cuda::{driver, find};
use crate::error::{CudaError, Result};
use libloading::Library;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

type Program = *mut c_void;

/// NVRTC's interface, from its manual. Every function returns zero on success.
struct Functions {
    version: unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int,
    chip_count: unsafe extern "C" fn(*mut c_int) -> c_int,
    chips: unsafe extern "C" fn(*mut c_int) -> c_int,
    create: unsafe extern "C" fn(
        *mut Program,
        *const c_char,
        *const c_char,
        c_int,
        *const *const c_char,
        *const *const c_char,
    ) -> c_int,
    destroy: unsafe extern "C" fn(*mut Program) -> c_int,
    compile: unsafe extern "C" fn(Program, c_int, *const *const c_char) -> c_int,
    log_size: unsafe extern "C" fn(Program, *mut usize) -> c_int,
    log: unsafe extern "C" fn(Program, *mut c_char) -> c_int,
    cubin_size: unsafe extern "C" fn(Program, *mut usize) -> c_int,
    cubin: unsafe extern "C" fn(Program, *mut c_char) -> c_int,
    ptx_size: unsafe extern "C" fn(Program, *mut usize) -> c_int,
    ptx: unsafe extern "C" fn(Program, *mut c_char) -> c_int,
    error: unsafe extern "C" fn(c_int) -> *const c_char,
}

/// The run-time compiler, found and loaded.
pub struct Compiler {
    functions: Functions,
    path: PathBuf,
    version: (i32, i32),
    chips: Vec<(u32, u32)>,
    /// NVRTC and its dependencies, kept loaded as long as its functions may be called.
    _libraries: Vec<Library>,
}

impl std::fmt::Debug for Compiler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "NVRTC {} ({})", self.version_text(), self.path.display())
    }
}

impl Compiler {
    /// Returns the process's compiler, which is searched for at the first call. If the driver reports its release, a
    /// compiler of that release or an older one is preferred, because the driver may refuse code of a newer one.
    ///
    /// # Errors
    /// [`CudaError::NoCompiler`] with the places that were searched.
    pub fn get() -> Result<&'static Compiler> {
        static COMPILER: OnceLock<Result<Compiler, CudaError>> = OnceLock::new();
        match COMPILER.get_or_init(Self::search) {
            Ok(compiler) => Ok(compiler),
            Err(error) => Err(error.clone().into()),
        }
    }

    fn search() -> Result<Compiler, CudaError> {
        let driver = driver::start().ok().map(|version| version / 1000);
        let (candidates, searched) = find::candidates(find::NVRTC);
        let mut second_best = None;
        for compiler in candidates.iter().filter_map(|path| Compiler::load(path)) {
            if driver.is_none_or(|driver| compiler.version.0 <= driver) {
                return Ok(compiler);
            }
            second_best.get_or_insert(compiler);
        }
        second_best.ok_or(CudaError::NoCompiler { searched: searched.to_string() })
    }

    fn load(path: &Path) -> Option<Compiler> {
        let mut libraries = builtins(path);
        // SAFETY: the file has NVRTC's name, so its initialisers are those that run in any program linked to NVRTC.
        let library = unsafe { Library::new(path) }.ok()?;
        // SAFETY: each type is that of the function in NVRTC's manual, unchanged since CUDA 11.1.
        let functions = unsafe {
            Functions {
                version: *library.get(b"nvrtcVersion\0").ok()?,
                chip_count: *library.get(b"nvrtcGetNumSupportedArchs\0").ok()?,
                chips: *library.get(b"nvrtcGetSupportedArchs\0").ok()?,
                create: *library.get(b"nvrtcCreateProgram\0").ok()?,
                destroy: *library.get(b"nvrtcDestroyProgram\0").ok()?,
                compile: *library.get(b"nvrtcCompileProgram\0").ok()?,
                log_size: *library.get(b"nvrtcGetProgramLogSize\0").ok()?,
                log: *library.get(b"nvrtcGetProgramLog\0").ok()?,
                cubin_size: *library.get(b"nvrtcGetCUBINSize\0").ok()?,
                cubin: *library.get(b"nvrtcGetCUBIN\0").ok()?,
                ptx_size: *library.get(b"nvrtcGetPTXSize\0").ok()?,
                ptx: *library.get(b"nvrtcGetPTX\0").ok()?,
                error: *library.get(b"nvrtcGetErrorString\0").ok()?,
            }
        };
        libraries.push(library);
        let (mut major, mut minor, mut count) = (0, 0, 0);
        // SAFETY: each call writes to local integers.
        if unsafe {
            (functions.version)(&raw mut major, &raw mut minor) | (functions.chip_count)(&raw mut count)
        } != 0
        {
            return None;
        }
        let mut chips = vec![0; usize::try_from(count).ok()?];
        // SAFETY: the vector has space for the number of chips that was just read.
        if unsafe { (functions.chips)(chips.as_mut_ptr()) } != 0 {
            return None;
        }
        let mut chips: Vec<(u32, u32)> = chips.iter().map(|&c| (c as u32 / 10, c as u32 % 10)).collect();
        chips.sort_unstable();
        Some(Compiler { functions, path: path.into(), version: (major, minor), chips, _libraries: libraries })
    }

    /// Returns the release, such as `13.0`.
    pub fn version_text(&self) -> String {
        format!("{}.{}", self.version.0, self.version.1)
    }

    /// Returns the path of the library.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the chips that it supports, in ascending order: `(9, 0)` is sm_90.
    pub fn chips(&self) -> &[(u32, u32)] {
        &self.chips
    }

    /// Returns the option for the fastest compilation; `None` if the compiler may not have it.
    pub(super) fn option_for_drafts(&self) -> Option<&'static str> {
        (self.version >= (13, 0)).then_some("--Ofast-compile=max")
    }

    /// Returns the target for a chip: machine code if the compiler knows it, else PTX for the newest older chip that it
    /// knows.
    pub(super) fn target(&self, chip: (u32, u32)) -> Result<Target> {
        if self.chips.contains(&chip) {
            return Ok(Target { name: format!("sm_{}{}", chip.0, chip.1), machine_code: true });
        }
        match self.chips.iter().rfind(|&&known| known < chip) {
            Some(known) => {
                Ok(Target { name: format!("compute_{}{}", known.0, known.1), machine_code: false })
            }
            None => Err(CudaError::CompilerMismatch {
                compiler: self.version_text(),
                chip: format!("sm_{}{}", chip.0, chip.1),
                cause: "it no longer makes code for this chip".into(),
            }
            .into()),
        }
    }

    pub(super) fn compile(
        &self,
        name: &str,
        source: &str,
        options: &[String],
        machine_code: bool,
    ) -> Result<Vec<u8>> {
        let failed = |log: String| CudaError::Compilation { source_name: name.into(), log };
        let terminated =
            |text: &str| CString::new(text).map_err(|_| failed("a zero byte in the text".into()));
        let source_text = terminated(source)?;
        let source_name = terminated(name)?;
        let headers = HEADERS.iter().map(|(_, text)| terminated(text)).collect::<Result<Vec<_>, _>>()?;
        let names = HEADERS.iter().map(|(name, _)| terminated(name)).collect::<Result<Vec<_>, _>>()?;
        let options = options.iter().map(|option| terminated(option)).collect::<Result<Vec<_>, _>>()?;
        let pointers = |texts: &[CString]| texts.iter().map(|text| text.as_ptr()).collect::<Vec<_>>();
        let (header_pointers, name_pointers, option_pointers) =
            (pointers(&headers), pointers(&names), pointers(&options));

        let mut program = Guard { program: std::ptr::null_mut(), destroy: self.functions.destroy };
        // SAFETY: all strings are terminated and live until the end of this function; the count matches the arrays.
        let code = unsafe {
            (self.functions.create)(
                &raw mut program.program,
                source_text.as_ptr(),
                source_name.as_ptr(),
                headers.len() as c_int,
                header_pointers.as_ptr(),
                name_pointers.as_ptr(),
            )
        };
        self.check(code).map_err(failed)?;
        // SAFETY: the program was just created; the option strings are still alive, and their count is right.
        let code = unsafe {
            (self.functions.compile)(program.program, options.len() as c_int, option_pointers.as_ptr())
        };
        if let Err(cause) = self.check(code) {
            let log = self.output(&program, self.functions.log_size, self.functions.log).unwrap_or_default();
            return Err(
                failed(format!("{cause}\n{}", String::from_utf8_lossy(&log).trim_end_matches('\0'))).into()
            );
        }
        let image = if machine_code {
            self.output(&program, self.functions.cubin_size, self.functions.cubin)
        } else {
            self.output(&program, self.functions.ptx_size, self.functions.ptx)
        };
        Ok(image.map_err(failed)?)
    }

    /// Returns one of the program's outputs: queries its size, then its bytes.
    fn output(
        &self,
        program: &Guard,
        size: unsafe extern "C" fn(Program, *mut usize) -> c_int,
        get: unsafe extern "C" fn(Program, *mut c_char) -> c_int,
    ) -> Result<Vec<u8>, String> {
        let mut bytes = 0;
        // SAFETY: the program is valid until its guard drops; the call writes one size.
        self.check(unsafe { size(program.program, &raw mut bytes) })?;
        let mut buffer = vec![0_u8; bytes];
        // SAFETY: the buffer has the size that the library just returned.
        self.check(unsafe { get(program.program, buffer.as_mut_ptr().cast()) })?;
        Ok(buffer)
    }

    fn check(&self, code: c_int) -> Result<(), String> {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: the call returns a static, terminated string for any code.
        Err(unsafe { CStr::from_ptr((self.functions.error)(code)) }.to_string_lossy().into_owned())
    }
}

/// Opens NVRTC's builtins by path. NVRTC opens them by their bare name, and the loader may not find them in Python's
/// packages; but if they are loaded already, it uses those.
fn builtins(path: &Path) -> Vec<Library> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let files = folder.and_then(|folder| std::fs::read_dir(folder).ok()).into_iter().flatten().flatten();
    files
        .filter(|file| file.file_name().to_string_lossy().starts_with("libnvrtc-builtins.so"))
        // SAFETY: NVRTC itself would load the same file.
        .filter_map(|file| unsafe { Library::new(file.path()) }.ok())
        .collect()
}

/// Destroys a program of NVRTC when it is dropped.
struct Guard {
    program: Program,
    destroy: unsafe extern "C" fn(*mut Program) -> c_int,
}

impl Drop for Guard {
    fn drop(&mut self) {
        if !self.program.is_null() {
            // SAFETY: the program was created by `create` and is destroyed once.
            let _ = unsafe { (self.destroy)(&raw mut self.program) };
        }
    }
}
