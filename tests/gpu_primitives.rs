//! The primitives' cases on a CUDA device, sizes that only a device can hold, and the failure of a kernel. Skips with a
//! message if there is no device.

#![cfg(feature = "cuda")]

#[path = "common/device.rs"]
mod device;
#[path = "common/large.rs"]
mod large;
#[path = "common/primitives/mod.rs"]
mod primitives;
#[path = "common/random.rs"]
mod random;

use device::device;

use residua::backend::Backend;
use residua::{Cuda, CudaError, Error};
use std::sync::Mutex;

macro_rules! cases {
    ($($name:ident),*) => {
        $(
            #[test]
            fn $name() {
                if let Some(device) = device() {
                    primitives::$name(&device);
                }
            }
        )*
    };
}
primitives::each_case!(cases);

/// Tests that take most of the device's memory, one at a time.
static LARGE: Mutex<()> = Mutex::new(());

#[test]
fn large_arrays_agree_with_the_host() {
    let Some(b) = device() else { return };
    let _alone = LARGE.lock();
    large::agrees_with_the_host(&b);
}

#[test]
fn arrays_beyond_two_to_the_31_are_right() {
    let Some(b) = device() else { return };
    let _alone = LARGE.lock();
    large::beyond_two_to_the_31(&b);
}

#[test]
fn a_merge_sort_takes_any_order_as_source() {
    let Some(b) = device() else { return };
    let n = 100_003;
    let keys: Vec<u32> = (0..n).map(|i: u32| i.wrapping_mul(0x9e37_79b1) >> 7).collect();
    let mut expected: Vec<(u32, u32)> = keys.iter().copied().zip(0..).collect();
    expected.sort_by_key(|(key, _)| key % 10);
    let (mut k, mut v) = (b.upload(keys.clone()).unwrap(), b.upload((0..n).collect::<Vec<u32>>()).unwrap());
    b.merge_sort_by("(a) % 10 < (b) % 10", &mut k, Some(&mut v)).unwrap();
    let got: Vec<(u32, u32)> = b.download(&k).unwrap().into_iter().zip(b.download(&v).unwrap()).collect();
    assert!(got == expected);
    let mut k = b.upload(keys).unwrap();
    let error = b.merge_sort_by::<u32, u8>("(a) is less than (b)", &mut k, None).unwrap_err();
    assert!(matches!(error, Error::Cuda(CudaError::Compilation { .. })), "{error}");
    assert!(error.to_string().contains("error"), "{error}");
}

/// A kernel that writes to an invalid address, in a process of its own: the error names it and says what to do, and the
/// process can still print.
#[test]
fn a_kernel_fault_is_named_and_the_process_goes_on() {
    const NAME: &str = "a_kernel_fault_is_named_and_the_process_goes_on";
    if std::env::var_os("RESIDUA_FAULT").is_some() {
        let b = Cuda::new(0).unwrap();
        let mut keys = b.upload((0..100_000_u32).rev().collect()).unwrap();
        let sorted = b.merge_sort_by::<u32, u8>("(*(volatile u32*)64 = 1, (a) < (b))", &mut keys, None);
        let error = sorted.and_then(|()| b.synchronize()).unwrap_err();
        println!("FAULT {error}");
        println!("AFTER {}", b.zeros::<u32>(10).and_then(|x| b.download(&x)).unwrap_err());
        drop(keys);
        return println!("GOES ON");
    }
    if device().is_none() {
        return;
    }
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args([NAME, "--exact", "--nocapture"])
        .env("RESIDUA_FAULT", "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&child.stdout);
    assert!(
        child.status.success() && text.contains("GOES ON"),
        "{text}{}",
        String::from_utf8_lossy(&child.stderr)
    );
    for word in ["FAULT cuda: a kernel failed on", "ILLEGAL_ADDRESS", "restart"] {
        assert!(text.contains(word), "{word} is missing: {text}");
    }
}

/// The contents of the shared buffers after one operation must not affect the next.
#[test]
fn all_in_turn_twice() {
    let Some(b) = device() else { return };
    primitives::all_cases(&b);
    primitives::all_cases(&b);
}
