//! The memory that a factor may take.

use std::fs::read_to_string;

/// The free memory that is assumed if the system does not report it.
const UNKNOWN: u64 = 8 << 30;

/// The fraction of the free memory that a factor may take; vectors and other programs need some too.
const PART: f64 = 0.875;

/// Bytes that a factor may take: most of the memory that is free on this machine and in this process's control group.
pub(crate) fn available() -> u64 {
    let machine = read_to_string("/proc/meminfo").ok().and_then(|text| of_machine(&text));
    let free = [machine, of_group()].into_iter().flatten().min();
    free.map_or(UNKNOWN, |free| (PART * free as f64) as u64)
}

/// The available bytes according to the text of `/proc/meminfo`.
fn of_machine(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

/// The bytes that this process's control group and its ancestors allow.
fn of_group() -> Option<u64> {
    let groups = read_to_string("/proc/self/cgroup").ok()?;
    let path = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let mut folder = std::path::Path::new("/sys/fs/cgroup").join(path.trim_start_matches('/'));
    let mut least = None;
    loop {
        let read = |name| read_to_string(folder.join(name)).ok();
        let left = (|| in_group(&read("memory.max")?, &read("memory.current")?, &read("memory.stat")?))();
        least = least.into_iter().chain(left).min();
        if folder.as_os_str() == "/sys/fs/cgroup" || !folder.pop() {
            return least;
        }
    }
}

/// The limit less the memory in use. Inactive copies of files count as free, since the system drops them if memory is
/// needed.
fn in_group(limit: &str, used: &str, kinds: &str) -> Option<u64> {
    let limit = limit.trim().parse::<u64>().ok()?;
    let used = used.trim().parse::<u64>().ok()?;
    let files = kinds.lines().find_map(|line| line.strip_prefix("inactive_file "));
    let files = files.and_then(|number| number.trim().parse::<u64>().ok()).unwrap_or(0);
    Some(limit.saturating_sub(used.saturating_sub(files)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_free_is_read_from_the_systems_words() {
        let text = "MemTotal:       24576000 kB\nMemFree: 10 kB\nMemAvailable:    2048 kB\n";
        assert_eq!(of_machine(text), Some(2 << 20));
        assert_eq!(of_machine("MemTotal: 5 kB\n"), None);
        assert_eq!(in_group("1000\n", "700\n", "anon 5\ninactive_file 200\n"), Some(500));
        assert_eq!(in_group("1000\n", "2000\n", ""), Some(0));
        assert_eq!(in_group("max\n", "700\n", ""), None);
        assert!(available() > 0);
    }
}
