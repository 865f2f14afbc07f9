//! Formats numbers, many lines in parallel.

use crate::output::Output;
use crate::parallel::prelude::*;
use crate::scalar::{Real, Scalar};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::{self, Write};
use std::ops::Range;

/// Entries that one thread formats at once: about a megabyte of text.
const CHUNK: usize = 1 << 15;
/// Chunks in memory at the same time.
const BATCH: usize = 16;

/// Appends an index, converted to one-based.
pub(super) fn push_index(text: &mut Vec<u8>, index: u32) {
    let mut digits = [0; 10];
    let mut rest = u64::from(index) + 1;
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    text.extend_from_slice(&digits[at..]);
}

/// Appends a value with the fewest digits that are read back as the same bits; real and imaginary part for a complex
/// one.
pub(super) fn push_value<T: Scalar>(text: &mut Vec<u8>, value: T) {
    push_real(text, value.re());
    if T::COMPLEX {
        text.push(b' ');
        push_real(text, value.im());
    }
}

fn push_real<R: Real>(text: &mut Vec<u8>, value: R) {
    let mut buffer = zmij::Buffer::new();
    let digits = if size_of::<R>() == size_of::<f32>() {
        // Exact: the value is a single.
        buffer.format(value.to_f64() as f32)
    } else {
        buffer.format(value.to_f64())
    };
    text.extend_from_slice(digits.strip_suffix(".0").unwrap_or(digits).as_bytes());
}

/// Writes the lines of items `0..count`, which `format` appends for any range of them. Each chunk of a gzip file is its
/// own member, so that compression is parallel too.
pub(super) fn write_lines(
    output: &mut Output,
    gzip: bool,
    count: usize,
    format: impl Fn(Range<usize>, &mut Vec<u8>) + Sync,
) -> io::Result<()> {
    let chunk = |k: usize| k * CHUNK..((k + 1) * CHUNK).min(count);
    let chunks = count.div_ceil(CHUNK);
    let mut buffers: Vec<Vec<u8>> = vec![Vec::new(); BATCH.min(chunks)];
    for first in (0..chunks).step_by(BATCH) {
        let batch = BATCH.min(chunks - first);
        let done = buffers[..batch].par_iter_mut().enumerate().map(|(k, text)| {
            text.clear();
            format(chunk(first + k), text);
            if gzip {
                *text = compress(text)?;
            }
            io::Result::Ok(())
        });
        for (done, text) in done.collect().into_iter().zip(&buffers) {
            done?;
            output.write_all(text)?;
        }
    }
    Ok(())
}

/// A gzip member.
pub(super) fn compress(text: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(text.len() / 2), Compression::new(4));
    encoder.write_all(text)?;
    encoder.finish()
}
