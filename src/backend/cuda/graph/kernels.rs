//! The kernels of traversals, as declared in their files.

use crate::backend::cuda::launch::kernels;
use crate::backend::cuda::slice::Slice;
use crate::scalar::{Element, Offset};

kernels! {
    "bfs.cu", types(I: Offset as OFFSET);
    /// A cooperative launch: all blocks run at the same time.
    fn bfs(
        n: u32,
        m: u64,
        offsets: &Slice<I>,
        indices: &Slice<u32>,
        sources: &Slice<u32>,
        source_count: u32,
        levels: &mut Slice<u32>,
        seen: &mut Slice<u32>,
        queue: &mut Slice<u64>,
        state: &mut Slice<u64>,
    );
    fn parents(
        n: u32,
        offsets: &Slice<I>,
        indices: &Slice<u32>,
        levels: &Slice<u32>,
        parents: &mut Slice<u32>,
    );
}
kernels! {
    "bfs_part.cu", types(I: Offset as OFFSET);
    fn part_push(
        indices: &Slice<u32>,
        queue: &Slice<u64>,
        tail: &Slice<u64>,
        seen: &Slice<u32>,
        reached: &mut Slice<u32>,
    );
    fn part_pull(
        first: u32,
        rows: u32,
        offsets: &Slice<I>,
        indices: &Slice<u32>,
        seen: &Slice<u32>,
        reached: &mut Slice<u32>,
    );
    fn part_queue(
        rows: u32,
        offsets: &Slice<I>,
        last: &Slice<u32>,
        queue: &mut Slice<u64>,
        tail: &mut Slice<u64>,
    );
    fn part_settle(
        n: u32,
        first: u32,
        rows: u32,
        offsets: &Slice<I>,
        level: u32,
        reached: &mut Slice<u32>,
        seen: &mut Slice<u32>,
        levels: &mut Slice<u32>,
        last: &mut Slice<u32>,
        figures: &mut Slice<f64>,
    );
}
kernels! {
    "cuthill_mckee.cu", types(I: Offset as OFFSET);
    /// A cooperative launch: all blocks run at the same time.
    fn cuthill_mckee(
        n: u32,
        indices: &Slice<u32>,
        vertices: &Slice<u64>,
        teams: u32,
        marks: &mut Slice<u32>,
        orders: &mut Slice<u32>,
        rows: &mut Slice<u64>,
        states: &mut Slice<u64>,
        tiles: u64,
    );
}
kernels! {
    "pattern.cu", types(I: Offset as OFFSET);
    fn degrees(
        rows: u64,
        offsets: &Slice<I>,
        indices: &Slice<u32>,
        degrees: &mut Slice<u32>,
        asymmetry: &mut Slice<u64>,
    );
    /// Examines all vertices if `vertices` is null.
    fn lowest(n: u64, vertices: Option<&Slice<u32>>, degrees: &Slice<u32>, lowest: &mut Slice<u64>);
    fn describe(n: u64, offsets: &Slice<I>, degrees: &Slice<u32>, vertices: &mut Slice<u64>);
    /// Examines all vertices if `vertices` is null.
    fn of_degree(n: u64, vertices: Option<&Slice<u32>>, degrees: &Slice<u32>, degree: u32, flags: &mut Slice<u8>);
    fn level_keys(
        n: u64,
        vertices: &Slice<u32>,
        degrees: &Slice<u32>,
        marks: &Slice<u32>,
        keys: &mut Slice<u64>,
    );
    fn reverse(n: u64, order: &Slice<u32>, new_to_old: &mut Slice<u32>, old_to_new: &mut Slice<u32>);
    fn envelope(
        rows: u64,
        offsets: &Slice<I>,
        indices: &Slice<u32>,
        numbers: Option<&Slice<u32>>,
        envelope: &mut Slice<u64>,
    );
}
kernels! {
    "grid_order.cu", types(I: Offset as OFFSET);
    fn grid_numbers(
        n: u64,
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
    fn grid_edges(
        rows: u64,
        offsets: &Slice<I>,
        indices: &Slice<u32>,
        sx: u32,
        sy: u32,
        sz: u32,
        new_to_old: &Slice<u32>,
        old_to_new: &Slice<u32>,
        faults: &mut Slice<u32>,
    );
}
kernels! {
    "permute.cu", types(V: Element as _, I: Offset as OFFSET);
    fn lengths(rows: u64, offsets: &Slice<I>, new_to_old: &Slice<u32>, lengths: &mut Slice<u32>);
    fn permute_rows(
        rows: u64,
        offsets: &Slice<I>,
        indices: &Slice<u32>,
        values: &Slice<V>,
        new_to_old: &Slice<u32>,
        old_to_new: &Slice<u32>,
        new_offsets: &Slice<I>,
        new_indices: &mut Slice<u32>,
        new_values: &mut Slice<V>,
        long_rows: &mut Slice<u32>,
    );
    fn permute_long_rows(
        long_rows: &Slice<u32>,
        offsets: &Slice<I>,
        indices: &Slice<u32>,
        values: &Slice<V>,
        new_to_old: &Slice<u32>,
        old_to_new: &Slice<u32>,
        new_offsets: &Slice<I>,
        new_indices: &mut Slice<u32>,
        new_values: &mut Slice<V>,
    );
}
kernels! {
    "colour.cu", types(I: Offset as OFFSET);
    fn colour(
        n: u32,
        offsets: &Slice<I>,
        indices: &Slice<u32>,
        colours: &mut Slice<u32>,
        left: &mut Slice<u32>,
    );
    fn independent(
        n: u32,
        offsets: &Slice<I>,
        indices: &Slice<u32>,
        set: &mut Slice<u32>,
        left: &mut Slice<u32>,
    );
}
kernels! {
    "components.cu", types(I: Offset as OFFSET);
    fn hook(n: u32, offsets: &Slice<I>, indices: &Slice<u32>, labels: &mut Slice<u32>);
    fn flatten(n: u32, labels: &mut Slice<u32>);
    fn lowest_of_each(
        n: u32,
        labels: &Slice<u32>,
        degrees: &Slice<u32>,
        lowest: &mut Slice<u64>,
        flags: &mut Slice<u8>,
    );
    fn rank_roots(count: u64, roots: &Slice<u32>, labels: &Slice<u32>, rank: &mut Slice<u32>);
    fn rank_places(
        places: u64,
        count: u64,
        order: &Slice<u32>,
        labels: &Slice<u32>,
        rank: &Slice<u32>,
        components: &mut Slice<u32>,
        doubled: &mut Slice<u32>,
    );
    fn invert(n: u64, order: &Slice<u32>, places: &mut Slice<u32>);
    fn figures(
        n: u64,
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
        n: u64,
        order: &Slice<u32>,
        components: &Slice<u32>,
        levels: &Slice<u32>,
        height: &Slice<u32>,
        degrees: &Slice<u32>,
        ends: &mut Slice<u64>,
    );
    fn alike(
        n: u64,
        order: &Slice<u32>,
        components: &Slice<u32>,
        starts: &Slice<u32>,
        degrees: &Slice<u32>,
        flags: &mut Slice<u32>,
    );
    fn pick_peers(
        count: u64,
        order: &Slice<u32>,
        starts: &Slice<u32>,
        sums: &Slice<u32>,
        one_in: u32,
        peers: &mut Slice<u32>,
    );
}
