// Weights of positions from the labels of the voxels around them: sample, falloff, cap, threshold, normalise.
//
// The formula of Dionne and de Lasa (SCA 2013), (1 / ((1-a) l + a l^2))^power, trilinear over the solid voxels, as in
// src/influence/cpu.rs. One invocation a position. All values are divided by the largest that the formula takes around the
// position, so they can neither overflow nor vanish.
//
// The text is preceded by `const LABELS: u32 = ..u;`.

// Most bones around a position: those of eight voxels.
const CANDIDATES: u32 = 8u * LABELS;
// Distances at or above this are none at all.
const FAR: f32 = 1e30;
// Steps of a distance a voxel, turned over.
const STEP: f32 = 1.0 / 65536.0;

struct InfluenceParams {
    window: Window,
    // Bricks along each axis, and the positions of this dispatch: those that its buffers show.
    extent: vec3<u32>,
    positions: u32,
    // Bounding-box diagonals a voxel, the least length in diagonals, and `a` of the formula.
    scale: f32,
    floor: f32,
    smoothing: f32,
    power: f32,
    // The power, where it is whole, otherwise 0.
    whole_power: u32,
    // Most influences, and how many places each position has for them.
    most: u32,
    places: u32,
    threshold: f32,
    // Influences that count as having been there before the cap.
    considered: u32,
    // Whether a joint takes half a word.
    is_short: u32,
}

// A position: the voxel whose centre is next towards the low side, and how far it is beyond that centre, in voxels.
struct Position {
    low_x: i32,
    low_y: i32,
    low_z: i32,
    beyond_x: f32,
    beyond_y: f32,
    beyond_z: f32,
}

@group(0) @binding(0) var<uniform> params: InfluenceParams;
@group(0) @binding(1) var<storage, read> bricks: array<Brick>;
@group(0) @binding(2) var<storage, read> slots: array<u32>;
@group(0) @binding(3) var<storage, read> labels: array<vec2<u32>>;
@group(0) @binding(4) var<storage, read> positions: array<Position>;
@group(0) @binding(5) var<storage, read> more_labels: array<vec2<u32>>;
@group(0) @binding(6) var<storage, read_write> joints: array<u32>;
@group(0) @binding(7) var<storage, read_write> weights: array<f32>;
// The most influences before the cap and the largest share that was cut off (the bits of an f32); from JOINT_OF on the joint
// of each rank. A buffer of its own for those would be one more than every device has.
@group(0) @binding(8) var<storage, read_write> figures: array<atomic<u32>>;
const JOINT_OF: u32 = 2u;

// The bones around the position, their weights, and which are left to be taken.
var<private> ranks: array<u32, CANDIDATES>;
var<private> raw: array<f32, CANDIDATES>;
var<private> count: u32;

// The number of a solid voxel, or ABSENT.
fn voxel_at(v: vec3<i32>) -> u32 {
    if any(v < vec3(0)) || any(v >= vec3<i32>(params.extent * 4u)) {
        return ABSENT;
    }
    let place = vec3<u32>(v) / 4u;
    let slot = slots[place.x + params.extent.x * (place.y + params.extent.y * place.z)];
    if slot == ABSENT {
        return ABSENT;
    }
    let cell = dot(vec3<u32>(v) % 4u, vec3(1u, 4u, 16u));
    let mask = bricks[slot].mask;
    if !has_cell(mask, cell) {
        return ABSENT;
    }
    return bricks[slot].first_voxel + cells_below(mask, cell);
}

// (1-a) l + a l^2 for a label at a corner that is `offset` voxels from the position.
fn term(steps: u32, offset: f32) -> f32 {
    let l = max((f32(steps) * STEP + offset) * params.scale, params.floor);
    return l * ((1.0 - params.smoothing) + params.smoothing * l);
}

// The power by repeated squaring where it is whole: pow would cost more and be less exact.
fn raise(ratio: f32) -> f32 {
    if params.whole_power == 0u {
        return pow(ratio, params.power);
    }
    var result = 1.0;
    var square = ratio;
    for (var bits = params.whole_power; bits != 0u; bits >>= 1u) {
        if (bits & 1u) == 1u {
            result *= square;
        }
        square *= square;
    }
    return result;
}

fn add(rank: u32, weight: f32) {
    for (var i = 0u; i < count; i++) {
        if ranks[i] == rank {
            raw[i] += weight;
            return;
        }
    }
    ranks[count] = rank;
    raw[count] = weight;
    count++;
}

// Gathers the raw weights of all bones around a position.
fn sample(position: Position) {
    count = 0u;
    let low = vec3(position.low_x, position.low_y, position.low_z);
    let from_low = vec3(position.beyond_x, position.beyond_y, position.beyond_z);
    let from_high = vec3(1.0) - from_low;
    var voxels: array<u32, 8>;
    var shares: array<f32, 8>;
    var offsets: array<f32, 8>;
    var any_counts = false;
    var least = FAR;
    for (var c = 0u; c < 8u; c++) {
        let side = vec3(c, c >> 1u, c >> 2u) & vec3(1u);
        var voxel = voxel_at(low + vec3<i32>(side));
        if voxel != ABSENT && label_at(voxel, 0u).y == NO_LABEL.y {
            voxel = ABSENT;
        }
        let share = select(from_high, from_low, side == vec3(1u));
        let away = select(from_low, from_high, side == vec3(1u));
        voxels[c] = voxel;
        shares[c] = share.x * share.y * share.z;
        offsets[c] = sqrt(dot(away, away));
        if voxel != ABSENT {
            any_counts = any_counts || shares[c] > 0.0;
            least = min(least, offsets[c]);
        }
    }
    // Where no corner counts that a bone reaches, the nearest that one reaches share equally.
    if !any_counts {
        for (var c = 0u; c < 8u; c++) {
            shares[c] = select(0.0, 1.0, offsets[c] == least);
        }
    }
    var nearest = FAR;
    for (var c = 0u; c < 8u; c++) {
        if voxels[c] != ABSENT && shares[c] > 0.0 {
            nearest = min(nearest, term(label_at(voxels[c], 0u).y, offsets[c]));
        }
    }
    for (var c = 0u; c < 8u; c++) {
        if voxels[c] == ABSENT || shares[c] <= 0.0 {
            continue;
        }
        for (var j = 0u; j < LABELS; j++) {
            let label = label_at(voxels[c], j);
            if label.y == NO_LABEL.y {
                break;
            }
            add(label.x, shares[c] * raise(min(nearest / term(label.y, offsets[c]), 1.0)));
        }
    }
}

// Brings the strongest candidates to the front, ties by rank; how many there are. Weights of 0 count as absent.
fn sort_strongest(most: u32) -> u32 {
    for (var i = 0u; i < min(most, count); i++) {
        var best = i;
        for (var k = i + 1u; k < count; k++) {
            if raw[k] > raw[best] || (raw[k] == raw[best] && ranks[k] < ranks[best]) {
                best = k;
            }
        }
        if raw[best] <= 0.0 {
            return i;
        }
        let rank = ranks[i];
        let weight = raw[i];
        ranks[i] = ranks[best];
        raw[i] = raw[best];
        ranks[best] = rank;
        raw[best] = weight;
    }
    return min(most, count);
}

fn sum_of_first(n: u32) -> f32 {
    var sum = 0.0;
    for (var i = 0u; i < n; i++) {
        sum += raw[i];
    }
    return sum;
}

@compute @workgroup_size(WORKGROUP)
fn weigh(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let index = flat_index(workgroup, workgroups, local);
    if index >= params.positions {
        return;
    }
    let position = positions[index];
    // The voxels around it lie in its lower one's layer of bricks and in the next.
    if !is_in_window(u32(clamp(position.low_z >> 2u, 0, i32(params.extent.z) - 1))) {
        return;
    }
    sample(position);
    let there = sort_strongest(max(params.considered, params.most));
    let all = sum_of_first(there);
    var kept = min(there, params.most);
    let least = params.threshold * sum_of_first(kept);
    while kept > 1u && raw[kept - 1u] < least {
        kept--;
    }
    let total = sum_of_first(kept);

    let first = index * params.places;
    for (var i = 0u; i < params.places; i++) {
        weights[first + i] = select(0.0, raw[min(i, CANDIDATES - 1u)] / total, i < kept);
    }
    if params.is_short == 0u {
        for (var i = 0u; i < params.places; i++) {
            joints[first + i] = joint_at(i, kept);
        }
    } else {
        for (var i = 0u; i < params.places; i += 2u) {
            joints[(first + i) / 2u] = joint_at(i, kept) | joint_at(i + 1u, kept) << 16u;
        }
    }
    atomicMax(&figures[0], there);
    if kept < there {
        atomicMax(&figures[1], bitcast<u32>(max((all - total) / all, 0.0)));
    }
}

// The joint of a place; 0 where it is empty.
fn joint_at(i: u32, kept: u32) -> u32 {
    if i >= kept {
        return 0u;
    }
    return atomicLoad(&figures[JOINT_OF + ranks[i]]);
}
