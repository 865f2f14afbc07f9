//! Finds and loads the MPI library: never when residua is built, and once in a process.

use super::abi::{Abi, Pointer};
use super::launcher::{Launcher, folders};
use super::table::Table;
use crate::error::{Error, Result};
use crate::lock::lock;
use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};
use std::ffi::c_int;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// The variable with the file of the library.
const ENVIRONMENT: &str = "RESIDUA_MPI";

/// The flag with which the loader only returns a library that is already loaded.
const RTLD_NOLOAD: c_int = if cfg!(any(target_os = "macos", target_os = "ios")) { 0x10 } else { 4 };

/// The library that this process uses.
pub(super) struct Mpi {
    pub(super) interface: Interface,
    /// Its file, or its name if the system's loader found it.
    pub(super) file: PathBuf,
    /// Kept loaded as long as the process lives, because MPI has threads and handlers that must not be unloaded.
    _library: Library,
}

/// Its functions, by the type of its handles.
pub(super) enum Interface {
    /// MPICH's.
    Integers(Table<c_int>),
    /// The standard's, or Open MPI's.
    Pointers(Table<Pointer>),
}

impl Mpi {
    /// The library that this process has loaded already; else the one that `RESIDUA_MPI` names; else the first one
    /// found that can communicate with the launcher: next to the launcher itself, in the system's search path, and next
    /// to `mpirun` in `PATH`.
    ///
    /// # Errors
    /// [`Error::Mpi`] if there is none, with a list of what was tried.
    pub(super) fn get(launcher: Option<&Launcher>) -> Result<&'static Mpi> {
        static FOUND: Mutex<Option<&'static Mpi>> = Mutex::new(None);
        let mut found = lock(&FOUND);
        if let Some(mpi) = *found {
            return Ok(mpi);
        }
        let mpi = match Self::loaded() {
            Some(mpi) => mpi,
            None => Self::search(launcher)?,
        };
        Ok(found.insert(Box::leak(Box::new(mpi))))
    }

    /// The library of the host program; if it has loaded several, the one that is initialised.
    fn loaded() -> Option<Self> {
        let names = [Abi::Standard, Abi::Mpich, Abi::OpenMpi].into_iter().flat_map(Abi::files);
        let mut loaded: Vec<Mpi> =
            names.filter_map(|name| Self::open(Path::new(name), RTLD_NOW | RTLD_NOLOAD).ok()).collect();
        let begun = loaded.iter().position(|mpi| mpi.is_running().unwrap_or(false)).unwrap_or(0);
        (!loaded.is_empty()).then(|| loaded.swap_remove(begun))
    }

    fn search(launcher: Option<&Launcher>) -> Result<Self> {
        // The plug-ins of some libraries need the symbols of the library to be global.
        let flags = RTLD_NOW | RTLD_GLOBAL;
        if let Some(file) = std::env::var_os(ENVIRONMENT) {
            let told =
                |error| Error::Mpi(format!("{ENVIRONMENT} names a library that can't be used: {error}"));
            return Self::open(Path::new(&file), flags).map_err(told);
        }
        let abis = launcher.map_or(&[Abi::Standard, Abi::Mpich, Abi::OpenMpi][..], |launcher| launcher.abis);
        let names = || abis.iter().flat_map(|abi| abi.files().iter());
        let (folders, named) = folders();
        let beside = |folders: Vec<PathBuf>| {
            let files = folders.into_iter().flat_map(|folder| names().map(move |name| folder.join(name)));
            files.filter(|file| file.is_file()).collect::<Vec<_>>()
        };
        let files = beside(folders).into_iter().chain(names().map(PathBuf::from)).chain(beside(named));
        let mut tried = Vec::new();
        for file in files {
            match Self::open(&file, flags) {
                Ok(mpi) => return Ok(mpi),
                Err(error) => tried.push(error),
            }
        }
        let tried = tried.join("; ");
        Err(Error::Mpi(format!("no library was found; {ENVIRONMENT}=FILE names one (tried: {tried})")))
    }

    fn open(file: &Path, flags: c_int) -> Result<Self, String> {
        // The loader's message names the file or the symbol.
        let told = |error: libloading::Error| match std::error::Error::source(&error) {
            Some(words) => words.to_string(),
            None => format!("{}: {error}", file.display()),
        };
        // SAFETY: the file has the name of an MPI library, or the user says that it is one, so its initialisers are
        // those that any program linked to it runs.
        let library = unsafe { Library::open(Some(file), flags) }.map_err(told)?;
        let interface = match Abi::of(&library, file) {
            Abi::Standard => Table::standard(&library).map(Interface::Pointers),
            Abi::OpenMpi => Table::open_mpi(&library).map(Interface::Pointers),
            Abi::Mpich => Table::mpich(&library).map(Interface::Integers),
        };
        Ok(Self { interface: interface.map_err(told)?, file: file.to_path_buf(), _library: library })
    }

    /// Returns whether MPI is initialised in this process.
    ///
    /// # Errors
    /// [`Error::Mpi`] if it has been finalised.
    pub(super) fn is_running(&self) -> Result<bool> {
        let running = match &self.interface {
            Interface::Integers(table) => table.is_running(),
            Interface::Pointers(table) => table.is_running(),
        };
        running.map_err(Error::Mpi)
    }
}
