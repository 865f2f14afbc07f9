//! The shape of a launch. The tuning functions choose it.

use super::compile::Unit;
use crate::scalar::Element;

/// The number of blocks, the threads of a block, the bytes of shared memory in addition to those that the kernel
/// declares, and the variant of its file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    pub(super) blocks: u32,
    pub(super) threads: u32,
    pub(super) shared: u32,
    class: u32,
    pub(super) resident: bool,
    pub(super) together: Together,
    variants: [(&'static str, &'static str); 3],
}

impl Shape {
    pub(super) fn new(blocks: u32, threads: u32) -> Self {
        Shape {
            blocks,
            threads,
            shared: 0,
            class: 0,
            resident: false,
            together: Together::No,
            variants: [("", ""); 3],
        }
    }

    /// A shape with a block for each of `tiles`, but at least one, and no more than the device can run at the same
    /// time. For kernels whose blocks process one tile after another.
    pub(super) fn resident(tiles: usize, threads: u32) -> Self {
        let blocks = u32::try_from(tiles).unwrap_or(u32::MAX).max(1);
        Shape { resident: true, ..Self::new(blocks, threads) }
    }

    /// Sets the number of blocks.
    pub(super) fn blocks(self, blocks: usize) -> Self {
        Shape { blocks: blocks as u32, ..self }
    }

    /// Sets the number of blocks to that of another shape.
    pub(super) fn blocks_like(self, other: Shape) -> Self {
        Shape { blocks: other.blocks, ..self }
    }

    /// Sets the number of threads of a block.
    pub(super) fn threads(self, threads: u32) -> Self {
        Shape { threads, ..self }
    }

    /// Selects the unit with this class ([`Unit::class`]).
    pub(super) fn class(self, class: u32) -> Self {
        Shape { class, ..self }
    }

    /// Sets the bytes of shared memory in addition to those that the kernel declares.
    pub(super) fn shared(self, bytes: usize) -> Self {
        Shape { shared: bytes as u32, ..self }
    }

    /// Returns the bytes of shared memory in addition to those that the kernel declares.
    #[cfg(test)]
    pub(super) fn shared_bytes(&self) -> usize {
        self.shared as usize
    }

    /// Selects the variant with the macro `name` defined as `value`.
    pub(super) fn variant(mut self, name: &'static str, value: &'static str) -> Self {
        let free = self.variants.iter_mut().find(|(taken, _)| taken.is_empty());
        *free.expect("a launch names three variants at most") = (name, value);
        self
    }

    /// Selects the variant for values of this width.
    pub(super) fn for_values<V: Element>(self) -> Self {
        self.variant("VALUE_BYTES", bytes_of::<V>())
    }

    /// Returns whether this shape's shared memory fits this number of bytes.
    pub(super) fn fits(&self, bytes: usize) -> bool {
        self.shared as usize <= bytes
    }

    /// Sets how blocks wait for each other.
    pub(super) fn together(self, together: Together) -> Self {
        Shape { together, ..self }
    }

    /// Returns the unit of the kernel's file that this shape selects.
    pub(super) fn unit(&self, mut unit: Unit) -> Unit {
        for (name, value) in self.variants.iter().filter(|(name, _)| !name.is_empty()) {
            unit = unit.with(name, value);
        }
        unit.class(self.class)
    }
}

/// Which blocks wait for each other, so that all of them must run at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Together {
    No,
    /// All blocks of the launch.
    Grid,
    /// All blocks of the launch, as one cluster of the size that the kernel declares.
    Cluster,
    /// All blocks of the launch, in clusters of this many blocks, as the kernel declares; 1 means no clusters.
    Clusters(u32),
}

/// Returns the number of bytes as text, for macros of kernels.
pub(super) const fn bytes_of<T: Element>() -> &'static str {
    match size_of::<T>() {
        1 => "1",
        2 => "2",
        4 => "4",
        8 => "8",
        _ => "16",
    }
}
