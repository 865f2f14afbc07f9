//! The systems of the benchmark: several types of matrices in several sizes, in natural order, in random order and
//! badly scaled.

use residua::generate::{COMPLEX_MODELS, MODELS, Parameters, Random};
use residua::graph::{Permutation, permute_symmetric};
use residua::solver::Solvable;
use residua::{Csr, Host, Result};

/// A type of system: a model, its parameters, and its sizes.
pub struct Kind {
    pub name: &'static str,
    model: &'static str,
    sizes: &'static [&'static [usize]],
    with: fn(Parameters) -> Parameters,
}

const fn kind(
    name: &'static str,
    model: &'static str,
    sizes: &'static [&'static [usize]],
    with: fn(Parameters) -> Parameters,
) -> Kind {
    Kind { name, model, sizes, with }
}

pub const KINDS: &[Kind] = &[
    kind("poisson-plane", "poisson2d", &[&[200], &[700]], |p| p),
    kind("poisson-space", "poisson3d-27", &[&[28], &[60]], |p| p),
    kind("weak-plane", "anisotropic2d", &[&[150], &[500]], |p| p),
    kind("weak-space", "anisotropic3d", &[&[30], &[70]], |p| p.anisotropy(1e-2)),
    kind("jumps-plane", "jumping2d", &[&[150], &[500]], |p| p.contrast(1e4)),
    kind("jumps-space", "jumping3d", &[&[28], &[60]], |p| p.contrast(1e5)),
    kind("plate-of-squares", "elasticity2d", &[&[80], &[260]], |p| p),
    kind("beam-of-cubes", "elasticity3d", &[&[13], &[26]], |p| p),
    kind("wathen", "wathen", &[&[60], &[180]], |p| p),
    kind("wind-plane", "convection2d", &[&[150], &[500]], |p| p.diffusion(1e-3)),
    kind("wind-space", "convection3d", &[&[28], &[60]], |p| p.diffusion(1e-2)),
    kind("waves-plane", "helmholtz2d", &[&[120], &[300]], |p| p.wavelength(12.0)),
    kind("waves-space", "helmholtz3d", &[&[22], &[32]], |p| p.wavelength(15.0)),
    kind("absorbed-plane", "helmholtz2d-absorbing", &[&[120], &[350]], |p| p.wavelength(11.0)),
    kind("absorbed-space", "helmholtz3d-absorbing", &[&[20], &[30]], |p| p),
    kind("stokes-plane", "stokes2d", &[&[70], &[200]], |p| p),
    kind("stokes-space", "stokes3d", &[&[12], &[18]], |p| p),
    kind("program", "kkt", &[&[12_000, 4000], &[90_000, 30_000]], |p| p.contrast(1e4)),
    kind("circuit", "circuit", &[&[15_000], &[120_000]], |p| p),
    kind("power-law", "rmat-laplacian", &[&[16_384], &[131_072]], |p| p),
    kind("mesh-plane", "mesh2d", &[&[140], &[500]], |p| p.contrast(1e2)),
    kind("mesh-plane-jumps", "mesh2d", &[&[160], &[420]], |p| p.contrast(1e5)),
    kind("mesh-space", "mesh3d", &[&[28], &[56]], |p| p.contrast(1e2)),
    kind("mesh-in-wind", "mesh2d-wind", &[&[140], &[400]], |p| p.contrast(3.0).peclet(2.0)),
    kind("mesh-in-wind-space", "mesh3d-wind", &[&[26], &[46]], |p| p.contrast(3.0).peclet(1.0)),
    kind("body", "elasticity-mesh3d", &[&[14], &[28]], |p| p),
    kind("plate", "plate", &[&[120], &[300]], |p| p),
    kind("control", "control", &[&[1000, 8], &[6000, 10]], |p| p),
    kind("network", "network-flow", &[&[3000, 6], &[15_000, 10]], |p| p),
    kind("power-grid", "power-grid", &[&[10_000], &[80_000]], |p| p),
    kind("reservoir", "reservoir", &[&[14], &[26]], |p| p),
    kind("device", "drift-diffusion", &[&[120], &[380]], |p| p.contrast(1e5)),
    kind("oseen", "oseen", &[&[60], &[160]], |p| p.viscosity(0.02)),
    kind("fields", "maxwell", &[&[14], &[28]], |p| p),
    kind("pagerank", "pagerank", &[&[20_000], &[150_000]], |p| p),
    kind("toeplitz", "toeplitz", &[&[20_000], &[300_000]], |p| p),
    kind("image", "image", &[&[120], &[350]], |p| p),
];

/// Suffix of the name, whether the order is random, and decades of bad scaling. No method should depend on these.
const VARIANTS: [(&str, bool, f64); 4] =
    [("", false, 0.0), ("", false, 0.0), ("-scaled", false, 6.0), ("-shuffled", true, 0.0)];

/// Returns whether a type of system belongs to the half to which prices and budgets are fitted. Regret is reported for
/// the other half.
pub fn is_fitted_on(name: &str) -> bool {
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    hash.count_ones() % 2 == 0
}

/// A test system, whose matrix is made on demand.
pub struct System {
    pub name: String,
    pub kind: &'static Kind,
    parameters: Parameters,
    seed: u64,
    shuffled: bool,
    /// Decades between the smallest and the largest scaling factor of rows and columns.
    decades: f64,
}

/// All systems: small ones in natural order and badly scaled, large ones in natural and in random order.
pub fn all(seed: u64) -> Vec<System> {
    let mut systems = Vec::new();
    for kind in KINDS {
        for (number, size) in kind.sizes.iter().enumerate() {
            for (variant, shuffled, decades) in VARIANTS.into_iter().skip(number % 2).step_by(2) {
                let text: Vec<String> = size.iter().map(usize::to_string).collect();
                let plain = (kind.with)(Parameters::default().size(size.to_vec()));
                let parameters = plain.seed(seed);
                let name = format!("{}:{}{variant}", kind.name, text.join("x"));
                systems.push(System { name, kind, parameters, seed, shuffled, decades });
            }
        }
    }
    systems
}

/// A matrix of one of the types that models have.
pub enum Made {
    Real(Csr<f64>),
    Complex(Csr<num_complex::Complex<f64>>),
}

impl System {
    pub fn make(&self) -> Result<Made> {
        match COMPLEX_MODELS.iter().find(|model| model.name == self.kind.model) {
            Some(model) => self.changed(model.build(&self.parameters)?).map(Made::Complex),
            None => {
                let model = MODELS.iter().find(|model| model.name == self.kind.model);
                self.changed(model.expect("a model of this name").build(&self.parameters)?).map(Made::Real)
            }
        }
    }
}

impl System {
    /// Applies random order or bad scaling to the matrix. A symmetric matrix stays symmetric.
    fn changed<T: Solvable>(&self, mut a: Csr<T>) -> Result<Csr<T>> {
        let n = a.rows();
        if self.shuffled {
            a = permute_symmetric(&a, &Permutation::random(n, self.seed)?)?;
        }
        if self.decades > 0.0 {
            let factors = |stream: u64| -> Vec<f64> {
                let mut random = Random::stream(self.seed, stream);
                let exponent =
                    |random: &mut Random| (self.decades * 10_f64.log2() * (random.unit() - 0.5)).round();
                (0..n).map(|_| exponent(&mut random).exp2()).collect()
            };
            let rows = factors(1);
            let columns = if a.is_symmetric() { rows.clone() } else { factors(2) };
            let (mut offsets, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
            for (i, factor) in rows.iter().enumerate() {
                let (places, old) = a.row(i);
                let scale = |(&j, &value): (&u32, &T)| value * T::from_f64(factor * columns[j as usize]);
                values.extend(places.iter().zip(old).map(scale));
                indices.extend_from_slice(places);
                offsets.push(indices.len());
            }
            a = Csr::from_parts(n, n, offsets, indices, values)?;
        }
        Ok(a)
    }
}

/// b = A x for a random x, so that no method is favoured.
pub fn right_hand_side<T: Solvable>(a: &Csr<T>, seed: u64) -> Result<Vec<T>> {
    let mut random = Random::new(seed);
    let x: Vec<T> = (0..a.columns()).map(|_| T::from_f64(2.0 * random.unit() - 1.0)).collect();
    let mut b = vec![T::zero(); a.rows()];
    a.product(&Host, T::one(), &x, T::zero(), &mut b)?;
    Ok(b)
}
