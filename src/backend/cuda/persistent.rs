//! Persistent iterations: many iterations in one launch, for systems whose matrix fits the chip's shared memory
//! (`kernels/cg_resident.cu`, `kernels/minres_resident.cu`), or whose vectors fit while the matrix is streamed
//! (`kernels/cg_streamed.cu`).
//!
//! Which rows each block has, and where it finds its operands, depends only on the pattern. Both are computed at a
//! matrix's first launch and kept with it. Every launch reads the values again.

use super::compile::Unit;
use super::inverse::with_diagonal;
use super::launch::kernels;
use super::shape::{Shape, Together};
use super::slice::{Slice, Vec as DeviceVec};
use super::{Cuda, record, tuning};
use crate::backend::{
    Backend, CsrParts, Derived, Inverse, OffsetsRef, Persistent, PersistentIterations, PersistentMinres,
    SellParts, Slot,
};
use crate::error::Result;
use crate::scalar::{Element, Promote, Scalar};

/// The number of iterations of a launch: so many that loading the matrix costs only a few percent.
pub(super) const LENGTH: usize = 128;
/// The maximum number of blocks, each of which has slots for its sums, and the number of 64-bit words of a slot
/// (`MAX_BLOCKS`, `Slot` in the kernel).
const MOST_BLOCKS: usize = 1024;
const SLOT_WORDS: usize = 2;

mod kernel {
    use super::*;
    kernels! {
        "cg_layout.cu", types(; offsets as OFFSET);
        fn cg_layout(
            rows: u32,
            rows_a_block: u32,
            offsets: OffsetsRef<'_, Cuda>,
            columns: &Slice<u32>,
            counts: &mut Slice<u32>,
            halo_starts: Option<&Slice<u32>>,
            halo: Option<&mut Slice<u32>>,
            locals: Option<&mut Slice<u16>>,
        );
    }
    kernels! {
        "cg_resident.cu", types(T: Scalar as SCALAR, D: Element as DIAGONAL, V: Element as STORED; offsets as OFFSET);
        /// `d` is null unless the inverse is a diagonal.
        fn cg_resident(
            rows: u32,
            rows_a_block: u32,
            entries: u32,
            halo_room: u32,
            offsets: OffsetsRef<'_, Cuda>,
            values: &Slice<V>,
            locals: &Slice<u16>,
            halo_starts: &Slice<u32>,
            halo: &Slice<u32>,
            d: Option<&Slice<D>>,
            r: &mut Slice<T>,
            p: &mut Slice<T>,
            x: &mut Slice<T>,
            published: &mut Slice<T>,
            state: &mut Slice<T::Real>,
            messages: &mut Slice<T::Real>,
            count: u32,
            slots: u64,
            meeting: u32,
        );
    }
    kernels! {
        "minres_resident.cu", types(T: Scalar as SCALAR, V: Element as STORED; offsets as OFFSET);
        fn minres_resident(
            rows: u32,
            rows_a_block: u32,
            entries: u32,
            halo_room: u32,
            offsets: OffsetsRef<'_, Cuda>,
            values: &Slice<V>,
            locals: &Slice<u16>,
            halo_starts: &Slice<u32>,
            halo: &Slice<u32>,
            x: &mut Slice<T>,
            v: &mut Slice<T>,
            v_before: &mut Slice<T>,
            w: &mut Slice<T>,
            w_before: &mut Slice<T>,
            published: &mut Slice<T>,
            state: &mut Slice<T>,
            first_slot: u32,
            messages: &mut Slice<T>,
            count: u32,
            slots: u64,
            meeting: u32,
        );
    }
    kernels! {
        "cg_streamed.cu", types(T: Scalar as SCALAR, D: Element as DIAGONAL, V: Element as STORED; offsets as OFFSET);
        /// `d` is null unless the inverse is a diagonal.
        fn cg_streamed(
            rows: u32,
            rows_a_block: u32,
            lengths: &Slice<u32>,
            offsets: OffsetsRef<'_, Cuda>,
            columns: &Slice<u32>,
            values: &Slice<V>,
            d: Option<&Slice<D>>,
            r: &mut Slice<T>,
            p: &mut Slice<T>,
            x: &mut Slice<T>,
            state: &mut Slice<T::Real>,
            messages: &mut Slice<T::Real>,
            count: u32,
            slots: u64,
            meeting: u32,
        );
    }
}

/// The layout of a matrix in the shared memory of the blocks.
struct Plan {
    shape: Shape,
    /// The size in bytes of the largest scalar type for which this layout fits.
    scalar: usize,
    rows_a_block: u32,
    entries: u32,
    halo_room: u32,
    halo_starts: DeviceVec<u32>,
    halo: DeviceVec<u32>,
    locals: DeviceVec<u16>,
}

/// The number of words of all slots through which blocks exchange sums.
const SLOTS: usize = 4 * MOST_BLOCKS * SLOT_WORDS;

/// Enqueues a launch of persistent iterations for a matrix that is streamed. Returns false if it declines.
pub(super) fn streamed<V: Promote<T>, T: Scalar>(
    cuda: Cuda,
    a: SellParts<'_, V, Cuda>,
    work: Persistent<'_, T, Cuda>,
) -> Result<bool> {
    let n = a.rows;
    work.check(n)?;
    let Persistent::Cg(work) = work else { return Ok(false) };
    // The kernels need slices with the height of a warp, and rows in their original order.
    if matches!(work.inverse, Inverse::General(_)) || n == 0 || a.height != 32 || a.order.is_some() {
        return Ok(false);
    }
    with_diagonal!(work.inverse, n, d => streamed_with(cuda, a, d, work))
}

fn streamed_with<D: Element, V: Promote<T>, T: Scalar>(
    cuda: Cuda,
    a: SellParts<'_, V, Cuda>,
    d: Option<&Slice<D>>,
    work: PersistentIterations<'_, T, Cuda>,
) -> Result<bool> {
    let row = 2 * size_of::<T>() + d.map_or(0, |_| size_of::<D>());
    let Some(way) = tuning::streamed(cuda.0.chip, a.rows, size_of::<T>(), row) else { return Ok(false) };
    let rows_a_block = way.rows_a_block;
    let shape = Shape::new(way.blocks, way.threads)
        .shared(rows_a_block as usize * row)
        .class(way.class)
        .together(Together::Grid);
    let unit = Unit::new("cg_streamed.cu").with("SCALAR", T::NAME).with("DIAGONAL", D::NAME);
    let unit = unit.with("STORED", V::NAME).with("OFFSET", a.offsets.type_name());
    if !cuda.holds(unit, "cg_streamed", &shape)? {
        return Ok(false);
    }
    let count = work.count.min(work.messages.len() / crate::backend::CgSlot::MESSAGE) as u32;
    let (slots, meeting) = cuda.0.workspaces.meetings(SLOTS, 3 * count)?;
    kernel::cg_streamed::<T, D, V>(
        cuda,
        shape,
        a.rows as u32,
        rows_a_block,
        a.lengths,
        a.offsets,
        a.indices,
        a.values,
        d,
        work.r,
        work.p,
        work.x,
        work.state,
        work.messages,
        count,
        slots,
        meeting,
    )?;
    Ok(true)
}

/// Enqueues a launch of persistent iterations. Returns false if it declines.
pub(super) fn resident<V: Promote<T>, T: Scalar>(
    cuda: Cuda,
    a: CsrParts<'_, V, Cuda>,
    derived: &Derived,
    work: Persistent<'_, T, Cuda>,
) -> Result<bool> {
    let n = a.rows;
    work.check(n)?;
    // A system whose vector and values need more than this does not fit, whatever its pattern is.
    let chip = cuda.0.chip;
    let room = chip.multiprocessors as usize * chip.shared_a_block as usize;
    if n == 0 || n * size_of::<T>() + a.values.len() * size_of::<V>() > room {
        return Ok(false);
    }
    // The kernels of all methods have the same launch bounds and shared memory, so one check is enough.
    let holds = |shape: &Shape| match &work {
        Persistent::Cg(work) => with_diagonal!(work.inverse, n, d => {
            let unit = unit::<T, V>("cg_resident.cu", Some(name_of(d)), a.offsets);
            cuda.holds(unit, "cg_resident", shape)
        }),
        Persistent::Minres(_) => {
            cuda.holds(unit::<T, V>("minres_resident.cu", None, a.offsets), "minres_resident", shape)
        }
    };
    if matches!(&work, Persistent::Cg(work) if matches!(work.inverse, Inverse::General(_))) {
        return Ok(false);
    }
    let plan = derived.get_or_make(|| Plan::new::<V, T>(cuda, a, &holds))?;
    let Some(plan) = plan.and_then(Option::as_ref).filter(|plan| plan.scalar >= size_of::<T>()) else {
        return Ok(false);
    };
    match work {
        Persistent::Cg(work) => cg(cuda, a, plan, work),
        Persistent::Minres(work) => minres(cuda, a, plan, work),
    }
}

fn cg<V: Promote<T>, T: Scalar>(
    cuda: Cuda,
    a: CsrParts<'_, V, Cuda>,
    plan: &Plan,
    work: PersistentIterations<'_, T, Cuda>,
) -> Result<bool> {
    let count = work.count.min(work.messages.len() / crate::backend::CgSlot::MESSAGE);
    let (slots, meeting) = cuda.0.workspaces.meetings(SLOTS, 2 * count as u32)?;
    with_diagonal!(work.inverse, a.rows, d => {
        kernel::cg_resident::<T, _, V>(
            cuda, plan.shape, a.rows as u32, plan.rows_a_block, plan.entries, plan.halo_room, a.offsets, a.values,
            &plan.locals, &plan.halo_starts, &plan.halo, d, work.r, work.p, work.x, work.q, work.state,
            work.messages, count as u32, slots, meeting,
        )?;
        Ok(true)
    })
}

fn minres<V: Promote<T>, T: Scalar>(
    cuda: Cuda,
    a: CsrParts<'_, V, Cuda>,
    plan: &Plan,
    work: PersistentMinres<'_, T, Cuda>,
) -> Result<bool> {
    let count = work.count.min(work.messages.len() / Slot::MESSAGE) as u32;
    let [v, v_before] = work.v;
    let [w, w_before] = work.w;
    let (slots, meeting) = cuda.0.workspaces.meetings(SLOTS, 2 * count)?;
    kernel::minres_resident::<T, V>(
        cuda,
        plan.shape,
        a.rows as u32,
        plan.rows_a_block,
        plan.entries,
        plan.halo_room,
        a.offsets,
        a.values,
        &plan.locals,
        &plan.halo_starts,
        &plan.halo,
        work.x,
        v,
        v_before,
        w,
        w_before,
        work.q,
        work.state,
        work.scalars.place() as u32,
        work.messages,
        count,
        slots,
        meeting,
    )?;
    Ok(true)
}

/// Returns the name of a diagonal's element type in kernels.
fn name_of<D: Element>(_: Option<&Slice<D>>) -> &'static str {
    D::NAME
}

/// Returns the unit of a kernel that keeps a matrix on the chip, for any method. `diagonal` is the type of the diagonal
/// if there is one. The types must be in the order of the kernel's declaration, because their order is part of a unit.
fn unit<T: Scalar, V: Element>(
    file: &'static str,
    diagonal: Option<&'static str>,
    offsets: OffsetsRef<'_, Cuda>,
) -> Unit {
    let unit = Unit::new(file).with("SCALAR", T::NAME);
    let unit = diagonal.map_or(unit, |element| unit.with("DIAGONAL", element));
    unit.with("STORED", V::NAME).with("OFFSET", offsets.type_name())
}

impl Plan {
    /// Creates the plan for a pattern; `None` if it does not fit.
    fn new<V: Promote<T>, T: Scalar>(
        cuda: Cuda,
        a: CsrParts<'_, V, Cuda>,
        holds: &dyn Fn(&Shape) -> Result<bool>,
    ) -> Result<Option<Plan>> {
        record::forbid(cuda, "laying a matrix out")?;
        let (n, nonzeros) = (a.rows, a.indices.len());
        for way in tuning::resident(cuda.0.chip, n, nonzeros) {
            let Some(measured) = measure(cuda, a, way)? else { continue };
            let [entries, halo_room, rows] =
                [measured.entries, measured.halo_room, way.rows_a_block as usize];
            let room = |bytes: usize| bytes.next_multiple_of(16);
            let shared = room((rows + halo_room) * size_of::<T>())
                + if way.cluster > 1 { room(rows * size_of::<T>()) } else { 0 }
                + room(entries * size_of::<V>())
                + room(4 * halo_room)
                + room(2 * entries);
            if shared > tuning::resident_shared(cuda.0.chip) || rows + halo_room > usize::from(u16::MAX) + 1 {
                continue;
            }
            let together = match way.cluster {
                0 => Together::Grid,
                1 => Together::No,
                _ => Together::Cluster,
            };
            let shape =
                Shape::new(way.blocks, way.threads).shared(shared).class(way.class).together(together);
            if !holds(&shape)? {
                continue;
            }
            let mut locals = cuda.zeros(nonzeros)?;
            let mut halo = cuda.zeros(measured.halo)?;
            let halo_starts = cuda.upload(measured.halo_starts)?;
            let mut counts = cuda.zeros(2 * way.blocks as usize)?;
            let layout = tuning::layout(n, way.blocks);
            kernel::cg_layout(
                cuda,
                layout,
                n as u32,
                way.rows_a_block,
                a.offsets,
                a.indices,
                &mut counts,
                Some(&*halo_starts),
                Some(&mut *halo),
                Some(&mut *locals),
            )?;
            return Ok(Some(Plan {
                shape,
                scalar: size_of::<T>(),
                rows_a_block: way.rows_a_block,
                entries: entries as u32,
                halo_room: halo_room as u32,
                halo_starts,
                halo,
                locals,
            }));
        }
        Ok(None)
    }
}

/// The memory that the blocks need for a pattern.
struct Measured {
    /// The maximum number of padded entries in a block, and the maximum number of entries in its halo.
    entries: usize,
    halo_room: usize,
    /// The number of entries of all halos, and the start of each.
    halo: usize,
    halo_starts: Vec<u32>,
}

/// Measures the blocks' requirements. `None` if the chip does not have enough memory for the measurement.
fn measure<V: Element>(
    cuda: Cuda,
    a: CsrParts<'_, V, Cuda>,
    way: tuning::Resident,
) -> Result<Option<Measured>> {
    let shape = tuning::layout(a.rows, way.blocks);
    if !shape.fits(tuning::resident_shared(cuda.0.chip)) || way.blocks as usize > MOST_BLOCKS {
        return Ok(None);
    }
    let mut counts = cuda.zeros(2 * way.blocks as usize)?;
    kernel::cg_layout(
        cuda,
        shape,
        a.rows as u32,
        way.rows_a_block,
        a.offsets,
        a.indices,
        &mut counts,
        None,
        None,
        None,
    )?;
    let counts = cuda.download(&counts)?;
    let (halos, entries) = (counts.iter().step_by(2), counts.iter().skip(1).step_by(2));
    let mut halo_starts = vec![0];
    let mut total = 0_u64;
    for &halo in halos.clone() {
        total += u64::from(halo);
        halo_starts.push(total as u32);
    }
    if total > u64::from(u32::MAX) {
        return Ok(None);
    }
    Ok(Some(Measured {
        entries: entries.max().copied().unwrap_or(0) as usize,
        halo_room: halos.max().copied().unwrap_or(0) as usize,
        halo: total as usize,
        halo_starts,
    }))
}
