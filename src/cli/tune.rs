//! `residua tune`: which constants of the kernels are fastest on this device.

#[cfg(feature = "cuda")]
use super::console;
use super::{Ending, Failure, device};
#[cfg(feature = "cuda")]
use crate::output;
#[cfg(feature = "cuda")]
use std::io::Write;
use std::path::PathBuf;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The device: cuda (the first one) or cuda:N
    #[arg(long, default_value = "cuda", value_parser = device::parse)]
    device: String,
    /// Try only the lines of this kernel, by its name in the table
    #[arg(long)]
    kernel: Option<String>,
    /// Where to write the table of constants, which a build takes from tuning/; standard output if not given
    #[arg(long, short)]
    output: Option<PathBuf>,
}

#[cfg(feature = "cuda")]
pub(crate) fn run(arguments: &Arguments) -> Result<Ending, Failure> {
    let device::Device::Cuda(cuda) = device::open(&arguments.device)? else {
        return Err(Failure::Input("only CUDA devices have constants to tune: choose cuda or cuda:N".into()));
    };
    let only = arguments.kernel.as_deref();
    let text = crate::backend::cuda::tune(&cuda, only, |line| console::tell(&format!("{line}\n")))?;
    match &arguments.output {
        Some(path) => output::write(path, |out| out.write_all(text.as_bytes()))?,
        None => console::say(&text)?,
    }
    Ok(Ending::Done)
}

/// This build knows no CUDA device.
#[cfg(not(feature = "cuda"))]
pub(crate) fn run(arguments: &Arguments) -> Result<Ending, Failure> {
    let _ = (&arguments.output, &arguments.kernel);
    device::open(&arguments.device)?;
    Err(Failure::Input("only CUDA devices have constants to tune".into()))
}
