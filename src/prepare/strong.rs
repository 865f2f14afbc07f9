//! Strongly connected components.

use super::pattern::Pattern;
use crate::work::look_at;

/// Returns the strongly connected components of the directed graph whose vertices are rows. Each entry of a row is an
/// edge to the row that `end` gives for its column; `u32::MAX` means no edge. This is Tarjan, "Depth-first search and
/// linear graph algorithms", SIAM Journal on Computing 1 (1972), with an explicit stack instead of recursion. Edges
/// between components lead from later ones to earlier ones, and the rows of each component ascend.
pub(crate) fn strong_components(
    rows: &[u32],
    pattern: &Pattern<'_>,
    end: impl Fn(u32) -> u32,
) -> Vec<Vec<u32>> {
    const UNSEEN: u32 = u32::MAX;
    // Vertices are numbered as they are discovered. A vertex whose component is known gets a number that is never a
    // minimum.
    const KNOWN: u32 = u32::MAX - 1;
    let (mut number, mut lowest) = (vec![UNSEEN; pattern.rows()], vec![0; pattern.rows()]);
    let mut components = Vec::new();
    let mut open: Vec<u32> = Vec::new(); // vertices whose component is not yet known
    let mut path: Vec<(u32, usize)> = Vec::new(); // from the root, each with the edge that is tried next
    let (mut seen, mut steps) = (0, 0);
    for &root in rows {
        if number[root as usize] != UNSEEN {
            continue;
        }
        path.push((root, 0));
        while let Some((vertex, edge)) = path.last_mut() {
            steps += 1;
            look_at(steps);
            let v = *vertex as usize;
            if *edge == 0 && number[v] == UNSEEN {
                (number[v], lowest[v]) = (seen, seen);
                seen += 1;
                open.push(*vertex);
            }
            if let Some(&next) = pattern.row(v).get(*edge) {
                *edge += 1;
                let next = end(next);
                match number.get(next as usize) {
                    Some(&UNSEEN) => path.push((next, 0)),
                    Some(&discovered) if discovered != KNOWN => lowest[v] = lowest[v].min(discovered),
                    _ => {}
                }
                continue;
            }
            path.pop();
            if let Some(&(before, _)) = path.last() {
                let before = before as usize;
                lowest[before] = lowest[before].min(lowest[v]);
            }
            if lowest[v] == number[v] {
                let first = open.iter().rposition(|&w| w as usize == v).unwrap_or(0);
                let mut component = open.split_off(first);
                component.iter().for_each(|&w| number[w as usize] = KNOWN);
                component.sort_unstable();
                components.push(component);
            }
        }
    }
    components
}
