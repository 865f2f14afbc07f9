//! Properties of a device that the driver reports before it is opened.

use super::driver::{self, call};
use crate::error::Result;
use cudarc::driver::sys::{CUdevice, CUdevice_attribute as Attribute};

/// The maximum number of blocks in a cluster on any chip.
pub(super) const LARGEST_CLUSTER: u32 = 16;

/// The properties of a chip on which launches and tuning depend.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chip {
    /// Compute capability: (9, 0) is sm_90.
    pub(super) capability: (u32, u32),
    /// The maximum number of blocks in a cluster; 1 if there are no clusters.
    pub(super) cluster: u32,
    pub(super) multiprocessors: u32,
    pub(super) threads_per_multiprocessor: u32,
    /// The maximum number of bytes of shared memory that a block can have; more than 48 KiB must be requested.
    pub(super) shared_a_block: u32,
    /// The maximum number of bytes of a multiprocessor's memory that can be shared memory; the rest is first-level
    /// cache.
    pub(super) shared_a_multiprocessor: u32,
    /// The number of bytes of shared memory that each block needs in addition to its own.
    pub(super) shared_reserved: u32,
}

impl Chip {
    pub(super) fn of(name: &str, device: CUdevice) -> Result<Chip> {
        let attribute = |which| attribute(name, device, which);
        let capability = capability(name, device)?;
        Ok(Chip {
            capability,
            cluster: if capability >= (9, 0) { most_in_a_cluster() } else { 1 },
            multiprocessors: multiprocessors(attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?),
            threads_per_multiprocessor: attribute(
                Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR,
            )?,
            shared_a_block: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
            shared_a_multiprocessor: attribute(
                Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR,
            )?,
            shared_reserved: attribute(Attribute::CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK)?,
        })
    }
}

/// The maximum number of blocks in a cluster on chips with clusters, or the value of `RESIDUA_CLUSTERS`. With 1,
/// kernels run as on chips without clusters; tests use this on newer chips, and racecheck requires it.
fn most_in_a_cluster() -> u32 {
    let asked = std::env::var("RESIDUA_CLUSTERS").ok().and_then(|text| text.parse::<u32>().ok());
    asked.unwrap_or(LARGEST_CLUSTER).max(1)
}

/// The number of multiprocessors for which launches are planned: all, or at most the value of
/// `RESIDUA_MULTIPROCESSORS`, so that tests and tools can simulate a smaller chip.
fn multiprocessors(there: u32) -> u32 {
    let asked = std::env::var("RESIDUA_MULTIPROCESSORS").ok().and_then(|text| text.parse::<u32>().ok());
    asked.map_or(there, |asked| there.min(asked.max(1)))
}

/// Returns the number of devices that the driver reports.
pub(super) fn count() -> Result<usize> {
    driver::start()?;
    let mut count = 0;
    // SAFETY: the driver has been initialised, and the call writes one integer.
    unsafe { call!("cuda", cuDeviceGetCount(&raw mut count)) }?;
    Ok(usize::try_from(count).unwrap_or(0))
}

/// Returns the device's handle and its name.
pub(super) fn identify(ordinal: usize) -> Result<(CUdevice, String)> {
    let (mut handle, mut text) = (0, [0_u8; 256]);
    let place = format!("cuda:{ordinal}");
    // SAFETY: each call writes no more than its pointer's target can hold.
    unsafe {
        call!(&place, cuDeviceGet(&raw mut handle, ordinal as i32))?;
        call!(&place, cuDeviceGetName(text.as_mut_ptr().cast(), 255, handle))?;
    }
    Ok((handle, String::from_utf8_lossy(&text).trim_end_matches('\0').to_string()))
}

/// Returns the name, total memory and compute capability of a device, without opening it.
pub(super) fn describe(ordinal: usize) -> Result<(String, u64, (u32, u32))> {
    let (handle, name) = identify(ordinal)?;
    let mut bytes = 0;
    // SAFETY: the call writes one size.
    unsafe { call!(&name, cuDeviceTotalMem_v2(&raw mut bytes, handle)) }?;
    let capability = capability(&name, handle)?;
    Ok((name, bytes as u64, capability))
}

fn capability(name: &str, device: CUdevice) -> Result<(u32, u32)> {
    Ok((
        attribute(name, device, Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
        attribute(name, device, Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
    ))
}

pub(super) fn attribute(name: &str, device: CUdevice, which: Attribute) -> Result<u32> {
    let mut value = 0;
    // SAFETY: the call writes one integer.
    unsafe { call!(name, cuDeviceGetAttribute(&raw mut value, which, device)) }?;
    Ok(u32::try_from(value).unwrap_or(0))
}
