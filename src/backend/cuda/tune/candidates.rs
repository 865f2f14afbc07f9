//! Which constants are worth a try, by kernel.

use super::{Constants, Row};

/// All combinations of the values of each constant.
fn product(choices: &[(&'static str, &[u32])]) -> Vec<Constants> {
    choices.iter().fold(vec![Vec::new()], |combinations, (name, values)| {
        combinations
            .iter()
            .flat_map(|combination| {
                values.iter().map(|value| [combination.as_slice(), &[(*name, *value)]].concat())
            })
            .collect()
    })
}

/// Those that name the constants in order.
fn listed(names: &[&'static str], values: &[&[u32]]) -> Vec<Constants> {
    values.iter().map(|values| names.iter().copied().zip(values.iter().copied()).collect()).collect()
}

/// Those whose resident threads lie between `low` and `high`.
fn occupying(low: u32, high: u32, all: Vec<Constants>) -> Vec<Constants> {
    let get = |constants: &Constants, name| constants.iter().find(|(n, _)| *n == name).map_or(1, |(_, v)| *v);
    let threads = |constants: &Constants| get(constants, "THREADS") * get(constants, "MIN_BLOCKS");
    all.into_iter().filter(|constants| (low..=high).contains(&threads(constants))).collect()
}

/// Empty where a line is not tuned: it has few constants, or stands for a rare type.
pub(super) fn of(row: &Row) -> Vec<Constants> {
    const SORT: [&str; 4] = ["THREADS", "ITEMS", "MIN_BLOCKS", "LOOK_AT_ONCE"];
    const MERGE: [&str; 3] = ["THREADS", "ITEMS", "MIN_BLOCKS"];
    match (row.kernel, row.variant) {
        (_, "16") => Vec::new(),
        ("reduce", _) => product(&[("THREADS", &[256, 512]), ("UNROLL", &[2, 4, 8])]),
        ("scan", _) => occupying(
            512,
            1200,
            product(&[("THREADS", &[256, 384]), ("ROWS", &[4, 6, 8]), ("MIN_BLOCKS", &[2, 3, 4])]),
        ),
        ("scan_bulk", _) => listed(
            &["THREADS", "VECTORS", "STAGES", "BEHIND", "WALK_BEHIND", "MIN_BLOCKS"],
            &[
                &[320, 7, 6, 3, 2, 1],
                &[256, 9, 6, 3, 2, 1],
                &[768, 3, 6, 3, 2, 1],
                &[256, 7, 8, 4, 3, 1],
                &[384, 5, 7, 4, 2, 1],
                &[512, 5, 5, 2, 1, 1],
                &[512, 3, 9, 5, 3, 1],
                &[640, 3, 7, 4, 2, 1],
                &[768, 3, 6, 3, 1, 1],
                &[128, 9, 6, 3, 2, 2],
            ],
        ),
        ("scan_any", _) => product(&[("THREADS", &[128, 256, 512]), ("ITEMS", &[5, 7, 9, 13])]),
        ("compact", _) => occupying(
            512,
            1536,
            product(&[("THREADS", &[256, 512]), ("ROWS", &[4, 8]), ("MIN_BLOCKS", &[2, 3, 4])]),
        ),
        ("reduce_by_key", _) => occupying(
            384,
            1024,
            product(&[("THREADS", &[128, 192, 256]), ("ROWS", &[4, 5, 6]), ("MIN_BLOCKS", &[2, 3, 4])]),
        ),
        ("sort", "keys4") => {
            listed(&SORT, &[&[256, 32, 3, 2], &[256, 36, 3, 1], &[256, 36, 3, 2], &[256, 40, 3, 2]])
        }
        ("sort", "pairs4") => {
            listed(&SORT, &[&[512, 16, 2, 1], &[384, 18, 2, 1], &[384, 20, 2, 1], &[256, 24, 3, 1]])
        }
        ("sort", "keys8") => {
            listed(&SORT, &[&[256, 20, 3, 2], &[256, 22, 3, 1], &[256, 22, 3, 2], &[256, 24, 2, 2]])
        }
        ("sort", "pairs8") => {
            listed(&SORT, &[&[512, 12, 2, 1], &[384, 15, 2, 1], &[256, 16, 3, 1], &[448, 12, 2, 1]])
        }
        ("sort", _) => product(&[
            ("THREADS", &[256]),
            ("ITEMS", &[4, 6, 8, 12, 16, 18]),
            ("MIN_BLOCKS", &[1]),
            ("LOOK_AT_ONCE", &[2, 4]),
        ]),
        ("merge", _) => listed(
            &MERGE,
            &[&[256, 16, 2], &[256, 16, 3], &[256, 16, 4], &[512, 16, 1], &[256, 15, 3], &[128, 16, 6]],
        ),
        ("segmented", _) => product(&[("THREADS", &[128, 192, 256]), ("ITEMS", &[9, 11, 13, 15, 17, 21])]),
        ("segmented_sort", _) => {
            product(&[("THREADS", &[128, 256, 512]), ("ITEMS", &[4, 8, 16]), ("SHORT", &[32, 64, 128])])
        }
        ("histogram_cached", _) => {
            product(&[("THREADS", &[256, 512]), ("ITEMS", &[8, 16]), ("CACHE", &[4096, 8192])])
        }
        ("histogram_by_tiles", _) => {
            product(&[("THREADS", &[256, 512]), ("ITEMS", &[8, 16]), ("WINDOW", &[4096, 8192])])
        }
        ("gather", _) => product(&[("THREADS", &[128, 256, 512]), ("ITEMS", &[2, 4, 8])]),
        _ => Vec::new(),
    }
}
