//! Builds the hierarchy of a matrix, in the memory of its backend.

use super::aggregate::Aggregates;
use super::blocks::Scales;
use super::diagonal::ones;
use super::diffusion::{symmetric_part, with_diffusion};
use super::energy::of_least_energy;
use super::extended::{classical_prolongation, fewer_weights};
use super::galerkin::{Transfer, conjugate_transpose, galerkin, galerkin_within};
use super::nodes;
use super::stiff::{hubs, stiff_unknowns};
use super::strength::{Nodes, squared_norms, strong_couplings};
use super::tentative::{Groups, NearNull, Parts, Tentative, parts_of, tentative};
use super::{Coarsening, LevelFacts, MultigridBackend, MultigridOptions, Prolongation, Smoothing};
use crate::backend::{CoarseningSteps, Gemv, copied};
use crate::error::Result;
use crate::matrix::Csr;
use crate::scalar::{Max, Scalar};

/// The maximum number of levels, which no matrix reaches if aggregates have more than two nodes.
pub(super) const MOST_LEVELS: usize = 25;

/// Coarsening stops if there are more aggregates than this fraction of the nodes.
pub(super) const STAGNATION: f64 = 0.85;

/// The damping factor of prolongation smoothing: 4/3 over the bound of the largest eigenvalue, 1 (Vanek, Mandel and
/// Brezina, Computing 56, 1996).
pub(super) const OMEGA: f64 = 4.0 / 3.0;

/// With smoothing in blocks, the threshold for strong couplings is multiplied by this. Blocks damp the common error of
/// the most strongly coupled unknowns, so that aggregates may extend beyond these: fewer and larger ones take fewer
/// iterations on meshes with flat elements. With 0.4 the tetrahedra of a bunny take up to 67 iterations, with this 65.
const WEAKER_WITH_BLOCKS: f64 = 0.6;

/// The factor for the threshold with prolongations of minimal energy. Tetrahedra of random points took 36 iterations
/// with the full threshold, 34 with this, and 35 with half of it, with 2.3, 1.8 and 1.6 times the entries; without any
/// threshold layers of thin elements take six times as many.
const WEAKER_OF_LEAST_ENERGY: f64 = 0.4;

/// The maximum number of multiplications for A P and R (A P) of one level with a smoothed prolongation, as a multiple
/// of the finest matrix's entries. If rows of P have k entries, each entry of A takes k + k^2 multiplications: 11 to 43
/// for three-dimensional grids and a small world, 240 to 4000 if a few vertices of a graph are neighbours of a large
/// part of the others, and the result then has too many entries (docs/internals/multigrid/decisions.md).
pub(super) const MOST_PRODUCTS: f64 = 100.0;

/// If a classical level has too many entries, unknowns interpolate from half as many others as before, and from at most
/// this many.
const FEWER_WEIGHTS: usize = 4;

/// If the rows of a matrix are at most this long, its products are not counted in advance.
const SHORT: u32 = 128;

/// The data kept for new values. It depends on the strength of couplings, and has no values of A.
#[derive(Debug)]
pub(super) struct Plan<T: Scalar, B: CoarseningSteps> {
    pub(super) nodes: Nodes<B>,
    pub(super) groups: Groups<T, B>,
    pub(super) smoothed: bool,
    /// The threshold for strong couplings, relative to the largest ones.
    pub(super) strength: f64,
    /// Nodes that each become a node of the next level: stiff ones, or hubs.
    pub(super) stiff: Option<B::Vec<u32>>,
}

impl<T: Scalar, B: CoarseningSteps> Plan<T, B> {
    /// Bytes of its arrays.
    pub(super) fn storage_bytes(&self) -> usize {
        let stiff = self.stiff.as_ref().map_or(0, |stiff| B::len(stiff));
        self.nodes.storage_bytes() + self.groups.storage_bytes() + stiff * size_of::<u32>()
    }
}

/// A level that was computed.
#[derive(Debug)]
pub(super) struct Built<T: Scalar, B: CoarseningSteps> {
    pub(super) a: Csr<T, B>,
    pub(super) prolongation: Csr<T, B>,
    pub(super) restriction: Csr<T, B>,
}

/// All levels but the coarsest, the coarsest matrix, and the plans for new values.
pub(super) struct Hierarchy<T: Scalar, B: CoarseningSteps> {
    pub(super) levels: Vec<Built<T, B>>,
    pub(super) coarsest: Csr<T, B>,
    pub(super) plans: Vec<Plan<T, B>>,
}

/// The matrix, the prolongation and the restriction of each level but the coarsest.
pub(super) type Matrices<T, B> = Vec<[Csr<T, B>; 3]>;

/// The result of [`Hierarchy::into_parts`].
pub(super) type AllParts<T, B> = (Matrices<T, B>, Csr<T, B>, Vec<Plan<T, B>>);

impl<T: Scalar, B: MultigridBackend> Hierarchy<T, B> {
    /// Builds all levels from the finest matrix. `in_blocks` says whether smoothing will be in blocks, if that is
    /// known.
    pub(super) fn new(
        backend: &B,
        a: Csr<T, B>,
        near_null: Option<NearNull<T, B>>,
        in_blocks: Option<bool>,
        options: &MultigridOptions,
    ) -> Result<Self> {
        if options.coarsening == Coarsening::Classical {
            return Self::classical(backend, a, options);
        }
        let finest = a.nonzeros();
        let mut nodes = Nodes::of_size(backend, a.rows(), options.unknowns_a_node)?;
        let given = near_null.is_some();
        let mut near_null = match near_null {
            Some(near_null) => near_null,
            None => NearNull::constant(backend, a.rows(), options.unknowns_a_node)?,
        };
        let mut this = Self { levels: Vec::new(), coarsest: a, plans: Vec::new() };
        let of_energy = options.prolongation == Prolongation::LeastEnergy;
        let alone = options.unknowns_a_node == 1 && !given && options.real_eigenvalues;
        let several = nodes.0.is_some() && options.real_eigenvalues;
        let in_blocks = match in_blocks {
            Some(known) => known,
            None => (alone || several) && !of_energy && wants_blocks(backend, &this.coarsest, options)?,
        };
        let weaker = if of_energy {
            WEAKER_OF_LEAST_ENERGY
        } else if alone && in_blocks {
            WEAKER_WITH_BLOCKS
        } else {
            1.0
        };
        let strength = options.strength * weaker;
        let mut keeps_stiff = weaker == WEAKER_WITH_BLOCKS || (several && in_blocks);
        let mut entries = finest;
        while this.is_large(options.coarsest_rows) && this.levels.len() < MOST_LEVELS {
            let a = &this.coarsest;
            let symmetric = options.diffusion.then(|| symmetric_part(backend, a)).transpose()?;
            let of = symmetric.as_ref().map_or(a, |[symmetric, _]| symmetric);
            let count = nodes.count(a.rows());
            // The fraction of strong couplings means nothing if a coupling is a block between nodes of several
            // unknowns, or if a lower threshold makes most couplings strong.
            let counted = nodes.0.is_none() && weaker == 1.0;
            let couplings = counted.then(|| a.nonzeros().saturating_sub(a.rows()));
            let longest = longest_row(backend, a)?;
            let hubs = if nodes.0.is_none() { hubs(backend, of, longest)? } else { None };
            let squares = nodes.0.as_ref().map(|nodes| squared_norms(backend, of, nodes)).transpose()?;
            let grouped = |stiff: Option<&B::Slice<u32>>| -> Result<_> {
                let graph =
                    strong_couplings(backend, of, squares.as_ref(), strength, stiff.or(hubs.as_deref()))?;
                let aggregates = Aggregates::new(backend, &graph, couplings, stiff, hubs.as_deref())?;
                Ok((graph, aggregates))
            };
            let mut stiff = None;
            if keeps_stiff && hubs.is_none() {
                let (sizes, squared) = (squares.as_ref().unwrap_or(of), squares.is_some());
                let some = stiff_unknowns(backend, sizes, this.levels.is_empty(), squared)?;
                stiff = (B::len(&some) > 0).then_some(some);
            }
            let (mut graph, mut aggregates) = grouped(stiff.as_deref())?;
            // If many other nodes have only stiff neighbours, the stiff ones are high-degree vertices and not flat
            // elements.
            if stiff.take_if(|_| 4 * aggregates.alone > count).is_some() {
                keeps_stiff = false;
                (graph, aggregates) = grouped(None)?;
            }
            if aggregates.count == 0 || aggregates.count as f64 > STAGNATION * count as f64 {
                break;
            }
            drop(squares);
            let Tentative { p, nodes: coarse_nodes, near_null: coarse_null, bases } = match &near_null {
                // Artificial diffusion, and adding weak couplings to the diagonal, assume that constants are near the
                // null space of each level.
                NearNull::One(ones) if options.diffusion => {
                    let p = parts_of(backend, &aggregates.of, aggregates.count, ones)?;
                    let near_null = NearNull::constant(backend, aggregates.count, 1)?;
                    Tentative { p, nodes: Nodes::default(), near_null, bases: None }
                }
                _ => tentative(backend, &nodes, &aggregates, &near_null)?,
            };
            if p.columns() == 0 || p.columns() as f64 > STAGNATION * a.rows() as f64 {
                break;
            }
            let strong = graph.parts().pattern();
            // With convection, the restriction is smoothed with A^H, along the convection.
            let mut restriction = None;
            let smoothed = match (&near_null, &coarse_null) {
                (NearNull::One(vector), NearNull::One(norms)) if of_energy => {
                    let of = backend.download(&aggregates.of)?;
                    let (vector, norms) = (backend.download(vector)?, backend.download(norms)?);
                    let (a, graph) = (a.to_host(backend)?, graph.to_host(backend)?);
                    Some(of_least_energy(&a, &graph, &of, &vector, &norms).into_backend(backend)?)
                }
                // Smoothing along hubs would fill the next level.
                _ if hubs.is_some() => None,
                (NearNull::One(vector), NearNull::One(norms)) => {
                    let parts = Parts::<T, B> { of: &*aggregates.of, vector: &**vector, norms: &**norms };
                    if let Some([_, adjoint]) = &symmetric {
                        let r = parts.smoothed(backend, adjoint, strong, OMEGA, None)?;
                        restriction = Some(conjugate_transpose(backend, &r)?);
                    }
                    Some(parts.smoothed(backend, of, strong, OMEGA, None)?)
                }
                (NearNull::Several(vectors), _) => {
                    let bases = bases.as_ref().expect("several vectors have bases");
                    Some(nodes::smoothed(backend, a, &nodes, strong, (&p, bases, vectors))?)
                }
                (NearNull::One(_), NearNull::Several(_)) => unreachable!("one vector becomes one"),
            };
            drop(graph);
            let most = (options.most_entries * finest as f64) as usize;
            let built = match smoothed {
                Some(p) if coarse_nodes.0.is_some() || takes_few(backend, a, (&p, longest), finest)? => {
                    galerkin_within(backend, a, (p, restriction), most.saturating_sub(entries))?
                }
                _ => None,
            };
            let fits = built.is_some();
            let built = match built {
                Some(built) => built,
                None => galerkin(backend, a, (p.copied(backend)?, None))?,
            };
            let built = resolved(backend, built, options)?;
            entries += built.1.nonzeros();
            let groups = match (near_null, &coarse_null, bases) {
                (NearNull::One(vector), NearNull::One(norms), _) => {
                    let vector = (given && this.levels.is_empty()).then_some(vector);
                    Groups::One { of: aggregates.of, norms: copied(backend, norms)?, vector }
                }
                (NearNull::Several(vectors), _, Some(bases)) => Groups::Several { p, bases, vectors },
                _ => unreachable!("one vector becomes one, and several have bases"),
            };
            this.push(built);
            let stiff = stiff.or(hubs);
            this.plans.push(Plan { nodes, groups, smoothed: fits, strength, stiff });
            (nodes, near_null) = (coarse_nodes, coarse_null);
        }
        Ok(this)
    }

    /// Levels by classical coarsening; nothing is kept for new values.
    fn classical(backend: &B, a: Csr<T, B>, options: &MultigridOptions) -> Result<Self> {
        let finest = a.nonzeros();
        let mut entries = finest;
        let mut this = Self { levels: Vec::new(), coarsest: a, plans: Vec::new() };
        while this.coarsest.rows() > options.coarsest_rows && this.levels.len() < MOST_LEVELS {
            let a = &this.coarsest;
            let most = options.most_entries * finest as f64;
            let mut weights = options.weights;
            let mut p = classical_prolongation(backend, a, options.strength, weights)?;
            if p.columns() == 0 || p.columns() as f64 > STAGNATION * a.rows() as f64 {
                break;
            }
            let built = loop {
                if weights == 1 || takes_few(backend, a, (&p, longest_row(backend, a)?), finest)? {
                    let built = galerkin(backend, a, (p, None))?;
                    if weights == 1 || (entries + built.1.nonzeros()) as f64 <= most {
                        break built;
                    }
                    (p, _) = built.0;
                }
                weights = (weights / 2).min(FEWER_WEIGHTS);
                p = fewer_weights(backend, &p, weights)?;
            };
            entries += built.1.nonzeros();
            this.push(built);
        }
        Ok(this)
    }

    /// Returns whether the coarsest matrix is to be coarsened further. The limit `rows` is raised
    /// by the number of nodes that were stiff on the level before, by half at most: another level would have to drop
    /// these nodes, or would consist mostly of them.
    fn is_large(&self, rows: usize) -> bool {
        let stiff = self.plans.last().map_or(0, |plan| {
            let each = plan.nodes.0.as_ref().map_or(1, |nodes| B::len(&nodes.of).div_ceil(nodes.count));
            each * plan.stiff.as_ref().map_or(0, |stiff| B::len(stiff))
        });
        self.coarsest.rows() > rows + stiff.min(rows / 2)
    }

    fn push(&mut self, (transfer, coarse): (Transfer<T, B>, Csr<T, B>)) {
        let a = std::mem::replace(&mut self.coarsest, coarse);
        let (prolongation, restriction) = transfer;
        self.levels.push(Built { a, prolongation, restriction });
    }

    /// The levels (matrix, prolongation, restriction), the coarsest matrix, and the plans for new values.
    pub(super) fn into_parts(self) -> AllParts<T, B> {
        let levels = self.levels.into_iter().map(|level| [level.a, level.prolongation, level.restriction]);
        (levels.collect(), self.coarsest, self.plans)
    }

    /// Rows and entries of each level.
    pub(super) fn facts(&self) -> Vec<LevelFacts> {
        facts(&self.levels, &self.coarsest)
    }
}

/// Returns whether the finest matrix has couplings so strong that smoothing uses blocks, unless the diagonal was
/// requested.
fn wants_blocks<T: Scalar, B: MultigridBackend>(
    backend: &B,
    a: &Csr<T, B>,
    options: &MultigridOptions,
) -> Result<bool> {
    Ok(options.smoothing != Smoothing::Diagonal && Scales::new(backend, a)?.blocks_pay(backend)?)
}

/// Rows and entries of levels and the coarsest matrix.
pub(super) fn facts<T: Scalar, B: CoarseningSteps>(
    levels: &[Built<T, B>],
    coarsest: &Csr<T, B>,
) -> Vec<LevelFacts> {
    let all = levels.iter().map(|level| &level.a).chain([coarsest]);
    all.map(|a| LevelFacts { rows: a.rows(), entries: a.nonzeros() }).collect()
}

/// The number of entries of the longest row.
pub(crate) fn longest_row<T: Scalar, B: MultigridBackend>(backend: &B, a: &Csr<T, B>) -> Result<u32> {
    let (mut lengths, mut longest) = (backend.buffer::<u32>(a.rows())?, backend.buffer::<u32>(1)?);
    backend.row_lengths(a.parts().offsets, 0, u32::MAX as usize, &mut lengths)?;
    backend.reduce(Max, &lengths, &mut longest)?;
    backend.value(&longest)
}

/// Returns whether A P and R (A P) take at most as many multiplications as [`MOST_PRODUCTS`] allows, where `longest` is
/// the number of entries of A's longest row.
fn takes_few<T: Scalar, B: MultigridBackend>(
    backend: &B,
    a: &Csr<T, B>,
    (p, longest): (&Csr<T, B>, u32),
    finest: usize,
) -> Result<bool> {
    Ok(longest <= SHORT || products_of(backend, p, a, p)? <= MOST_PRODUCTS * finest as f64)
}

/// An upper bound of the multiplications for A P and R (A P), where `own` has the rows of P that belong to A's rows and
/// `all` those of all columns. It is computed from the lengths of rows, by two products with vectors.
pub(super) fn products_of<T: Scalar, B: MultigridBackend>(
    backend: &B,
    own: &Csr<T, B>,
    a: &Csr<T, B>,
    all: &Csr<T, B>,
) -> Result<f64> {
    // Doubles represent the counts exactly, so that every backend decides alike.
    let of_rows = |matrix: &Csr<T, B>, x: &B::Slice<f64>| -> Result<B::Vec<f64>> {
        let mut sums = backend.buffer(matrix.rows())?;
        let ones = ones::<f64, _>(backend, matrix.nonzeros())?;
        backend.csr(matrix.parts().with_values(&*ones), Gemv::plain(x, &mut *sums))?;
        Ok(sums)
    };
    let columns = ones::<f64, _>(backend, all.columns())?;
    let lengths = of_rows(all, &columns)?;
    let products = of_rows(a, &lengths)?;
    let mut sums = backend.zeros::<f64>(2)?;
    backend.dot(&*ones::<f64, _>(backend, a.rows())?, &products, B::part_mut(&mut sums, 0..1))?;
    backend.dot(&*of_rows(own, &columns)?, &products, B::part_mut(&mut sums, 1..2))?;
    let sums = backend.download(&sums)?;
    // A row of A P has at most as many entries as columns.
    Ok(sums[0] + sums[1].min(all.columns() as f64 * own.nonzeros() as f64))
}

/// Adds artificial diffusion to the next level, if the options request it.
fn resolved<T: Scalar, B: MultigridBackend>(
    backend: &B,
    (transfer, coarse): (Transfer<T, B>, Csr<T, B>),
    options: &MultigridOptions,
) -> Result<(Transfer<T, B>, Csr<T, B>)> {
    let coarse = if options.diffusion { with_diffusion(backend, coarse)? } else { coarse };
    Ok((transfer, coarse))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Host;
    use crate::matrix::{Triplets, multiply};
    use crate::random::Random;
    use crate::{assemble, generate};

    /// The Laplacian of a graph whose first vertices are neighbours of a large part of the others; weights span six
    /// decades.
    fn with_hubs(vertices: usize) -> Csr<f64> {
        let mut random = Random::new(3);
        let mut entries = Triplets::new(vertices, vertices).unwrap();
        (0..vertices).for_each(|i| entries.push(i, i, 1e-3).unwrap());
        for _ in 0..4 * vertices {
            let [i, j] = [random.unit(), random.unit()].map(|at| (at.powi(4) * vertices as f64) as usize);
            let weight = 10_f64.powf(random.between(-3.0, 3.0));
            if i != j {
                let both = [(i, j, -weight), (j, i, -weight), (i, i, weight), (j, j, weight)];
                both.into_iter().for_each(|(row, column, value)| entries.push(row, column, value).unwrap());
            }
        }
        assemble::to_csr(&Host, entries).unwrap()
    }

    #[test]
    fn what_hubs_would_fill_is_counted_and_not_computed() {
        let options = MultigridOptions::default();
        let a = with_hubs(8000);
        assert!((0..8000).any(|row| a.row(row).0.len() > 1500));
        let hierarchy = Hierarchy::new(&Host, a.copied(&Host).unwrap(), None, None, &options).unwrap();
        assert!(!hierarchy.plans[0].smoothed);
        // Without smoothing of the prolongation, no level has more entries than the next finer one.
        let facts = hierarchy.facts();
        let shrinks =
            |(pair, plan): (&[LevelFacts], &Plan<_, _>)| plan.smoothed || pair[1].entries <= pair[0].entries;
        assert!(facts.len() > 2 && facts.windows(2).zip(&hierarchy.plans).all(shrinks), "{facts:?}");
        let mesh = generate::poisson3d_27(14, 14, 14).unwrap();
        let hierarchy = Hierarchy::new(&Host, mesh, None, None, &options).unwrap();
        assert!(hierarchy.plans.iter().all(|plan| plan.smoothed));
    }

    #[test]
    fn couplings_are_strong_from_less_on_where_smoothing_is_in_blocks() {
        // A planar graph with weights over two decades.
        let (mut random, width) = (Random::new(7), 60);
        let mut entries = Triplets::new(width * width, width * width).unwrap();
        for i in 0..width * width {
            let mut both = vec![(i, i, 1e-4)];
            for j in
                [(i % width + 1 < width).then_some(i + 1), (i + width < width * width).then_some(i + width)]
            {
                let Some(j) = j else { continue };
                let weight = 10_f64.powf(random.between(-1.0, 1.0));
                both.extend([(i, j, -weight), (j, i, -weight), (i, i, weight), (j, j, weight)]);
            }
            both.into_iter().for_each(|(row, column, value)| entries.push(row, column, value).unwrap());
        }
        let rough = assemble::to_csr(&Host, entries).unwrap();
        let smooth = generate::poisson2d(width, width).unwrap();
        let hierarchy = |a: &Csr<f64>, options: &MultigridOptions| {
            Hierarchy::new(&Host, a.copied(&Host).unwrap(), None, None, options).unwrap()
        };
        let strengths = |a: &Csr<f64>, options: &MultigridOptions| -> Vec<f64> {
            hierarchy(a, options).plans.iter().map(|plan| plan.strength).collect()
        };
        let usual = MultigridOptions::default();
        let (of_rough, of_smooth) = (strengths(&rough, &usual), strengths(&smooth, &usual));
        assert!(
            !of_rough.is_empty() && of_rough.iter().all(|&s| s == WEAKER_WITH_BLOCKS * usual.strength),
            "{of_rough:?}"
        );
        assert!(!of_smooth.is_empty() && of_smooth.iter().all(|&s| s == usual.strength), "{of_smooth:?}");
        let diagonal = usual.clone().smoothing(Smoothing::Diagonal);
        assert!(strengths(&rough, &diagonal).iter().all(|&s| s == usual.strength));
        // There are fewer and larger aggregates.
        let rows = |options: &MultigridOptions| hierarchy(&rough, options).facts()[1].rows;
        assert!(rows(&usual) < rows(&diagonal), "{} {}", rows(&usual), rows(&diagonal));
    }

    #[test]
    fn products_are_bounded_by_lengths_of_rows() {
        let a = with_hubs(500);
        let columns = (0..500_u32).flat_map(|row| [row % 40, 40 + row % 20]).collect();
        let p = Csr::from_parts(500, 60, (0..=1000).step_by(2).collect(), columns, vec![1.0; 1000]).unwrap();
        let lengths = |matrix: &Csr<f64>| -> Vec<usize> {
            (0..matrix.rows()).map(|row| matrix.row(row).0.len()).collect()
        };
        let of_p = lengths(&p);
        let of_a: Vec<usize> =
            (0..500).map(|row| a.row(row).0.iter().map(|&j| of_p[j as usize]).sum()).collect();
        let counted = of_a.iter().sum::<usize>() as f64
            + of_a.iter().zip(&of_p).map(|(&products, &entries)| (products * entries) as f64).sum::<f64>();
        let bound = products_of(&Host, &p, &a, &p).unwrap();
        assert!(bound <= counted && bound >= of_a.iter().sum::<usize>() as f64, "{bound} {counted}");
        let product = multiply(&Host, &a, &p).unwrap();
        let needed = of_a.iter().sum::<usize>()
            + lengths(&product).iter().zip(&of_p).map(|(entries, of_p)| entries * of_p).sum::<usize>();
        assert!(bound >= needed as f64, "{bound} {needed}");
    }
}
