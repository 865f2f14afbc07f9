//! Conversions and assembly on a CUDA device, with their memory, compared with the CSR product of the same matrix.
//!
//! `cargo bench --bench convert`, or the built binary on another machine. A part of it is selected by `grids`,
//! `unsymmetric`, `random`, `others`, `files`, `assembly` or `large`. `files` are those in the folder RESIDUA_MATRICES
//! with more than 10^5 nonzeros; with `enlarged`, each is repeated along the diagonal up to 2^24 nonzeros.
//! `only:FORMAT` selects conversions to and from one format, and `only:WORD` the assembly of triplets with that word in
//! their name (elements, rows, columns, 2^20, 2^23). The peer is `benches/peers/device_assembly.py` in the same run.

#[cfg(feature = "cuda")]
mod assembly;
#[cfg(feature = "cuda")]
mod conversions;
#[cfg(feature = "cuda")]
mod measure;

#[cfg(not(feature = "cuda"))]
fn main() {
    println!("built without CUDA: nothing to measure");
}

#[cfg(feature = "cuda")]
fn main() -> residua::Result<()> {
    use residua::{Cuda, Result};
    type Part = (&'static str, fn(&Cuda) -> Result<()>);
    const PARTS: [Part; 7] = [
        ("grids", conversions::grids),
        ("unsymmetric", conversions::unsymmetric),
        ("random", conversions::random),
        ("others", conversions::others),
        ("files", conversions::files),
        ("assembly", assembly::assembly),
        ("large", conversions::large),
    ];
    let b = match Cuda::new(0) {
        Ok(b) => b,
        Err(error) => {
            println!("nothing was measured: {error}");
            return Ok(());
        }
    };
    let wanted: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    for (name, part) in PARTS {
        if wanted.is_empty() || wanted.iter().any(|word| word == name) {
            part(&b)?;
        }
    }
    Ok(())
}
