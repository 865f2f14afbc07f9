//! The launches for fronts, level by level: fronts are sorted by level and size, and large ones are divided into tiles.

use crate::backend::cuda::tuning::FRONT_GROUP;
use crate::backend::{FrontPlan, NO_FRONT};
use crate::scalar::Symmetry;
use std::ops::Range;

/// The number of 64-bit words for a front on the device: `Front` in `kernels/fronts.cuh`.
const WORDS: usize = 8;
/// The number of rows and columns in a tile of a product (`TILE` in `kernels/front_tiles.cuh`), and of columns in a
/// strip that is assembled (`STRIP` in `kernels/fronts.cu`).
const TILE: usize = 64;
const STRIP: usize = 16;
/// The number of rows that a block of threads gathers, and of rows that it adds up, in fronts that solves divide among
/// blocks (`PART` and `ROWS` in `kernels/fronts_solve_large.cu`).
const PART: usize = 256;
const ROWS: usize = 8;
/// In a solve, a front with more entries in its own columns, or with more rows, is divided among blocks: a single block
/// of threads would take more than 10 us to read it.
const BY_PARTS: usize = 1 << 14;
const PARTED_ROWS: usize = 1 << 11;

/// A launch for consecutive fronts. A block finds its front from the number of tiles of the fronts before it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Tiled {
    /// The start of the list of these numbers in [`Schedule::starts`], and the number of fronts.
    pub(super) at: usize,
    pub(super) fronts: usize,
    pub(super) blocks: usize,
}

/// The launches for one block of pivots.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    pub(super) divide: Tiled,
    pub(super) update: Tiled,
}

/// The launches of a solve for one group of blocks of pivots in divided fronts: products with its own triangles, with
/// the rows below it, and with those above it.
#[derive(Debug, Clone, Copy)]
pub(super) struct SolveStep {
    pub(super) own: Tiled,
    pub(super) up: Tiled,
    pub(super) down: Tiled,
}

/// Fronts that can be eliminated in parallel; their parents are in the next levels.
#[derive(Debug, Clone)]
pub(super) struct Level {
    /// The small fronts, by classes of rows.
    pub(super) small: Vec<Range<usize>>,
    /// The large fronts: those that solves divide among blocks, and the others.
    pub(super) parted: Range<usize>,
    pub(super) large: Range<usize>,
    /// The maximum number of rows in a small front of all classes but the last, in one of the last class, and in a
    /// large front.
    pub(super) rows: [usize; 3],
    pub(super) assemble: Tiled,
    pub(super) steps: Vec<Step>,
    pub(super) contribute: Tiled,
    pub(super) gather: Tiled,
    pub(super) rest: Tiled,
    pub(super) solve_steps: Vec<SolveStep>,
}

/// All launches of a factorisation and a solve, and the arrays that they read.
#[derive(Debug, Clone, Default)]
pub(super) struct Schedule {
    pub(super) levels: Vec<Level>,
    /// [`WORDS`] words for each front, in the order of levels.
    pub(super) fronts: Vec<u64>,
    pub(super) children: Vec<u32>,
    pub(super) starts: Vec<u32>,
    /// The blocks of pivots whose triangles are inverted together: the front, and from bit 32 on its block.
    pub(super) joined: Vec<u64>,
    /// The maximum number of entries in the contributions of an even and of an odd level.
    pub(super) contributions: [usize; 2],
    /// The number of rows below the own ones of all fronts.
    pub(super) rows: usize,
}

impl Schedule {
    /// Creates the schedule. `small` has the maximum number of rows of each class of small fronts, which a single block
    /// of threads eliminates.
    pub(super) fn new(plan: &FrontPlan, small: &[usize]) -> Self {
        let count = plan.len();
        let (mut depth, mut deepest) = (vec![0_u32; count], 0);
        for front in (0..count).rev() {
            if plan.parents[front] != NO_FRONT {
                depth[front] = depth[plan.parents[front] as usize] + 1;
                deepest = deepest.max(depth[front]);
            }
        }
        let class = |front: usize| {
            let (w, r) = plan.shape(front);
            match small.iter().position(|&most| w + r <= most) {
                Some(class) => class,
                None if w * (w + r) > BY_PARTS || w + r > PARTED_ROWS => small.len(),
                None => small.len() + 1,
            }
        };
        // Among the large fronts, those with many own columns come first, so that the fronts that have another block of
        // pivots are always the first ones.
        let key = |front: u32| {
            let class = class(front as usize);
            let width = if class < small.len() { 0 } else { plan.shape(front as usize).0 };
            (deepest - depth[front as usize], class, std::cmp::Reverse(width), front)
        };
        let mut order: Vec<(_, _, _, u32)> = (0..count as u32).map(key).collect();
        order.sort_unstable();
        let mut number = vec![0_u32; count];
        order.iter().zip(0..).for_each(|(&(_, _, _, front), new)| number[front as usize] = new);
        let mut made = Self { rows: plan.rows.len(), ..Self::default() };
        let children_at = made.hang(plan, &number, &order.iter().map(|key| key.3).collect::<Vec<u32>>());
        made.fronts = vec![0; WORDS * count];
        let mut begin = 0;
        while begin < count {
            let level = order[begin].0;
            let end = begin + order[begin..].partition_point(|key| key.0 == level);
            let mut entries = 0;
            for new in begin..end {
                let front = order[new].3 as usize;
                let (w, r) = plan.shape(front);
                let panel = plan.factors_at[front];
                let pair = |low: usize, high: usize| low as u64 | (high as u64) << 32;
                let (first, last) = (plan.blocks_at[front], plan.blocks_at[front + 1]);
                made.fronts[WORDS * new..WORDS * (new + 1)].copy_from_slice(&[
                    panel,
                    panel + (w * (w + r)) as u64,
                    entries as u64,
                    plan.rows_at[front] as u64,
                    pair(w, w + r),
                    pair(plan.begin[front] as usize, children_at[new]),
                    pair(children_at[new + 1], first),
                    pair(last - first - 1, 0),
                ]);
                entries += r * r;
            }
            let most = &mut made.contributions[made.levels.len() % 2];
            *most = entries.max(*most);
            let fronts: Vec<(usize, usize)> =
                order[begin..end].iter().map(|key| (key.1, key.3 as usize)).collect();
            let level = made.level(plan, begin, &fronts, small.len());
            made.levels.push(level);
            begin = end;
        }
        made
    }

    /// Number of fronts.
    pub(super) fn fronts(&self) -> usize {
        self.fronts.len() / WORDS
    }

    /// Lists the children of each front, in the order of elimination. Returns the start of each list.
    fn hang(&mut self, plan: &FrontPlan, number: &[u32], order: &[u32]) -> Vec<usize> {
        let mut at = vec![0_usize; plan.len() + 2];
        let parents = || plan.parents.iter().enumerate().filter(|(_, parent)| **parent != NO_FRONT);
        parents().for_each(|(_, &parent)| at[number[parent as usize] as usize + 2] += 1);
        (0..order.len()).for_each(|k| at[k + 2] += at[k + 1]);
        self.children = vec![0; at[order.len() + 1]];
        for (child, &parent) in parents() {
            let next = &mut at[number[parent as usize] as usize + 1];
            self.children[*next] = number[child];
            *next += 1;
        }
        at
    }

    fn level(&mut self, plan: &FrontPlan, begin: usize, fronts: &[(usize, usize)], classes: usize) -> Level {
        let end_of = |class: usize| begin + fronts.partition_point(|&(of, _)| of <= class);
        let start_of = |class: usize| begin + fronts.partition_point(|&(of, _)| of < class);
        let range = |class: usize| start_of(class)..end_of(class);
        let (parted, large) = (range(classes), range(classes + 1));
        let rows = |classes: Range<usize>| {
            let own = fronts.iter().filter(|(class, _)| classes.contains(class));
            own.map(|&(_, front)| plan.shape(front)).map(|(w, r)| w + r).max().unwrap_or(0)
        };
        let rows = [rows(0..classes - 1), rows(classes - 1..classes), rows(classes + 1..classes + 2)];
        let of_large: Vec<usize> = fronts[parted.start - begin..].iter().map(|&(_, front)| front).collect();
        let of_parted = &of_large[..parted.len()];
        let blocks = |front: usize| &plan.blocks[plan.blocks_at[front]..plan.blocks_at[front + 1]];
        let steps = |fronts: &[usize]| fronts.iter().map(|&front| blocks(front).len() - 1).max().unwrap_or(0);
        let tiles = |n: usize| n.div_ceil(TILE);
        let mirrored = plan.symmetry == Symmetry::Symmetric || plan.symmetry == Symmetry::Hermitian;
        // The number of tiles on and below the diagonal in these columns and rows.
        let lower = |columns: usize, rows: usize| {
            let (across, down) = (tiles(columns), tiles(rows));
            across * down - across * across.saturating_sub(1) / 2
        };
        let mut made = Level {
            small: (0..classes).map(range).collect(),
            rows,
            assemble: self.tiled(&of_large, |front| {
                let (w, r) = plan.shape(front);
                (w + r).div_ceil(STRIP)
            }),
            steps: Vec::new(),
            contribute: self.tiled(&of_large, |front| {
                let r = plan.shape(front).1;
                if mirrored { lower(r, r) } else { tiles(r).pow(2) }
            }),
            gather: self.tiled(of_parted, |front| {
                let (w, r) = plan.shape(front);
                (w + r).div_ceil(PART)
            }),
            rest: self.tiled(of_parted, |front| plan.shape(front).0.div_ceil(ROWS)),
            solve_steps: Vec::new(),
            parted,
            large,
        };
        for step in 0..steps(&of_large) {
            let last =
                of_large.iter().rposition(|&front| blocks(front).len() > step + 1).map_or(0, |k| k + 1);
            let with = &of_large[..last];
            let end = |front: usize| blocks(front).get(step + 1).map(|&end| end as usize);
            let divide = self.tiled(with, |front| {
                let (w, r) = plan.shape(front);
                end(front).map_or(0, |end| tiles(w + r - end))
            });
            let update = self.tiled(with, |front| {
                let (w, r) = plan.shape(front);
                end(front).map_or(0, |end| match mirrored {
                    true => lower(w - end, w + r - end),
                    false => tiles(w - end) * (tiles(w + r - end) + tiles(r)),
                })
            });
            made.steps.push(Step { divide, update });
        }
        for step in 0..steps(of_parted).div_ceil(FRONT_GROUP) {
            // The columns of the group, if the front has it.
            let columns = |front: usize| {
                let blocks = blocks(front);
                let (first, last) = (step * FRONT_GROUP, ((step + 1) * FRONT_GROUP).min(blocks.len() - 1));
                (first < last).then(|| blocks[first] as usize..blocks[last] as usize)
            };
            let own = self.tiled(of_parted, |front| columns(front).map_or(0, |own| own.len().div_ceil(ROWS)));
            let up = self.tiled(of_parted, |front| {
                let (w, r) = plan.shape(front);
                columns(front).map_or(0, |own| (w + r - own.end).div_ceil(ROWS))
            });
            let down =
                self.tiled(of_parted, |front| columns(front).map_or(0, |own| own.start.div_ceil(ROWS)));
            made.solve_steps.push(SolveStep { own, up, down });
        }
        for (new, &front) in (made.parted.start..).zip(of_parted) {
            let blocks = blocks(front).len() as u64 - 1;
            if blocks > 1 {
                self.joined.extend((0..blocks).map(|block| new as u64 | block << 32));
            }
        }
        made
    }

    /// Appends to `starts` the number of tiles before each of these fronts.
    fn tiled(&mut self, fronts: &[usize], tiles: impl Fn(usize) -> usize) -> Tiled {
        let (at, mut blocks) = (self.starts.len(), 0);
        for &front in fronts {
            self.starts.push(blocks as u32);
            blocks += tiles(front);
        }
        Tiled { at, fronts: fronts.len(), blocks }
    }
}
