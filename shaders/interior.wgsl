// Fills the outside of a surface over voxel faces, 32 voxels a word: sweeps along the three axes, both ways each, until a
// whole round changes nothing. All that lies beyond the grid is outside.

struct FloodParams {
    words_per_row: u32,
    rows: u32,
    // The slices to sweep, among those that the bindings show.
    first: u32,
    slices: u32,
    bound_slices: u32,
}

@group(0) @binding(0) var<uniform> params: FloodParams;
@group(0) @binding(1) var<storage, read> surface: array<u32>;
@group(0) @binding(2) var<storage, read_write> outside: array<u32>;
// Whether the round before changed anything, and whether this one does.
@group(0) @binding(3) var<storage, read> changed_before: array<u32>;
@group(0) @binding(4) var<storage, read_write> changed: array<atomic<u32>>;

const ALL: u32 = 0xffffffffu;

var<private> has_changed: bool = false;

// All bits that can be reached from those of `seeds` towards higher bits over bits of `free`: a sum carries through a run
// of ones and turns them over.
fn fill_up(seeds: u32, free: u32) -> u32 {
    return (((free + seeds) ^ free) & free) | seeds;
}

// Lets what is outside in `before` flow into the word at `at` and along it; the word as it is then. Going along the word
// in sweeps across it saves many rounds where ways wind.
fn flow(at: u32, before: u32) -> u32 {
    let old = outside[at];
    let free = ~surface[at];
    let up = fill_up((old | before) & free, free);
    let filled = reverseBits(fill_up(reverseBits(up), reverseBits(free)));
    store(at, old, filled);
    return filled;
}

fn store(at: u32, old: u32, new_word: u32) {
    if new_word != old {
        outside[at] = new_word;
        has_changed = true;
    }
}

fn report() {
    if has_changed {
        atomicStore(&changed[0], 1u);
    }
}

@compute @workgroup_size(WORKGROUP)
fn sweep_x(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let index = flat_index(workgroup, workgroups, local);
    if index >= params.rows * params.slices || changed_before[0] == 0u {
        return;
    }
    let start = (index + params.first * params.rows) * params.words_per_row;
    var carry = 1u;
    for (var word = 0u; word < params.words_per_row; word++) {
        let old = outside[start + word];
        let free = ~surface[start + word];
        let filled = fill_up((old | carry) & free, free);
        store(start + word, old, filled);
        carry = filled >> 31u;
    }
    carry = 1u;
    for (var word = params.words_per_row; word > 0u; word--) {
        let old = outside[start + word - 1u];
        let free = reverseBits(~surface[start + word - 1u]);
        let filled = fill_up((reverseBits(old) | carry) & free, free);
        store(start + word - 1u, old, reverseBits(filled));
        carry = filled >> 31u;
    }
    report();
}

// Sweeps over `count` words that stand `stride` apart, both ways, with what flows in before the first and after the last.
fn sweep_across(start: u32, stride: u32, count: u32, below: u32, above: u32) {
    var carry = below;
    for (var i = 0u; i < count; i++) {
        carry = flow(start + i * stride, carry);
    }
    carry = above;
    for (var i = count; i > 0u; i--) {
        carry = flow(start + (i - 1u) * stride, carry);
    }
    report();
}

@compute @workgroup_size(WORKGROUP)
fn sweep_y(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let index = flat_index(workgroup, workgroups, local);
    let words = params.words_per_row;
    if index >= words * params.slices || changed_before[0] == 0u {
        return;
    }
    let slice = params.first + index / words;
    sweep_across(slice * params.rows * words + index % words, words, params.rows, ALL, ALL);
}

@compute @workgroup_size(WORKGROUP)
fn sweep_z(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let index = flat_index(workgroup, workgroups, local);
    let slice_words = params.words_per_row * params.rows;
    if index >= slice_words || changed_before[0] == 0u {
        return;
    }
    let end = params.first + params.slices;
    var below = ALL;
    if params.first > 0u {
        below = outside[index + (params.first - 1u) * slice_words];
    }
    var above = ALL;
    if end < params.bound_slices {
        above = outside[index + end * slice_words];
    }
    sweep_across(index + params.first * slice_words, slice_words, params.slices, below, above);
}

// Turns the outside into the solid: all that is not outside. Bits past the end of a row are free and thus outside.
@compute @workgroup_size(WORKGROUP)
fn solid_from_outside(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let index = flat_index(workgroup, workgroups, local);
    let slice_words = params.words_per_row * params.rows;
    if index < slice_words * params.slices {
        let at = index + params.first * slice_words;
        outside[at] = ~outside[at];
    }
}

// Turns an inside that was found elsewhere into the solid: the surface belongs to it.
@compute @workgroup_size(WORKGROUP)
fn solid_from_inside(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let index = flat_index(workgroup, workgroups, local);
    let slice_words = params.words_per_row * params.rows;
    if index < slice_words * params.slices {
        let at = index + params.first * slice_words;
        outside[at] |= surface[at];
    }
}
