//! The MPI launcher of this process, according to its environment, and where it is installed.

use super::abi::Abi;
use std::path::{Path, PathBuf};
#[cfg(feature = "cli")]
use std::time::Duration;

/// A launcher that has started this process as one of several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Launcher {
    /// Number of this process.
    pub(crate) rank: usize,
    /// The number of processes.
    pub(crate) ranks: usize,
    /// The environment variable that showed it.
    pub(super) variable: &'static str,
    /// The libraries that can communicate with it, the most likely first.
    pub(super) abis: &'static [Abi],
}

/// The variables with the number of a process and the number of processes, and the libraries that use them: Open MPI;
/// MPICH, Intel and most others; Slurm with PMIx.
const TOLD: [(&str, &str, &[Abi]); 4] = [
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", &[Abi::OpenMpi, Abi::Standard]),
    ("PMI_RANK", "PMI_SIZE", &[Abi::Mpich, Abi::Standard]),
    ("PMIX_RANK", "SLURM_STEP_NUM_TASKS", &[Abi::OpenMpi, Abi::Standard, Abi::Mpich]),
    ("PMIX_RANK", "SLURM_NTASKS", &[Abi::OpenMpi, Abi::Standard, Abi::Mpich]),
];

/// How long a launcher may take to end the ranks when one of them has failed.
#[cfg(feature = "cli")]
const TO_END: Duration = Duration::from_secs(2);

impl Launcher {
    /// The launcher, if there is one and it has started more than one process.
    pub(crate) fn of_this_process() -> Option<Self> {
        Self::told(|name| std::env::var(name).ok())
    }

    /// Returns whether a launcher has started this process, and not as rank 0.
    #[cfg(feature = "cli")]
    pub(crate) fn is_beside_first() -> bool {
        Self::of_this_process().is_some_and(|launcher| launcher.rank > 0)
    }

    /// Waits, for a limited time, for the launcher to end this process, as it does once rank 0 has printed the error
    /// and ended.
    #[cfg(feature = "cli")]
    pub(crate) fn await_end() {
        std::thread::sleep(TO_END);
    }

    /// Finds the launcher's rank and size in the environment variables.
    fn told(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let number = |name| variable(name)?.parse::<usize>().ok();
        TOLD.into_iter().find_map(|(rank, size, abis)| {
            let (rank, ranks) = (number(rank)?, number(size)?);
            (ranks > 1 && rank < ranks).then_some(Self { rank, ranks, variable: size, abis })
        })
    }
}

/// Library folders next to the programs that have started this process, the nearest first, and those next to `mpirun`
/// and `mpiexec` in `PATH`: an MPI that is not installed system-wide has its launcher in `bin` and its library in
/// `lib`.
pub(super) fn folders() -> (Vec<PathBuf>, Vec<PathBuf>) {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let named =
        std::env::split_paths(&path).flat_map(|folder| ["mpirun", "mpiexec"].map(|name| folder.join(name)));
    (beside(ancestors()), beside(named.filter(|program| program.is_file()).collect()))
}

/// The library folders next to programs.
fn beside(programs: Vec<PathBuf>) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for program in programs {
        let program = program.canonicalize().unwrap_or(program);
        let Some(prefix) = program.parent().and_then(Path::parent) else { continue };
        for folder in ["lib", "lib64"].map(|name| prefix.join(name)) {
            if !found.contains(&folder) {
                found.push(folder);
            }
        }
    }
    found
}

/// The programs of the ancestors of this process; none if the system does not report them.
fn ancestors() -> Vec<PathBuf> {
    let mut programs = Vec::new();
    let mut process = std::os::unix::process::parent_id();
    while process > 1 && programs.len() < 8 {
        programs.extend(std::fs::read_link(format!("/proc/{process}/exe")).ok());
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        // The name of the program is in parentheses, and may contain spaces and parentheses itself.
        let behind = stat.rsplit_once(')').and_then(|(_, behind)| behind.split_whitespace().nth(1));
        process = behind.and_then(|number| number.parse().ok()).unwrap_or(0);
    }
    programs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> Option<Launcher> {
        Launcher::told(|name| {
            variables.iter().find(|(other, _)| *other == name).map(|(_, value)| value.to_string())
        })
    }

    #[test]
    fn launchers_are_known_by_their_variables() {
        let open = of(&[("OMPI_COMM_WORLD_RANK", "2"), ("OMPI_COMM_WORLD_SIZE", "4"), ("PMIX_RANK", "2")]);
        let open = open.unwrap();
        assert_eq!((open.rank, open.ranks, open.abis[0]), (2, 4, Abi::OpenMpi));
        assert_eq!(of(&[("PMI_RANK", "0"), ("PMI_SIZE", "3")]).unwrap().abis[0], Abi::Mpich);
        let slurm = of(&[("PMIX_RANK", "1"), ("SLURM_NTASKS", "2")]).unwrap();
        assert_eq!((slurm.rank, slurm.ranks, slurm.variable), (1, 2, "SLURM_NTASKS"));
    }

    #[test]
    fn a_process_alone_has_no_launcher() {
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[("PMI_RANK", "0"), ("PMI_SIZE", "1")]), None);
        assert_eq!(of(&[("PMI_RANK", "many"), ("PMI_SIZE", "2")]), None);
        assert_eq!(of(&[("SLURM_NTASKS", "4")]), None);
    }

    #[test]
    fn the_program_that_started_this_one_is_found() {
        assert!(!cfg!(target_os = "linux") || !ancestors().is_empty());
    }
}
