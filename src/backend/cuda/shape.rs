//! The shape of a launch, as policies choose it.

use super::compile::Unit;
use crate::scalar::Element;

/// Blocks of a launch, threads of a block, shared memory beyond what the kernel declares, and which variant of its
/// file.
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

    /// A block for each of `tiles`, but no more than the device holds at a time, and one at least: for kernels whose
    /// blocks take tile after tile.
    pub(super) fn resident(tiles: usize, threads: u32) -> Self {
        let blocks = u32::try_from(tiles).unwrap_or(u32::MAX).max(1);
        Shape { resident: true, ..Self::new(blocks, threads) }
    }

    /// With so many blocks.
    pub(super) fn blocks(self, blocks: usize) -> Self {
        Shape { blocks: blocks as u32, ..self }
    }

    /// With as many blocks as another shape.
    pub(super) fn blocks_like(self, other: Shape) -> Self {
        Shape { blocks: other.blocks, ..self }
    }

    /// With so many threads a block.
    pub(super) fn threads(self, threads: u32) -> Self {
        Shape { threads, ..self }
    }

    /// For the unit of this class ([`Unit::class`]).
    pub(super) fn class(self, class: u32) -> Self {
        Shape { class, ..self }
    }

    /// With bytes of shared memory that the kernel does not declare.
    pub(super) fn shared(self, bytes: usize) -> Self {
        Shape { shared: bytes as u32, ..self }
    }

    /// Bytes of shared memory beyond what the kernel declares.
    #[cfg(test)]
    pub(super) fn shared_bytes(&self) -> usize {
        self.shared as usize
    }

    /// In the variant for which the macro `name` stands for `value`.
    pub(super) fn variant(mut self, name: &'static str, value: &'static str) -> Self {
        let free = self.variants.iter_mut().find(|(taken, _)| taken.is_empty());
        *free.expect("a launch names three variants at most") = (name, value);
        self
    }

    /// In the variant for values as wide as these.
    pub(super) fn for_values<V: Element>(self) -> Self {
        self.variant("VALUE_BYTES", bytes_of::<V>())
    }

    /// Whether a block may have as much shared memory as this asks for.
    pub(super) fn fits(&self, bytes: usize) -> bool {
        self.shared as usize <= bytes
    }

    /// With blocks that wait for each other.
    pub(super) fn together(self, together: Together) -> Self {
        Shape { together, ..self }
    }

    /// The unit of the kernel's file that this shape asks for.
    pub(super) fn unit(&self, mut unit: Unit) -> Unit {
        for (name, value) in self.variants.iter().filter(|(name, _)| !name.is_empty()) {
            unit = unit.with(name, value);
        }
        unit.class(self.class)
    }
}

/// Whether blocks wait for each other, so that all must run at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Together {
    No,
    /// The whole launch.
    Grid,
    /// The whole launch, as one cluster of the size that the kernel declares.
    Cluster,
    /// The whole launch, in clusters of so many blocks, as the kernel declares; no clusters where that is one.
    Clusters(u32),
}

/// Number of bytes, for kernels that are told it.
pub(super) const fn bytes_of<T: Element>() -> &'static str {
    match size_of::<T>() {
        1 => "1",
        2 => "2",
        4 => "4",
        8 => "8",
        _ => "16",
    }
}
