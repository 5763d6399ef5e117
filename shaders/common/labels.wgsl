// Labels of voxels, and the way from a voxel to its labels.

// A label: the bone's rank (its place among the names) and its distance in steps of 2^-16 voxel.
const NO_LABEL: vec2<u32> = vec2(0xffffffffu, 0xffffffffu);
// What `slots` holds where a brick has no solid voxel.
const ABSENT: u32 = 0xffffffffu;

struct Brick {
    // Brick coordinates, 10 bits each, x lowest.
    place: u32,
    // Solid voxels in the bricks before.
    first_voxel: u32,
    // Which voxels are solid: bit x + 4 y + 16 z of the coordinates in the brick, 32 bits a word.
    mask: vec2<u32>,
}

// Whether a label comes before another: nearer, or equally near with the lower rank.
fn before(a: vec2<u32>, b: vec2<u32>) -> bool {
    return a.y < b.y || (a.y == b.y && a.x < b.x);
}

fn has_cell(mask: vec2<u32>, cell: u32) -> bool {
    return (select(mask.x, mask.y, cell >= 32u) >> (cell & 31u) & 1u) == 1u;
}

// Solid voxels of a brick below a cell.
fn cells_below(mask: vec2<u32>, cell: u32) -> u32 {
    let below = (1u << (cell & 31u)) - 1u;
    if cell < 32u {
        return countOneBits(mask.x & below);
    }
    return countOneBits(mask.x) + countOneBits(mask.y & below);
}

fn unpack_place(place: u32) -> vec3<u32> {
    return vec3(place, place >> 10u, place >> 20u) & vec3(1023u);
}

// Labels lie in buffers of whole layers of bricks. A dispatch sees two that follow each other, and works on the bricks
// whose neighbours all lie in them.
struct Window {
    // Layers of bricks along z to work on: the first, and the one after the last.
    first_layer: u32,
    end_layer: u32,
    // The voxel with which `labels` begins, and the one with which `more_labels` does.
    first_voxel: u32,
    second_voxel: u32,
}

fn is_in_window(layer: u32) -> bool {
    return layer >= params.window.first_layer && layer < params.window.end_layer;
}

// The label of a voxel in slot `j` of its record.
fn label_at(voxel: u32, j: u32) -> vec2<u32> {
    if voxel < params.window.second_voxel {
        return labels[(voxel - params.window.first_voxel) * LABELS + j];
    }
    return more_labels[(voxel - params.window.second_voxel) * LABELS + j];
}
