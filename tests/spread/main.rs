//! Every method on a matrix whose rows are distributed over several ranks, each on a thread of its own: the same answer
//! as on one, and the same bits on every rank and in every run.
//!
//! | file | what it tests |
//! |---|---|
//! | `methods` | each Krylov method, and the formats of products |
//! | `ranks` | what only one rank knows, and ranks that do not take part |
//! | `multigrid` | one hierarchy over all ranks |
//! | `rows` | ranks that have their own rows alone |

mod methods;
mod multigrid;
mod ranks;
mod rows;

use residua::backend::Parts;
use residua::generate::Random;
use residua::solver::{self, SolveReport};
use residua::{Csr, Host, Result, Triplets, assemble};

/// The number of unknowns of [`ring`].
const N: usize = 90;

/// A periodic second difference in one dimension, with `left` and `right` next to the diagonal.
fn ring(left: f64, right: f64) -> Csr<f64> {
    let mut triplets = Triplets::new(N, N).unwrap();
    for i in 0..N {
        triplets.push(i, i, 2.5 + 0.01 * i as f64).unwrap();
        triplets.push(i, (i + 1) % N, right).unwrap();
        triplets.push((i + 1) % N, i, left).unwrap();
        triplets.push(i, (i + 37) % N, 0.1 * right).unwrap();
        triplets.push((i + 37) % N, i, 0.1 * left).unwrap();
    }
    assemble::to_csr(&Host, triplets).unwrap()
}

fn random(seed: u64) -> Vec<f64> {
    let mut random = Random::new(seed);
    (0..N).map(|_| random.unit() - 0.5).collect()
}

/// Solves a system on `parts` ranks.
fn on_parts(a: &Csr<f64>, b: &[f64], parts: usize, wishes: &solver::Builder) -> (Vec<f64>, SolveReport) {
    let solved: Vec<(Vec<u32>, Vec<f64>, SolveReport)> = std::thread::scope(|scope| {
        let threads: Vec<_> = Parts::new(parts)
            .into_iter()
            .map(|part| {
                scope.spawn(move || {
                    let mut solver = wishes.build_spread(&Host, part, a)?;
                    let mut x = vec![0.0; solver.numbers().len()];
                    let report = solver.solve_into(&solver.own_part(b), &mut x)?;
                    Ok((solver.numbers().to_vec(), x, report))
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Result<_>>().unwrap()
    });
    let mut x = vec![0.0; a.rows()];
    for (numbers, own, report) in &solved {
        assert!(report.outcome.is_converged(), "{parts} parts: {report:?}");
        assert_eq!(report.residual_norm.to_bits(), solved[0].2.residual_norm.to_bits());
        numbers.iter().zip(own).for_each(|(&number, &value)| x[number as usize] = value);
    }
    let (_, _, report) = solved.into_iter().next().unwrap();
    (x, report)
}
