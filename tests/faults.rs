//! Ways in which CUDA can be broken, each provoked: a library with the driver's name that a C compiler makes here, and
//! the command beside it. Skips loudly where there is no C compiler.

#![cfg(all(feature = "cuda", feature = "cli", target_os = "linux"))]

use std::path::PathBuf;
use std::process::{Command, Output};

/// A driver that starts, unless STUB says which call fails and with which code: `cuInit=999`. STUB_VERSION is the
/// release that it serves.
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
CALL(cuStreamSynchronize, void* s) END
CALL(cuDeviceGetDefaultMemPool, void** p, int d) *p = &handle; END
CALL(cuMemPoolSetAttribute, void* p, int a, void* v) END
CALL(cuMemPoolTrimTo, void* p, size_t n) END
CALL(cuMemAllocAsync, unsigned long long* p, size_t n, void* s) *p = 4096; END
CALL(cuMemFreeAsync, unsigned long long p, void* s) END
CALL(cuMemsetD8Async, unsigned long long p, unsigned char v, size_t n, void* s) END
CALL(cuMemGetInfo_v2, size_t* f, size_t* t) *f = 12345; *t = 1 << 30; END
int cuGetErrorName(int c, const char** t) { *t = "CUDA_ERROR_STUB"; return 0; }
int cuGetErrorString(int c, const char** t) { *t = "as the test asked for"; return 0; }
"#;

/// The folder of the stub; `None` where it cannot be built.
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
    std::fs::write(
        folder.join("a.mtx"),
        "%%MatrixMarket matrix coordinate real symmetric\n2 2 3\n1 1 4\n2 1 1\n2 2 3\n",
    )
    .unwrap();
    Some(folder)
}

/// `residua solve a.mtx --device DEVICE` with the stub for a driver.
fn solve(folder: &PathBuf, device: &str, fault: &str, version: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_residua"))
        .args(["solve", "a.mtx", "--device", device, "--output", "x.mtx"])
        .current_dir(folder)
        .env("LD_LIBRARY_PATH", folder)
        .env("STUB", fault)
        .env("STUB_VERSION", version)
        .env("RESIDUA_CACHE", "off")
        .output()
        .unwrap()
}

/// On the device asked for: exit status 3, and words in one line. With `auto`: solved on the CPU.
fn refused(test: &str, fault: &str, version: &str, words: &[&str]) {
    let Some(folder) = stub(test) else { return };
    let output = solve(&folder, "cuda", fault, version);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(3), "{text}");
    for word in words {
        assert!(text.contains(word), "{word:?} is missing: {text}");
    }
    let output = solve(&folder, "auto", fault, version);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn an_old_driver_is_told_to_be_updated() {
    refused("old", "", "11040", &["CUDA 11.4", "needs 12.0", "update the driver"]);
}

#[test]
fn a_driver_that_does_not_start_is_named() {
    refused("broken", "cuInit=999", "12080", &["does not start", "CUDA_ERROR_STUB", "nvidia-smi"]);
}

#[test]
fn a_driver_without_a_device_is_named() {
    refused("none", "cuInit=100", "12080", &["finds no device", "CUDA_VISIBLE_DEVICES"]);
}

#[test]
fn a_busy_device_is_named() {
    refused("busy", "cuDevicePrimaryCtxRetain=46", "12080", &["Stub (cuda:0) is busy", "another device"]);
}

#[test]
fn a_device_without_memory_is_told_with_sizes() {
    refused("memory", "cuMemAllocAsync=2", "12080", &["out of memory on Stub", "12345", "1073741824"]);
}

#[test]
fn a_lost_device_is_named() {
    refused("lost", "cuMemsetD8Async=719", "12080", &["a kernel failed on Stub", "restart"]);
}

#[test]
fn no_driver_and_no_compiler_are_told_with_what_to_install() {
    let output = Command::new(env!("CARGO_BIN_EXE_residua"))
        .arg("devices")
        .env_clear()
        .env("RESIDUA_CACHE", "off")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    if text.contains("cuda:0") {
        return eprintln!("SKIPPED, there is a driver here: {text}");
    }
    assert!(text.contains("no NVIDIA driver") && text.contains("install the driver"), "{text}");
}
