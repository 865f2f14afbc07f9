//! The functions of cuDSS that residua calls, loaded by path.

use super::version::{Numbers, Version, words};
use crate::backend::cuda::find::{self, Wanted};
use crate::error::{CudaError, Result};
use libloading::Library as File;
use std::ffi::{c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Handles, configurations, data and matrices are opaque pointers.
pub(super) type Opaque = *mut c_void;
type Status = c_int;

const CUDSS: Wanted = Wanted {
    variable: Some("RESIDUA_CUDSS"),
    file: "libcudss.so",
    releases: &["1", "0"],
    packages: &["cu13/lib", "cu12/lib", "cudss/lib"],
};

/// The dependencies of the library. If the loader finds them, as in Python's packages, residua need not load them.
const NEEDED: [(&str, &[&str]); 3] = [
    ("libcublasLt.so", &["cu13/lib", "cublas/lib", "cu12/lib"]),
    ("libcublas.so", &["cu13/lib", "cublas/lib", "cu12/lib"]),
    ("libnvrtc.so", find::NVRTC.packages),
];

/// The function that describes a matrix in CSR. Since release 0.8 the type of offsets comes before that of columns.
pub(super) enum CreateCsr {
    OneType(
        unsafe extern "C" fn(
            *mut Opaque,
            i64,
            i64,
            i64,
            *const c_void,
            *const c_void,
            *const c_void,
            *const c_void,
            c_int,
            c_int,
            c_int,
            c_int,
            c_int,
        ) -> Status,
    ),
    TwoTypes(
        unsafe extern "C" fn(
            *mut Opaque,
            i64,
            i64,
            i64,
            *const c_void,
            *const c_void,
            *const c_void,
            *const c_void,
            c_int,
            c_int,
            c_int,
            c_int,
            c_int,
            c_int,
        ) -> Status,
    ),
}

/// cuDSS's interface, from its headers. Every function returns zero on success.
pub(super) struct Functions {
    pub(super) create: unsafe extern "C" fn(*mut Opaque) -> Status,
    pub(super) destroy: unsafe extern "C" fn(Opaque) -> Status,
    pub(super) set_stream: unsafe extern "C" fn(Opaque, *mut c_void) -> Status,
    pub(super) set_threading: unsafe extern "C" fn(Opaque, *const c_char) -> Status,
    pub(super) config_create: unsafe extern "C" fn(*mut Opaque) -> Status,
    pub(super) config_destroy: unsafe extern "C" fn(Opaque) -> Status,
    pub(super) config_set: unsafe extern "C" fn(Opaque, c_int, *const c_void, usize) -> Status,
    pub(super) data_create: unsafe extern "C" fn(Opaque, *mut Opaque) -> Status,
    pub(super) data_destroy: unsafe extern "C" fn(Opaque, Opaque) -> Status,
    pub(super) data_set: unsafe extern "C" fn(Opaque, Opaque, c_int, *const c_void, usize) -> Status,
    pub(super) data_get:
        unsafe extern "C" fn(Opaque, Opaque, c_int, *mut c_void, usize, *mut usize) -> Status,
    pub(super) dense: unsafe extern "C" fn(*mut Opaque, i64, i64, i64, *const c_void, c_int, c_int) -> Status,
    pub(super) csr: CreateCsr,
    pub(super) set_values: unsafe extern "C" fn(Opaque, *const c_void) -> Status,
    pub(super) matrix_destroy: unsafe extern "C" fn(Opaque) -> Status,
    pub(super) execute: unsafe extern "C" fn(Opaque, c_int, Opaque, Opaque, Opaque, Opaque, Opaque) -> Status,
}

/// cuDSS, found and loaded.
pub(super) struct Library {
    pub(super) functions: Functions,
    pub(super) numbers: Numbers,
    pub(super) version: Version,
    path: PathBuf,
    /// The library and its dependencies, kept loaded as long as its functions may be called.
    _files: Vec<File>,
}

impl Library {
    /// Returns the process's library, which is searched for at the first call.
    ///
    /// # Errors
    /// [`CudaError::NoDirectSolver`] with the places that were searched, or with the reason why the library that was
    /// found can't be used.
    pub(super) fn get() -> Result<&'static Library> {
        static LIBRARY: OnceLock<Result<Library, CudaError>> = OnceLock::new();
        match LIBRARY.get_or_init(|| Self::search(CUDSS)) {
            Ok(library) => Ok(library),
            Err(error) => Err(error.clone().into()),
        }
    }

    fn search(wanted: Wanted) -> Result<Library, CudaError> {
        let (candidates, searched) = find::candidates(wanted);
        let mut unfit = None;
        for path in candidates {
            // If the loader doesn't find a bare name, the library is not there. A path that exists but can't be loaded
            // is an error to report.
            let found = path.components().count() > 1;
            match Self::load(&path) {
                Ok(library) => return Ok(library),
                Err(cause) if found => unfit = unfit.or(Some((path, cause))),
                Err(_) => {}
            }
        }
        Err(match unfit {
            Some((path, cause)) => CudaError::UnfitDirectSolver { path: path.display().to_string(), cause },
            None => CudaError::NoDirectSolver { searched: searched.to_string() },
        })
    }

    /// Loads the library from this file, or returns the reason why it can't be used.
    pub(super) fn load(path: &Path) -> Result<Library, String> {
        let mut files = Vec::new();
        // SAFETY: the file has cuDSS's name, so its initialisers are those that run in any program linked to cuDSS.
        let first = unsafe { File::new(path) };
        let file = match first {
            Ok(file) => file,
            Err(error) => {
                files.extend(needed());
                // SAFETY: as above.
                unsafe { File::new(path) }.map_err(|_| loader_says(&error))?
            }
        };
        let version = version_of(&file)?;
        let numbers = version.numbers()?;
        let functions = functions(&file, numbers.offset_type).map_err(|error| loader_says(&error))?;
        files.push(file);
        Ok(Library { functions, numbers, version, path: path.into(), _files: files })
    }

    /// Returns the path of the library.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the file next to the library with which it uses several threads for orderings, if it is there.
    pub(super) fn threading_layer(&self) -> Option<PathBuf> {
        let name = self.path.file_name()?.to_str()?.replacen("libcudss", "libcudss_mtlayer_gomp", 1);
        Some(self.path.with_file_name(name)).filter(|file| file.is_file())
    }

    /// Returns an error if the status of `call` is one.
    pub(super) fn check(&self, device: &str, call: &'static str, status: Status) -> Result<()> {
        if status == 0 {
            return Ok(());
        }
        let cause = format!("{} of cuDSS {}", words(status), self.version);
        Err(CudaError::Call { call, device: device.to_string(), cause }.into())
    }
}

/// Opens cuDSS's dependencies by path, the nearest releases first. If a file is loaded already, the loader uses that.
fn needed() -> Vec<File> {
    let mut files = Vec::new();
    for (file, packages) in NEEDED {
        let wanted = Wanted { variable: None, file, releases: &["13", "12"], packages };
        let (candidates, _) = find::candidates(wanted);
        let mut seen = Vec::new();
        for path in candidates {
            let name = path.file_name().map(ToOwned::to_owned);
            if seen.contains(&name) {
                continue;
            }
            // SAFETY: cuDSS itself would load a file with this name.
            if let Ok(file) = unsafe { File::new(&path) } {
                files.push(file);
                seen.push(name);
            }
        }
    }
    files
}

/// Returns the loader's message, with its cause: the file and the missing symbol.
fn loader_says(error: &libloading::Error) -> String {
    let cause = std::error::Error::source(error).map(|source| format!(": {source}"));
    error.to_string() + &cause.unwrap_or_default()
}

fn version_of(file: &File) -> Result<Version, String> {
    type Property = unsafe extern "C" fn(c_int, *mut c_int) -> Status;
    // SAFETY: the type is that of the function in the headers of all releases.
    let property: Property =
        *unsafe { file.get::<Property>(b"cudssGetProperty\0") }.map_err(|error| loader_says(&error))?;
    let mut numbers = [0; 3];
    for (kind, number) in (0..).zip(&mut numbers) {
        // SAFETY: the call writes one integer.
        let status = unsafe { property(kind, &raw mut *number) };
        if status != 0 {
            return Err(format!("its release could not be read: {}", words(status)));
        }
    }
    let [major, minor, patch] = numbers;
    Ok(Version { major, minor, patch })
}

fn functions(file: &File, offset_type: bool) -> Result<Functions, libloading::Error> {
    // SAFETY: each type is that of the function in the headers of releases 0.5 to 1.0. These differ only in `const`,
    // and in the function that describes a CSR matrix, whose type is chosen by the release.
    unsafe {
        Ok(Functions {
            create: *file.get(b"cudssCreate\0")?,
            destroy: *file.get(b"cudssDestroy\0")?,
            set_stream: *file.get(b"cudssSetStream\0")?,
            set_threading: *file.get(b"cudssSetThreadingLayer\0")?,
            config_create: *file.get(b"cudssConfigCreate\0")?,
            config_destroy: *file.get(b"cudssConfigDestroy\0")?,
            config_set: *file.get(b"cudssConfigSet\0")?,
            data_create: *file.get(b"cudssDataCreate\0")?,
            data_destroy: *file.get(b"cudssDataDestroy\0")?,
            data_set: *file.get(b"cudssDataSet\0")?,
            data_get: *file.get(b"cudssDataGet\0")?,
            dense: *file.get(b"cudssMatrixCreateDn\0")?,
            csr: if offset_type {
                CreateCsr::TwoTypes(*file.get(b"cudssMatrixCreateCsr\0")?)
            } else {
                CreateCsr::OneType(*file.get(b"cudssMatrixCreateCsr\0")?)
            },
            set_values: *file.get(b"cudssMatrixSetValues\0")?,
            matrix_destroy: *file.get(b"cudssMatrixDestroy\0")?,
            execute: *file.get(b"cudssExecute\0")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("residua-cudss-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn a_file_that_is_no_library_is_told_by_its_path() {
        let folder = folder("broken");
        let file = folder.join("libcudss.so.1");
        std::fs::write(&file, "no library").unwrap();
        let cause = Library::load(&file).err().unwrap();
        assert!(cause.contains("libcudss.so.1"), "{cause}");
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn another_library_by_that_name_does_not_tell_a_release() {
        // Every process has one of these libraries loaded.
        let Some(file) = ["libc.so.6", "libm.so.6"].iter().find(|name| {
            // SAFETY: this is the system's own library.
            unsafe { File::new(**name) }.is_ok()
        }) else {
            return;
        };
        let cause = Library::load(Path::new(file)).err().unwrap();
        assert!(cause.contains("cudssGetProperty"), "{cause}");
    }

    #[test]
    fn a_missing_library_is_told_with_the_way_to_get_it() {
        let wanted = Wanted { file: "libresidua-none.so", variable: None, ..CUDSS };
        let error = Library::search(wanted).err().unwrap().to_string();
        assert!(
            error.contains("pip install nvidia-cudss-cu13") && error.contains("RESIDUA_CUDSS"),
            "{error}"
        );
    }
}
