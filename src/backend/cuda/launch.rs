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

/// The addresses of a kernel's arguments, in order, and the ranges of addresses that it may write.
pub(super) struct Arguments {
    addresses: [*mut c_void; MOST_ARGUMENTS],
    count: usize,
    written: [Range<u64>; MOST_ARGUMENTS],
    outputs: usize,
}

impl Arguments {
    pub(super) fn new() -> Self {
        let (addresses, written) = ([std::ptr::null_mut(); MOST_ARGUMENTS], [const { 0..0 }; MOST_ARGUMENTS]);
        Self { addresses, count: 0, written, outputs: 0 }
    }

    fn push<T>(&mut self, argument: &T) {
        self.addresses[self.count] = (&raw const *argument).cast_mut().cast();
        self.count += 1;
    }

    fn writes(&mut self, range: Range<u64>) {
        self.written[self.outputs] = range;
        self.outputs += 1;
    }
}

/// A type that can be passed to a kernel.
pub(super) trait Argument {
    type Bits: Copy;
    fn bits(self) -> Self::Bits;
    /// Appends the addresses of these bits. What [`passed!`] declares is several arguments of the kernel.
    fn append(bits: &Self::Bits, to: &mut Arguments) {
        to.push(bits);
    }
    /// Appends the ranges of addresses that the kernel may write through this argument. A bare address belongs to a
    /// workspace of the library.
    fn written(&self, _to: &mut Arguments) {}
}

/// Declares that kernels get these fields of a type, in this order.
macro_rules! passed {
    ([$($generics:tt)*] $type:ty: $($field:tt as $field_type:ty),* $(,)?) => {
        impl<$($generics)*> $crate::backend::cuda::launch::Argument for $type {
            type Bits = ($(<$field_type as $crate::backend::cuda::launch::Argument>::Bits,)*);
            fn bits(self) -> Self::Bits {
                ($($crate::backend::cuda::launch::Argument::bits(self.$field),)*)
            }
            fn append(bits: &Self::Bits, to: &mut $crate::backend::cuda::launch::Arguments) {
                $crate::backend::cuda::launch::append_each!(bits, to, [$($field_type,)*] [0 1 2 3 4 5 6 7 8 9]);
            }
            fn written(&self, to: &mut $crate::backend::cuda::launch::Arguments) {
                $($crate::backend::cuda::launch::Argument::written(&self.$field, to);)*
            }
        }
    };
}

/// Appends the elements of a tuple.
macro_rules! append_each {
    ($bits:ident, $to:ident, [] [$($rest:tt)*]) => {};
    ($bits:ident, $to:ident, [$type:ty, $($types:ty,)*] [$at:tt $($rest:tt)*]) => {
        <$type as $crate::backend::cuda::launch::Argument>::append(&$bits.$at, $to);
        $crate::backend::cuda::launch::append_each!($bits, $to, [$($types,)*] [$($rest)*]);
    };
}
pub(super) use {append_each, passed};

passed!(['a, V: Element] CsrParts<'a, V, Cuda>: offsets as OffsetsRef<'a, Cuda>, indices as &'a Slice<u32>,
    values as &'a Slice<V>);
passed!(['a] CsrPattern<'a, Cuda>: offsets as OffsetsRef<'a, Cuda>, indices as &'a Slice<u32>);
passed!(['a] GraphParts<'a, Cuda>: offsets as OffsetsRef<'a, Cuda>, indices as &'a Slice<u32>);
passed!(['a] GraphRows<'a, Cuda>: offsets as OffsetsRef<'a, Cuda>, indices as &'a Slice<u32>);
passed!([A: Argument, B: Argument] (A, B): 0 as A, 1 as B);

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
    fn written(&self, to: &mut Arguments) {
        to.writes(self.addresses());
    }
}

/// `None` is passed as a null pointer.
impl<A: Argument<Bits = u64>> Argument for Option<A> {
    type Bits = u64;
    fn bits(self) -> u64 {
        self.map_or(0, A::bits)
    }
    fn written(&self, to: &mut Arguments) {
        self.iter().for_each(|argument| argument.written(to));
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
    fn written(&self, to: &mut Arguments) {
        to.writes(self.as_ref().addresses());
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

macro_rules! told_by_offsets {
    ($([$($generics:tt)*] $type:ty),*) => {$(
        impl<$($generics)*> Told for $type {
            fn name(&self) -> &'static str {
                self.offsets.name()
            }
        }
    )*};
}
told_by_offsets!([V: Element] CsrParts<'_, V, Cuda>, [] CsrPattern<'_, Cuda>, [] GraphParts<'_, Cuda>,
    [] GraphRows<'_, Cuda>);

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
    (
        $file:literal,
        ($($generic:ident: $bound:path as $macro_name:tt),* $(; $($told:tt as $told_name:ident),*)?),
        $(#[$doc:meta])* $name:ident ($($argument:ident: $type:ty),* $(,)?)
    ) => {
        $(#[$doc])*
        #[allow(clippy::too_many_arguments, non_camel_case_types)]
        pub(in crate::backend::cuda) fn $name<$($generic: $bound),*>(
            cuda: $crate::backend::cuda::Cuda,
            shape: $crate::backend::cuda::shape::Shape,
            $($argument: $type),*
        ) -> $crate::error::Result<()> {
            use $crate::backend::cuda::{compile::Unit, launch};
            let unit = &const {
                Unit::new($file)$(.with(stringify!($macro_name), <$generic as $crate::scalar::Element>::NAME))*
            };
            $($(let unit = &unit.with(stringify!($told_name), launch::Told::name(&$told));)*)?
            let mut arguments = launch::Arguments::new();
            $(launch::Argument::written(&$argument, &mut arguments);)*
            $(let $argument = launch::Argument::bits($argument);)*
            $(<$type as launch::Argument>::append(&$argument, &mut arguments);)*
            // SAFETY: the declaration above lists the arguments of this kernel in order, and each pointer is to a local
            // variable that outlives the call.
            unsafe { launch::launch(cuda, &shape, unit, stringify!($name), &mut arguments) }
        }
    };
}
pub(super) use {kernel, kernels};

/// Records the addresses that a launch may write. This is not needed for a kernel that can't start early, because the
/// launch after it could not start any sooner either.
fn note(cuda: Cuda, kernel: Kernel, written: &[Range<u64>]) {
    if capture::stream(cuda.0.ordinal).is_some() {
        let written = kernel.early.then(|| written.to_vec());
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
    arguments: &mut Arguments,
) -> Result<()> {
    let Arguments { addresses, count, written, outputs } = arguments;
    let (arguments, written) = (&mut addresses[..*count], &written[..*outputs]);
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
