// Spreads the labels of bones through the solid until nothing changes: each voxel keeps the LABELS first of all bones.
//
// A workgroup takes a brick of 4 x 4 x 4 voxels that has something new around it: it offers the labels around to the
// voxels of the brick once, lets them spread inside the brick until that comes to rest, and queues the bricks around that
// see something new. Bricks go by eight colours, by the parity of their coordinates: in one dispatch no two touch, so
// nobody reads labels that are being written. Offers only ever bring a voxel's record nearer to the one fixed point, so
// the order of work changes nothing in the end.
//
// The text is preceded by `const LABELS: u32 = ..u;`.

// Greatest distance of a label, 2^16 voxels less a step.
const FARTHEST: u32 = 0xfffeffffu;
// Lengths of steps over a face, an edge and a corner.
const LENGTHS: vec3<u32> = vec3(65536u, 92682u, 113512u);
// Voxels of a brick with one layer around it.
const PADDED: u32 = 216u;

// What `work` holds: counters, then for each queue how many bricks were put into it and how many taken out, then a word a
// brick (at params.flags), then the rings. There is a queue a colour and window: number 8 * window + colour.
const OVERFLOW: u32 = 0u;
const VISITS: u32 = 1u;
const CHANGES: u32 = 2u;
const SWEEPS: u32 = 3u;
const QUEUES: u32 = 4u;
// Bits of a brick's flags.
const QUEUED: u32 = 1u;
const SEEDED: u32 = 2u;

struct CrawlParams {
    window: Window,
    // Bricks along each axis, and how many there are.
    extent: vec3<u32>,
    bricks: u32,
    // Along how many axes a step may go: 1 for faces only, 3 for edges and corners too.
    most_axes: u32,
    // The queue whose turn it is.
    queue: u32,
    // Places of a queue's ring.
    ring: u32,
    // Most bricks of a dispatch.
    batch: u32,
    // Voxels in which bones start.
    seeded: u32,
    // Where the flags of bricks stand in `work`.
    flags: u32,
}

@group(0) @binding(0) var<uniform> params: CrawlParams;
@group(0) @binding(1) var<storage, read> bricks: array<Brick>;
@group(0) @binding(2) var<storage, read> slots: array<u32>;
// LABELS a voxel, in order.
@group(0) @binding(3) var<storage, read_write> labels: array<vec2<u32>>;
@group(0) @binding(8) var<storage, read_write> more_labels: array<vec2<u32>>;
@group(0) @binding(4) var<storage, read_write> work: array<atomic<u32>>;
// Workgroups of the next dispatch along x, y and z, the place of its first brick in the ring, and how many bricks it has.
@group(0) @binding(5) var<storage, read_write> next_turn: array<u32>;
@group(0) @binding(6) var<storage, read> turn: array<u32>;
// For each voxel that has any its brick's place and its cell, then its first label here and how many; then the labels.
@group(0) @binding(7) var<storage, read> seeds: array<vec2<u32>>;

// Where the labels of the brick around stand.
struct Near {
    slot: u32,
    first_voxel: u32,
    mask: vec2<u32>,
}

var<workgroup> brick_slot: u32;
var<workgroup> brick_place: u32;
var<workgroup> is_seeded: u32;
var<workgroup> near: array<Near, 27>;
// For each voxel around the brick its number, or ABSENT; and one of its labels, as they stream by.
var<workgroup> around_voxel: array<u32, PADDED>;
var<workgroup> around: array<vec2<u32>, PADDED>;
// The labels of the brick.
var<workgroup> tile: array<vec2<u32>, 64u * LABELS>;
// Cells that have changed: since the last sweep, in the one before, and all in all.
var<workgroup> changes: array<atomic<u32>, 2>;
var<workgroup> recent: vec2<u32>;
var<workgroup> changed: vec2<u32>;

// The record of an invocation's own voxel.
var<private> own: array<vec2<u32>, LABELS>;
var<private> has_changed: bool;
var<private> is_too_far: bool;

fn set_label(voxel: u32, j: u32, label: vec2<u32>) {
    if voxel < params.window.second_voxel {
        labels[(voxel - params.window.first_voxel) * LABELS + j] = label;
    } else {
        more_labels[(voxel - params.window.second_voxel) * LABELS + j] = label;
    }
}

// Offers a label that comes over a step of this length to the own voxel.
fn take(label: vec2<u32>, length: u32) {
    let last = own[LABELS - 1u];
    if label.y > FARTHEST - length {
        is_too_far = is_too_far || last.y == NO_LABEL.y;
        return;
    }
    var moving = vec2(label.x, label.y + length);
    if !before(moving, last) {
        return;
    }
    for (var i = 0u; i < LABELS; i++) {
        let current = own[i];
        if before(moving, current) {
            own[i] = moving;
            has_changed = true;
            // What goes is the same bone further away, or else the last.
            if current.x == label.x {
                return;
            }
            moving = current;
        } else if current.x == label.x {
            return;
        }
    }
}

// The step with this number, x + 3 y + 9 z of its coordinates plus one.
fn offset_of(step: u32) -> vec3<i32> {
    return vec3<i32>(vec3(step % 3u, step / 3u % 3u, step / 9u)) - 1;
}

// Length of a step along this many axes; 0 where it is not allowed.
fn length_of(offset: vec3<i32>) -> u32 {
    let axes = u32(dot(abs(offset), vec3(1)));
    if axes == 0u || axes > params.most_axes {
        return 0u;
    }
    return LENGTHS[axes - 1u];
}

fn slot_at(place: vec3<i32>) -> u32 {
    if any(place < vec3(0)) || any(place >= vec3<i32>(params.extent)) {
        return ABSENT;
    }
    let at = vec3<u32>(place);
    return slots[at.x + params.extent.x * (at.y + params.extent.y * at.z)];
}

// Queues a brick, unless it is queued already.
fn enqueue(slot: u32, place: vec3<u32>, flags: u32) {
    if (atomicOr(&work[params.flags + slot], QUEUED | flags) & QUEUED) == 0u {
        let parity = place & vec3(1u);
        // The bricks around those of a window are in it, or in the one before or after.
        var first = params.queue & ~7u;
        if place.z < params.window.first_layer {
            first -= 8u;
        } else if place.z >= params.window.end_layer {
            first += 8u;
        }
        let queue = first + parity.x + 2u * parity.y + 4u * parity.z;
        let at = atomicAdd(&work[QUEUES + 2u * queue], 1u) % params.ring;
        atomicStore(&work[ring_of(queue) + at], slot);
    }
}

// Where a queue's ring begins in `work`.
fn ring_of(queue: u32) -> u32 {
    return params.flags + params.bricks + queue * params.ring;
}

@compute @workgroup_size(WORKGROUP)
fn empty_labels(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let index = flat_index(workgroup, workgroups, local);
    if index < arrayLength(&labels) {
        labels[index] = NO_LABEL;
    }
}

// Puts the labels with which bones start into their voxels, each of which stands in the list once.
@compute @workgroup_size(WORKGROUP)
fn seed(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let index = flat_index(workgroup, workgroups, local);
    if index >= params.seeded {
        return;
    }
    let voxel_at = seeds[2u * index];
    let range = seeds[2u * index + 1u];
    let place = unpack_place(voxel_at.x);
    let slot = slot_at(vec3<i32>(place));
    if slot == ABSENT || !is_in_window(place.z) {
        return;
    }
    let voxel = bricks[slot].first_voxel + cells_below(bricks[slot].mask, voxel_at.y);
    for (var j = 0u; j < min(range.y, LABELS); j++) {
        set_label(voxel, j, seeds[range.x + j]);
    }
    enqueue(slot, place, SEEDED);
}

// Takes bricks out of the queue and says how many workgroups they need.
@compute @workgroup_size(WORKGROUP)
fn prepare(@builtin(local_invocation_index) local: u32) {
    if local != 0u {
        return;
    }
    let ends = QUEUES + 2u * params.queue;
    let head = atomicLoad(&work[ends + 1u]);
    let count = min(atomicLoad(&work[ends]) - head, params.batch);
    atomicStore(&work[ends + 1u], head + count);
    let rows = max((count + 65534u) / 65535u, 1u);
    next_turn[0] = (count + rows - 1u) / rows;
    next_turn[1] = rows;
    next_turn[2] = 1u;
    next_turn[3] = head;
    next_turn[4] = count;
}

// Looks up the brick that `group` of this dispatch is about, and the bricks around it.
fn look_around(group: u32, local: u32) {
    if local == 0u {
        let at = (turn[3] + group) % params.ring;
        let slot = atomicLoad(&work[ring_of(params.queue) + at]);
        brick_slot = slot;
        brick_place = bricks[slot].place;
        is_seeded = atomicExchange(&work[params.flags + slot], 0u) & SEEDED;
    }
    workgroupBarrier();
    if local < 27u {
        let slot = slot_at(vec3<i32>(unpack_place(brick_place)) + offset_of(local));
        var found = Near(ABSENT, 0u, vec2(0u));
        if slot != ABSENT {
            found = Near(slot, bricks[slot].first_voxel, bricks[slot].mask);
        }
        near[local] = found;
    }
    workgroupBarrier();
    for (var i = local; i < PADDED; i += 64u) {
        let p = vec3(i % 6u, i / 6u % 6u, i / 36u) + 3u;
        let which = dot(p / 4u, vec3(1u, 3u, 9u));
        let cell = dot(p % 4u, vec3(1u, 4u, 16u));
        var voxel = ABSENT;
        if which != 13u && has_cell(near[which].mask, cell) {
            voxel = near[which].first_voxel + cells_below(near[which].mask, cell);
        }
        around_voxel[i] = voxel;
    }
}

// Offers all labels around the brick to its voxels, a slot of the records at a time.
fn take_from_around(local: u32, padded: i32, is_solid: bool) {
    for (var j = 0u; j < LABELS; j++) {
        for (var i = local; i < PADDED; i += 64u) {
            var label = NO_LABEL;
            if around_voxel[i] != ABSENT {
                label = label_at(around_voxel[i], j);
            }
            around[i] = label;
        }
        workgroupBarrier();
        for (var step = 0u; step < 27u; step++) {
            let offset = offset_of(step);
            let length = length_of(offset);
            let label = around[padded + dot(offset, vec3(1, 6, 36))];
            if is_solid && length != 0u && label.y != NO_LABEL.y {
                take(label, length);
            }
        }
        workgroupBarrier();
    }
}

// Offers the labels of the recently changed cells of the brick to the own voxel.
fn take_from_inside(cell: vec3<i32>) {
    for (var step = 0u; step < 27u; step++) {
        let offset = offset_of(step);
        let length = length_of(offset);
        let other = cell + offset;
        if length == 0u || any(other < vec3(0)) || any(other > vec3(3)) {
            continue;
        }
        let from_cell = u32(dot(other, vec3(1, 4, 16)));
        if !has_cell(recent, from_cell) {
            continue;
        }
        for (var j = 0u; j < LABELS; j++) {
            let label = tile[from_cell * LABELS + j];
            if label.y == NO_LABEL.y {
                break;
            }
            take(label, length);
        }
    }
}

fn put_into_tile(local: u32) {
    for (var j = 0u; j < LABELS; j++) {
        tile[local * LABELS + j] = own[j];
    }
}

fn note_change(local: u32) {
    atomicOr(&changes[local / 32u], 1u << (local & 31u));
}

// Cells of a brick that touch the brick displaced by `offset`.
fn facing(offset: vec3<i32>) -> vec2<u32> {
    let low = vec3(0x11111111u, 0x000f000fu, 0u);
    let high = vec3(0x88888888u, 0xf000f000u, 0u);
    let sides = select(select(vec3(0xffffffffu), low, offset < vec3(0)), high, offset > vec3(0));
    var mask = vec2(sides.x & sides.y);
    if offset.z < 0 {
        mask = vec2(mask.x & 0xffffu, 0u);
    } else if offset.z > 0 {
        mask = vec2(0u, mask.y & 0xffff0000u);
    }
    return mask;
}

@compute @workgroup_size(WORKGROUP)
fn relax(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let group = workgroup.y * workgroups.x + workgroup.x;
    if group >= turn[4] {
        return;
    }
    look_around(group, local);
    let cell = vec3<i32>(vec3(local & 3u, local >> 2u & 3u, local >> 4u));
    let mask = near[13].mask;
    let is_solid = has_cell(mask, local);
    let voxel = near[13].first_voxel + cells_below(mask, local);
    for (var j = 0u; j < LABELS; j++) {
        own[j] = NO_LABEL;
        if is_solid {
            own[j] = label_at(voxel, j);
        }
    }
    if local == 0u {
        // Nobody has offered what bones start with.
        let fresh = select(vec2(0u), mask, is_seeded != 0u);
        atomicStore(&changes[0], fresh.x);
        atomicStore(&changes[1], fresh.y);
        changed = vec2(0u);
    }
    workgroupBarrier();
    take_from_around(local, dot(cell + 1, vec3(1, 6, 36)), is_solid);
    put_into_tile(local);
    if has_changed {
        note_change(local);
    }

    var sweeps = 0u;
    loop {
        workgroupBarrier();
        if local == 0u {
            recent = vec2(atomicExchange(&changes[0], 0u), atomicExchange(&changes[1], 0u));
            changed |= recent;
        }
        let now = workgroupUniformLoad(&recent);
        if all(now == vec2(0u)) {
            break;
        }
        has_changed = false;
        if is_solid {
            take_from_inside(cell);
        }
        workgroupBarrier();
        if has_changed {
            put_into_tile(local);
            note_change(local);
        }
        sweeps++;
    }

    let all_changed = workgroupUniformLoad(&changed);
    if has_cell(all_changed, local) {
        for (var j = 0u; j < LABELS; j++) {
            set_label(voxel, j, own[j]);
        }
    }
    let offset = offset_of(min(local, 26u));
    if local < 27u && length_of(offset) != 0u && near[local].slot != ABSENT && any((all_changed & facing(offset)) != vec2(0u)) {
        enqueue(near[local].slot, vec3<u32>(vec3<i32>(unpack_place(brick_place)) + offset), 0u);
    }
    if is_too_far {
        atomicStore(&work[OVERFLOW], 1u);
    }
    if local == 0u {
        atomicAdd(&work[VISITS], 1u);
        atomicAdd(&work[CHANGES], select(0u, 1u, any(all_changed != vec2(0u))));
        atomicAdd(&work[SWEEPS], sweeps);
    }
}
