//! Damaged files are refused with an error that names the position.

use crate::archives::{npy, zip};
use crate::entries::*;
use crate::scratch::Folder;
use residua::files;

/// Whichever byte is wrong or missing, a file is refused or read correctly.
#[test]
fn damage_at_every_byte_is_found_or_harmless() {
    let folder = Folder::new();
    let entries = Entries::random((12, 11), 3, 7);
    let expected = bits(&entries.assembled());
    let archives = [
        entries.csr(["<i4", "<i8"], false),
        entries.csr(["<i8", "<i4"], true),
        entries.coo("<i4", false, false),
        entries.clone().transposed().csc_of_transpose(true),
    ];
    for (k, whole) in archives.into_iter().enumerate() {
        let path = folder.path("a.npz");
        let (mut refused, transposed) = (0, k == 3);
        for at in 0..whole.len() {
            for bit in [1, 0x80] {
                let mut bytes = whole.clone();
                bytes[at] ^= bit;
                std::fs::write(&path, bytes).unwrap();
                match files::read_csr::<f64>(&path) {
                    Ok(a) => assert!(transposed || bits(&a) == expected, "archive {k}, byte {at}"),
                    Err(error) => {
                        refused += 1;
                        assert!(error.to_string().contains("a.npz"), "byte {at}: {error}");
                    }
                }
            }
            std::fs::write(&path, &whole[..at]).unwrap();
            let error = files::read_csr::<f64>(&path).unwrap_err().to_string();
            assert!(error.contains("a.npz"), "cut at {at}: {error}");
        }
        assert!(refused > whole.len(), "archive {k}: {refused} of {}", whole.len());
    }
    let whole = entries.petsc(false);
    for at in 0..whole.len() {
        let path = folder.file("a.petsc", &whole[..at]);
        // With half of each value, it is a valid file in single precision.
        let single = at + 4 * entries.values.len() == whole.len();
        assert_eq!(files::read_csr::<f64>(&path).is_ok(), single, "cut at {at}");
        let mut bytes = whole.clone();
        bytes[at] ^= 0x80;
        // Values have no checksum here, but no byte of a file may crash the program.
        let _ = files::read_csr::<f64>(folder.file("a.petsc", bytes));
    }
    let whole = doubles(&[1.0, 2.0, 3.0]);
    for at in 6..whole.len() {
        assert!(files::read_csr::<f64>(folder.file("a.npy", &whole[..at])).is_err(), "cut at {at}");
        for bit in [1, 2, 0x10, 0x80] {
            let mut bytes = whole.clone();
            bytes[at] ^= bit;
            if let Err(error) = files::read_csr::<f64>(folder.file("a.npy", bytes)) {
                assert!(error.to_string().contains("a.npy"), "byte {at}: {error}");
            }
        }
    }
}

/// A wrong checksum in the archive's list, of each member, stored and deflated.
#[test]
fn checksums_are_held_against_every_member() {
    let folder = Folder::new();
    let entries = Entries::random((30, 30), 4, 8);
    for deflate in [false, true] {
        let whole = entries.csr(["<i4", "<i4"], deflate);
        let lists = (0..whole.len() - 4).filter(|&at| whole[at..].starts_with(b"PK\x01\x02"));
        for (member, at) in ["indices", "indptr", "format", "shape", "data"].into_iter().zip(lists) {
            let mut bytes = whole.clone();
            bytes[at + 16] ^= 1;
            let error = files::read_csr::<f64>(folder.file("a.npz", bytes)).unwrap_err().to_string();
            assert!(error.contains(&format!("a.npz:{member}.npy")), "{error}");
            assert!(error.contains("checksum"), "{error}");
        }
    }
}

/// A size that a header claims takes no memory unless the data exists.
#[test]
fn sizes_that_are_not_there_are_refused() {
    let folder = Folder::new();
    let entries = Entries::random((4, 4), 2, 9);
    let huge = "(1000000000000,)";
    let members = |name: &str, with: Vec<u8>| {
        let mut members = vec![
            ("indices.npy", integers("<i4", &entries.columns)),
            ("indptr.npy", integers("<i4", &entries.offsets())),
            ("format.npy", word("csr")),
            ("shape.npy", entries.shape()),
            ("data.npy", doubles(&entries.values)),
        ];
        members.iter_mut().filter(|member| member.0 == name).for_each(|member| member.1 = with.clone());
        members
    };
    for deflate in [false, true] {
        for (name, with, words) in [
            ("indices.npy", npy("'<i4'", huge, &[0; 64]), "ends after 16 of 1000000000000 integers"),
            ("indptr.npy", npy("'<i8'", huge, &[0; 64]), "ends after 8 of 1000000000000 integers"),
            ("data.npy", npy("'<f8'", huge, &[0; 64]), "ends after 8 of 1000000000000 values"),
            ("data.npy", npy("'<f8'", "(2, 3, 4, 5)", &[0; 960]), "one dimension"),
            ("data.npy", doubles(&[1.0; 100])[..800].to_vec(), "of 100 values"),
            ("shape.npy", integers("<i8", &[4_000_000_000, 4]), "out of proportion"),
            ("shape.npy", integers("<i8", &[-4, 4]), "two sizes"),
            ("shape.npy", integers("<i8", &[5, 4]), "5 + 1 offsets are expected"),
            ("indptr.npy", integers("<i8", &[0, -1, 2, 3, 4]), "ascend"),
            ("indptr.npy", integers("<i8", &[0, 1, 1, 1, 99]), "ascend"),
            ("indptr.npy", integers("<i8", &[1, 1, 1, 1, 1]), "ascend"),
            ("indices.npy", integers("<i8", &[-1; 16]), "index -1 (number 0 from 0) is outside of 4"),
            ("indices.npy", doubles(&[0.0; 16]), "an array of integers is expected"),
            ("data.npy", npy("'<U4'", "(16,)", &[0; 256]), "text"),
            ("format.npy", word("lil"), "csr, csc, coo, bsr and dia are read"),
            ("format.npy", word("bsr"), "three dimensions"),
            ("format.npy", word("dia"), "two dimensions"),
        ] {
            let path = folder.file("a.npz", zip(&members(name, with), deflate));
            let error = files::read_csr::<f64>(&path).unwrap_err().to_string();
            assert!(error.contains("a.npz") && error.contains(words), "no `{words}` in {error}");
        }
        // An archive whose list claims more than its member can contain.
        let mut whole = zip(&members("", Vec::new()), deflate);
        let at = (0..whole.len()).rev().find(|&at| whole[at..].starts_with(b"PK\x01\x02")).unwrap();
        whole[at + 24..at + 28].copy_from_slice(&0x7fff_ffffu32.to_le_bytes());
        let error = files::read_csr::<f64>(folder.file("lie.npz", whole)).unwrap_err().to_string();
        assert!(
            error.contains("lie.npz:data.npy") && error.contains("is said to hold 2147483647 bytes"),
            "{error}"
        );
    }
    for (shape, offsets) in [("(0, 2000000000, 1)", 3), ("(0, 1, 1)", 3)] {
        let members = [
            ("format.npy", word("bsr")),
            ("shape.npy", integers("<i8", &[4_000_000_000, 1])),
            ("indptr.npy", integers("<i4", &vec![0; offsets])),
            ("indices.npy", integers("<i4", &[])),
            ("data.npy", npy("'<f8'", shape, &[])),
        ];
        let error =
            files::read_csr::<f64>(folder.file("a.npz", zip(&members, false))).unwrap_err().to_string();
        assert!(error.contains("out of proportion"), "{error}");
    }
    let value = f64::INFINITY.to_le_bytes();
    let members = members(
        "data.npy",
        npy("'<f8'", &format!("({},)", entries.values.len()), &value.repeat(entries.values.len())),
    );
    let error = files::read_csr::<f64>(folder.file("a.npz", zip(&members, false))).unwrap_err().to_string();
    assert!(error.contains("value 0 (from 0) is not finite"), "{error}");
}
