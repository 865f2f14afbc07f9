// The sum of the run that is open at some place of an array cut into runs, and how many runs began before it: what
// reduce-by-key and the segmented operations carry from tile to tile. The file that includes this defines VALUE and INDEX.
#pragma once
#include "lookback.cuh"

// What a stretch of the input adds up to: heads in it, and the sum since the last of them (of all of it without any).
struct OpenRun {
    VALUE sum;
    INDEX heads;
};
DEVICE OpenRun then(OpenRun a, OpenRun b) {
    b.sum = b.heads ? b.sum : a.sum + b.sum;
    b.heads += a.heads;
    return b;
}

// As exclusive_prefix (the aggregate is published already), for OpenRun. The sum needs only the tiles since the last head:
// mostly the one before.
DEVICE OpenRun open_run_before(const Descriptors<OpenRun>& descriptors, u64 tile, OpenRun aggregate) {
    OpenRun zero = {VALUE(), 0};
    if (tile == 0) return zero;
    INDEX heads = 0;
    VALUE sum = VALUE();
    bool open = true;  // no head and no prefix seen yet
    const i64 newest = i64(tile) - 1;
    descriptors.walk(newest, zero, [&](OpenRun value, u32 state, u32 nearest, i64 last) {
        u32 stops = __ballot_sync(ALL, lane_id() <= nearest && (state == PREFIX || value.heads));
        if (open && stops) {
            // Fold from the left, from the newest tile with a head or a prefix up to the newest of all.
            open = false;
            u32 from = __ffs(stops) - 1;
            OpenRun at = value;
            u32 again;
            sum = shuffle(at.sum, from);
            while (true) {
                for (i32 lane = i32(from) - 1; lane >= 0; lane--) sum = sum + shuffle(at.sum, u32(lane));
                if (last == newest) break;
                last += 32;
                from = descriptors.group(last, zero, at, again);  // no heads here, but prefixes by now perhaps: the same bits
                if (from < 32) sum = shuffle(at.sum, from);
            }
        }
        if (lane_id() <= nearest) heads += value.heads;
    });
    heads = warp_sum(heads);
    OpenRun before = {sum, heads};
    if (lane_id() == 0) descriptors.publish(tile, then(before, aggregate), PREFIX);
    return before;
}
