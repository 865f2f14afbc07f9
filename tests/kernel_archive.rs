//! The archive of compiled kernels in packages: kernels that were packed are found for their chip, and a damaged file
//! is reported and not used. Needs neither a device nor a compiler.

#![cfg(feature = "cuda")]

use residua::backend::cuda::compile::{
    Archive, Compiler, Unit, listed_units, pack, packed_kernels, units_of_a_solve,
};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A substitute for the code of a unit.
fn code(unit: &Unit, target: &str) -> Vec<u8> {
    format!("code of {} for {target}", unit.describe()).into_bytes()
}

/// A frame of zstd with one block that is not compressed (its length has 21 bits).
fn stored(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let length = u32::try_from(bytes.len()).unwrap();
    assert!(length < 1 << 17);
    let block = (length << 3 | 1).to_le_bytes();
    Ok([&[0x28, 0xb5, 0x2f, 0xfd, 0xa0], &length.to_le_bytes()[..], &block[..3], bytes].concat())
}

fn units() -> [Unit; 2] {
    [Unit::new("memory.cu"), Unit::new("vector.cu").with("SCALAR", "f64")]
}

fn packed(targets: &[&str]) -> Vec<u8> {
    pack("12.9", targets, &units(), |unit, target| Ok(code(unit, target)), stored).unwrap()
}

/// Writes a temporary file for this test.
fn file(name: &str, bytes: &[u8]) -> PathBuf {
    let path = std::env::temp_dir().join(format!("residua-archive-{}-{name}", std::process::id()));
    std::fs::write(&path, bytes).unwrap();
    path
}

/// The code of each unit that the archive has for a chip, and the target that it was compiled for.
fn found(path: &Path, chip: (u32, u32)) -> Option<(String, Vec<Option<Vec<u8>>>)> {
    let kernels = Archive::open(path).unwrap().kernels(chip).unwrap()?;
    let codes = units().iter().map(|unit| kernels.code(unit).map(<[u8]>::to_vec)).collect();
    Some((kernels.chip().to_string(), codes))
}

#[test]
fn what_is_packed_for_two_chips_is_found_for_each_and_for_its_family() {
    let path = file("two", &packed(&["sm_80", "sm_90", "compute_90"]));
    let archive = Archive::open(&path).unwrap();
    assert_eq!(archive.compiler(), "12.9");
    assert_eq!(archive.chips().collect::<Vec<_>>(), [("sm_80", 2), ("sm_90", 2), ("compute_90", 2)]);
    for (chip, target) in [
        ((8, 0), "sm_80"),
        ((8, 6), "sm_80"),
        ((8, 9), "sm_80"),
        ((9, 0), "sm_90"),
        ((10, 0), "compute_90"),
        ((12, 1), "compute_90"),
    ] {
        let (serves, codes) = found(&path, chip).unwrap();
        assert_eq!(serves, target, "{chip:?}");
        for (unit, got) in units().iter().zip(codes) {
            assert_eq!(got, Some(code(unit, target)), "{} for {chip:?}", unit.describe());
        }
    }
    assert!(found(&path, (7, 5)).is_none());
    let kernels = archive.kernels((9, 0)).unwrap().unwrap();
    assert_eq!(kernels.count(), 2);
    for other in [Unit::new("pack.cu"), Unit::new("vector.cu").with("SCALAR", "f32"), units()[0].class(1)] {
        let expected = (other.source() == "memory.cu").then(|| code(&units()[0], "sm_90"));
        assert_eq!(kernels.code(&other).map(<[u8]>::to_vec), expected, "{}", other.describe());
    }
    std::fs::remove_file(path).unwrap();
}

/// Whichever byte is wrong, or wherever the file ends, there is an error message and no code.
#[test]
fn a_damaged_archive_is_told_in_words() {
    let whole = packed(&["sm_80", "sm_90"]);
    let refusal = |bytes: &[u8]| {
        let path = file("damaged", bytes);
        let error = Archive::open(&path).and_then(|archive| archive.kernels((9, 0))).unwrap_err().to_string();
        std::fs::remove_file(path).unwrap();
        assert!(
            error.contains("the compiled kernels in") && error.contains("RESIDUA_KERNELS=off"),
            "{error}"
        );
        error
    };
    let last = whole.len() - 1;
    for (place, words) in [(0, "no archive"), (9, "head"), (20, "head"), (last, "sm_90 is damaged")] {
        let mut damaged = whole.clone();
        damaged[place] ^= 1;
        let error = refusal(&damaged);
        assert!(error.contains(words), "byte {place}: {error}");
    }
    for (length, words) in [(0, "too short"), (15, "too short"), (30, "head"), (last, "sm_90 is damaged")] {
        let error = refusal(&whole[..length]);
        assert!(error.contains(words), "{length} bytes: {error}");
    }
    let missing = Archive::open(Path::new("/no/such/file")).unwrap_err().to_string();
    assert!(missing.contains("/no/such/file"), "{missing}");
}

/// The variable that makes this program a child of a test, since the place of the archive is read from the environment.
const CHILD: &str = "RESIDUA_TEST_COMPILES";

#[test]
fn child() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    match packed_kernels((9, 0)) {
        Ok(Some(kernels)) => println!("says {} units end", kernels.count()),
        Ok(None) => println!("says none end"),
        Err(error) => println!("says {error} end"),
    }
    // A unit that is not available from the archive is compiled.
    if let Ok(compiler) = Compiler::get() {
        assert!(!compiler.image(&units()[0], (9, 0)).unwrap().code.is_empty());
    }
}

#[test]
fn the_environment_names_the_archive_or_turns_it_off() {
    let says = |named: &str| {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child", "--nocapture"])
            .env(CHILD, "1")
            .env("RESIDUA_KERNELS", named)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&child.stdout).into_owned();
        assert!(child.status.success(), "{text}{}", String::from_utf8_lossy(&child.stderr));
        let from = text.split_once("says ").unwrap().1;
        from.split_once(" end").unwrap().0.to_string()
    };
    let whole = packed(&["sm_90"]);
    let (good, bad) = (file("good", &whole), file("bad", &whole[..whole.len() - 1]));
    assert_eq!(says(good.to_str().unwrap()), "2 units");
    assert_eq!(says("off"), "none");
    // There is no archive next to the test.
    assert_eq!(says(""), "none");
    let error = says(bad.to_str().unwrap());
    assert!(error.contains("sm_90 is damaged"), "{error}");
    for path in [good, bad] {
        std::fs::remove_file(path).unwrap();
    }
}

/// Code that the compiler made for a unit comes out of an archive unchanged. It is in a frame of `zstd`, but not
/// compressed.
#[test]
fn what_is_compiled_comes_back() {
    let Ok(compiler) = Compiler::get() else {
        return eprintln!("SKIPPED, nothing was compiled: no NVRTC");
    };
    let code = |unit: &Unit, target: &str| compiler.image_for(unit, target).map(|image| image.code);
    let bytes = pack(&compiler.version_text(), &["sm_90"], &units()[..1], code, stored).unwrap();
    let path = file("compiled", &bytes);
    let kernels = Archive::open(&path).unwrap().kernels((9, 0)).unwrap().unwrap();
    let expected = compiler.image(&units()[0], (9, 0)).unwrap().code;
    assert_eq!(kernels.code(&units()[0]), Some(&expected[..]));
    std::fs::remove_file(path).unwrap();
}

#[test]
fn the_list_has_more_than_a_first_solve() {
    assert!(listed_units().len() > units_of_a_solve().len());
}
