//! Functions for a rank that a test has started: the test's program runs again, with the name of the work in `WORK`.

use residua::backend::Communicator;
use residua::prelude::*;
use residua::ranks::Group;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// The variable with the name of the work of a rank that a test has started.
pub const WORK: &str = "RESIDUA_TEST_WORK";

/// Runs a rank's work, if a test has started this process as a rank.
pub fn as_rank(work: impl FnOnce(&Group, &str) -> residua::Result<()>) {
    let Ok(name) = std::env::var(WORK) else { return };
    let group = Group::from_environment().unwrap().unwrap();
    match work(&group, &name) {
        Ok(()) => group.leave(0),
        Err(error) => group.fail(&error),
    }
}

/// Checks that messages arrive, long ones too.
pub fn messages(group: &Group) -> residua::Result<()> {
    let (rank, count) = (group.rank(), group.ranks());
    let long = |rank: usize| vec![rank as u8; 300_000 * rank];
    assert_eq!(group.all_gather(&long(rank))?, (0..count).map(long).collect::<Vec<_>>());
    assert_eq!(group.broadcast(format!("from {rank}").as_bytes())?, b"from 0");
    let gathered = group.gather(&[rank as u8])?;
    assert_eq!(gathered.is_some(), rank == 0);
    let each: Vec<Vec<u8>> = (0..count).map(|to| vec![to as u8 + 7]).collect();
    assert_eq!(group.scatter(&each)?, [rank as u8 + 7]);
    Ok(())
}

/// Kills its own process in the middle of the work.
pub fn die(group: &Group) -> residua::Result<()> {
    group.all_sum(&Host, &mut [1.0_f64])?;
    Command::new("kill").args(["-9", &std::process::id().to_string()]).status().unwrap();
    std::thread::sleep(Duration::from_secs(60));
    Ok(())
}

/// The command under test.
pub fn residua_command() -> PathBuf {
    let command = std::env::var_os("RESIDUA_COMMAND");
    command.map_or_else(|| env!("CARGO_BIN_EXE_residua").into(), PathBuf::from)
}
