//! Merges, and sorts by comparison.

use super::kernels;
use crate::backend::Order;
use crate::backend::cuda::shape::{Shape, bytes_of};
use crate::backend::cuda::slice::{Slice, Vec as DeviceVec};
use crate::backend::cuda::{Cuda, tuning};
use crate::error::{Error, Result};
use crate::scalar::{Element, Key};

/// The order for which kernels are compiled: that of [`Key`], or a comparison in CUDA C++.
#[derive(Debug, Clone, Copy)]
pub(super) struct Less(Option<&'static str>);

impl From<Order> for Less {
    fn from(order: Order) -> Self {
        Less(match order {
            Order::Ascending => None,
            Order::Descending => Some("(key_bits<KEY>::to(b)<key_bits<KEY>::to(a))"),
        })
    }
}

impl Less {
    fn variant(self, shape: Shape) -> Shape {
        self.0.map_or(shape, |source| shape.variant("LESS(a,b)", source))
    }
}

impl Cuda {
    /// Sorts stably in any order. `less` is a CUDA C++ expression in `a` and `b` that is true if key a comes before key
    /// b, such as `(a) % 10 < (b) % 10`; it must be a strict weak order. `values` are permuted in the same way.
    /// Temporary memory: second buffers of both.
    ///
    /// # Errors
    /// If lengths differ, if the expression does not compile ([`CudaError::Compilation`](crate::CudaError::Compilation)
    /// has the compiler's message), and if the device fails.
    pub fn merge_sort_by<K: Key, V: Element>(
        &self,
        less: &'static str,
        keys: &mut DeviceVec<K>,
        values: Option<&mut DeviceVec<V>>,
    ) -> Result<()> {
        if let Some(values) = &values {
            Error::check_dimension("length of the values", keys.len(), values.len())?;
        }
        sort(*self, Less(Some(less)), keys, values)
    }
}

/// Merge sort: sorts tiles, then merges neighbouring runs, and alternates between two buffers.
pub(super) fn sort<K: Key, V: Element>(
    cuda: Cuda,
    less: impl Into<Less>,
    keys: &mut DeviceVec<K>,
    values: Option<&mut DeviceVec<V>>,
) -> Result<()> {
    let (less, n) = (less.into(), keys.len());
    if n < 2 {
        return Ok(());
    }
    let (bytes, width) = value_bytes::<V>(values.is_some());
    let (tile, tiles, threads) = tuning::merge(cuda.0.chip, n, size_of::<K>(), width);
    let variant = |shape: Shape| less.variant(shape.variant("VALUE_BYTES", bytes));
    let (tiles, threads) = (variant(tiles), variant(threads));
    let own_values = values.as_ref().map_or(0, |values| values.address());
    if n <= tile {
        return kernels::merge_sort_tiles(cuda, tiles, keys, keys, own_values, own_values, n);
    }
    let other_keys = cuda.uninitialised::<K>(n)?;
    let other_values = cuda.uninitialised::<V>(if width > 0 { n } else { 0 })?;
    let mut ranks = cuda.uninitialised::<u64>(n.div_ceil(tile))?;
    let buffers = [(&**keys, own_values), (&*other_keys, other_values.address())];
    // The first target is chosen so that the last merge writes to the output.
    let merges = n.div_ceil(tile).next_power_of_two().trailing_zeros() as usize;
    let mut at = merges % 2;
    let (to, to_values) = buffers[at];
    kernels::merge_sort_tiles(cuda, tiles, keys, to, own_values, to_values, n)?;
    for step in 0..merges {
        let run = tile << step;
        let ((from, from_values), (to, to_values)) = (buffers[at], buffers[1 - at]);
        kernels::merge_partition(cuda, threads, from, from, n, 0, run, &mut ranks)?;
        kernels::merge_tiles(
            cuda,
            tiles,
            from,
            from,
            to,
            from_values,
            from_values,
            to_values,
            n,
            0,
            run,
            &ranks,
        )?;
        at = 1 - at;
    }
    Ok(())
}

fn value_bytes<V: Element>(with_values: bool) -> (&'static str, usize) {
    if with_values { (bytes_of::<V>(), size_of::<V>()) } else { ("0", 0) }
}

type Pairs<'a, K, V> = (&'a Slice<K>, Option<&'a Slice<V>>);

/// Merges two sorted sequences.
pub(super) fn merge<K: Key, V: Element>(
    cuda: Cuda,
    order: Order,
    a: Pairs<'_, K, V>,
    b: Pairs<'_, K, V>,
    out: (&mut Slice<K>, Option<&mut Slice<V>>),
) -> Result<()> {
    let n = a.0.len() + b.0.len();
    Error::check_dimension("length of the merged keys", n, out.0.len())?;
    if n == 0 {
        return Ok(());
    }
    let (bytes, width) = value_bytes::<V>(out.1.is_some());
    let (tile, tiles, threads) = tuning::merge(cuda.0.chip, n, size_of::<K>(), width);
    let variant = |shape: Shape| Less::from(order).variant(shape.variant("VALUE_BYTES", bytes));
    let address = |values: Option<&Slice<V>>| values.map_or(0, Slice::address);
    let mut ranks = cuda.uninitialised::<u64>(n.div_ceil(tile))?;
    let first = a.0.len();
    kernels::merge_partition(cuda, variant(threads), a.0, b.0, n, first, 0, &mut ranks)?;
    let (av, bv, ov) = (address(a.1), address(b.1), address(out.1.as_deref()));
    kernels::merge_tiles(cuda, variant(tiles), a.0, b.0, out.0, av, bv, ov, n, first, 0, &ranks)
}
