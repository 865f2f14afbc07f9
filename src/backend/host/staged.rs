//! Sums of staged runs. The host itself does not use this form, because its caches load whole lines. It is implemented
//! so that every backend has it.

use super::Host;
use crate::backend::run_mark;
use crate::backend::runs::staged::{
    BLOCK_PARTS, CODE_HEAD, MOST_PIECES, PART, PART_WORDS, PIECE, StagedRuns, code, pack, parts,
};
use crate::error::Result;
use crate::parallel::prelude::*;
use crate::scalar::Scalar;

/// The bit that marks a source at which a run starts.
const HEAD: u32 = run_mark::<u32>() as u32;

/// Computes the codes and the lists for marked sources, as in [`StagedRuns`].
pub(super) fn stage(values: usize, starts: &[u32], sources: &[u32]) -> Result<Option<StagedRuns<Host>>> {
    let ends = starts.iter().skip(1).copied().chain([sources.len() as u32]);
    let longest = starts.iter().zip(ends).map(|(start, end)| end - start).max().unwrap_or(0);
    let Some((length, parts)) = parts(sources.len(), longest as usize) else { return Ok(None) };
    let mut staged = StagedRuns::room(&Host, values, starts.len(), longest <= 1, parts)?;
    for (part, before) in staged.before.iter_mut().enumerate() {
        *before = starts.partition_point(|&start| (start as usize) < part * length) as u32;
    }
    let first =
        |part: usize| starts.get(staged.before[part] as usize).map_or(sources.len(), |start| *start as usize);
    let blocks = staged.codes.chunks_mut(PART_WORDS * BLOCK_PARTS).zip(staged.pieces.chunks_mut(MOST_PIECES));
    for (block, ((codes, pieces), count)) in blocks.zip(&mut staged.counts).enumerate() {
        let part = block * BLOCK_PARTS;
        let own = &sources[first(part)..first(part + BLOCK_PARTS)];
        let mut list: Vec<u32> = own.iter().map(|source| (source & !HEAD) / PIECE as u32).collect();
        list.sort_unstable();
        list.dedup();
        if list.len() > MOST_PIECES || own.iter().any(|source| (source & !HEAD) as usize >= values) {
            return Ok(None);
        }
        for (part, words) in (part..).zip(codes.chunks_mut(PART_WORDS)) {
            let mut codes = [CODE_HEAD; PART];
            for (code, source) in codes.iter_mut().zip(&sources[first(part)..first(part + 1)]) {
                let (piece, place) = ((source & !HEAD) / PIECE as u32, *source as usize % PIECE);
                let at = list.partition_point(|&other| other < piece) * PIECE + place;
                *code = at as u16 | if source & HEAD == 0 { 0 } else { CODE_HEAD };
            }
            pack(&codes, words);
        }
        *count = list.len() as u32;
        staged.most = staged.most.max(list.len());
        pieces[..list.len()].copy_from_slice(&list);
    }
    Ok(Some(staged))
}

/// Sums the runs, each from left to right.
pub(super) fn sum<T: Scalar>(x: &[T], staged: &StagedRuns<Host>, mut out: &mut [T]) {
    let mut parts = Vec::with_capacity(staged.before.len());
    for before in staged.before.windows(2) {
        let (own, rest) = std::mem::take(&mut out).split_at_mut((before[1] - before[0]) as usize);
        parts.push(own);
        out = rest;
    }
    parts.into_par_iter().enumerate().for_each(|(part, out)| {
        let list = &staged.pieces[part / BLOCK_PARTS * MOST_PIECES..];
        let value = |code: u16| {
            let at = usize::from(code & !CODE_HEAD);
            x[list[at / PIECE] as usize * PIECE + at % PIECE]
        };
        let words = &staged.codes[part * PART_WORDS..][..PART_WORDS];
        let mut codes = (0..PART).map(|slot| code(words, slot)).peekable();
        for out in out {
            let Some(first) = codes.next() else { break };
            *out = value(first);
            while let Some(code) = codes.next_if(|code| code & CODE_HEAD == 0) {
                *out += value(code);
            }
        }
    });
}
