// Marks the voxels that triangles touch. One invocation looks at one triangle in one tile of 32 voxels along x (a word of
// bits) and TILE along y and z, so that a triangle across the whole grid is spread over many.

// Logarithm of the edge of a tile along y and z.
override TILE_BITS: u32 = 2u;

struct SurfaceParams {
    dims: vec3<u32>,
    words_per_row: u32,
    // Slices that the bits show.
    slab_first: u32,
    slab_slices: u32,
    triangles: u32,
    first_item: u32,
    items: u32,
}

@group(0) @binding(0) var<uniform> params: SurfaceParams;
// Nine lattice coordinates a triangle.
@group(0) @binding(1) var<storage, read> corners: array<i32>;
// For each triangle the number of tiles of those before it.
@group(0) @binding(2) var<storage, read> first_items: array<u32>;
@group(0) @binding(3) var<storage, read_write> bits: array<atomic<u32>>;

fn corner(at: u32) -> vec3<i32> {
    return vec3(corners[at], corners[at + 1u], corners[at + 2u]);
}

// The last triangle whose first item is not above this one.
fn triangle_of(item: u32) -> u32 {
    var low = 0u;
    var high = params.triangles;
    while high - low > 1u {
        let middle = (low + high) / 2u;
        if first_items[middle] <= item {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

@compute @workgroup_size(WORKGROUP)
fn surface(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let index = flat_index(workgroup, workgroups, local);
    if index >= params.items {
        return;
    }
    let item = params.first_item + index;
    let triangle = triangle_of(item);
    let a = corner(9u * triangle);
    let b = corner(9u * triangle + 3u);
    let c = corner(9u * triangle + 6u);

    // Voxels that the bounding box touches, in the grid and the slab.
    let slab_low = vec3(0, 0, i32(params.slab_first));
    let slab_high = vec3<i32>(vec3(params.dims.xy, params.slab_first + params.slab_slices)) - 1;
    let box_low = max(((min(min(a, b), c) + 255) >> vec3(STEP_BITS)) - 1, slab_low);
    let box_high = min(max(max(a, b), c) >> vec3(STEP_BITS), slab_high);

    // The tile of this item, and the part of the box in it.
    let tile_bits = vec3(5u, TILE_BITS, TILE_BITS);
    let first_tile = vec3<u32>(box_low >> tile_bits);
    let tiles = vec3<u32>(box_high >> tile_bits) - first_tile + 1u;
    let rank = item - first_items[triangle];
    let tile = first_tile + vec3(rank % tiles.x, rank / tiles.x % tiles.y, rank / (tiles.x * tiles.y));
    let tile_low = vec3<i32>(tile << tile_bits);
    let low = max(box_low, tile_low);
    let high = min(box_high, tile_low + (vec3(1) << tile_bits) - 1);

    let origin = a >> vec3(STEP_BITS);
    let shift = origin << vec3(STEP_BITS);
    let contact = contact_of(a - shift, b - shift, c - shift);
    if !touches(contact, low - origin, high - origin) {
        return;
    }
    for (var z = low.z; z <= high.z; z++) {
        for (var y = low.y; y <= high.y; y++) {
            if !touches(contact, vec3(low.x, y, z) - origin, vec3(high.x, y, z) - origin) {
                continue;
            }
            var word = 0u;
            for (var x = low.x; x <= high.x; x++) {
                let voxel = vec3(x, y, z) - origin;
                if touches(contact, voxel, voxel) {
                    word |= 1u << (u32(x) & 31u);
                }
            }
            if word != 0u {
                let row = (u32(z) - params.slab_first) * params.dims.y + u32(y);
                atomicOr(&bits[row * params.words_per_row + tile.x], word);
            }
        }
    }
}
