//! Kernels as typed functions.
//!
//! [`kernels!`] declares the kernels of a file, with the types of their arguments. Each becomes a Rust function of the
//! same name, so a wrong argument does not compile. The first call compiles and loads the file for the given types;
//! later calls find it in a table.

use super::compile::Unit;
use super::driver::{attribute, call, configuration};
use super::modules::Kernel;
use super::shape::{Shape, Together};
use super::slice::Slice;
use super::{Cuda, capture};
use crate::backend::{CsrParts, CsrPattern, GraphParts, GraphRows, Offsets, OffsetsRef};
use crate::error::Result;
use crate::scalar::{Element, Offset};
use cudarc::driver::sys;
use std::ffi::c_void;
use std::ops::Range;
use std::sync::atomic::Ordering;

/// The largest number of arguments of a kernel.
const MOST_ARGUMENTS: usize = 32;

/// The addresses of a kernel's arguments, in order.
pub(super) struct Arguments {
    addresses: [*mut c_void; MOST_ARGUMENTS],
    count: usize,
}

impl Arguments {
    pub(super) fn new() -> Self {
        Self { addresses: [std::ptr::null_mut(); MOST_ARGUMENTS], count: 0 }
    }

    fn push<T>(&mut self, argument: &T) {
        self.addresses[self.count] = (&raw const *argument).cast_mut().cast();
        self.count += 1;
    }
}

/// A type that can be passed to a kernel.
pub(super) trait Argument {
    type Bits: Copy;
    fn bits(self) -> Self::Bits;
    /// Appends the addresses of these bits. The parts of a matrix are several arguments of the kernel.
    fn append(bits: &Self::Bits, to: &mut Arguments) {
        to.push(bits);
    }
    /// Returns the addresses that the kernel may write through this argument. A bare address belongs to a workspace of
    /// the library.
    fn written(&self) -> Option<Range<u64>> {
        None
    }
}

impl<T> Argument for &Slice<T> {
    type Bits = u64;
    fn bits(self) -> u64 {
        self.address()
    }
}

impl<T> Argument for &mut Slice<T> {
    type Bits = u64;
    fn bits(self) -> u64 {
        self.address()
    }
    fn written(&self) -> Option<Range<u64>> {
        Some(self.addresses())
    }
}

/// `None` is passed as a null pointer.
impl<A: Argument<Bits = u64>> Argument for Option<A> {
    type Bits = u64;
    fn bits(self) -> u64 {
        self.map_or(0, A::bits)
    }
    fn written(&self) -> Option<Range<u64>> {
        self.as_ref().and_then(A::written)
    }
}

impl<T: Element> Argument for T {
    type Bits = T;
    fn bits(self) -> T {
        self
    }
}

/// Numbers of rows, entries and the like are passed as 64-bit integers.
impl Argument for usize {
    type Bits = u64;
    fn bits(self) -> u64 {
        self as u64
    }
}

/// Yes and no are passed as 32-bit integers, 1 and 0.
impl Argument for bool {
    type Bits = u32;
    fn bits(self) -> u32 {
        u32::from(self)
    }
}

/// Three arguments: offsets, columns, values.
impl<V: Element> Argument for CsrParts<'_, V, Cuda> {
    type Bits = [u64; 3];
    fn bits(self) -> [u64; 3] {
        [self.offsets.bits(), self.indices.bits(), self.values.bits()]
    }
    fn append(bits: &[u64; 3], to: &mut Arguments) {
        bits.iter().for_each(|bits| to.push(bits));
    }
}

/// Declares that of these, a kernel gets the offsets and the indices.
macro_rules! patterns {
    ($($pattern:ident),*) => {$(
        impl Argument for $pattern<'_, Cuda> {
            type Bits = [u64; 2];
            fn bits(self) -> [u64; 2] {
                [self.offsets.bits(), self.indices.bits()]
            }
            fn append(bits: &[u64; 2], to: &mut Arguments) {
                bits.iter().for_each(|bits| to.push(bits));
            }
        }

        impl Told for $pattern<'_, Cuda> {
            fn name(&self) -> &'static str {
                self.offsets.name()
            }
        }
    )*};
}
patterns!(CsrPattern, GraphParts, GraphRows);

impl Argument for OffsetsRef<'_, Cuda> {
    type Bits = u64;
    fn bits(self) -> u64 {
        match self {
            OffsetsRef::Lower(offsets) => offsets.address(),
            OffsetsRef::Wide(offsets) => offsets.address(),
        }
    }
}

impl Argument for &mut Offsets<Cuda> {
    type Bits = u64;
    fn bits(self) -> u64 {
        self.as_ref().bits()
    }
    fn written(&self) -> Option<Range<u64>> {
        match self {
            Offsets::Lower(offsets) => Some(offsets.addresses()),
            Offsets::Wide(offsets) => Some(offsets.addresses()),
        }
    }
}

/// An argument that determines at run time the type for which a macro of the kernel file stands.
pub(super) trait Told {
    fn name(&self) -> &'static str;
}

impl Told for &'static str {
    fn name(&self) -> &'static str {
        self
    }
}

impl Told for OffsetsRef<'_, Cuda> {
    fn name(&self) -> &'static str {
        self.type_name()
    }
}

impl<V: Element> Told for CsrParts<'_, V, Cuda> {
    fn name(&self) -> &'static str {
        self.offsets.name()
    }
}

/// `None` counts as 32-bit offsets.
impl Told for Option<OffsetsRef<'_, Cuda>> {
    fn name(&self) -> &'static str {
        self.map_or(u32::NAME, |offsets| offsets.name())
    }
}

impl<I: Offset> Told for &mut Slice<I> {
    fn name(&self) -> &'static str {
        I::NAME
    }
}

impl Told for &mut Offsets<Cuda> {
    fn name(&self) -> &'static str {
        self.as_ref().name()
    }
}

impl<'a> OffsetsRef<'a, Cuda> {
    /// Returns the name of the offsets' type.
    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Self::Lower(_) => u32::NAME,
            Self::Wide(_) => u64::NAME,
        }
    }

    /// Returns the addresses of the elements; the end is after the last one.
    pub(super) fn addresses(&self) -> Range<u64> {
        match self {
            Self::Lower(offsets) => offsets.addresses(),
            Self::Wide(offsets) => offsets.addresses(),
        }
    }

    /// Wraps offsets whose type the caller knows.
    pub(super) fn of<I: Offset>(offsets: &'a Slice<I>) -> Self {
        match size_of::<I>() {
            4 => Self::Lower(Slice::at(offsets.address(), offsets.len())),
            _ => Self::Wide(Slice::at(offsets.address(), offsets.len())),
        }
    }
}

/// A few constants that are passed to a kernel by value.
#[derive(Debug, Clone, Copy)]
pub(super) struct Constants<T, const N: usize>(pub(super) [T; N]);

impl<T: Element, const N: usize> Argument for Constants<T, N> {
    type Bits = [T; N];
    fn bits(self) -> [T; N] {
        self.0
    }
}

/// Declares kernels: the file, its type parameters with the macros that stand for them in the file (`_` if there is no
/// macro), and the arguments of each kernel in order. A launch without blocks does nothing.
///
/// After a semicolon come the macros for types of offsets. Each is followed by the argument that shows whether offsets
/// have 32 or 64 bits, or by the type's name if the kernel has no such argument. This is decided at run time, so that
/// Rust code is not compiled twice for it.
macro_rules! kernels {
    ($file:literal, types $types:tt; $($(#[$doc:meta])* fn $name:ident $arguments:tt;)*) => {
        $($crate::backend::cuda::launch::kernel! { $file, $types, $(#[$doc])* $name $arguments })*
    };
}

macro_rules! kernel {
    ($file:literal, ($($generic:ident: $bound:path as $macro_name:tt),* $(; $($told:tt as $told_name:ident),*)?), $(#[$doc:meta])* $name:ident ($($argument:ident: $type:ty),* $(,)?)) => {
        $(#[$doc])*
        #[allow(clippy::too_many_arguments, non_camel_case_types)]
        pub(in crate::backend::cuda) fn $name<$($generic: $bound),*>(
            cuda: $crate::backend::cuda::Cuda,
            shape: $crate::backend::cuda::shape::Shape,
            $($argument: $type),*
        ) -> $crate::error::Result<()> {
            use $crate::backend::cuda::{compile::Unit, launch};
            let unit = &const { Unit::new($file)$(.with(stringify!($macro_name), <$generic as $crate::scalar::Element>::NAME))* };
            $($(let unit = &unit.with(stringify!($told_name), launch::Told::name(&$told));)*)?
            let written = [$(launch::Argument::written(&$argument)),*];
            $(let $argument = launch::Argument::bits($argument);)*
            let mut arguments = launch::Arguments::new();
            $(<$type as launch::Argument>::append(&$argument, &mut arguments);)*
            // SAFETY: the declaration above lists the arguments of this kernel in order, and each pointer is to a local
            // variable that outlives the call.
            unsafe { launch::launch(cuda, &shape, unit, stringify!($name), &written, &mut arguments) }
        }
    };
}
pub(super) use {kernel, kernels};

/// Records the addresses that a launch may write. This is not needed for a kernel that can't start early, because the
/// launch after it could not start any sooner either.
fn note(cuda: Cuda, kernel: Kernel, written: &[Option<Range<u64>>]) {
    if capture::stream(cuda.0.ordinal).is_some() {
        let written = kernel.early.then(|| written.iter().flatten().cloned().collect());
        capture::launched(cuda.0.ordinal, written);
    }
}

/// Finds the kernel `name` of a unit, and enqueues it. This function has everything that does not depend on the types
/// of a kernel's arguments, so that it is compiled only once and not for each of several hundred kernels.
///
/// # Safety
/// `arguments` must point to the kernel's arguments, in order and with the right types, and the addresses among them
/// must belong to allocations as long as the kernel reads and writes.
pub(super) unsafe fn launch(
    cuda: Cuda,
    shape: &Shape,
    unit: &Unit,
    name: &'static str,
    written: &[Option<Range<u64>>],
    arguments: &mut Arguments,
) -> Result<()> {
    let arguments = &mut arguments.addresses[..arguments.count];
    let kernel = cuda.kernel(shape.unit(*unit), name, shape)?;
    if shape.blocks == 0 {
        return Ok(());
    }
    note(cuda, kernel, written);
    let blocks = if shape.resident { shape.blocks.min(kernel.resident) } else { shape.blocks };
    cuda.0.bind()?;
    kernel.launched.store(true, Ordering::Relaxed);
    if matches!(shape.together, Together::Grid | Together::Clusters(_)) {
        // SAFETY: as below.
        return unsafe {
            call!(
                &cuda.0.name,
                cuLaunchCooperativeKernel(
                    kernel.function,
                    blocks,
                    1,
                    1,
                    shape.threads,
                    1,
                    1,
                    shape.shared,
                    cuda.0.stream(),
                    arguments.as_mut_ptr()
                )
            )
        };
    }
    if kernel.early {
        // SAFETY: guaranteed by the caller.
        return unsafe { enqueue_early(cuda, kernel, blocks, *shape, arguments) };
    }
    // SAFETY: guaranteed by the caller; the driver copies the arguments before it returns.
    unsafe {
        call!(
            &cuda.0.name,
            cuLaunchKernel(
                kernel.function,
                blocks,
                1,
                1,
                shape.threads,
                1,
                1,
                shape.shared,
                cuda.0.stream(),
                arguments.as_mut_ptr(),
                std::ptr::null_mut()
            )
        )
    }
}

/// Enqueues a kernel whose blocks may start before the previous launch has ended.
///
/// # Safety
/// As [`launch`], and every thread of the kernel must wait for the previous launch before its first access to memory.
unsafe fn enqueue_early(
    cuda: Cuda,
    kernel: Kernel,
    blocks: u32,
    shape: Shape,
    arguments: &mut [*mut c_void],
) -> Result<()> {
    let mut early =
        attribute(sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
    early.value.programmaticStreamSerializationAllowed = 1;
    let config = configuration((blocks, shape.threads, shape.shared), cuda.0.stream(), &mut early);
    // SAFETY: guaranteed by the caller; the driver copies the arguments and the attribute before it returns.
    unsafe {
        call!(
            &cuda.0.name,
            cuLaunchKernelEx(
                &raw const config,
                kernel.function,
                arguments.as_mut_ptr(),
                std::ptr::null_mut()
            )
        )
    }
}
