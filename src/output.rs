//! Output files that appear complete or not at all.
//!
//! A file is written under another name next to its target and renamed at the end, so that a full disk, an error or
//! Ctrl-C leaves the earlier file unchanged. Standard output, pipes and devices are written directly, since they have
//! no earlier content.

use crate::error::{Error, Result};
use crate::lock::lock;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Writes `path` with `fill`; `-` is standard output.
///
/// ```
/// use std::io::Write;
/// let path = std::env::temp_dir().join(format!("residua-output-{}", std::process::id()));
/// residua::output::write(&path, |file| writeln!(file, "done"))?;
/// assert_eq!(std::fs::read_to_string(&path).unwrap(), "done\n");
/// # std::fs::remove_file(&path).unwrap();
/// # Ok::<(), residua::Error>(())
/// ```
///
/// # Errors
/// If the file cannot be written, or `fill` fails; the target is then unchanged.
pub fn write(path: impl AsRef<Path>, fill: impl FnOnce(&mut Output) -> io::Result<()>) -> Result<()> {
    let path = path.as_ref();
    let mut output = Output::create(path)?;
    fill(&mut output).map_err(|source| Error::Io { path: path.to_owned(), source })?;
    output.commit()
}

/// An output file that is being written. If it is dropped without [`Output::commit`], nothing remains of it.
#[derive(Debug)]
pub struct Output {
    path: PathBuf,
    to: To,
}

/// The target of a result: standard output, a device or pipe, or a file.
#[derive(Debug)]
enum To {
    Stream(BufWriter<io::Stdout>),
    Device(BufWriter<File>),
    Beside(Beside),
}

/// A temporary file that replaces its target when it is complete.
#[derive(Debug)]
struct Beside {
    /// `None` once it is closed.
    file: Option<BufWriter<File>>,
    beside: PathBuf,
    target: PathBuf,
}

/// Bytes that are buffered before they are written.
const BUFFER: usize = 1 << 16;

impl Output {
    /// Starts the output to `path`; `-` is standard output. Fails here, before long work, if the folder does not exist
    /// or is not writable.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub fn create(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let to = Self::open(path).map_err(|source| Error::Io { path: path.to_owned(), source })?;
        Ok(Self { path: path.to_owned(), to })
    }

    fn open(path: &Path) -> io::Result<To> {
        if path == Path::new("-") || path == Path::new("/dev/stdout") {
            return Ok(To::Stream(BufWriter::with_capacity(BUFFER, io::stdout())));
        }
        let existing = match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Ok(metadata) => Some(metadata),
            Err(e) if e.kind() == io::ErrorKind::NotFound => None,
            Err(e) => return Err(e),
        };
        // `/dev/fd/3` may be a regular file, but the open file is meant. `/dev/shm/x` is a file like any other.
        let open = ["/dev/fd", "/dev/stderr", "/proc"].iter().any(|folder| path.starts_with(folder));
        if open || existing.as_ref().is_some_and(|m| !m.is_file()) {
            let file = OpenOptions::new().write(true).open(path)?;
            return Ok(To::Device(BufWriter::with_capacity(BUFFER, file)));
        }
        // A symbolic link is kept; its target is replaced or created.
        let target = if existing.is_some() { fs::canonicalize(path)? } else { behind_links(path)? };
        let permissions = existing.map(|m| m.permissions());
        if permissions.as_ref().is_some_and(fs::Permissions::readonly) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let (file, beside) = create_beside(&target)?;
        let open = Beside { file: Some(BufWriter::with_capacity(BUFFER, file)), beside, target };
        if let Some(permissions) = permissions {
            fs::set_permissions(&open.beside, permissions)?;
        }
        Ok(To::Beside(open))
    }

    /// Completes the file, which then has its final name.
    ///
    /// # Errors
    /// If the last bytes cannot be written or the file cannot be renamed; the target is then unchanged.
    pub fn commit(mut self) -> Result<()> {
        let done = match &mut self.to {
            To::Stream(stream) => stream.flush(),
            To::Device(device) => device.flush(),
            To::Beside(open) => open.commit(),
        };
        done.map_err(|source| Error::Io { path: self.path.clone(), source })
    }
}

impl Beside {
    fn commit(&mut self) -> io::Result<()> {
        if let Some(file) = self.file.take() {
            // Some file systems report a full disk only here.
            file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_data()?;
            fs::rename(&self.beside, &self.target)?;
            lock(&UNFINISHED).retain(|path| *path != self.beside);
            self.beside = PathBuf::new();
        }
        Ok(())
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        if let Some(file) = self.file.take() {
            // Not flushed, because the content is discarded.
            let _ = file.into_parts();
        }
        if !self.beside.as_os_str().is_empty() {
            // If the file cannot be removed, nothing more can be done.
            let _ = fs::remove_file(&self.beside);
            lock(&UNFINISHED).retain(|path| *path != self.beside);
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.to {
            To::Stream(stream) => stream.write(bytes),
            To::Device(device) => device.write(bytes),
            To::Beside(Beside { file: Some(file), .. }) => file.write(bytes),
            To::Beside(_) => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.to {
            To::Stream(stream) => stream.flush(),
            To::Device(device) => device.flush(),
            To::Beside(Beside { file, .. }) => file.as_mut().map_or(Ok(()), BufWriter::flush),
        }
    }
}

/// At most this many symbolic links are followed, as many as operating systems follow.
const MOST_LINKS: usize = 40;

/// The target of a path through all its symbolic links; the target need not exist.
///
/// # Errors
/// If links form a cycle.
pub(crate) fn behind_links(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        match fs::read_link(&path) {
            // A relative target is relative to the folder of the link.
            Ok(named) => path = path.parent().unwrap_or(Path::new("")).join(named),
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::other("too many symbolic links"))
}

/// Files that are being written, for cleaning up when the process ends.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Removes all files that are being written, because the process is about to end.
#[cfg(feature = "cli")]
pub(crate) fn abandon() {
    for path in lock(&UNFINISHED).drain(..) {
        // If the file cannot be removed, nothing more can be done.
        let _ = fs::remove_file(path);
    }
}

/// A new file in the target's folder, under a unique name.
fn create_beside(target: &Path) -> io::Result<(File, PathBuf)> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let name = target.file_name().ok_or(io::ErrorKind::InvalidFilename)?;
    loop {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let mut beside = std::ffi::OsString::from(".");
        // A name may have at most 255 bytes; this one is longer than the target's.
        beside.push(name.to_string_lossy().chars().take(40).collect::<String>());
        beside.push(format!(".{}-{number}.part", std::process::id()));
        let beside = target.with_file_name(beside);
        match OpenOptions::new().write(true).create_new(true).open(&beside) {
            Ok(file) => {
                lock(&UNFINISHED).push(beside.clone());
                return Ok((file, beside));
            }
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(e),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("residua-output-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn names(&self) -> Vec<String> {
            let mut names: Vec<_> = fs::read_dir(&self.0)
                .unwrap()
                .map(|e| e.unwrap().file_name().into_string().unwrap())
                .collect();
            names.sort();
            names
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_failure_leaves_the_target_as_it_was() {
        let folder = Folder::new("failure");
        let path = folder.0.join("x");
        write(&path, |file| file.write_all(b"first")).unwrap();
        let failed = write(&path, |file| {
            file.write_all(&[b'x'; 1 << 20])?;
            Err(io::ErrorKind::StorageFull.into())
        });
        assert!(matches!(failed, Err(Error::Io { .. })), "{failed:?}");
        assert_eq!(fs::read(&path).unwrap(), b"first");
        write(&path, |file| file.write_all(b"second")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"second");
        assert_eq!(folder.names(), ["x"]);
    }

    #[test]
    fn what_cannot_be_written_is_refused_at_once() {
        let folder = Folder::new("refused");
        for path in [folder.0.clone(), folder.0.join("missing/x"), folder.0.join("")] {
            let error = Output::create(&path).unwrap_err().to_string();
            assert!(error.starts_with(path.to_str().unwrap()), "{error}");
        }
        assert!(folder.names().is_empty());
    }

    #[cfg(unix)]
    #[test]
    fn links_permissions_and_devices() {
        use std::os::unix::fs::PermissionsExt;
        let folder = Folder::new("links");
        let (target, link) = (folder.0.join("target"), folder.0.join("link"));
        fs::write(&target, "old").unwrap();
        fs::set_permissions(&target, fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        write(&link, |file| file.write_all(b"new")).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&target).unwrap(), b"new");
        assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(folder.names(), ["link", "target"]);
        // The target of a link, or of a link to a link, need not exist.
        for (name, leads_to) in [("later", "made"), ("farther", "later")] {
            std::os::unix::fs::symlink(leads_to, folder.0.join(name)).unwrap();
            write(folder.0.join(name), |file| file.write_all(name.as_bytes())).unwrap();
            assert!(fs::symlink_metadata(folder.0.join(name)).unwrap().is_symlink());
            assert_eq!(fs::read(folder.0.join("made")).unwrap(), name.as_bytes());
        }
        std::os::unix::fs::symlink("round", folder.0.join("round")).unwrap();
        assert!(write(folder.0.join("round"), |file| file.write_all(b"never")).is_err());
        // A folder in memory works like any other.
        let in_memory = Path::new("/dev/shm").join(format!("residua-output-{}", std::process::id()));
        if Path::new("/dev/shm").is_dir() {
            write(&in_memory, |file| file.write_all(b"new")).unwrap();
            assert_eq!(fs::read(&in_memory).unwrap(), b"new");
            fs::remove_file(&in_memory).unwrap();
        }
        write("/dev/null", |file| file.write_all(b"nothing")).unwrap();
        let full = write("/dev/full", |file| file.write_all(b"nothing"));
        assert!(matches!(full, Err(Error::Io { .. })), "{full:?}");
        fs::set_permissions(&target, fs::Permissions::from_mode(0o440)).unwrap();
        assert!(write(&target, |file| file.write_all(b"never")).is_err());
        assert_eq!(fs::read(&target).unwrap(), b"new");
    }
}
