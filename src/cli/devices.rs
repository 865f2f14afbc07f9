//! `residua devices`: what this machine can solve on.

use super::{Ending, Failure, console};
use residua::{Host, report};
use std::fs;

#[derive(clap::Args)]
pub(crate) struct Arguments {}

pub(crate) fn run(_arguments: &Arguments) -> Result<Ending, Failure> {
    let bandwidth = report::copy_bandwidth(&Host, 5)?;
    let mut table = report::Table::new([("", report::Align::Left), ("", report::Align::Left)]);
    table.row(["cpu", &processor()]);
    table.row(["threads", &rayon::current_num_threads().to_string()]);
    if let Some(bytes) = memory() {
        table.row(["memory", &report::bytes(bytes)]);
    }
    table.row([
        "copy bandwidth",
        &format!("{bandwidth:.1} GB/s, measured (bytes read and bytes written both counted)"),
    ]);
    console::say(&table.to_string())?;
    Ok(Ending::Done)
}

/// The processor's name where the system tells it, else its architecture.
fn processor() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name =
        text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':')).map(|(_, name)| name);
    name.map_or_else(|| std::env::consts::ARCH.to_string(), |name| name.trim().to_string())
}

/// Bytes of main memory where the system tells them.
fn memory() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let kibibytes =
        text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?.trim().strip_suffix("kB")?;
    kibibytes.trim().parse::<u64>().ok().map(|k| k * 1024)
}
