//! The kernels of traversals, as declared in their files.

use crate::backend::cuda::Cuda;
use crate::backend::cuda::launch::kernels;
use crate::backend::cuda::slice::Slice;
use crate::backend::{CsrParts, CsrPattern, GraphParts, GraphRows, OffsetsRef};
use crate::scalar::Element;

kernels! {
    "bfs.cu", types(; graph as OFFSET);
    /// A cooperative launch: all blocks run at the same time.
    fn bfs(
        n: u32,
        m: usize,
        graph: GraphParts<'_, Cuda>,
        sources: &Slice<u32>,
        source_count: u32,
        levels: &mut Slice<u32>,
        seen: &mut Slice<u32>,
        queue: &mut Slice<u64>,
        state: &mut Slice<u64>,
    );
    fn parents(n: u32, graph: GraphParts<'_, Cuda>, levels: &Slice<u32>, parents: &mut Slice<u32>);
}
kernels! {
    "bfs_part.cu", types(; graph as OFFSET);
    fn part_pull(
        first: u32,
        rows: u32,
        graph: GraphRows<'_, Cuda>,
        seen: &Slice<u32>,
        reached: &mut Slice<u32>,
    );
}
kernels! {
    "bfs_part.cu", types(; offsets as OFFSET);
    fn part_queue(
        rows: u32,
        offsets: OffsetsRef<'_, Cuda>,
        last: &Slice<u32>,
        queue: &mut Slice<u64>,
        tail: &mut Slice<u64>,
    );
    fn part_settle(
        n: u32,
        first: u32,
        rows: u32,
        offsets: OffsetsRef<'_, Cuda>,
        level: u32,
        reached: &mut Slice<u32>,
        seen: &mut Slice<u32>,
        levels: &mut Slice<u32>,
        last: &mut Slice<u32>,
        figures: &mut Slice<f64>,
    );
}
kernels! {
    "bfs_part.cu", types();
    /// A push reads no offsets, but the file is compiled for their type, which the shape names.
    fn part_push(
        indices: &Slice<u32>,
        queue: &Slice<u64>,
        tail: &Slice<u64>,
        seen: &Slice<u32>,
        reached: &mut Slice<u32>,
    );
}
kernels! {
    "cuthill_mckee.cu", types();
    /// A cooperative launch: all blocks run at the same time. The shape names the type of offsets.
    fn cuthill_mckee(
        n: u32,
        indices: &Slice<u32>,
        vertices: &Slice<u64>,
        teams: u32,
        marks: &mut Slice<u32>,
        orders: &mut Slice<u32>,
        rows: &mut Slice<u64>,
        states: &mut Slice<u64>,
        tiles: usize,
    );
}
kernels! {
    "pattern.cu", types(; graph as OFFSET);
    fn degrees(rows: usize, graph: CsrPattern<'_, Cuda>, degrees: &mut Slice<u32>, asymmetry: &mut Slice<u64>);
    fn envelope(
        rows: usize,
        graph: GraphParts<'_, Cuda>,
        numbers: Option<&Slice<u32>>,
        envelope: &mut Slice<u64>,
    );
}
kernels! {
    "pattern.cu", types(; offsets as OFFSET);
    fn describe(n: usize, offsets: OffsetsRef<'_, Cuda>, degrees: &Slice<u32>, vertices: &mut Slice<u64>);
}
kernels! {
    "pattern.cu", types(; "u32" as OFFSET);
    /// Examines all vertices if `vertices` is null.
    fn lowest(n: usize, vertices: Option<&Slice<u32>>, degrees: &Slice<u32>, lowest: &mut Slice<u64>);
    /// Examines all vertices if `vertices` is null.
    fn of_degree(n: usize, vertices: Option<&Slice<u32>>, degrees: &Slice<u32>, degree: u32, flags: &mut Slice<u8>);
    fn level_keys(
        n: usize,
        vertices: &Slice<u32>,
        degrees: &Slice<u32>,
        marks: &Slice<u32>,
        keys: &mut Slice<u64>,
    );
    fn reverse(n: usize, order: &Slice<u32>, new_to_old: &mut Slice<u32>, old_to_new: &mut Slice<u32>);
}
kernels! {
    "grid_order.cu", types(; graph as OFFSET);
    fn grid_edges(
        rows: usize,
        graph: GraphParts<'_, Cuda>,
        sx: u32,
        sy: u32,
        sz: u32,
        new_to_old: &Slice<u32>,
        old_to_new: &Slice<u32>,
        faults: &mut Slice<u32>,
    );
}
kernels! {
    "grid_order.cu", types(; "u32" as OFFSET);
    fn grid_numbers(
        n: usize,
        first: &Slice<u32>,
        across_y: &Slice<u32>,
        across_z: &Slice<u32>,
        sx: u32,
        sy: u32,
        sz: u32,
        new_to_old: &mut Slice<u32>,
        old_to_new: &mut Slice<u32>,
        faults: &mut Slice<u32>,
    );
}
kernels! {
    "permute.cu", types(V: Element as _; offsets as OFFSET);
    fn lengths(rows: usize, offsets: OffsetsRef<'_, Cuda>, new_to_old: &Slice<u32>, lengths: &mut Slice<u32>);
}
kernels! {
    "permute.cu", types(V: Element as _; a as OFFSET);
    fn permute_rows(
        rows: usize,
        a: CsrParts<'_, V, Cuda>,
        new_to_old: &Slice<u32>,
        old_to_new: &Slice<u32>,
        new_offsets: OffsetsRef<'_, Cuda>,
        new_indices: &mut Slice<u32>,
        new_values: &mut Slice<V>,
        long_rows: &mut Slice<u32>,
    );
    fn permute_long_rows(
        long_rows: &Slice<u32>,
        a: CsrParts<'_, V, Cuda>,
        new_to_old: &Slice<u32>,
        old_to_new: &Slice<u32>,
        new_offsets: OffsetsRef<'_, Cuda>,
        new_indices: &mut Slice<u32>,
        new_values: &mut Slice<V>,
    );
}
kernels! {
    "colour.cu", types(; graph as OFFSET);
    fn colour(n: u32, graph: GraphParts<'_, Cuda>, colours: &mut Slice<u32>, left: &mut Slice<u32>);
    fn independent(n: u32, graph: GraphParts<'_, Cuda>, set: &mut Slice<u32>, left: &mut Slice<u32>);
}
kernels! {
    "components.cu", types(; graph as OFFSET);
    fn hook(n: u32, graph: GraphParts<'_, Cuda>, labels: &mut Slice<u32>);
}
kernels! {
    "components.cu", types(; "u32" as OFFSET);
    fn flatten(n: u32, labels: &mut Slice<u32>);
    fn lowest_of_each(
        n: u32,
        labels: &Slice<u32>,
        degrees: &Slice<u32>,
        lowest: &mut Slice<u64>,
        flags: &mut Slice<u8>,
    );
    fn rank_roots(count: usize, roots: &Slice<u32>, labels: &Slice<u32>, rank: &mut Slice<u32>);
    fn rank_places(
        places: usize,
        count: usize,
        order: &Slice<u32>,
        labels: &Slice<u32>,
        rank: &Slice<u32>,
        components: &mut Slice<u32>,
        doubled: &mut Slice<u32>,
    );
    fn invert(n: usize, order: &Slice<u32>, places: &mut Slice<u32>);
    fn figures(
        n: usize,
        order: &Slice<u32>,
        components: &Slice<u32>,
        starts: &Slice<u32>,
        interleaved: &Slice<u32>,
        marks: &Slice<u32>,
        levels: &Slice<u32>,
        places: &Slice<u32>,
        height: &mut Slice<u32>,
        width: &mut Slice<u32>,
        bandwidth: &mut Slice<u32>,
    );
    fn last_levels(
        n: usize,
        order: &Slice<u32>,
        components: &Slice<u32>,
        levels: &Slice<u32>,
        height: &Slice<u32>,
        degrees: &Slice<u32>,
        ends: &mut Slice<u64>,
    );
    fn alike(
        n: usize,
        order: &Slice<u32>,
        components: &Slice<u32>,
        starts: &Slice<u32>,
        degrees: &Slice<u32>,
        flags: &mut Slice<u32>,
    );
    fn pick_peers(
        count: usize,
        order: &Slice<u32>,
        starts: &Slice<u32>,
        sums: &Slice<u32>,
        one_in: u32,
        peers: &mut Slice<u32>,
    );
}
