//! `residua devices`: what this machine can solve on.

use super::sink::Sink;
use super::{Ending, Failure, console};
use crate::{Host, report};
use std::fs;
use std::path::PathBuf;
#[cfg(feature = "cuda")]
use {std::path::Path, std::time::Instant};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Show the measured prices (times of each kind of work) by which a method is chosen
    #[arg(long)]
    prices: bool,

    /// Measure the speeds of this machine, and write them to a file (- is standard output); prices are scaled to them
    /// if RESIDUA_PRICES names the file
    #[arg(long, value_name = "FILE", conflicts_with = "prices")]
    measure_prices: Option<PathBuf>,

    /// Compile every kernel that solves are known to need, for each GPU of this machine, and keep them in the cache
    #[cfg(feature = "cuda")]
    #[arg(long, conflicts_with_all = ["prices", "measure_prices"])]
    prepare: bool,

    /// Compile nearly all of them for `--chips` into an archive, which packages carry; needs NVRTC and the program
    /// zstd, and no GPU
    #[cfg(feature = "cuda")]
    #[arg(long, value_name = "FILE", conflicts_with_all = ["prices", "measure_prices", "prepare"])]
    pack: Option<PathBuf>,

    /// Chips of the archive, compute_90 for PTX
    #[cfg(feature = "cuda")]
    #[arg(long, value_name = "NAMES", requires = "pack", value_delimiter = ',', default_values = CHIPS)]
    chips: Vec<String>,
}

/// The chips for which packages have machine code; that for sm_80 also runs on 86 and 89.
#[cfg(feature = "cuda")]
const CHIPS: [&str; 2] = ["sm_80", "sm_90"];

pub(crate) fn run(arguments: &Arguments) -> Result<Ending, Failure> {
    if arguments.prices {
        return prices();
    }
    if let Some(path) = &arguments.measure_prices {
        let sink = Sink::open(path)?;
        sink.write_json(&super::measure::measured()?)?;
        return Ok(Ending::Done);
    }
    #[cfg(feature = "cuda")]
    if arguments.prepare {
        return prepare();
    }
    #[cfg(feature = "cuda")]
    if let Some(path) = &arguments.pack {
        return pack(path, &arguments.chips);
    }
    let bandwidth = report::copy_bandwidth(&Host, 5)?;
    let mut table = report::Table::new([("", report::Align::Left), ("", report::Align::Left)]);
    table.row(["cpu", &processor()]);
    table.row(["  threads", &rayon::current_num_threads().to_string()]);
    if let Some(bytes) = memory() {
        table.row(["  memory", &report::bytes(bytes)]);
    }
    table.row(["  copies", &format!("{bandwidth:.1} GB/s (measured; bytes read plus bytes written)")]);
    cuda(&mut table);
    console::say(&table.to_string())?;
    Ok(Ending::Done)
}

/// Prints the prices by which the solver chooses a method.
fn prices() -> Result<Ending, Failure> {
    let left = report::Align::Left;
    let mut table = report::Table::new([("", left), ("", report::Align::Right), ("", left)]);
    table.row([crate::prices::machine::name()?, "", ""]);
    for (title, rows) in crate::prices::table() {
        table.row([title, "", ""]);
        for (name, value, unit) in rows {
            let value = if (0.1..1e4).contains(&value) { format!("{value}") } else { format!("{value:.1e}") };
            table.row([format!("  {name}"), value, unit.to_string()]);
        }
    }
    console::say(&table.to_string())?;
    Ok(Ending::Done)
}

/// Compiles the listed units for all devices, unless the archive has them.
#[cfg(feature = "cuda")]
fn prepare() -> Result<Ending, Failure> {
    use crate::backend::cuda::{self, compile};
    let mut chips: Vec<(u32, u32)> = cuda::devices()?.iter().map(|device| device.capability).collect();
    chips.sort_unstable();
    chips.dedup();
    for chip in chips {
        let start = Instant::now();
        let (listed, packed) = compile::prepare(chip)?;
        console::say(&format!(
            "sm_{}{}: {listed} kernel files are ready, {packed} of them from the package; {:.1} s\n",
            chip.0,
            chip.1,
            start.elapsed().as_secs_f64()
        ))?;
    }
    Ok(Ending::Done)
}

/// Writes the archive of the units that packages contain.
#[cfg(feature = "cuda")]
fn pack(path: &Path, chips: &[String]) -> Result<Ending, Failure> {
    use crate::backend::cuda::compile;
    let chips: Vec<&str> = chips.iter().map(String::as_str).collect();
    let bytes = report::bytes(compile::write_archive(path, &chips, &compile::packed_units())?);
    let archive = compile::Archive::open(path).map_err(crate::Error::from)?;
    console::say(&format!("{}: {bytes}, compiled by NVRTC {}\n", path.display(), archive.compiler()))?;
    for (chip, units) in archive.chips() {
        console::say(&format!("  {chip}: {units} kernel files\n"))?;
    }
    Ok(Ending::Done)
}

/// Driver, compiler, library of factorisations and devices of CUDA, or the reason why there are none.
#[cfg(feature = "cuda")]
fn cuda(table: &mut report::Table) {
    use crate::Cuda;
    use crate::backend::cuda;
    let status = cuda::status();
    let devices = match (&status.driver, cuda::devices()) {
        (Err(reason), _) => {
            table.row(["cuda", &format!("none: {}", reason.trim_start_matches("cuda: "))]);
            return kernels_of_package(table);
        }
        (Ok(_), Err(error)) => {
            table.row(["cuda", &format!("none: {error}")]);
            return kernels_of_package(table);
        }
        (Ok(_), Ok(devices)) => devices,
    };
    for device in devices {
        table.row([format!("cuda:{}", device.ordinal), device.name.clone()]);
        table.row(["  chip".to_string(), format!("sm_{}{}", device.capability.0, device.capability.1)]);
        table.row(["  memory".to_string(), report::bytes(device.memory)]);
        let copies = match Cuda::new(device.ordinal).and_then(|cuda| report::copy_bandwidth(&cuda, 5)) {
            Ok(bandwidth) => format!("{bandwidth:.0} GB/s (measured; bytes read plus bytes written)"),
            Err(error) => format!("not measured: {error}"),
        };
        table.row(["  copies".to_string(), copies]);
        let kernels = match cuda::compile::packed_kernels(device.capability) {
            Ok(Some(kernels)) => format!(
                "{} compiled in advance for {}, in {}; others are compiled at first use",
                kernels.count(),
                kernels.chip(),
                kernels.path().display()
            ),
            Ok(None) => "compiled at first use, then cached".to_string(),
            Err(error) => format!("compiled at first use, then cached: {error}"),
        };
        table.row(["  kernels".to_string(), kernels]);
    }
    table.row([
        "driver",
        &status.driver.map_or_else(|reason| reason, |release| format!("for CUDA {release}")),
    ]);
    let compiler = match status.compiler {
        Ok((release, place)) => format!("NVRTC {release}, {place}"),
        Err(reason) => format!("none: {reason}"),
    };
    table.row(["compiler", &compiler]);
    let factors = match status.direct_solver {
        Ok((release, place)) => format!("cuDSS {release}, {place}"),
        Err(reason) => format!("on the CPU: {}", reason.trim_start_matches("cuda: ")),
    };
    table.row(["factorisations", &factors]);
}

/// The kernels that came with this program, for a machine without a GPU: packages are made on one.
#[cfg(feature = "cuda")]
fn kernels_of_package(table: &mut report::Table) {
    use crate::backend::cuda::compile::installed_archive;
    let read = || {
        let Some(archive) = installed_archive()? else { return Ok(None) };
        archive.check()?;
        let chips: Vec<String> = archive.chips().map(|(chip, units)| format!("{units} for {chip}")).collect();
        Ok(Some(format!("compiled in advance: {}, in {}", chips.join(", "), archive.path().display())))
    };
    match read() {
        Ok(Some(kernels)) => table.row(["kernels", &kernels]),
        Ok(None) => (),
        Err::<_, crate::Error>(error) => table.row(["kernels", &error.to_string()]),
    }
}

#[cfg(not(feature = "cuda"))]
fn cuda(table: &mut report::Table) {
    table.row(["cuda", "none: this build has no CUDA (feature `cuda`)"]);
}

/// The processor's name if the system reports it, else its architecture.
fn processor() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name =
        text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':')).map(|(_, name)| name);
    name.map_or_else(|| std::env::consts::ARCH.to_string(), |name| name.trim().to_string())
}

/// Bytes of main memory if the system reports them.
fn memory() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let kibibytes =
        text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?.trim().strip_suffix("kB")?;
    kibibytes.trim().parse::<u64>().ok().map(|k| k * 1024)
}
