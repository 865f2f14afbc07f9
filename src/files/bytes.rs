//! Reads numbers from a stream and counts bytes. Memory grows with the bytes that arrive, not with the sizes that a
//! header claims.

use crate::error::{Error, Result};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// An error at an offset in a file.
pub(super) fn content(path: &Path, offset: u64, cause: impl Into<String>) -> Error {
    Error::Content { path: path.to_owned(), offset, cause: cause.into() }
}

/// A reader of binary data that knows its offset, for error messages.
pub(super) struct Bytes<R> {
    reader: R,
    path: PathBuf,
    /// Bytes read so far.
    pub(super) at: u64,
}

impl<R: Read> Bytes<R> {
    pub(super) fn new(path: &Path, reader: R) -> Self {
        Self { reader, path: path.to_owned(), at: 0 }
    }

    pub(super) fn error(&self, cause: impl Into<String>) -> Error {
        content(&self.path, self.at, cause)
    }

    /// Reads up to `bytes.len()` bytes; returns how many there were.
    pub(super) fn fill(&mut self, bytes: &mut [u8]) -> Result<usize> {
        let mut filled = 0;
        while filled < bytes.len() {
            match self.reader.read(&mut bytes[filled..]) {
                Ok(0) => break,
                Ok(n) => filled += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => break,
                Err(source) if source.raw_os_error().is_some() => {
                    return Err(Error::Io { path: self.path.clone(), source });
                }
                Err(e) if e.kind() == io::ErrorKind::Other => return Err(self.error(e.to_string())),
                Err(e) => return Err(self.error(format!("the compressed stream is damaged here ({e})"))),
            }
        }
        self.at += filled as u64;
        Ok(filled)
    }

    /// The next N bytes; `what` names them in an error.
    pub(super) fn take<const N: usize>(&mut self, what: &str) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        match self.fill(&mut bytes)? {
            n if n == N => Ok(bytes),
            _ => Err(self.error(format!("the file ends within {what}"))),
        }
    }

    /// `count` items of `size` bytes each.
    pub(super) fn array<V>(
        &mut self,
        count: u64,
        size: usize,
        what: &str,
        decode: impl Fn(&[u8]) -> V,
    ) -> Result<Vec<V>> {
        let mut items: Vec<V> = Vec::new();
        let mut block = vec![0; (1 << 16) / size.max(1) * size.max(1)];
        let mut left = count;
        while left > 0 {
            let wanted = left.min((block.len() / size) as u64) as usize;
            let got = self.fill(&mut block[..wanted * size])?;
            if got < wanted * size {
                let found = items.len() + got / size;
                return Err(self.error(format!("the file ends after {found} of {count} {what}")));
            }
            items.try_reserve(wanted).map_err(|_| Error::OutOfMemory {
                device: "host".to_owned(),
                bytes: (items.len() as u64 + wanted as u64).saturating_mul(size_of::<V>() as u64),
            })?;
            items.extend(block[..got].chunks_exact(size).map(&decode));
            left -= wanted as u64;
        }
        Ok(items)
    }

    /// All remaining bytes.
    pub(super) fn rest(&mut self) -> Result<Vec<u8>> {
        const MORE: usize = 1 << 16;
        let mut all = Vec::new();
        loop {
            let filled = all.len();
            all.try_reserve(MORE).map_err(|_| Error::OutOfMemory {
                device: "host".to_owned(),
                bytes: filled as u64 + MORE as u64,
            })?;
            all.resize(filled + MORE, 0);
            let got = self.fill(&mut all[filled..])?;
            if got < MORE {
                all.truncate(filled + got);
                return Ok(all);
            }
        }
    }

    /// Returns an error if bytes remain.
    pub(super) fn end(&mut self, after: &str) -> Result<()> {
        if self.fill(&mut [0])? > 0 {
            return Err(self.error(format!("the file goes on after {after}")));
        }
        Ok(())
    }
}
