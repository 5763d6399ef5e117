// Gathers solid voxels into bricks of 4 x 4 x 4: a list of the bricks that hold any, and for each the number of solid
// voxels before it. Places of the grid of bricks are counted in blocks, the blocks are summed, then each block writes.

// Places that an invocation looks at, one after the other.
const RUN: u32 = 4u;
const ABSENT: u32 = 0xffffffffu;

struct BrickParams {
    dims: vec3<u32>,
    words_per_row: u32,
    // Bricks along each axis.
    extent: vec3<u32>,
    // The first slice that the bits show.
    first_slice: u32,
    // The places to look at, and the first block of WORKGROUP * RUN of them.
    first_place: u32,
    places: u32,
    first_block: u32,
    // Blocks of the whole grid.
    blocks: u32,
}

struct Brick {
    // Brick coordinates, 10 bits each, x lowest.
    place: u32,
    // Solid voxels in the bricks before.
    first_voxel: u32,
    // Which voxels are solid: bit x + 4 y + 16 z of the coordinates in the brick, 32 bits a word.
    mask: vec2<u32>,
}

@group(0) @binding(0) var<uniform> params: BrickParams;
@group(0) @binding(1) var<storage, read> solid: array<u32>;
// Bricks and solid voxels: of each block, then before each block, and after the last block of all.
@group(0) @binding(2) var<storage, read_write> block_sums: array<vec2<u32>>;
@group(0) @binding(3) var<storage, read_write> bricks: array<Brick>;
// The number of the brick at each place of the grid of bricks, or ABSENT.
@group(0) @binding(4) var<storage, read_write> slots: array<u32>;

fn brick_at(place: u32) -> vec3<u32> {
    return vec3(place, place / params.extent.x, place / (params.extent.x * params.extent.y)) % params.extent;
}

fn mask_at(place: u32) -> vec2<u32> {
    let brick = brick_at(place);
    let word = brick.x / 8u;
    let shift = brick.x % 8u * 4u;
    var mask = vec2(0u);
    for (var row = 0u; row < 16u; row++) {
        let y = brick.y * 4u + row % 4u;
        let z = brick.z * 4u + row / 4u;
        if y < params.dims.y && z < params.dims.z {
            let at = ((z - params.first_slice) * params.dims.y + y) * params.words_per_row + word;
            let four = (solid[at] >> shift & 15u) << (row % 8u * 4u);
            if row < 8u {
                mask.x |= four;
            } else {
                mask.y |= four;
            }
        }
    }
    return mask;
}

// Bricks (one or none) and solid voxels of a mask.
fn count_of(mask: vec2<u32>) -> vec2<u32> {
    let voxels = countOneBits(mask.x) + countOneBits(mask.y);
    return vec2(min(voxels, 1u), voxels);
}

fn block_of(workgroup: vec3<u32>, workgroups: vec3<u32>) -> u32 {
    return workgroup.y * workgroups.x + workgroup.x;
}

@compute @workgroup_size(WORKGROUP)
fn count(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let block = block_of(workgroup, workgroups);
    let start = (block * WORKGROUP + local) * RUN;
    var total = vec2(0u);
    for (var k = start; k < min(start + RUN, params.places); k++) {
        total += count_of(mask_at(params.first_place + k));
    }
    let sum = inclusive_sum(local, total);
    if local == WORKGROUP - 1u && block * WORKGROUP * RUN < params.places {
        block_sums[params.first_block + block] = sum;
    }
}

// One workgroup turns the sums of blocks into the sums before blocks.
@compute @workgroup_size(WORKGROUP)
fn sum_blocks(@builtin(local_invocation_index) local: u32) {
    var before = vec2(0u);
    for (var start = 0u; start < params.blocks; start += WORKGROUP) {
        let block = start + local;
        var own = vec2(0u);
        if block < params.blocks {
            own = block_sums[block];
        }
        let sum = inclusive_sum(local, own);
        if block < params.blocks {
            block_sums[block] = before + sum - own;
        }
        before += sums[WORKGROUP - 1u];
    }
    if local == 0u {
        block_sums[params.blocks] = before;
    }
}

@compute @workgroup_size(WORKGROUP)
fn write_bricks(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let block = block_of(workgroup, workgroups);
    let start = (block * WORKGROUP + local) * RUN;
    let end = min(start + RUN, params.places);
    var total = vec2(0u);
    for (var k = start; k < end; k++) {
        total += count_of(mask_at(params.first_place + k));
    }
    let sum = inclusive_sum(local, total);
    // Surplus workgroups have no block; they have no places either.
    var at = block_sums[min(params.first_block + block, params.blocks)] + sum - total;
    for (var k = start; k < end; k++) {
        let place = params.first_place + k;
        let mask = mask_at(place);
        let own = count_of(mask);
        slots[place] = select(ABSENT, at.x, own.x == 1u);
        if own.x == 1u {
            let brick = brick_at(place);
            bricks[at.x] = Brick(brick.x | brick.y << 10u | brick.z << 20u, at.y, mask);
        }
        at += own;
    }
}
