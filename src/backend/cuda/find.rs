//! Finds libraries of CUDA: in a toolkit, next to the driver, on the loader's path, in Python's packages.

use std::fmt;
use std::path::{Path, PathBuf};

/// The places that were searched, for the error message.
#[derive(Debug, Clone, Default)]
pub struct Searched(Vec<String>);

impl fmt::Display for Searched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(", "))
    }
}

/// How to find a library.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    /// The environment variable that names the file or its folder, if there is one.
    pub(super) variable: Option<&'static str>,
    /// The file's name without its version number.
    pub(super) file: &'static str,
    /// The version numbers to try with the loader.
    pub(super) releases: &'static [&'static str],
    /// The folders below `nvidia` in Python's packages.
    pub(super) packages: &'static [&'static str],
}

/// The run-time compiler.
pub(super) const NVRTC: Wanted = Wanted {
    variable: Some("RESIDUA_NVRTC"),
    file: "libnvrtc.so",
    releases: &["13", "12"],
    packages: &["cu13/lib", "cuda_nvrtc/lib", "cu12/lib"],
};

/// Returns files (or bare names for the loader) that may be the library, best first, and the places that were searched.
pub(super) fn candidates(wanted: Wanted) -> (Vec<PathBuf>, Searched) {
    let mut found = Vec::new();
    let mut searched = Searched::default();
    let mut look = |what: &str, folders: Vec<PathBuf>| {
        searched.0.push(what.to_string());
        for folder in folders {
            found.extend(libraries(&folder, wanted.file));
        }
    };
    let named = wanted.variable.and_then(|name| Some((name, std::env::var_os(name).map(PathBuf::from)?)));
    if let Some((variable, named)) = named {
        if named.is_file() {
            return (vec![named], Searched(vec![variable.into()]));
        }
        look(variable, vec![named]);
    }
    let toolkits =
        ["CUDA_HOME", "CUDA_PATH", "CUDA_ROOT"].iter().filter_map(std::env::var_os).map(PathBuf::from);
    look("CUDA_HOME", toolkits.flat_map(|root| below_toolkit(&root)).collect());
    let (prefixes, packages) = (python_prefixes(), wanted.packages);
    look("Python's packages", prefixes.iter().flat_map(|prefix| below_prefix(prefix, packages)).collect());
    let sites = split_paths("PYTHONPATH");
    look("PYTHONPATH", sites.iter().flat_map(|site| below_site(site, packages)).collect());
    look("the loader's path (LD_LIBRARY_PATH)", split_paths("LD_LIBRARY_PATH"));
    look("the driver's folder", beside_driver());
    look(
        "/usr/local/cuda*, /opt/cuda",
        standard_toolkits().iter().flat_map(|root| below_toolkit(root)).collect(),
    );
    found.extend(wanted.releases.iter().map(|release| format!("{}.{release}", wanted.file).into()));
    found.push(wanted.file.into());
    let mut seen = std::collections::HashSet::new();
    found.retain(|path| seen.insert(path.clone()));
    (found, searched)
}

/// Returns the files with this name in a folder: those with a version number first, the newest before older ones.
fn libraries(folder: &Path, file: &str) -> Vec<PathBuf> {
    let numbered = format!("{file}.");
    let mut names: Vec<PathBuf> = entries(folder)
        .into_iter()
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let release = name.strip_prefix(&numbered);
            name == file || release.is_some_and(|n| n.starts_with(|c: char| c.is_ascii_digit()))
        })
        .collect();
    names.sort();
    names.reverse();
    names
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

fn split_paths(variable: &str) -> Vec<PathBuf> {
    std::env::var_os(variable)
        .map(|paths| std::env::split_paths(&paths).filter(|path| !path.as_os_str().is_empty()).collect())
        .unwrap_or_default()
}

fn below_toolkit(root: &Path) -> Vec<PathBuf> {
    ["lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"]
        .iter()
        .map(|f| root.join(f))
        .collect()
}

fn standard_toolkits() -> Vec<PathBuf> {
    let mut toolkits: Vec<PathBuf> = entries(Path::new("/usr/local"))
        .into_iter()
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("cuda")))
        .collect();
    toolkits.sort();
    toolkits.push("/opt/cuda".into());
    toolkits.push("/usr/lib/cuda".into());
    toolkits
}

/// Returns the folder from which the driver's library was loaded, if the system reports it.
fn beside_driver() -> Vec<PathBuf> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let driver = maps.lines().filter_map(|line| line.find('/').map(|at| Path::new(&line[at..])));
    let mut driver = driver
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("libcuda.so")));
    driver.next().and_then(Path::parent).map(Path::to_path_buf).into_iter().collect()
}

/// Returns folders that may have Python packages: active environments, those of each `python3` in `PATH`, and the
/// system's.
fn python_prefixes() -> Vec<PathBuf> {
    let mut prefixes: Vec<PathBuf> =
        ["VIRTUAL_ENV", "CONDA_PREFIX"].iter().filter_map(std::env::var_os).map(PathBuf::from).collect();
    for folder in split_paths("PATH") {
        if folder.join("python3").exists() {
            prefixes.extend(folder.parent().map(Path::to_path_buf));
        }
    }
    prefixes.extend(std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local")));
    prefixes.extend(["/usr/local", "/usr"].map(PathBuf::from));
    prefixes
}

fn below_prefix(prefix: &Path, packages: &[&str]) -> Vec<PathBuf> {
    let mut folders = vec![prefix.join("lib")];
    for library in ["lib", "lib64", "local/lib"].map(|name| prefix.join(name)) {
        for python in entries(&library) {
            if python.file_name().is_some_and(|name| name.to_string_lossy().starts_with("python3")) {
                for site in ["site-packages", "dist-packages"] {
                    folders.extend(below_site(&python.join(site), packages));
                }
            }
        }
    }
    folders
}

fn below_site(site: &Path, packages: &[&str]) -> Vec<PathBuf> {
    packages.iter().map(|f| site.join("nvidia").join(f)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbered_libraries_are_found_in_a_site_folder_and_helpers_are_not() {
        let site = std::env::temp_dir().join(format!("residua-find-test-{}", std::process::id()));
        let folder = below_site(&site, NVRTC.packages).remove(0);
        std::fs::create_dir_all(&folder).unwrap();
        for name in ["libnvrtc.so.13", "libnvrtc-builtins.so.13.0", "libnvrtc.alt.so.13", "libcudart.so.13"] {
            std::fs::write(folder.join(name), "").unwrap();
        }
        assert_eq!(libraries(&folder, NVRTC.file), [folder.join("libnvrtc.so.13")]);
        std::fs::remove_dir_all(site).unwrap();
    }

    #[test]
    fn the_search_names_its_places() {
        if std::env::var_os("RESIDUA_NVRTC").is_none() {
            let (found, searched) = candidates(NVRTC);
            assert!(found.ends_with(&["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"].map(PathBuf::from)));
            assert!(searched.to_string().contains("Python's packages"), "{searched}");
        }
    }
}
