//! Sequential twins of the library's graph functions, from their definitions, sharing no code with it.

use residua::Csr;
use residua::backend::UNREACHED;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Entries by (row, column): the twins' matrix.
pub type Entries = BTreeMap<(usize, usize), f64>;

pub fn csr(n: usize, entries: &Entries) -> Csr<f64> {
    rectangular(n, n, entries)
}

pub fn rectangular(rows: usize, columns: usize, entries: &Entries) -> Csr<f64> {
    let mut offsets = vec![0; rows + 1];
    for &(i, _) in entries.keys() {
        offsets[i + 1] += 1;
    }
    for i in 0..rows {
        offsets[i + 1] += offsets[i];
    }
    let indices = entries.keys().map(|&(_, j)| j as u32).collect();
    Csr::from_parts(rows, columns, offsets, indices, entries.values().copied().collect()).unwrap()
}

pub fn entries_of(a: &Csr<f64>) -> Entries {
    let parts = a.parts();
    let offsets: Vec<usize> = match parts.offsets {
        residua::backend::OffsetsRef::Lower(o) => o.iter().map(|&o| o as usize).collect(),
        residua::backend::OffsetsRef::Wide(o) => o.iter().map(|&o| o as usize).collect(),
    };
    let mut entries = Entries::new();
    for i in 0..a.rows() {
        let line = &parts.indices[offsets[i]..offsets[i + 1]];
        assert!(line.is_sorted_by(|a, b| a < b), "row {i} is not ascending: {line:?}");
        for k in offsets[i]..offsets[i + 1] {
            entries.insert((i, parts.indices[k] as usize), parts.values[k]);
        }
    }
    entries
}

/// Both directions of each edge, with different values.
pub fn undirected(n: usize, edges: impl IntoIterator<Item = (usize, usize)>) -> (usize, Entries) {
    let mut entries = Entries::new();
    for (i, j) in edges {
        entries.insert((i, j), (i * n + j + 1) as f64);
        entries.insert((j, i), (j * n + i + 1) as f64);
    }
    (n, entries)
}

pub fn neighbours(n: usize, entries: &Entries) -> Vec<BTreeSet<usize>> {
    let mut sets = vec![BTreeSet::new(); n];
    for &(i, j) in entries.keys().filter(|(i, j)| i != j) {
        sets[i].insert(j);
        sets[j].insert(i);
    }
    sets
}

pub fn twin_levels(adjacent: &[BTreeSet<usize>], sources: &[usize]) -> Vec<u32> {
    let mut levels = vec![UNREACHED; adjacent.len()];
    let mut queue = VecDeque::new();
    for &s in sources {
        levels[s] = 0;
        queue.push_back(s);
    }
    while let Some(v) = queue.pop_front() {
        for &w in &adjacent[v] {
            if levels[w] == UNREACHED {
                levels[w] = levels[v] + 1;
                queue.push_back(w);
            }
        }
    }
    levels
}

pub fn twin_component_labels(adjacent: &[BTreeSet<usize>]) -> Vec<u32> {
    let mut labels = vec![UNREACHED; adjacent.len()];
    let mut count = 0;
    for v in 0..adjacent.len() {
        if labels[v] == UNREACHED {
            for (w, level) in twin_levels(adjacent, &[v]).into_iter().enumerate() {
                if level != UNREACHED {
                    labels[w] = count;
                }
            }
            count += 1;
        }
    }
    labels
}

/// Cuthill-McKee from one root, as in the paper: (order, bandwidth, levels, the vertex of lowest degree in the last
/// level).
pub fn twin_cuthill_mckee(adjacent: &[BTreeSet<usize>], root: usize) -> (Vec<usize>, usize, usize, usize) {
    let degree = |v: usize| adjacent[v].len();
    let mut order = vec![root];
    let mut seen = BTreeSet::from([root]);
    let mut k = 0;
    while k < order.len() {
        let mut fresh: Vec<usize> = adjacent[order[k]].iter().copied().filter(|&w| seen.insert(w)).collect();
        fresh.sort_by_key(|&w| (degree(w), w));
        order.extend(fresh);
        k += 1;
    }
    let place: BTreeMap<usize, usize> = order.iter().enumerate().map(|(k, &v)| (v, k)).collect();
    let bandwidth = order
        .iter()
        .flat_map(|v| adjacent[*v].iter().map(|w| place[v].abs_diff(place[w])))
        .max()
        .unwrap_or(0);
    let levels = twin_levels(adjacent, &[root]);
    let height = order.iter().map(|&v| levels[v]).max().unwrap();
    let end = order.iter().copied().filter(|&v| levels[v] == height).min_by_key(|&v| (degree(v), v)).unwrap();
    (order, bandwidth, height as usize, end)
}

/// The whole ordering: components by (degree, number) of their roots; for each the best order from its root, from the
/// ends of George and Liu's search, and from up to three other vertices of the root's degree.
pub fn twin_reverse_cuthill_mckee(stored: usize, adjacent: &[BTreeSet<usize>]) -> Vec<u32> {
    let mut by_degree: Vec<usize> = (0..adjacent.len()).collect();
    by_degree.sort_by_key(|&v| (adjacent[v].len(), v));
    let mut done = BTreeSet::new();
    let mut all = Vec::new();
    for root in by_degree {
        if done.contains(&root) {
            continue;
        }
        let mut best = twin_cuthill_mckee(adjacent, root);
        done.extend(best.0.iter().copied());
        let mut tallest = best.2;
        let end = Some(best.3).filter(|_| tallest > 1);
        let peers: Vec<usize> =
            best.0[1..].iter().copied().filter(|&v| adjacent[v].len() == adjacent[root].len()).collect();
        let count = match best.0.len() {
            _ if stored / 16 > adjacent.len() || tallest < 2 => 0,
            size if peers.len() > size / 64 => 0,
            0..8192 => peers.len().min(1),
            _ => peers.len().min(3),
        };
        let peers = [2, 1, 3].iter().take(count).map(|k| peers[k * peers.len() / 4]);
        let mut queue: VecDeque<(usize, usize)> =
            end.into_iter().map(|v| (v, 0)).chain(peers.map(|v| (v, 1))).collect();
        let mut tried = BTreeSet::from([root]);
        while let Some((v, better_by)) = queue.pop_front() {
            if !tried.insert(v) {
                continue;
            }
            let sweep = twin_cuthill_mckee(adjacent, v);
            if sweep.1 + better_by > best.1 {
                continue;
            }
            if sweep.2 > tallest {
                tallest = sweep.2;
                queue.push_back((sweep.3, 0));
            }
            if sweep.1 < best.1 {
                best = sweep;
            }
        }
        all.extend(best.0.iter().map(|&v| v as u32));
    }
    all.reverse();
    all
}

pub fn twin_bandwidth(entries: &Entries) -> usize {
    entries.keys().map(|&(i, j)| i.abs_diff(j)).max().unwrap_or(0)
}

pub fn twin_profile(adjacent: &[BTreeSet<usize>]) -> u64 {
    adjacent.iter().enumerate().map(|(i, set)| (i - set.first().map_or(i, |&f| f.min(i))) as u64).sum()
}

pub fn twin_permuted(entries: &Entries, old_to_new: &[u32]) -> Entries {
    entries.iter().map(|(&(i, j), &v)| ((old_to_new[i] as usize, old_to_new[j] as usize), v)).collect()
}
