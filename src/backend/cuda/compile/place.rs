//! The location of the archive of compiled kernels.

use std::path::PathBuf;

/// The name of the archive in packages.
const NAME: &str = "residua.kernels";

/// Returns the file that `RESIDUA_KERNELS` names (none if that is `off`), else the one next to the program or library
/// with this code, or in the folder `lib` of the same installation.
pub(super) fn of_archive() -> Option<PathBuf> {
    match std::env::var_os("RESIDUA_KERNELS").filter(|named| !named.is_empty()) {
        Some(off) if off == "off" => None,
        Some(named) => Some(named.into()),
        None => {
            let folder = object()?.parent()?.to_path_buf();
            [folder.join(NAME), folder.join("../lib").join(NAME)].into_iter().find(|path| path.is_file())
        }
    }
}

/// Returns the file from which this code was loaded: a program, a shared library or a Python module.
fn object() -> Option<PathBuf> {
    static HERE: u8 = 1;
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let of_code = file_at(&maps, (&raw const HERE).addr());
    of_code.or_else(|| std::env::current_exe().ok())
}

/// Returns the file that is mapped at an address, from the list of Linux: `first-end flags offset device inode file`.
fn file_at(maps: &str, address: usize) -> Option<PathBuf> {
    let number = |text| usize::from_str_radix(text, 16).ok();
    let line = maps.lines().find(|line| {
        let range = line.split(' ').next().and_then(|range| range.split_once('-'));
        let range = range.and_then(|(first, behind)| Some(number(first)?..number(behind)?));
        range.is_some_and(|range| range.contains(&address))
    })?;
    line.find('/').map(|at| PathBuf::from(&line[at..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_this_code_is_the_test_itself() {
        let here = object().unwrap().canonicalize().unwrap();
        assert_eq!(here, std::env::current_exe().unwrap().canonicalize().unwrap());
    }

    #[test]
    fn names_with_blanks_are_whole_and_unnamed_memory_has_none() {
        let maps = "7f00-7f80 r--p 00000000 fd:00 12 /a folder/lib x.so\n7f80-8000 rw-p 00000000 00:00 0 \n";
        assert_eq!(file_at(maps, 0x7f10), Some("/a folder/lib x.so".into()));
        assert_eq!((file_at(maps, 0x7f80), file_at(maps, 0x8000)), (None, None));
    }
}
