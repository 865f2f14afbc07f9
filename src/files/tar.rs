//! Archives of the SuiteSparse Collection: a folder NAME with NAME.mtx, and perhaps NAME_b.mtx.

use super::bytes::{Bytes, content};
use super::open;
use crate::error::{Error, Result};
use crate::market::Source;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// NAME/NAME.mtx.
pub(super) fn matrix(path: &Path) -> Result<Source> {
    let mut names = Vec::new();
    if let Some((_, source)) = member(path, &mut names, |folder, file| file == format!("{folder}.mtx"))? {
        return Ok(source);
    }
    let texts: Vec<&String> = names.iter().filter(|name| name.ends_with(".mtx")).collect();
    if let [only] = texts[..] {
        let only = only.clone();
        let whole = |folder: &str, file: &str| format!("{folder}/{file}").trim_start_matches('/') == only;
        if let Some((_, source)) = member(path, &mut Vec::new(), whole)? {
            return Ok(source);
        }
    }
    let cause = format!("no matrix NAME/NAME.mtx in this archive, but {} other .mtx files", texts.len());
    Err(content(path, 0, cause))
}

/// NAME/NAME_b.mtx, and what to call it.
pub(super) fn right_hand_side(path: &Path) -> Result<Option<(String, Source)>> {
    member(path, &mut Vec::new(), |folder, file| file == format!("{folder}_b.mtx"))
}

/// The first file whose last folder and name are wanted. `names` gets those of all that come before it.
fn member(
    path: &Path,
    names: &mut Vec<String>,
    wanted: impl Fn(&str, &str) -> bool,
) -> Result<Option<(String, Source)>> {
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
            if wanted(folder, file) {
                let label = format!("{}:{name}", path.display());
                let reader = Whole { bytes, left: size };
                return Ok(Some((
                    label.clone(),
                    Source::of(&PathBuf::from(label), Box::new(reader), compressed, None),
                )));
            }
            names.push(format!("{folder}/{file}").trim_start_matches('/').to_owned());
        }
        skip(&mut bytes, size.div_ceil(512).saturating_mul(512))?;
    }
}

/// Digits to base eight, blanks around them.
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

/// A file of an archive: as many bytes as its header says, or an error.
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
