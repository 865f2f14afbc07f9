//! Archives of the SuiteSparse Collection: a folder NAME with NAME.mtx or NAME.rb, and possibly NAME_b.mtx or
//! NAME_b.rb.

use super::bytes::{Bytes, content};
use super::{harwell, open};
use crate::error::{Error, Result};
use crate::market::{self, DenseFile, Header, MatrixFile, ReadOptions, Source};
use crate::scalar::Scalar;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// A member of an archive.
pub(super) struct Member {
    /// The name of the archive and that of the member, separated by a colon.
    pub(super) label: PathBuf,
    reader: Box<dyn Read + Send>,
    compressed: bool,
}

impl Member {
    fn is_market(&self) -> bool {
        self.label.extension().is_some_and(|end| end == "mtx")
    }

    fn source(self) -> Source {
        Source::of(&self.label, self.reader, self.compressed, None)
    }

    pub(super) fn header(self) -> Result<Header> {
        if self.is_market() {
            return market::header_of(self.source());
        }
        Ok(harwell::read(&self.label, self.reader, true)?.header)
    }

    pub(super) fn triplets<T: Scalar>(self, options: &ReadOptions) -> Result<MatrixFile<T>> {
        if self.is_market() {
            return market::triplets_of(self.source(), options);
        }
        harwell::read(&self.label, self.reader, false)?.triplets(&self.label, options)
    }

    pub(super) fn dense<T: Scalar>(self, options: &ReadOptions) -> Result<DenseFile<T>> {
        if self.is_market() {
            return market::dense_of(self.source(), options);
        }
        harwell::read(&self.label, self.reader, false)?.dense(&self.label, options)
    }
}

/// Returns whether a file is named `stem` with the extension of a text format.
fn is_text(file: &str, stem: &str) -> bool {
    file.strip_prefix(stem).is_some_and(|end| matches!(end, ".mtx" | ".rb"))
}

/// NAME/NAME.mtx or NAME/NAME.rb.
pub(super) fn matrix(path: &Path) -> Result<Member> {
    let mut names = Vec::new();
    if let Some(found) = member(path, &mut names, is_text)? {
        return Ok(found);
    }
    let texts: Vec<&String> =
        names.iter().filter(|name| name.ends_with(".mtx") || name.ends_with(".rb")).collect();
    if let [only] = texts[..] {
        let only = only.clone();
        let whole = |file: &str, folder: &str| format!("{folder}/{file}").trim_start_matches('/') == only;
        if let Some(found) = member(path, &mut Vec::new(), whole)? {
            return Ok(found);
        }
    }
    let cause = format!(
        "this archive has no matrix NAME/NAME.mtx or NAME/NAME.rb, but {} other such files",
        texts.len()
    );
    Err(content(path, 0, cause))
}

/// NAME/NAME_b.mtx or NAME/NAME_b.rb.
pub(super) fn right_hand_side(path: &Path) -> Result<Option<Member>> {
    member(path, &mut Vec::new(), |file, folder| is_text(file, &format!("{folder}_b")))
}

/// The first member with a wanted name and folder. `names` gets the names of all members before it.
fn member(
    path: &Path,
    names: &mut Vec<String>,
    wanted: impl Fn(&str, &str) -> bool,
) -> Result<Option<Member>> {
    let (reader, compressed) = open(path)?;
    let mut bytes = Bytes::new(path, reader);
    loop {
        let mut block = [0; 512];
        let got = bytes.fill(&mut block)?;
        if got == 0 || block.iter().all(|&byte| byte == 0) {
            return Ok(None);
        }
        if got < 512 {
            return Err(bytes.error("the archive is cut off"));
        }
        let sum: u64 =
            block.iter().enumerate().map(|(k, &b)| if (148..156).contains(&k) { 32 } else { b.into() }).sum();
        let (Some(size), Some(check)) = (octal(&block[124..136]), octal(&block[148..156])) else {
            return Err(bytes.error("the archive is damaged: a size is no number"));
        };
        if sum != check {
            return Err(bytes.error("the archive is damaged: the checksum of a header is wrong"));
        }
        let text = |field: &[u8]| {
            let end = field.iter().position(|&b| b == 0).unwrap_or(field.len());
            String::from_utf8_lossy(&field[..end]).into_owned()
        };
        let (prefix, name) = (text(&block[345..500]), text(&block[..100]));
        let name = if prefix.is_empty() || &block[257..263] != b"ustar\0" {
            name
        } else {
            format!("{prefix}/{name}")
        };
        let name = name.trim_start_matches("./").to_owned();
        if matches!(block[156], b'0' | 0) {
            let (folders, file) = name.rsplit_once('/').unwrap_or(("", &name));
            let folder = folders.rsplit('/').next().unwrap_or_default();
            if wanted(file, folder) {
                let label = PathBuf::from(format!("{}:{name}", path.display()));
                return Ok(Some(Member { label, reader: Box::new(Whole { bytes, left: size }), compressed }));
            }
            names.push(format!("{folder}/{file}").trim_start_matches('/').to_owned());
        }
        skip(&mut bytes, size.div_ceil(512).saturating_mul(512))?;
    }
}

/// An octal number, surrounded by blanks.
fn octal(field: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(field).ok()?.trim_matches(['\0', ' ']);
    if text.is_empty() { Some(0) } else { u64::from_str_radix(text, 8).ok() }
}

fn skip<R: Read>(bytes: &mut Bytes<R>, mut left: u64) -> Result<()> {
    let mut block = vec![0; 1 << 16];
    while left > 0 {
        let wanted = left.min(block.len() as u64) as usize;
        let got = bytes.fill(&mut block[..wanted])?;
        if got < wanted {
            return Err(bytes.error("the archive is cut off"));
        }
        left -= wanted as u64;
    }
    Ok(())
}

/// A reader of a member that returns an error if it has fewer bytes than its header says.
struct Whole<R> {
    bytes: Bytes<R>,
    left: u64,
}

impl<R: Read> Read for Whole<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let wanted = self.left.min(to.len() as u64) as usize;
        let got = self.bytes.fill(&mut to[..wanted]).map_err(|error| match error {
            Error::Io { source, .. } => source,
            other => io::Error::new(io::ErrorKind::InvalidData, other.to_string()),
        })?;
        if got < wanted {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the archive is cut off"));
        }
        self.left -= got as u64;
        Ok(got)
    }
}
