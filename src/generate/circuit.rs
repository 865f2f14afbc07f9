//! Modified nodal analysis of random circuits.

use super::rows::{by_entries, unknowns};
use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::random::Random;

/// There is a voltage source for each group of this many nodes.
const NODES_A_SOURCE: usize = 24;

/// A random circuit of resistors, controlled current sources (transistors at their operating point) and voltage
/// sources, by modified nodal analysis (Ho, Ruehli and Brennan, "The modified nodal approach to network analysis",
/// IEEE Transactions on Circuits and Systems 22, 1975):
///
/// ```text
/// | G   B | | node voltages    |   G  conductances, and the transistors' that make it unsymmetric
/// | B^T . | | source currents  |   B  1 and -1 at the nodes of each voltage source; no diagonal below
/// ```
///
/// Each of `nodes` nodes has two or three resistors to nodes near by, whose conductances span a factor of `contrast`.
/// About every third node is connected to one of two supply nodes, which have thousands of neighbours while other nodes
/// have a few; every fourth is the output of a transistor. One node in 24 has a voltage source, to ground or to the
/// next node. The matrix is unsymmetric, and zero on a part of the diagonal.
///
/// # Errors
/// As [`poisson2d`](super::poisson2d); unless there are at least 8 nodes and `contrast` is from 1 to 1e100.
pub fn circuit(nodes: usize, contrast: f64, seed: u64) -> Result<Csr<f64>> {
    if nodes < 8 {
        return Err(Error::InvalidArgument(format!("a circuit needs at least 8 nodes, not {nodes}")));
    }
    if !(1.0..=1e100).contains(&contrast) {
        return Err(Error::InvalidArgument(format!("contrast must be from 1 to 1e100, not {contrast:e}")));
    }
    let sources = nodes.div_ceil(NODES_A_SOURCE);
    let rows = unknowns(&[nodes])? + sources;
    unknowns(&[rows])?;
    let mut stamps = Stamps { entries: Vec::with_capacity(16 * nodes) };
    for node in 0..nodes {
        let mut random = Random::stream(seed, node as u64);
        let conductance = |random: &mut Random| contrast.powf(-random.unit());
        // A neighbour is one to three places along or, for one wire in four, that far along in the next row of a square
        // layout. Wires are short, so the graph is nearly planar and has small separators, as circuits have.
        let width = (nodes as f64).sqrt() as usize + 1;
        let near = |random: &mut Random| {
            let (up, along) = (random.below(4) == 0, random.below(3) as usize);
            (node + if up { width + along } else { 1 + along }) % nodes
        };
        stamps.resistor(Some(node), Some((node + 1) % nodes), conductance(&mut random));
        for _ in 0..1 + random.below(2) {
            let other = near(&mut random);
            if other != node {
                stamps.resistor(Some(node), Some(other), conductance(&mut random));
            }
        }
        match random.below(12) {
            // A resistor to ground, which is not an unknown.
            0 => stamps.resistor(Some(node), None, conductance(&mut random)),
            kind @ 1..=4 if node > 1 => {
                stamps.resistor(Some(node), Some((kind % 2) as usize), conductance(&mut random));
            }
            5..=7 => {
                let (gate, source) = (near(&mut random), near(&mut random));
                let source = Some(source).filter(|_| random.unit() < 0.5);
                stamps.transistor([Some(node), Some(gate), source], 10.0 * conductance(&mut random));
            }
            _ => {}
        }
    }
    for source in 0..sources {
        // The two supplies are connected to ground; of the other sources, half are between two nodes.
        let node = if source < 2 { source } else { source * NODES_A_SOURCE };
        let other = Some(node + 1).filter(|&other| source >= 2 && source % 2 == 0 && other < nodes);
        stamps.source(nodes + source, node, other);
    }
    by_entries(rows, rows, stamps.entries)
}

/// The entries that each element adds to the matrix. A node that is `None` is ground.
struct Stamps {
    entries: Vec<(u64, f64)>,
}

impl Stamps {
    fn add(&mut self, row: Option<usize>, column: Option<usize>, value: f64) {
        if let (Some(row), Some(column)) = (row, column) {
            self.entries.push(((row as u64) << 32 | column as u64, value));
        }
    }

    fn resistor(&mut self, one: Option<usize>, two: Option<usize>, conductance: f64) {
        self.add(one, one, conductance);
        self.add(two, two, conductance);
        self.add(one, two, -conductance);
        self.add(two, one, -conductance);
    }

    /// A current from drain to source that is proportional to the voltage between gate and source.
    fn transistor(&mut self, [drain, gate, source]: [Option<usize>; 3], transconductance: f64) {
        self.add(drain, gate, transconductance);
        self.add(drain, source, -transconductance);
        self.add(source, gate, -transconductance);
        self.add(source, source, transconductance);
    }

    fn source(&mut self, current: usize, plus: usize, minus: Option<usize>) {
        self.add(Some(plus), Some(current), 1.0);
        self.add(Some(current), Some(plus), 1.0);
        self.add(minus, Some(current), -1.0);
        self.add(Some(current), minus, -1.0);
    }
}
