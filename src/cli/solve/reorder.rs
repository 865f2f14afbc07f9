//! Renumbering the unknowns before a solve.

use residua::backend::GraphSteps;
use residua::graph::{self, Benefit, Permutation};
use residua::report::{count, seconds};
use residua::{Backend, Csr, Error, Scalar};

/// What was done, and why.
pub(super) struct Reordering<B: Backend> {
    /// Only where the order was changed.
    pub(super) permutation: Option<Permutation<B>>,
    /// Bandwidths of the file's order and of reverse Cuthill-McKee, where that was tried.
    bandwidths: Option<[usize; 2]>,
    /// For `auto`.
    benefit: Option<Benefit>,
}

/// The matrix, and what was done where it was asked for.
pub(super) type Reordered<T, B> = (Csr<T, B>, Option<Reordering<B>>);

/// Renumbers by reverse Cuthill-McKee on the backend, where `how` is `rcm`, or `auto` and it is likely to pay in
/// `products` products with A. `None` where nobody asked.
pub(super) fn reorder<T: Scalar, B: GraphSteps>(
    backend: &B,
    a: Csr<T, B>,
    how: &str,
    products: usize,
) -> Result<Reordered<T, B>, Error> {
    let benefit = match how {
        "none" => return Ok((a, None)),
        "auto" => Some(graph::predicted_benefit_on(backend, &a, backend.ordering_price(), products)?),
        _ => None,
    };
    if benefit.is_some_and(|benefit| !benefit.pays()) {
        return Ok((a, Some(Reordering { permutation: None, bandwidths: None, benefit })));
    }
    let ordering = graph::ordering_on(backend, &a)?;
    let bandwidths = Some([ordering.bandwidth_before(), ordering.bandwidth_rcm()]);
    if ordering.keeps_natural_order() {
        return Ok((a, Some(Reordering { permutation: None, bandwidths, benefit })));
    }
    let permuted = graph::permute_symmetric_on(backend, &a, ordering.permutation())?;
    drop(a);
    let permutation = Some(ordering.into_permutation());
    Ok((permuted, Some(Reordering { permutation, bandwidths, benefit })))
}

impl<B: Backend> Reordering<B> {
    /// For the report.
    pub(super) fn words(&self) -> String {
        let what = match (self.bandwidths, &self.permutation) {
            (None, _) => "no".to_string(),
            (Some([before, rcm]), None) => format!(
                "no: reverse Cuthill-McKee gives bandwidth {}, the file's order {}",
                count(rcm as u64),
                count(before as u64)
            ),
            (Some([before, rcm]), Some(_)) => format!(
                "by reverse Cuthill-McKee: bandwidth {} to {}",
                count(before as u64),
                count(rcm as u64)
            ),
        };
        let why = self.benefit.map_or(String::new(), |benefit| {
            format!(
                "; at most {:.0} % of {:.0} products to save ({}), for the price of {}",
                100.0 * benefit.saving(),
                benefit.products(),
                seconds(benefit.gain()),
                seconds(benefit.price())
            )
        });
        what + &why
    }
}
