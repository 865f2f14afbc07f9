//! Provokes the ways in which CUDA can be broken: a library with the driver's name that a C compiler makes here, and
//! the command that loads it. Skips with a message if there is no C compiler.

#![cfg(all(feature = "cuda", feature = "cli", target_os = "linux"))]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A driver that starts, unless STUB says which call fails and with which code: `cuInit=999`. STUB_VERSION is the
/// release that it reports.
const STUB: &str = r#"
#include <stdlib.h>
#include <string.h>
static int code(const char* name) {
    const char* text = getenv("STUB");
    size_t length = strlen(name);
    return text && !strncmp(text, name, length) && text[length] == '=' ? atoi(text + length + 1) : 0;
}
#define CALL(name, ...) int name(__VA_ARGS__) { int failure = code(#name); if (failure) return failure;
#define END return 0; }
static long handle;
CALL(cuDriverGetVersion, int* v) const char* t = getenv("STUB_VERSION"); *v = t ? atoi(t) : 12080; END
CALL(cuInit, unsigned f) END
CALL(cuDeviceGetCount, int* n) *n = 1; END
CALL(cuDeviceGet, int* d, int i) *d = i; END
CALL(cuDeviceGetName, char* t, int n, int d) strncpy(t, "Stub", n); END
CALL(cuDeviceTotalMem_v2, size_t* n, int d) *n = 1 << 30; END
CALL(cuDeviceGetAttribute, int* v, int a, int d) *v = a == 75 ? 9 : a == 76 ? 0 : a == 115 ? 1 : 132; END
CALL(cuDevicePrimaryCtxRetain, void** c, int d) *c = &handle; END
CALL(cuCtxSetCurrent, void* c) END
CALL(cuStreamCreate, void** s, unsigned f) *s = &handle; END
CALL(cuEventCreate, void** e, unsigned f) *e = &handle; END
CALL(cuStreamSynchronize, void* s) END
CALL(cuDeviceGetDefaultMemPool, void** p, int d) *p = &handle; END
CALL(cuMemPoolSetAttribute, void* p, int a, void* v) END
CALL(cuMemPoolTrimTo, void* p, size_t n) END
CALL(cuMemAllocAsync, unsigned long long* p, size_t n, void* s) *p = 4096; END
CALL(cuMemFreeAsync, unsigned long long p, void* s) END
CALL(cuMemsetD8Async, unsigned long long p, unsigned char v, size_t n, void* s) END
CALL(cuMemsetD32Async, unsigned long long p, unsigned v, size_t n, void* s) END
CALL(cuMemcpyHtoDAsync_v2, unsigned long long to, void* from, size_t n, void* s) END
CALL(cuMemGetInfo_v2, size_t* f, size_t* t) *f = 12345; *t = 1 << 30; END
int cuGetErrorName(int c, const char** t) { *t = "CUDA_ERROR_STUB"; return 0; }
int cuGetErrorString(int c, const char** t) { *t = "as the test asked for"; return 0; }
"#;

const MATRIX: &str = "%%MatrixMarket matrix coordinate real symmetric\n2 2 3\n1 1 4\n2 1 1\n2 2 3\n";

/// The folder with the stub of the driver; `None` if it cannot be built.
fn stub(test: &str) -> Option<PathBuf> {
    let folder = std::env::temp_dir().join(format!("residua-faults-{}-{test}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let source = folder.join("stub.c");
    std::fs::write(&source, STUB).unwrap();
    let library = folder.join("libcuda.so.1");
    let built = Command::new("cc").args(["-w", "-shared", "-fPIC", "-o"]).arg(&library).arg(&source).status();
    match built {
        Ok(status) => assert!(status.success(), "the stub does not compile"),
        Err(error) => {
            eprintln!("SKIPPED, nothing was provoked: no C compiler ({error})");
            return None;
        }
    }
    std::fs::copy(&library, folder.join("libcuda.so")).unwrap();
    std::fs::write(folder.join("a.mtx"), MATRIX).unwrap();
    Some(folder)
}

/// Runs `residua WORDS` in the folder, with the stub as driver and `input` on standard input.
fn run(folder: &Path, words: &[&str], input: &str, variables: &[(&str, &str)]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_residua"))
        .args(words)
        .current_dir(folder)
        .env("LD_LIBRARY_PATH", folder)
        .env("RESIDUA_CACHE", "off")
        .envs(variables.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // If it stops before reading, a command closes its input.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

/// If a device was requested, the command ends with status 3, and a line says what is wrong and what to do. With `auto`
/// the CPU is used, and the report gives the reason with the first of the words.
fn refused(test: &str, variables: &[(&str, &str)], words: &[&str]) {
    let Some(folder) = stub(test) else { return };
    let output = run(&folder, &["solve", "a.mtx", "--device", "cuda"], "", variables);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), text.lines().count()), (Some(3), 1), "{text}");
    for word in words {
        assert!(text.contains(word), "{word:?} is missing: {text}");
    }
    // Input through a pipe has no known size, so a GPU is looked for, however small the system is.
    for command in ["solve", "reorder"] {
        let output = run(&folder, &[command, "-", "--device", "auto", "-o", "x.mtx"], MATRIX, variables);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
        let reason = text.split_once("not on a GPU: ").map(|(_, reason)| reason).unwrap_or_default();
        assert!(reason.contains(words[0]), "{command}: {:?} is missing: {text}", words[0]);
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn an_old_driver_is_told_to_be_updated() {
    refused("old", &[("STUB_VERSION", "11040")], &["CUDA 11.4", "needs 12.0", "update the driver"]);
}

#[test]
fn a_driver_that_does_not_start_is_named() {
    refused("broken", &[("STUB", "cuInit=999")], &["does not start", "CUDA_ERROR_STUB", "nvidia-smi"]);
}

#[test]
fn a_driver_without_a_device_is_named() {
    refused("none", &[("STUB", "cuInit=100")], &["finds no device", "CUDA_VISIBLE_DEVICES"]);
}

#[test]
fn a_busy_device_is_named() {
    refused("busy", &[("STUB", "cuDevicePrimaryCtxRetain=46")], &["Stub (cuda:0) is busy", "another device"]);
}

#[test]
fn a_device_without_memory_is_told_with_sizes() {
    refused("memory", &[("STUB", "cuMemAllocAsync=2")], &["out of memory on Stub", "12345", "1073741824"]);
}

#[test]
fn a_lost_device_is_named() {
    refused("lost", &[("STUB", "cuMemsetD8Async=719")], &["a kernel failed on Stub", "restart"]);
}

#[test]
fn a_machine_without_the_run_time_compiler_is_told_what_to_install() {
    // A file that is no library, named as the compiler: then no other is searched.
    refused(
        "compiler",
        &[("RESIDUA_NVRTC", "a.mtx")],
        &["no CUDA run-time compiler (NVRTC)", "pip install nvidia-cuda-nvrtc", "CUDA_HOME", "RESIDUA_NVRTC"],
    );
}

#[test]
fn no_driver_is_told_with_what_to_install() {
    let run = |words: &[&str]| {
        let child = Command::new(env!("CARGO_BIN_EXE_residua"))
            .args(words)
            .env_clear()
            .env("RESIDUA_CACHE", "off")
            .stdin(std::fs::File::open("matrices/poisson2d-64x64.mtx").unwrap())
            .output()
            .unwrap();
        let both = [child.stdout, child.stderr].concat();
        (child.status.code(), String::from_utf8_lossy(&both).into_owned())
    };
    let (status, text) = run(&["devices"]);
    assert_eq!(status, Some(0), "{text}");
    if text.contains("cuda:0") {
        return eprintln!("SKIPPED, there is a driver here: {text}");
    }
    assert!(text.contains("no NVIDIA driver") && text.contains("install the driver"), "{text}");
    let (status, text) = run(&["solve", "-", "--device", "cuda"]);
    assert!(status == Some(3) && text.contains("install the driver"), "{text}");
    let (status, text) = run(&["solve", "-", "--device", "auto"]);
    assert!(status == Some(0) && text.contains("not on a GPU: no NVIDIA driver"), "{text}");
}
