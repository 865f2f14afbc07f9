//! A reader for the part of zip that `.npz` files need: the central directory, stored or deflated members, 64-bit
//! sizes.

use super::bytes::content;
use super::source::{Packing, Source};
use crate::error::{Error, Result};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// An open archive.
pub(super) struct Zip {
    path: PathBuf,
    /// The length of the file.
    length: u64,
    members: Vec<Member>,
}

/// A member of an archive: its name, compression and position.
struct Member {
    name: String,
    method: u16,
    crc: u32,
    /// Packed and unpacked size, and the offset of the packed bytes.
    packed: u64,
    whole: u64,
    place: u64,
}

impl Zip {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let length =
            File::open(path).and_then(|file| file.metadata()).map_err(|source| io(path, source))?.len();
        let first = length.saturating_sub(22 + 65_535);
        let tail = stretch(path, first, length - first)?;
        let cut = || content(path, length, "the zip archive is cut off: its list of members is missing");
        let end = (0..tail.len().saturating_sub(21))
            .rev()
            .find(|&k| tail[k..].starts_with(b"PK\x05\x06"))
            .ok_or_else(cut)?;
        let (mut size, mut offset) = (number(&tail, end + 12, 4), number(&tail, end + 16, 4));
        if let Some(locator) = end.checked_sub(20).filter(|&k| tail[k..].starts_with(b"PK\x06\x07")) {
            let record = stretch(path, number(&tail, locator + 8, 8), 56)?;
            (size, offset) = (number(&record, 40, 8), number(&record, 48, 8));
        }
        if offset.checked_add(size).is_none_or(|end| end > length) {
            return Err(cut());
        }
        let list = stretch(path, offset, size)?;
        let (mut members, mut at) = (Vec::new(), 0);
        while let Some(entry) =
            list.get(at..).filter(|rest| rest.len() >= 46 && rest.starts_with(b"PK\x01\x02"))
        {
            let [name, extra, comment] = [28, 30, 32].map(|k| number(entry, k, 2) as usize);
            let Some(text) = entry.get(46..46 + name) else { return Err(cut()) };
            let (mut whole, mut packed, mut place) =
                (number(entry, 24, 4), number(entry, 20, 4), number(entry, 42, 4));
            let mut extras = entry.get(46 + name..46 + name + extra).unwrap_or_default();
            while extras.len() >= 4 {
                let (id, length) = (number(extras, 0, 2), number(extras, 2, 2) as usize);
                let Some(mut field) = extras.get(4..4 + length) else { break };
                for size in [&mut whole, &mut packed, &mut place] {
                    if id == 1 && *size == 0xffff_ffff && field.len() >= 8 {
                        *size = number(field, 0, 8);
                        field = &field[8..];
                    }
                }
                extras = &extras[4 + length..];
            }
            if number(entry, 8, 2) & 1 != 0 {
                return Err(content(path, offset + at as u64, "a member of the archive is encrypted"));
            }
            let (method, crc) = (number(entry, 10, 2) as u16, number(entry, 16, 4) as u32);
            members.push(Member {
                name: String::from_utf8_lossy(text).into_owned(),
                method,
                crc,
                packed,
                whole,
                place,
            });
            at += 46 + name + extra + comment;
        }
        // The count has 16 bits; all of them are set if that is too few.
        let count = number(&tail, end + 10, 2);
        if count != 0xffff && count != members.len() as u64 {
            let cause =
                format!("the zip archive is damaged: its list has only {} of {count} members", members.len());
            return Err(content(path, offset + at as u64, cause));
        }
        Ok(Self { path: path.to_owned(), length, members })
    }

    /// The names of members, without `.npy`.
    pub(super) fn names(&self) -> Vec<&str> {
        self.members.iter().map(|member| member.name.strip_suffix(".npy").unwrap_or(&member.name)).collect()
    }

    /// The array with this name.
    pub(super) fn member(&self, name: &str) -> Result<Source> {
        let found = self.members.iter().zip(self.names()).find(|(_, known)| *known == name);
        let Some((Member { name: full, method, crc, packed, whole, place }, _)) = found else {
            return Err(content(&self.path, 0, format!("this archive has no array `{name}`")));
        };
        let head = stretch(&self.path, *place, 30)?;
        let damaged =
            |what: &str| content(&self.path, *place, format!("the zip archive is damaged: `{full}` {what}"));
        if !head.starts_with(b"PK\x03\x04") {
            return Err(damaged("is not here"));
        }
        let start = place + 30 + number(&head, 26, 2) + number(&head, 28, 2);
        if start.checked_add(*packed).is_none_or(|end| end > self.length) {
            return Err(damaged("goes beyond the end of the file"));
        }
        let deflated = match method {
            0 => false,
            8 => true,
            other => {
                let cause = format!(
                    "`{full}` is compressed by method {other}, but only stored and deflate are supported"
                );
                return Err(content(&self.path, *place, cause));
            }
        };
        let file = File::open(&self.path).map_err(|source| io(&self.path, source))?;
        let packing = Packing { deflated, place: start, packed: *packed, whole: *whole, crc: *crc };
        Source::member(PathBuf::from(format!("{}:{full}", self.path.display())), file, &packing)
    }
}

fn io(path: &Path, source: std::io::Error) -> Error {
    Error::Io { path: path.to_owned(), source }
}

/// `length` bytes from `start` on; callers have checked both against the size of the file, or request few bytes.
fn stretch(path: &Path, start: u64, length: u64) -> Result<Vec<u8>> {
    let mut file = File::open(path).map_err(|source| io(path, source))?;
    file.seek(SeekFrom::Start(start)).map_err(|source| io(path, source))?;
    let mut bytes = Vec::new();
    file.take(length).read_to_end(&mut bytes).map_err(|source| io(path, source))?;
    if (bytes.len() as u64) < length {
        return Err(content(path, start, "the zip archive is cut off"));
    }
    Ok(bytes)
}

/// A little-endian number of `size` bytes; zero if there are not enough bytes.
fn number(bytes: &[u8], at: usize, size: usize) -> u64 {
    bytes
        .get(at..at + size)
        .unwrap_or_default()
        .iter()
        .rev()
        .fold(0, |value, &byte| value << 8 | u64::from(byte))
}
