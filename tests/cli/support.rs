//! Runs the command, and reads its output independently of the library.

use std::ffi::OsStr;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// The command: `RESIDUA_COMMAND` if it is not where it was built.
pub fn residua() -> PathBuf {
    std::env::var_os("RESIDUA_COMMAND").map_or_else(|| env!("CARGO_BIN_EXE_residua").into(), PathBuf::from)
}

/// The folder of the package, from an environment variable if the tests were copied to another machine.
pub fn package() -> PathBuf {
    std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from)
}

/// A folder of one test, removed at its end.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("residua-cli-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        std::fs::write(self.path(name), content).unwrap();
        self.path(name)
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).unwrap();
        let mut names: Vec<String> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Runs the command in this folder.
    pub fn run<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Run {
        self.run_with(arguments, b"")
    }

    /// Runs the command in this folder with `input` on its standard input.
    pub fn run_with<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>, input: &[u8]) -> Run {
        let mut command = self.command();
        command.args(arguments);
        finish(command, input)
    }

    pub fn command(&self) -> Command {
        let mut command = Command::new(residua());
        command.current_dir(&self.0);
        command
    }

    /// Runs a command line, split at blanks, that must end with status 0.
    pub fn ok(&self, line: &str) -> Run {
        let run = self.run(line.split(' '));
        assert_eq!(run.status, 0, "{line}: {}", run.stderr);
        run
    }

    /// Runs a command line that must end with `status`.
    pub fn fails(&self, status: i32, line: &str) -> Run {
        let run = self.run(line.split(' '));
        assert_eq!(run.status, status, "{line}: {}{}", run.stdout, run.stderr);
        run
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The result of a run.
#[derive(Debug)]
pub struct Run {
    pub status: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Run {
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {}", self.stdout))
    }
}

pub fn finish(mut command: Command, input: &[u8]) -> Run {
    let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = pipes.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let feeder = std::thread::spawn(move || {
        // The command may end without reading all of it.
        let _ = stdin.write_all(&input);
    });
    let output = child.wait_with_output().unwrap();
    feeder.join().unwrap();
    Run {
        status: output.status.code().expect("no signal should end the command"),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// The values of `--device` to test: the CPU, and a GPU if there is one. `RESIDUA_NEED_DEVICE=1` makes its absence a
/// failure.
pub fn devices() -> Vec<&'static str> {
    let f = Folder::new();
    f.write("one.mtx", "%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 2\n");
    let run = f.run(["solve", "one.mtx", "--device", "cuda"]);
    if run.status == 0 {
        return vec!["cpu", "cuda"];
    }
    let needed = std::env::var_os("RESIDUA_NEED_DEVICE").is_some_and(|value| value == "1");
    assert!(!needed, "RESIDUA_NEED_DEVICE is set and there is no device: {}", run.stderr);
    eprintln!("SKIPPED, nothing was solved on a device: {}", run.stderr);
    vec!["cpu"]
}

/// Real and imaginary part.
pub type Number = (f64, f64);

/// The entries of a Matrix Market file, including those that follow from symmetry; all entries of an array.
pub struct Entries {
    pub rows: usize,
    pub columns: usize,
    pub entries: Vec<(usize, usize, Number)>,
}

/// Reads a valid file in the simplest way.
pub fn read_matrix(path: &Path) -> Entries {
    let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut text = String::new();
    if bytes.starts_with(&[0x1f, 0x8b]) {
        flate2::read::MultiGzDecoder::new(&bytes[..]).read_to_string(&mut text).unwrap();
    } else {
        text = String::from_utf8_lossy(&bytes).into_owned();
    }
    let mut lines = text.lines();
    let banner: Vec<String> = lines.next().unwrap().split_whitespace().map(str::to_lowercase).collect();
    let (array, field, symmetry) = (banner[2] == "array", banner[3].as_str(), banner[4].as_str());
    let mut lines = lines.map(|l| l.split('%').next().unwrap().trim()).filter(|l| !l.is_empty());
    let sizes: Vec<usize> = lines.next().unwrap().split_whitespace().map(|n| n.parse().unwrap()).collect();
    let (rows, columns) = (sizes[0], sizes[1]);
    let number = |text: &str| -> f64 { text.to_lowercase().replace('d', "e").parse().unwrap() };
    let value = |words: &[&str]| match field {
        "pattern" => (1.0, 0.0),
        "complex" => (number(words[0]), number(words[1])),
        _ => (number(words[0]), 0.0),
    };
    let mut entries = Vec::new();
    let mut given = std::collections::HashSet::new();
    let mut place = (0, 0);
    for line in lines {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (i, j, v) = if array {
            let (i, j) = place;
            place = if i + 1 < rows {
                (i + 1, j)
            } else {
                (if symmetry == "general" { 0 } else { j + 1 }, j + 1)
            };
            (i, j, value(&words))
        } else {
            let index = |k: usize| words[k].parse::<usize>().unwrap() - 1;
            (index(0), index(1), value(&words[2..]))
        };
        // An entry that a symmetric file has in both triangles is counted once.
        if symmetry != "general" && i != j {
            if given.contains(&(j, i)) {
                continue;
            }
            given.insert((i, j));
        }
        entries.push((i, j, v));
        if i != j {
            match symmetry {
                "symmetric" => entries.push((j, i, v)),
                "hermitian" => entries.push((j, i, (v.0, -v.1))),
                "skew-symmetric" => entries.push((j, i, (-v.0, -v.1))),
                _ => {}
            }
        }
    }
    Entries { rows, columns, entries }
}

impl Entries {
    /// A x by a plain loop, and |A| |x|, which bounds the loop's rounding.
    pub fn product(&self, x: &[Number]) -> (Vec<Number>, Vec<f64>) {
        let (mut y, mut magnitude) = (vec![(0.0, 0.0); self.rows], vec![0.0; self.rows]);
        for &(i, j, (a, b)) in &self.entries {
            let (c, d) = x[j];
            y[i].0 += a * c - b * d;
            y[i].1 += a * d + b * c;
            magnitude[i] += a.hypot(b) * c.hypot(d);
        }
        (y, magnitude)
    }

    /// Column `j` of an array.
    pub fn column(&self, j: usize) -> Vec<Number> {
        let mut column = vec![(0.0, 0.0); self.rows];
        self.entries.iter().filter(|e| e.1 == j).for_each(|e| column[e.0] = e.2);
        column
    }
}

pub fn norm(x: &[Number]) -> f64 {
    x.iter().map(|(re, im)| re * re + im * im).sum::<f64>().sqrt()
}

/// ||b - A x|| / ||b|| by plain loops, and an upper bound of these loops' rounding.
pub fn residual(a: &Entries, x: &[Number], b: &[Number]) -> (f64, f64) {
    let (ax, magnitude) = a.product(x);
    let r: Vec<Number> = b.iter().zip(&ax).map(|(b, y)| (b.0 - y.0, b.1 - y.1)).collect();
    let mut lengths = vec![0_usize; a.rows];
    a.entries.iter().for_each(|entry| lengths[entry.0] += 1);
    let longest = lengths.into_iter().max().unwrap_or(0) as f64;
    let doubt = (8.0 + longest) * f64::EPSILON * magnitude.iter().map(|m| m * m).sum::<f64>().sqrt();
    let scale = if norm(b) > 0.0 { norm(b) } else { 1.0 };
    (norm(&r) / scale, doubt / scale)
}

pub fn ones(n: usize) -> Vec<Number> {
    vec![(1.0, 0.0); n]
}

/// Fails unless the text is well-formed XML as far as tags go, and an SVG.
pub fn check_svg(text: &str) {
    assert!(text.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""), "{}", &text[..60.min(text.len())]);
    let mut open = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find('<') {
        assert!(
            !rest[..start].contains('>'),
            "a stray '>' before {}",
            &rest[start..rest.len().min(start + 40)]
        );
        let end = start + rest[start..].find('>').expect("a tag ends");
        let tag = &rest[start + 1..end];
        assert_eq!(tag.matches('"').count() % 2, 0, "quotes in <{tag}>");
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "closing tag");
        } else if !tag.ends_with('/') {
            open.push(tag.split_whitespace().next().unwrap());
        }
        rest = &rest[end + 1..];
    }
    assert!(open.is_empty() && rest.trim().is_empty(), "{open:?} left open");
    assert!(!text.contains("NaN"));
}
