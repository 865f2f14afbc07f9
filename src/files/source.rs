//! Random access to bytes: of a file, of a member of an archive, or unpacked from gzip.
//!
//! The header gives the offset of an array, so each thread can read a piece of it into its own part of the array in
//! memory. A piece goes through a block that stays in the cache: it is read, added to the checksum, converted to
//! numbers, and checked. The checksums of pieces are combined into that of the whole. A deflated stream can only be
//! unpacked from its start, by one thread; several arrays are then unpacked in parallel.

use super::bytes::{Bytes, content};
use super::numbers::{Bad, Type};
use crate::backend::{Backend, Host};
use crate::error::{Error, Result};
use crate::market::read_at;
use crate::parallel::prelude::*;
use crate::scalar::{Element, Offset, Scalar};
use crc32fast::Hasher;
use flate2::bufread::DeflateDecoder;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Bytes of a piece: large enough that starting it costs nothing, small enough that all threads have work.
const PIECE: usize = 1 << 20;

/// Bytes that are read at once. They stay on the stack, and in the second-level cache until they are converted.
const BLOCK: usize = 1 << 16;

/// A byte of a deflated stream unpacks to at most this many: two bits can represent 258 bytes.
const MOST_UNPACKED: u64 = 1032;

/// A sequence of bytes that several threads can read: a file, or a member of an archive.
pub(super) struct Source {
    label: PathBuf,
    store: Store,
    /// The number of bytes, unpacked.
    length: u64,
    /// The checksum of all bytes, if it is known.
    crc: Option<u32>,
}

/// The storage that has the bytes.
enum Store {
    /// A file from an offset on.
    File(File, u64),
    /// A range of a file, deflated.
    Deflated(File, Range<u64>),
    Memory(Vec<u8>),
}

/// Converts the bytes of some elements; gets the index of the first one.
type Turn<'a, V> = dyn Fn(usize, &mut [u8], &mut [V]) -> Option<Bad> + Sync + 'a;

/// The first invalid element.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fault {
    pub(super) number: usize,
    pub(super) value: i64,
}

/// How a member of an archive is packed.
pub(super) struct Packing {
    pub(super) deflated: bool,
    pub(super) place: u64,
    /// Bytes in the archive.
    pub(super) packed: u64,
    /// Bytes after unpacking, according to the archive.
    pub(super) whole: u64,
    pub(super) crc: u32,
}

impl Source {
    /// A whole file, which may be gzipped.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let (reader, compressed) = super::open(path)?;
        let (store, length) = if compressed {
            let all = Bytes::new(path, reader).rest()?;
            let length = all.len() as u64;
            (Store::Memory(all), length)
        } else {
            drop(reader);
            let io = |source| Error::Io { path: path.to_owned(), source };
            let file = File::open(path).map_err(io)?;
            let length = file.metadata().map_err(io)?.len();
            (Store::File(file, 0), length)
        };
        Ok(Self { label: path.to_owned(), store, length, crc: None })
    }

    /// A member of an archive; errors name it by `label`.
    pub(super) fn member(label: PathBuf, archive: File, packing: &Packing) -> Result<Self> {
        let Packing { deflated, place, packed, whole, crc } = *packing;
        let most = if deflated { packed.saturating_add(1).saturating_mul(MOST_UNPACKED) } else { packed };
        if whole > most || !deflated && whole != packed {
            let cause = format!(
                "the zip archive is damaged: this member is said to hold {whole} bytes, in {packed} of the archive"
            );
            return Err(content(&label, 0, cause));
        }
        let store = if deflated {
            Store::Deflated(archive, place..place.saturating_add(packed))
        } else {
            Store::File(archive, place)
        };
        Ok(Self { label, store, length: whole, crc: Some(crc) })
    }

    pub(super) fn length(&self) -> u64 {
        self.length
    }

    pub(super) fn error(&self, at: u64, cause: impl Into<String>) -> Error {
        content(&self.label, at, cause)
    }

    /// A reader of all bytes from the start, for headers.
    pub(super) fn bytes(&self) -> Bytes<Box<dyn Read + '_>> {
        let reader: Box<dyn Read + '_> = match &self.store {
            Store::File(file, place) => Box::new(Ahead { file, at: *place, left: self.length }),
            Store::Deflated(file, places) => {
                let packed = Ahead { file, at: places.start, left: places.end - places.start };
                Box::new(DeflateDecoder::new(BufReader::with_capacity(BLOCK, packed)))
            }
            Store::Memory(all) => Box::new(&all[..]),
        };
        Bytes::new(&self.label, reader)
    }

    /// Fills `to` with the bytes from `at` on, which must exist.
    pub(super) fn exact(&self, at: u64, to: &mut [u8]) -> Result<()> {
        let (file, place) = match &self.store {
            Store::File(file, place) => (file, *place),
            Store::Memory(all) => {
                to.copy_from_slice(&all[at as usize..at as usize + to.len()]);
                return Ok(());
            }
            Store::Deflated(..) => {
                let mut bytes = self.bytes();
                return skip(&mut bytes, at, |_| ()).and_then(|()| whole(&mut bytes, to));
            }
        };
        let mut filled = 0;
        while filled < to.len() {
            match read_at(file, &mut to[filled..], place + at + filled as u64) {
                Ok(0) => return Err(self.error(at + filled as u64, "the file has become shorter")),
                Ok(got) => filled += got,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(Error::Io { path: self.label.clone(), source }),
            }
        }
        Ok(())
    }

    /// Fills `out` with elements of `size` bytes each, starting at `at`, and verifies the checksum of all bytes.
    /// Returns the first element that `turn` found invalid.
    fn fill<V: Element>(
        &self,
        (at, size): (u64, usize),
        out: &mut [V],
        turn: &Turn<'_, V>,
    ) -> Result<Option<Fault>> {
        let end = at + (out.len() * size) as u64;
        let summed = self.crc.is_some();
        let (sum, fault) = match self.store {
            Store::Deflated(..) => {
                let (mut bytes, mut sum) = (self.bytes(), Hasher::new());
                skip(&mut bytes, at, |block| sum.update(block))?;
                let next = &mut |_: usize, block: &mut [u8]| whole(&mut bytes, block);
                let (elements, fault) = piece((size, 0), out, turn, summed, next)?;
                sum.combine(&elements);
                skip(&mut bytes, self.length - end, |block| sum.update(block))?;
                bytes.end(&format!(
                    "the {} bytes that the archive's list announces for this member",
                    self.length
                ))?;
                (sum, fault)
            }
            _ => {
                let per_piece = PIECE / size;
                let pieces = out.par_chunks_mut(per_piece).enumerate().map(|(k, out)| {
                    let next =
                        &mut |number: usize, block: &mut [u8]| self.exact(at + (number * size) as u64, block);
                    piece((size, k * per_piece), out, turn, summed, next)
                });
                let (pieces, mut sum, mut first) = (pieces.collect(), self.summed(0..at)?, None);
                for piece in pieces {
                    let (elements, fault) = piece?;
                    sum.combine(&elements);
                    first = first.or(fault);
                }
                sum.combine(&self.summed(end..self.length)?);
                (sum, first)
            }
        };
        let sum = sum.finalize();
        if self.crc.is_some_and(|wanted| wanted != sum) {
            let cause = "the checksum is wrong: this member of the archive is damaged";
            return Err(self.error(self.length, cause));
        }
        Ok(fault)
    }

    /// The checksum of some bytes, if there is one to compare with.
    fn summed(&self, places: Range<u64>) -> Result<Hasher> {
        let (mut sum, mut block) = (Hasher::new(), [0; BLOCK]);
        let mut at = places.start;
        while at < places.end && self.crc.is_some() {
            let block = &mut block[..(places.end - at).min(BLOCK as u64) as usize];
            self.exact(at, block)?;
            sum.update(block);
            at += block.len() as u64;
        }
        Ok(sum)
    }
}

/// Reads elements of `size` bytes from index `first` on, and computes the checksum of their bytes if requested. `next`
/// returns the bytes from an element on.
fn piece<V: Element>(
    (size, first): (usize, usize),
    out: &mut [V],
    turn: &Turn<'_, V>,
    summed: bool,
    next: &mut dyn FnMut(usize, &mut [u8]) -> Result<()>,
) -> Result<(Hasher, Option<Fault>)> {
    let (mut sum, mut fault) = (Hasher::new(), None);
    let mut block = [0; BLOCK];
    let per_block = BLOCK / size;
    for (k, out) in out.chunks_mut(per_block).enumerate() {
        let (first, block) = (first + k * per_block, &mut block[..out.len() * size]);
        next(first, block)?;
        if summed {
            sum.update(block);
        }
        let bad = turn(first, block, out);
        fault = fault.or(bad.map(|(place, value)| Fault { number: first + place, value }));
    }
    Ok((sum, fault))
}

/// Fills `block`.
fn whole<R: Read>(bytes: &mut Bytes<R>, block: &mut [u8]) -> Result<()> {
    if bytes.fill(block)? < block.len() {
        return Err(bytes
            .error("the compressed stream ends here, before all bytes that the archive's list announces"));
    }
    Ok(())
}

/// Skips `left` bytes, and passes them to `see`.
fn skip<R: Read>(bytes: &mut Bytes<R>, mut left: u64, mut see: impl FnMut(&[u8])) -> Result<()> {
    let mut block = [0; BLOCK];
    while left > 0 {
        let block = &mut block[..left.min(BLOCK as u64) as usize];
        whole(bytes, block)?;
        see(block);
        left -= block.len() as u64;
    }
    Ok(())
}

/// An array of numbers of one type in a source that is long enough.
#[derive(Clone, Copy)]
pub(super) struct Stretch<'a> {
    pub(super) source: &'a Source,
    pub(super) at: u64,
    pub(super) count: usize,
    pub(super) kind: Type,
}

impl<'a> Stretch<'a> {
    /// `count` numbers from offset `at` on.
    ///
    /// # Errors
    /// If the source ends before them.
    pub(super) fn new(source: &'a Source, at: u64, count: u64, kind: Type, what: &str) -> Result<Self> {
        let there = source.length.saturating_sub(at) / kind.size as u64;
        if count > there {
            return Err(source.error(source.length, format!("the file ends after {there} of {count} {what}")));
        }
        Ok(Self { source, at, count: count as usize, kind })
    }

    /// The offset of its end.
    pub(super) fn end(&self) -> u64 {
        self.place(self.count)
    }

    /// The offset of one number.
    fn place(&self, number: usize) -> u64 {
        self.at + (number * self.kind.size) as u64
    }

    fn read<V: Element>(&self, turn: &Turn<'_, V>) -> Result<(Vec<V>, Option<Fault>)> {
        let mut out = Host.zeros(self.count)?;
        let fault = self.source.fill((self.at, self.kind.size), &mut out, turn)?;
        Ok((out, fault))
    }

    fn check_integers(&self) -> Result<()> {
        match self.kind.letter {
            b'i' | b'u' => Ok(()),
            _ => Err(self.source.error(self.at, "an array of integers is expected")),
        }
    }

    /// Reads a short list of integers.
    pub(super) fn integers(&self) -> Result<Vec<i64>> {
        self.check_integers()?;
        Ok(self.read(&|_, raw, out| self.kind.to_signed(raw, out))?.0)
    }

    /// Reads bytes.
    pub(super) fn text(&self) -> Result<Vec<u8>> {
        let copy = |_: usize, raw: &mut [u8], out: &mut [u8]| {
            out.copy_from_slice(raw);
            None
        };
        Ok(self.read(&copy)?.0)
    }

    /// Reads integers from zero to below `limit`; returns the first invalid one. `look` gets the numbers block by
    /// block, with the index of the first one.
    pub(super) fn indices<O: Offset>(
        &self,
        limit: u64,
        look: &(dyn Fn(usize, &[O]) + Sync),
    ) -> Result<(Vec<O>, Option<Fault>)> {
        self.check_integers()?;
        self.read(&|first, raw, out| {
            let bad = self.kind.to_indices(raw, out, limit);
            look(first, out);
            bad
        })
    }

    /// Reads integers from zero to below `limit`.
    pub(super) fn indices_of(
        &self,
        what: &str,
        limit: u64,
        look: &(dyn Fn(usize, &[u32]) + Sync),
    ) -> Result<Vec<u32>> {
        let (list, fault) = self.indices(limit, look)?;
        fault.map_or(Ok(list), |fault| {
            let Fault { number, value } = fault;
            let cause = format!("{what} {value} (number {number} from 0) is outside of {limit}");
            Err(self.source.error(self.place(number), cause))
        })
    }

    /// The first `count` numbers.
    pub(super) fn first(self, count: usize) -> Self {
        Self { count: count.min(self.count), ..self }
    }

    /// Reads all values, finite or not.
    pub(super) fn values<T: Scalar>(&self) -> Result<Values<T>> {
        let (all, fault) = self.read(&|_, raw, out| self.kind.to_values(raw, out))?;
        Ok(Values { all, fault })
    }

    /// The first `used` of `values`, which were read from this array.
    ///
    /// # Errors
    /// If one of them is not finite.
    pub(super) fn finite<T: Scalar>(&self, values: Values<T>, used: usize) -> Result<Vec<T>> {
        let Values { mut all, fault } = values;
        if let Some(Fault { number, .. }) = fault.filter(|fault| fault.number < used) {
            let cause = format!("value {number} (from 0) is not finite");
            return Err(self.source.error(self.place(number), cause));
        }
        all.truncate(used);
        Ok(all)
    }
}

/// Values as they were read.
pub(super) struct Values<T> {
    all: Vec<T>,
    /// The first value that is not finite.
    fault: Option<Fault>,
}

impl<T> Values<T> {
    /// All values, finite or not.
    pub(super) fn unchecked(self) -> Vec<T> {
        self.all
    }
}

/// Indices of this type in one block, as [`Stretch::indices`] passes them to `look`.
pub(super) fn shown_at_a_time(kind: Type) -> usize {
    BLOCK / kind.size
}

/// A reader of a range of a file that does not move the file's position.
struct Ahead<'a> {
    file: &'a File,
    at: u64,
    left: u64,
}

impl Read for Ahead<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let wanted = self.left.min(to.len() as u64) as usize;
        let got = read_at(self.file, &mut to[..wanted], self.at)?;
        self.at += got as u64;
        self.left -= got as u64;
        Ok(got)
    }
}
