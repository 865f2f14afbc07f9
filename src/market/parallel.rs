//! Parses all entries of a file: blocks are cut into pieces, which are parsed in parallel.
//!
//! A piece with l lines has at most l entries. Counting line ends therefore gives every piece its own range of the
//! final arrays before it is parsed, and each line its number. If comments or blank lines leave gaps, later entries are
//! moved up.

use super::entries::{self, Parser, Shape, Slots, Summary};
use super::fault::{self, Cause, Fault};
use super::header::{Format, Header, HeaderParser};
use super::source::{Block, Blocks, ReadFault, Source};
use crate::backend::{Backend, Host};
use crate::error::{Error, Result};
use crate::parallel::prelude::*;
use crate::scalar::{Element, Scalar};
use std::ops::ControlFlow;
use std::path::PathBuf;

/// Approximate bytes of a piece: it fits the second-level cache, and is large enough that starting it costs nothing.
const PIECE: usize = 128 << 10;

/// Reads up to the size line. Returns the header and the number of its lines, with the block that it ends in and the
/// position of its end.
pub(super) fn header(source: &mut Source) -> Result<(Header, u64, Block, usize)> {
    let path = source.path().to_owned();
    let compressed = source.compressed;
    let mut parser = HeaderParser::new(&path);
    loop {
        let block = match source.next() {
            Ok(Some(block)) => block,
            Ok(None) => return Err(parser.ended()),
            // A file that is not text has no lines.
            Err(ReadFault::LongLine) if parser.line() == 0 => return Err(parser.ended_without_banner()),
            Err(fault) => return Err(Source::fault(&path, compressed, parser.line(), fault)),
        };
        let (text, end) = block.text();
        let mut at = 0;
        while at < end {
            let length = text[at..end].iter().position(|&b| b == b'\n').unwrap_or(end - at);
            let found = parser.take(&text[at..at + length])?;
            at += length + 1;
            if let Some(header) = found {
                return Ok((header, parser.line(), block, at));
            }
        }
    }
}

/// The entries of a file, as they are stored.
pub(super) struct Entries<T> {
    pub(super) header: Header,
    pub(super) rows: Vec<u32>,
    pub(super) columns: Vec<u32>,
    pub(super) values: Vec<T>,
    pub(super) summary: Summary,
    pub(super) lines: LineMap,
}

/// Maps an entry to its line.
pub(super) struct LineMap {
    path: PathBuf,
    /// Lines of the header.
    header: u64,
    skipped: Vec<(u64, u64)>,
}

impl LineMap {
    /// A [`Error::Parse`] at entry `entry`.
    pub(super) fn error(&self, entry: usize, cause: impl Into<String>) -> Error {
        let entry = entry as u64;
        let skipped: u64 = self.skipped.iter().take_while(|s| s.0 <= entry).map(|s| s.1).sum();
        Error::Parse { path: self.path.clone(), line: self.header + entry + skipped + 1, cause: cause.into() }
    }
}

/// Reads every entry.
pub(super) fn entries<T: Scalar>(
    source: Source,
    check: impl FnOnce(&Header, u64) -> Result<()>,
) -> Result<Entries<T>> {
    let path = source.path().to_owned();
    let mut open = Open::<T>::new(source, check)?;
    // Allocates as many entries as the file's size allows, whatever the header says; if that is unknown, starts with
    // few and grows.
    let bound = open.bound.unwrap_or(1 << 16);
    let goal = open.arrays.goal;
    open.arrays.grow(goal.min(usize::try_from(bound).unwrap_or(usize::MAX)))?;
    let (header, header_lines) = (open.header.clone(), open.header_lines);
    let Arrays { filling: Part { mut rows, mut columns, mut values, .. }, mut summary, .. } =
        open.read(|_| ControlFlow::Continue(()))?;
    rows.truncate(goal);
    columns.truncate(goal);
    values.truncate(goal);
    let skipped = std::mem::take(&mut summary.skipped);
    let lines = LineMap { path, header: header_lines, skipped };
    Ok(Entries { header, rows, columns, values, summary, lines })
}

/// Parses some lines of a file with this header; they have approximately `about` entries.
#[cfg(all(unix, feature = "ranks", feature = "cli"))]
pub(super) fn some_lines<T: Scalar>(source: Source, header: &Header, about: usize) -> Result<Entries<T>> {
    let path = source.path().to_owned();
    let mut arrays = Arrays::new(path.clone(), header, 0, entries::parser::<T>(header)?);
    arrays.grow(about.min(arrays.goal))?;
    let _ = arrays.read(source, |_| ControlFlow::Continue(()))?;
    let Arrays { filling: Part { mut rows, mut columns, mut values, .. }, mut summary, .. } = arrays;
    rows.truncate(summary.entries);
    columns.truncate(summary.entries);
    values.truncate(summary.entries);
    let lines = LineMap { path, header: 0, skipped: std::mem::take(&mut summary.skipped) };
    Ok(Entries { header: header.clone(), rows, columns, values, summary, lines })
}

/// An open file whose header has been read and accepted.
pub(super) struct Open<T: Scalar> {
    pub(super) header: Header,
    header_lines: u64,
    /// The maximum number of entries that the file's size allows, if that is known.
    pub(super) bound: Option<u64>,
    source: Source,
    /// The block in which the header ends, and the position of its end.
    block: Block,
    start: usize,
    arrays: Arrays<T>,
}

impl<T: Scalar> Open<T> {
    pub(super) fn new(mut source: Source, check: impl FnOnce(&Header, u64) -> Result<()>) -> Result<Self> {
        let path = source.path().to_owned();
        let (header, header_lines, block, start) = self::header(&mut source)?;
        let parser = entries::parser::<T>(&header).map_err(|e| match e {
            Error::Unsupported(what) => Error::Unsupported(format!("{}: {what}", path.display())),
            other => other,
        })?;
        check(&header, header_lines)?;
        let arrays = Arrays::new(path, &header, header_lines, parser);
        let bound = source.text_bound.map(|bytes| bytes / header.entry_bytes() + 1);
        Ok(Self { header, header_lines, bound, source, block, start, arrays })
    }

    /// Parses every entry, and gives those of each block to `deliver` in the order of the file. `deliver` returns
    /// memory for the next entries, or `None` to stop.
    pub(super) fn in_parts(self, mut deliver: impl FnMut(Part<T>) -> Option<Part<T>>) -> Result<Summary> {
        let arrays = self.read(|arrays| {
            let mut part = std::mem::take(&mut arrays.filling);
            part.entries = arrays.summary.entries - arrays.delivered;
            arrays.delivered = arrays.summary.entries;
            match deliver(part) {
                Some(room) => arrays.filling = room,
                None => return ControlFlow::Break(()),
            }
            ControlFlow::Continue(())
        })?;
        Ok(arrays.summary)
    }

    /// Parses block after block; `after` is called after each, and may stop.
    fn read(self, mut after: impl FnMut(&mut Arrays<T>) -> ControlFlow<()>) -> Result<Arrays<T>> {
        let Self { source, block, start, mut arrays, .. } = self;
        arrays.block(&block, start)?;
        if after(&mut arrays).is_break() || arrays.read(source, after)?.is_break() {
            return Ok(arrays);
        }
        let (found, goal) = (arrays.summary.entries, arrays.goal);
        if found < goal {
            return Err(Error::Parse {
                path: arrays.path,
                line: arrays.line,
                cause: format!("the file ends after {found} of {goal} entries"),
            });
        }
        Ok(arrays)
    }
}

/// Consecutive entries, in arrays that may be longer.
pub(super) struct Part<T> {
    pub(super) rows: Vec<u32>,
    pub(super) columns: Vec<u32>,
    pub(super) values: Vec<T>,
    pub(super) entries: usize,
}

impl<T> Default for Part<T> {
    fn default() -> Self {
        Self { rows: Vec::new(), columns: Vec::new(), values: Vec::new(), entries: 0 }
    }
}

/// The arrays while they are filled; their length is their capacity.
struct Arrays<T> {
    parser: Parser<T>,
    shape: Shape,
    /// Indices in a line.
    indices: usize,
    /// The number of entries in the header.
    goal: usize,
    filling: Part<T>,
    /// Entries that were delivered in earlier parts.
    delivered: usize,
    summary: Summary,
    /// Lines read so far.
    line: u64,
    path: PathBuf,
}

/// Part of a block: its start and end, its number of lines, and the lines before it in the block.
struct Piece {
    start: usize,
    end: usize,
    lines: usize,
    before: usize,
}

impl<T: Scalar> Arrays<T> {
    fn new(path: PathBuf, header: &Header, line: u64, parser: Parser<T>) -> Self {
        Self {
            parser,
            shape: Shape::new(header),
            indices: if header.format == Format::Array { 0 } else { 2 - usize::from(header.vector) },
            goal: usize::try_from(header.entries).unwrap_or(usize::MAX),
            filling: Part::default(),
            delivered: 0,
            summary: Summary::default(),
            line,
            path,
        }
    }

    /// Parses block after block; `after` is called after each, and may stop.
    fn read(
        &mut self,
        source: Source,
        mut after: impl FnMut(&mut Self) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>> {
        let compressed = source.compressed;
        let mut blocks: Blocks = source.ahead();
        loop {
            match blocks.next() {
                Ok(Some(block)) => {
                    self.block(&block, 0)?;
                    if after(self).is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                    blocks.recycle(block);
                }
                Ok(None) => return Ok(ControlFlow::Continue(())),
                Err(fault) => return Err(Source::fault(&self.path, compressed, self.line, fault)),
            }
        }
    }

    /// The number of entries that fit; reused arrays may be longer than the rest of the file needs.
    fn room(&self) -> usize {
        self.filling.values.len().min(self.goal - self.delivered)
    }

    /// Entries in the arrays.
    fn filled(&self) -> usize {
        self.summary.entries - self.delivered
    }

    /// Grows the arrays to `room` entries in all.
    fn grow(&mut self, room: usize) -> Result<()> {
        let (indices, Part { rows, columns, values, .. }) = (self.indices, &mut self.filling);
        enlarge(values, room)?;
        enlarge(rows, if indices > 0 { room } else { 0 })?;
        enlarge(columns, if indices > 1 { room } else { 0 })
    }

    fn block(&mut self, block: &Block, start: usize) -> Result<()> {
        let (text, end) = block.text();
        let pieces = cut(text, start, end);
        let lines = pieces.last().map_or(0, |p| p.before + p.lines);
        let (first, goal) = (self.filled(), self.goal - self.delivered);
        let wanted = (first + lines).min(goal);
        if wanted > self.room() {
            self.grow(wanted.max(self.room().saturating_mul(2)).min(goal))?;
        }
        if first + lines <= self.room() {
            for (summary, piece) in self.side_by_side(text, &pieces).into_iter().zip(&pieces) {
                let summary = summary.map_err(|fault| self.error(fault, text, piece))?;
                self.close_gap(first + piece.before, summary.entries);
                self.summary.append(summary);
            }
        } else {
            // Near the end of a file with comments or blank lines, there are fewer free slots than lines, so pieces are
            // parsed one after another.
            for piece in &pieces {
                let free = self.filled()..self.room();
                let arrays = &mut self.filling;
                let slots = Slots {
                    rows: arrays.rows.get_mut(free.clone()).unwrap_or_default(),
                    columns: arrays.columns.get_mut(free.clone()).unwrap_or_default(),
                    values: &mut arrays.values[free],
                };
                let summary = (self.parser)(&text[piece.start..], piece.end - piece.start, self.shape, slots)
                    .map_err(|fault| self.error(fault, text, piece))?;
                self.summary.append(summary);
            }
        }
        self.line += lines as u64;
        Ok(())
    }

    /// Every piece gets as many slots as it has lines.
    fn side_by_side(&mut self, text: &[u8], pieces: &[Piece]) -> Vec<Result<Summary, Fault>> {
        let free = self.filled()..self.room();
        let arrays = &mut self.filling;
        let mut rows = arrays.rows.get_mut(free.clone()).unwrap_or_default();
        let mut columns = arrays.columns.get_mut(free.clone()).unwrap_or_default();
        let mut values = &mut arrays.values[free];
        let mut jobs = Vec::with_capacity(pieces.len());
        for piece in pieces {
            let slots = Slots {
                rows: rows.split_off_mut(..piece.lines.min(rows.len())).unwrap_or_default(),
                columns: columns.split_off_mut(..piece.lines.min(columns.len())).unwrap_or_default(),
                values: values.split_off_mut(..piece.lines).unwrap_or_default(),
            };
            jobs.push((piece, slots));
        }
        let (parser, shape) = (self.parser, self.shape);
        jobs.into_par_iter()
            .map(|(piece, slots)| parser(&text[piece.start..], piece.end - piece.start, shape, slots))
            .collect()
    }

    /// Moves `count` entries that start at `from` to the end of the entries before them.
    fn close_gap(&mut self, from: usize, count: usize) {
        let (to, Part { rows, columns, values, .. }) = (self.filled(), &mut self.filling);
        if from != to {
            values.copy_within(from..from + count, to);
            if self.indices > 0 {
                rows.copy_within(from..from + count, to);
            }
            if self.indices > 1 {
                columns.copy_within(from..from + count, to);
            }
        }
    }

    fn error(&self, fault: Fault, text: &[u8], piece: &Piece) -> Error {
        let at = piece.start + fault.at;
        let before = text[piece.start..at].iter().filter(|&&b| b == b'\n').count();
        let cause = match fault.cause {
            Cause::Surplus(_) => Cause::Surplus(self.goal as u64),
            other => other,
        };
        Error::Parse {
            path: self.path.clone(),
            line: self.line + (piece.before + before) as u64 + 1,
            cause: cause.message(&fault::word(&text[at..])).into_owned(),
        }
    }
}

/// Extends `array` to `room` zeros. The first allocation is not written to, so it takes memory only as it is filled.
fn enlarge<T: Element>(array: &mut Vec<T>, room: usize) -> Result<()> {
    let refused = |_| Error::OutOfMemory {
        device: "host".to_owned(),
        bytes: (room as u64).saturating_mul(size_of::<T>() as u64),
    };
    if array.is_empty() {
        *array = Host.zeros(room)?;
    } else {
        array.try_reserve_exact(room.saturating_sub(array.len())).map_err(refused)?;
        array.resize(room, T::default());
    }
    Ok(())
}

/// Cuts `text[start..end]` into pieces at line ends, and counts their lines.
fn cut(text: &[u8], start: usize, end: usize) -> Vec<Piece> {
    let mut pieces = Vec::with_capacity((end - start) / PIECE + 1);
    let mut at = start;
    while at < end {
        let aim = (at + PIECE).min(end) - 1;
        let stop = aim + text[aim..end].iter().position(|&b| b == b'\n').map_or(end - aim, |n| n + 1);
        pieces.push(Piece { start: at, end: stop, lines: 0, before: 0 });
        at = stop;
    }
    pieces.par_iter_mut().for_each(|piece| piece.lines = count_lines(&text[piece.start..piece.end]));
    let mut before = 0;
    for piece in &mut pieces {
        piece.before = before;
        before += piece.lines;
    }
    pieces
}

/// The number of line ends. Sums over at most 255 bytes fit a byte, so the compiler can vectorise them.
fn count_lines(text: &[u8]) -> usize {
    text.chunks(255).map(|chunk| usize::from(chunk.iter().map(|&b| u8::from(b == b'\n')).sum::<u8>())).sum()
}
