//! Reads a file with all threads. One thread copies 3 to 6 GB/s out of the system's cache of files, and sixteen parse
//! twice as much.

use crate::parallel::prelude::*;
use std::fs::File;
use std::io::{self, ErrorKind, Read};

/// Bytes that one task copies.
const PIECE: usize = 256 << 10;

/// A file that is read from its start on, each read divided among threads.
pub(super) struct InPieces {
    file: File,
    at: u64,
}

impl InPieces {
    pub(super) fn new(file: File) -> Self {
        Self { file, at: 0 }
    }
}

impl Read for InPieces {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let (file, at) = (&self.file, self.at);
        let pieces = to.par_chunks_mut(PIECE).enumerate();
        let pieces: Vec<_> =
            pieces.map(|(number, to)| fill(file, to, at + (number * PIECE) as u64)).collect();
        let mut filled = 0;
        for piece in pieces {
            match piece {
                Ok(bytes) => filled += bytes,
                Err(error) if filled == 0 => return Err(error),
                // The next read begins there, and reports it.
                Err(_) => break,
            }
            if !filled.is_multiple_of(PIECE) {
                break;
            }
        }
        self.at += filled as u64;
        Ok(filled)
    }
}

/// Reads until `to` is full or the file ends; an error counts if nothing was read before.
fn fill(file: &File, to: &mut [u8], at: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < to.len() {
        match read_at(file, &mut to[filled..], at + filled as u64) {
            Ok(0) => break,
            Ok(got) => filled += got,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if filled == 0 => return Err(error),
            Err(_) => break,
        }
    }
    Ok(filled)
}

#[cfg(unix)]
pub(crate) fn read_at(file: &File, to: &mut [u8], at: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, to, at)
}

#[cfg(windows)]
pub(crate) fn read_at(file: &File, to: &mut [u8], at: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, to, at)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads of any size, on and beside the edges of pieces, give the bytes of the file.
    #[test]
    fn reads_of_any_size_are_the_file() {
        let path = std::env::temp_dir().join(format!("residua-in-pieces-{}", std::process::id()));
        let bytes: Vec<u8> = (0..3 * PIECE + 1000).map(|k| (k % 251) as u8).collect();
        std::fs::write(&path, &bytes).unwrap();
        for most in [1000, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE, 3 * PIECE + 1000, 5 * PIECE] {
            let mut reader = InPieces::new(File::open(&path).unwrap());
            let (mut all, mut room) = (Vec::new(), vec![0; most]);
            loop {
                match reader.read(&mut room).unwrap() {
                    0 => break,
                    got => all.extend_from_slice(&room[..got]),
                }
            }
            assert!(all == bytes, "reads of {most} bytes");
        }
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    #[cfg(unix)]
    fn a_folder_is_an_error() {
        let mut reader = InPieces::new(File::open(std::env::temp_dir()).unwrap());
        assert!(reader.read(&mut [0; 10]).is_err());
    }
}
