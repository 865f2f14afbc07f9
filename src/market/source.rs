//! Text in blocks of whole lines, read (and decompressed) one block ahead of the parser.

use super::in_pieces::InPieces;
use super::meter::{Meter, Metered};
use super::number::PADDING;
use crate::error::{Error, Result};
use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Bytes of a block for each thread, and in all. Three blocks exist at a time, whatever the file's size. Threads wait
/// for each other at the end of a block, so sixteen need larger ones than two.
const A_THREAD: usize = 1 << 20;
const SMALLEST: usize = 4 << 20;
const LARGEST: usize = 16 << 20;
/// The first block is smaller, since often only the header is needed.
const FIRST_BLOCK: usize = 64 << 10;
/// The longest line that is accepted, which must fit a block.
const LONGEST_LINE: usize = 1 << 20;

/// Whole lines: `text[..end]`, each ended by a line feed, then [`PADDING`] bytes of line ends.
pub(super) struct Block {
    text: Vec<u8>,
    end: usize,
}

impl Block {
    /// The text with its padding, and the length without.
    pub(super) fn text(&self) -> (&[u8], usize) {
        (&self.text[..self.end + PADDING], self.end)
    }
}

/// An open file whose header has not been read yet.
pub(crate) struct Source {
    path: PathBuf,
    /// The maximum number of bytes of text that the file can contain, if that is known.
    pub(super) text_bound: Option<u64>,
    /// True if the text is unpacked from gzip.
    pub(super) compressed: bool,
    lines: Lines,
}

impl Source {
    /// Opens `path`; `-` is standard input. Gzip is recognised by its first two bytes. `meter` counts the bytes read.
    pub(super) fn open(path: &Path, meter: Option<&Arc<Meter>>) -> Result<Self> {
        let io = |source| Error::Io { path: path.to_owned(), source };
        let (mut raw, length): (Box<dyn Read + Send>, _) = if path == Path::new("-") {
            (Box::new(io::stdin()), None)
        } else {
            let file = File::open(path).map_err(io)?;
            let metadata = file.metadata().map_err(io)?;
            if metadata.is_file() {
                (Box::new(InPieces::new(file)), Some(metadata.len()))
            } else {
                (Box::new(file), None)
            }
        };
        if let Some(meter) = meter {
            meter.begin(length);
        }
        let mut magic = Vec::new();
        raw.by_ref().take(2).read_to_end(&mut magic).map_err(io)?;
        let compressed = magic == [0x1f, 0x8b];
        let raw = io::Cursor::new(magic).chain(raw);
        let raw = Metered { reader: raw, meter: meter.cloned() };
        let reader: Box<dyn Read + Send> =
            if compressed { Box::new(MultiGzDecoder::new(raw)) } else { Box::new(raw) };
        let text_bound = if compressed { None } else { length };
        Ok(Self::of(path, reader, compressed, text_bound))
    }

    /// A source that reads from `reader`; errors name it `path`. `compressed` says whether it is unpacked from gzip,
    /// and `text_bound` is the maximum number of bytes of text, if that is known.
    pub(crate) fn of(
        path: &Path,
        reader: Box<dyn Read + Send>,
        compressed: bool,
        text_bound: Option<u64>,
    ) -> Self {
        let lines = Lines { reader, rest: Vec::new(), block: FIRST_BLOCK, ended: false };
        Self { path: path.to_owned(), text_bound, compressed, lines }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the next block in this thread.
    pub(super) fn next(&mut self) -> Result<Option<Block>, ReadFault> {
        self.lines.next(Vec::new())
    }

    /// The blocks, read ahead by another thread.
    pub(super) fn ahead(self) -> Blocks {
        let (give, blocks) = sync_channel(1);
        let (back, empty) = sync_channel(2);
        let mut lines = self.lines;
        if lines.ended {
            // The file is small and has a single block.
            return Blocks { blocks, back, ended: true };
        }
        // Not joined: if the parser stops early, the thread ends at its next block. It must not delay an error while it
        // waits for a pipe.
        std::thread::spawn(move || {
            loop {
                let next = lines.next(empty.try_recv().unwrap_or_default());
                let last = !matches!(next, Ok(Some(_)));
                if give.send(next).is_err() || last {
                    return;
                }
            }
        });
        Blocks { blocks, back, ended: false }
    }

    /// The error for a read that failed after `line` lines.
    pub(super) fn fault(path: &Path, compressed: bool, line: u64, fault: ReadFault) -> Error {
        let parse = |cause| Error::Parse { path: path.to_owned(), line: line + 1, cause };
        match fault {
            ReadFault::LongLine => parse(format!("the line is longer than {LONGEST_LINE} bytes")),
            ReadFault::Io(source) if compressed && source.kind() == io::ErrorKind::UnexpectedEof => {
                parse("the gzip stream ends here; the file is cut off".to_owned())
            }
            ReadFault::Io(source) if compressed && source.raw_os_error().is_none() => {
                parse(format!("the gzip stream is damaged here ({source})"))
            }
            ReadFault::Io(source) => Error::Io { path: path.to_owned(), source },
        }
    }
}

/// The reason why there is no further block.
pub(super) enum ReadFault {
    Io(io::Error),
    LongLine,
}

/// Blocks from the reading thread.
pub(super) struct Blocks {
    blocks: Receiver<Result<Option<Block>, ReadFault>>,
    back: SyncSender<Vec<u8>>,
    ended: bool,
}

impl Blocks {
    pub(super) fn next(&mut self) -> Result<Option<Block>, ReadFault> {
        if self.ended {
            return Ok(None);
        }
        let gone = || Err(ReadFault::Io(io::Error::other("the reading thread ended")));
        self.blocks.recv().unwrap_or_else(|_| gone())
    }

    /// Returns the memory of a block for reuse.
    pub(super) fn recycle(&self, block: Block) {
        // If the channel is full or closed, the memory is not needed.
        let _ = self.back.try_send(block.text);
    }
}

/// Cuts what a reader delivers into blocks of whole lines.
struct Lines {
    reader: Box<dyn Read + Send>,
    /// The beginning of the line that was cut off at the end of the last block.
    rest: Vec<u8>,
    block: usize,
    ended: bool,
}

impl Lines {
    fn next(&mut self, mut text: Vec<u8>) -> Result<Option<Block>, ReadFault> {
        if self.ended {
            return Ok(None);
        }
        let mut filled = self.rest.len();
        let mut goal = self.block + filled;
        self.block = (A_THREAD * rayon::current_num_threads()).clamp(SMALLEST, LARGEST);
        if text.is_empty() {
            // Zeroed by the system: not written to before they are read into. A later block needs some bytes more.
            text = vec![0; (goal + PADDING).next_multiple_of(FIRST_BLOCK)];
        } else if text.len() < goal + PADDING {
            text.resize(goal + PADDING, 0);
        }
        text[..filled].copy_from_slice(&self.rest);
        self.rest.clear();
        loop {
            match self.reader.read(&mut text[filled..goal]) {
                Ok(0) => self.ended = true,
                Ok(n) => filled += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                // The text before the error is returned first, since it may have an error on an earlier line.
                Err(e) => match text[..filled].iter().rposition(|&b| b == b'\n') {
                    Some(_) => {
                        self.reader = Box::new(Failed(Some(e)));
                        goal = filled;
                    }
                    None => return Err(ReadFault::Io(e)),
                },
            }
            if self.ended {
                if filled > 0 && text[filled - 1] != b'\n' {
                    text.resize((filled + 1 + PADDING).max(text.len()), 0);
                    text[filled] = b'\n';
                    filled += 1;
                }
                return Ok((filled > 0).then(|| finish(text, filled)));
            }
            if filled == goal {
                match text[..filled].iter().rposition(|&b| b == b'\n') {
                    Some(last) => {
                        self.rest.extend_from_slice(&text[last + 1..filled]);
                        return Ok(Some(finish(text, last + 1)));
                    }
                    None if filled > LONGEST_LINE => return Err(ReadFault::LongLine),
                    None => {
                        goal += LONGEST_LINE;
                        text.resize(goal + PADDING, 0);
                    }
                }
            }
        }
    }
}

fn finish(mut text: Vec<u8>, end: usize) -> Block {
    text[end..end + PADDING].fill(b'\n');
    Block { text, end }
}

/// A reader that fails: it reports the error at the next read.
struct Failed(Option<io::Error>);

impl Read for Failed {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}
