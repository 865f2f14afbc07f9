//! The table of model problems, for the command's `generate` and for tests.

use super::*;
use crate::error::Error;
use crate::scalar::Scalar;
use num_complex::Complex;

/// The parameters of a model problem. Each model uses those that it names in [`Model::options`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Parameters {
    size: Vec<usize>,
    seed: u64,
    anisotropy: f64,
    contrast: f64,
    block: usize,
    diffusion: f64,
    poisson_ratio: f64,
    edge_factor: usize,
    row_lengths: RowLengths,
    peclet: f64,
    wavelength: f64,
    viscosity: f64,
}

impl Default for Parameters {
    fn default() -> Self {
        Self {
            size: Vec::new(),
            seed: 1,
            anisotropy: 1e-3,
            contrast: 1e6,
            block: 8,
            diffusion: 1e-2,
            poisson_ratio: 0.3,
            edge_factor: 8,
            row_lengths: RowLengths::Constant(16),
            peclet: 0.0,
            wavelength: 10.0,
            viscosity: 1.0,
        }
    }
}

macro_rules! setters {
    ($($(#[$doc:meta])* $name:ident: $type:ty;)*) => {
        impl Parameters {$(
            $(#[$doc])*
            #[must_use]
            pub fn $name(mut self, $name: $type) -> Self {
                self.$name = $name;
                self
            }
        )*}
    };
}
setters! {
    /// Points, elements or rows in each dimension; a single number is used for all of them. Default: the model's own.
    size: Vec<usize>;
    /// The seed of all random numbers. Default 1.
    seed: u64;
    /// Coefficient of the weak direction. Default 1e-3.
    anisotropy: f64;
    /// Largest coefficient divided by the smallest. Default 1e6.
    contrast: f64;
    /// Edge of a block of equal coefficients, in cells. Default 8.
    block: usize;
    /// Diffusion, relative to convection of speed about 1. Default 1e-2.
    diffusion: f64;
    /// Poisson's ratio of elastic material. Default 0.3.
    poisson_ratio: f64;
    /// Edges per vertex. Default 8.
    edge_factor: usize;
    /// Row lengths of a random matrix. Default 16.
    row_lengths: RowLengths;
    /// Mesh Peclet number, speed times spacing over diffusion. Unless it is 0, it determines the diffusion. Default 0.
    peclet: f64;
    /// Points per wavelength. Default 10.
    wavelength: f64;
    /// Viscosity of a fluid. Default 1.
    viscosity: f64;
}

impl Parameters {
    /// The mesh Peclet number, or `other` if none was given.
    fn peclet_or(&self, other: f64) -> f64 {
        if self.peclet == 0.0 { other } else { self.peclet }
    }

    /// The diffusion on a grid of this size.
    fn diffusion_on(&self, size: &[usize]) -> f64 {
        let fewest = size.iter().copied().min().unwrap_or(1);
        if self.peclet == 0.0 { self.diffusion } else { 1.0 / ((fewest as f64 + 1.0) * self.peclet) }
    }
}

/// A model problem with entries of type `T`.
#[derive(Debug)]
#[non_exhaustive]
pub struct Model<T: Scalar = f64> {
    /// Its name on the command line.
    pub name: &'static str,
    /// A description in one line.
    pub about: &'static str,
    /// Size if none is given; its length is the number of dimensions.
    pub size: &'static [usize],
    /// Names of the [`Parameters`] that it reads, besides the size.
    pub options: &'static [&'static str],
    /// True if the matrix equals its transpose.
    pub symmetric: bool,
    /// True if it is also positive definite.
    pub positive_definite: bool,
    build: fn(&[usize], &Parameters) -> Result<Csr<T>>,
}

impl Model {
    /// The model with this name.
    ///
    /// # Errors
    /// If there is none; the message lists the names.
    pub fn find(name: &str) -> Result<&'static Model> {
        MODELS.iter().find(|model| model.name == name).ok_or_else(|| {
            let names: Vec<&str> = MODELS.iter().map(|model| model.name).collect();
            Error::InvalidArgument(format!(
                "there is no model problem '{name}': choose one of {}",
                names.join(", ")
            ))
        })
    }
}

impl<T: Scalar> Model<T> {
    /// Builds the matrix.
    ///
    /// # Errors
    /// If the size has another number of dimensions than the model, is zero or too large, or an option is out of range.
    pub fn build(&self, parameters: &Parameters) -> Result<Csr<T>> {
        let size = match parameters.size.as_slice() {
            [] => self.size.to_vec(),
            &[n] => vec![n; self.size.len()],
            size => size.to_vec(),
        };
        if size.len() != self.size.len() {
            let example: Vec<String> = self.size.iter().map(usize::to_string).collect();
            return Err(Error::InvalidArgument(format!(
                "{} takes a size of {} number{}, such as {}",
                self.name,
                self.size.len(),
                if self.size.len() == 1 { "" } else { "s" },
                example.join("x")
            )));
        }
        if size.contains(&0) {
            return Err(Error::InvalidArgument(format!("{}: a size of 0 leaves no matrix", self.name)));
        }
        (self.build)(&size, parameters)
    }
}

const fn spd(
    name: &'static str,
    size: &'static [usize],
    options: &'static [&'static str],
    about: &'static str,
    build: fn(&[usize], &Parameters) -> Result<Csr<f64>>,
) -> Model {
    Model { name, about, size, options, symmetric: true, positive_definite: true, build }
}

const fn general(model: Model) -> Model {
    Model { symmetric: false, positive_definite: false, ..model }
}

const fn indefinite(model: Model) -> Model {
    Model { positive_definite: false, ..model }
}

/// All model problems.
pub const MODELS: &[Model] = &[
    spd("poisson2d", &[64, 64], &[], "Poisson's equation on a rectangle, 5 points", |n, _| {
        poisson2d(n[0], n[1])
    }),
    spd("poisson2d-9", &[64, 64], &[], "Poisson's equation on a rectangle, 9 points", |n, _| {
        poisson2d_9(n[0], n[1])
    }),
    spd("poisson3d", &[32, 32, 32], &[], "Poisson's equation in a box, 7 points", |n, _| {
        poisson3d(n[0], n[1], n[2])
    }),
    spd("poisson3d-27", &[32, 32, 32], &[], "Poisson's equation in a box, 27 points as in HPCG", |n, _| {
        poisson3d_27(n[0], n[1], n[2])
    }),
    spd("anisotropic2d", &[64, 64], &["anisotropy"], "diffusion, weak in y, 5 points", |n, p| {
        anisotropic2d(n[0], n[1], p.anisotropy)
    }),
    spd("anisotropic3d", &[32, 32, 32], &["anisotropy"], "diffusion, weak in z, 7 points", |n, p| {
        anisotropic3d(n[0], n[1], n[2], p.anisotropy)
    }),
    spd(
        "jumping2d",
        &[64, 64],
        &["contrast", "block", "seed"],
        "diffusion, coefficient random from block to block",
        |n, p| jumping([n[0], n[1], 1], p.contrast, p.block, p.seed),
    ),
    spd("jumping3d", &[32, 32, 32], &["contrast", "block", "seed"], "the same in a box", |n, p| {
        jumping([n[0], n[1], n[2]], p.contrast, p.block, p.seed)
    }),
    spd(
        "elasticity2d",
        &[32, 32],
        &["poisson-ratio"],
        "elastic plate of squares, clamped on one side",
        |n, p| elasticity2d(n[0], n[1], p.poisson_ratio),
    ),
    spd(
        "elasticity3d",
        &[12, 12, 12],
        &["poisson-ratio"],
        "elastic beam of cubes, clamped on one side",
        |n, p| elasticity3d(n[0], n[1], n[2], p.poisson_ratio),
    ),
    spd("wathen", &[30, 30], &["seed"], "mass matrix of serendipity elements, random densities", |n, p| {
        wathen(n[0], n[1], p.seed)
    }),
    general(spd(
        "convection2d",
        &[64, 64],
        &["diffusion", "peclet"],
        "convection and diffusion, upwind: unsymmetric",
        |n, p| convection_diffusion([n[0], n[1], 1], p.diffusion_on(n)),
    )),
    general(spd("convection3d", &[32, 32, 32], &["diffusion", "peclet"], "the same in a box", |n, p| {
        convection_diffusion([n[0], n[1], n[2]], p.diffusion_on(n))
    })),
    indefinite(spd(
        "helmholtz2d",
        &[64, 64],
        &["wavelength"],
        "waves of one frequency: indefinite",
        |n, p| helmholtz([n[0], n[1], 1], p.wavelength),
    )),
    indefinite(spd("helmholtz3d", &[24, 24, 24], &["wavelength"], "the same in a box", |n, p| {
        helmholtz([n[0], n[1], n[2]], p.wavelength)
    })),
    indefinite(spd(
        "stokes2d",
        &[32, 32],
        &["viscosity"],
        "slow flow, staggered grid, one pressure pinned: saddle point",
        |n, p| stokes([n[0], n[1], 1], p.viscosity, true),
    )),
    indefinite(spd("stokes3d", &[10, 10, 10], &["viscosity"], "the same in a box", |n, p| {
        stokes([n[0], n[1], n[2]], p.viscosity, true)
    })),
    indefinite(spd(
        "stokes2d-free",
        &[32, 32],
        &["viscosity"],
        "the same, no pressure pinned: singular by constant pressures",
        |n, p| stokes([n[0], n[1], 1], p.viscosity, false),
    )),
    indefinite(spd("stokes3d-free", &[10, 10, 10], &["viscosity"], "the same in a box", |n, p| {
        stokes([n[0], n[1], n[2]], p.viscosity, false)
    })),
    indefinite(spd(
        "kkt",
        &[3000, 1000],
        &["contrast", "seed"],
        "interior-point step of a quadratic program; variables x constraints",
        |n, p| quadratic_program(n[0], n[1], p.contrast, p.seed),
    )),
    general(spd(
        "circuit",
        &[4096],
        &["contrast", "seed"],
        "modified nodal analysis: unsymmetric, gaps on the diagonal",
        |n, p| circuit(n[0], p.contrast, p.seed),
    )),
    spd(
        "rmat-laplacian",
        &[4096],
        &["edge-factor", "seed"],
        "graph with power-law degrees: Laplacian + identity",
        |n, p| rmat(n[0], p.edge_factor, RmatKind::Laplacian, p.seed),
    ),
    Model {
        positive_definite: false,
        ..spd(
            "rmat",
            &[4096],
            &["edge-factor", "seed"],
            "the same graph's adjacency matrix of ones",
            |n, p| rmat(n[0], p.edge_factor, RmatKind::Symmetric, p.seed),
        )
    },
    general(spd(
        "rmat-directed",
        &[4096],
        &["edge-factor", "seed"],
        "the same with directed edges",
        |n, p| rmat(n[0], p.edge_factor, RmatKind::Directed, p.seed),
    )),
    general(spd(
        "random",
        &[4096, 4096],
        &["row-lengths", "seed"],
        "random places and values; rows x columns",
        |n, p| random(n[0], n[1], p.row_lengths, p.seed),
    )),
    spd(
        "mesh2d",
        &[40, 40],
        &["contrast", "seed"],
        "linear elements on triangles of random shape",
        |n, p| mesh([n[0], n[1], 0], p.contrast, 0.0, p.seed),
    ),
    spd("mesh3d", &[12, 12, 12], &["contrast", "seed"], "the same on tetrahedra in a cube", |n, p| {
        mesh([n[0], n[1], n[2]], p.contrast, 0.0, p.seed)
    }),
    general(spd(
        "mesh2d-wind",
        &[40, 40],
        &["contrast", "peclet", "seed"],
        "triangles of random shape in a wind: unsymmetric",
        |n, p| mesh([n[0], n[1], 0], p.contrast, p.peclet_or(1.0), p.seed),
    )),
    general(spd(
        "mesh3d-wind",
        &[12, 12, 12],
        &["contrast", "peclet", "seed"],
        "the same on tetrahedra in a cube",
        |n, p| mesh([n[0], n[1], n[2]], p.contrast, p.peclet_or(1.0), p.seed),
    )),
    spd(
        "elasticity-mesh3d",
        &[8, 8, 8],
        &["poisson-ratio", "seed"],
        "elastic cube of tetrahedra of random shape, clamped on one side",
        |n, p| elasticity_mesh([n[0], n[1], n[2]], p.poisson_ratio, p.seed),
    ),
    spd("plate", &[40, 40], &[], "clamped plate: fourth order, 13 points", |n, _| plate(n[0], n[1])),
    spd("image", &[48, 48], &["contrast", "seed"], "deblurring of an image with edges", |n, p| {
        image(n[0], n[1], p.contrast, p.seed)
    }),
    spd("maxwell", &[10, 10, 10], &["contrast", "seed"], "curl of the curl, and a small mass", |n, p| {
        maxwell([n[0], n[1], n[2]], p.contrast, p.seed)
    }),
    general(spd(
        "reservoir",
        &[12, 12, 6],
        &["contrast", "seed"],
        "oil, water and pressure in rock: unsymmetric, three unknowns a cell",
        |n, p| reservoir([n[0], n[1], n[2]], p.contrast, p.seed),
    )),
    general(spd(
        "drift-diffusion",
        &[64, 64],
        &["contrast"],
        "electrons in a semiconductor: unsymmetric",
        |n, p| drift_diffusion(n[0], n[1], p.contrast),
    )),
    general(spd("oseen", &[32, 32], &["viscosity"], "flow in a wind: unsymmetric saddle point", |n, p| {
        oseen(n[0], n[1], p.viscosity)
    })),
    indefinite(spd(
        "control",
        &[200, 8],
        &["contrast", "seed"],
        "optimal control; stages x states: saddle point",
        |n, p| control(n[0], n[1], p.contrast, p.seed),
    )),
    spd("network-flow", &[1000, 4], &["contrast", "seed"], "traffic in a network; places x hours", |n, p| {
        network_flow(n[0], n[1], p.contrast, p.seed)
    }),
    general(spd("power-grid", &[2000], &["seed"], "power flow, two unknowns a bus: unsymmetric", |n, p| {
        power_grid(n[0], p.seed)
    })),
    general(spd("pagerank", &[4096], &["edge-factor", "seed"], "ranks of pages: unsymmetric", |n, p| {
        pagerank(n[0], p.edge_factor, p.seed)
    })),
    spd("toeplitz", &[1000], &[], "61 diagonals that fall with the square of the distance", |n, _| {
        toeplitz(n[0])
    }),
    spd("arrow", &[1000], &[], "first row, first column and diagonal", |n, _| arrow(n[0])),
    spd("diagonal", &[1000], &[], "1 to n on the diagonal", |n, _| diagonal(n[0])),
    spd("tridiagonal", &[1000], &[], "2 on the diagonal, -1 beside it", |n, _| tridiagonal(n[0])),
];

/// Model problems with complex entries.
pub const COMPLEX_MODELS: &[Model<Complex<f64>>] = &[
    Model {
        name: "helmholtz2d-absorbing",
        about: "waves, absorbed in a layer around: complex symmetric",
        size: &[64, 64],
        options: &["wavelength"],
        symmetric: true,
        positive_definite: false,
        build: |n, p| helmholtz_absorbing([n[0], n[1], 1], p.wavelength),
    },
    Model {
        name: "helmholtz3d-absorbing",
        about: "the same in a box",
        size: &[24, 24, 24],
        options: &["wavelength"],
        symmetric: true,
        positive_definite: false,
        build: |n, p| helmholtz_absorbing([n[0], n[1], n[2]], p.wavelength),
    },
];
