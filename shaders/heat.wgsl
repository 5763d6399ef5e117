// Heat on a graph by Jacobi sweeps, four bones a row, accelerated by Chebyshev's polynomials (Golub and Varga 1961).
//
// (L + diag ground) x = right: links conduct heat between rows, each row loses heat to its sources and, where only a part of
// the graph is solved, to the rows beyond the part, whose heat is 0. A residual is summed up from differences of neighbours
// and not from their values, so its rounding is small against the values. One invocation a row.

struct SweepParams {
    rows: u32,
    // How much of Jacobi's step and of the change before to go. 1: Jacobi's step alone.
    weight: f32,
    // Most that rounding puts on a residual, of the sum of the sizes of what it is made of.
    rounding: f32,
}

// What a row's sources and neighbours give it beyond what it loses, and the sum of the sizes of all that.
struct Residual {
    value: vec4<f32>,
    size: vec4<f32>,
}

const NONE: u32 = 0xffffffffu;

@group(0) @binding(0) var<uniform> params: SweepParams;
// For each row: what it loses for each unit of its heat, other than over links, and 1 / its diagonal.
@group(0) @binding(1) var<storage, read> losses: array<vec2<f32>>;
// Of voxels the neighbour over side s of a row at s * rows + row, NONE for none. Of other graphs those of a row from
// first[row] up to first[row + 1].
@group(0) @binding(2) var<storage, read> neighbors: array<u32>;
@group(0) @binding(3) var<storage, read> right: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> heat: array<vec4<f32>>;
// Holds the heat of the sweep before when a sweep starts, that of the next when it ends.
@group(0) @binding(5) var<storage, read_write> other: array<vec4<f32>>;
// The bits of the largest step, of the largest heat, and of the most that rounding has in a step: floats that are not negative are ordered as their bits are.
@group(0) @binding(6) var<storage, read_write> figures: array<atomic<u32>, 3>;
@group(0) @binding(7) var<storage, read> first: array<u32>;
@group(0) @binding(8) var<storage, read> conductance: array<f32>;

var<workgroup> most: array<atomic<u32>, 3>;

fn lost(row: u32) -> Residual {
    let loss = losses[row].x * heat[row];
    return Residual(right[row] - loss, abs(right[row]) + abs(loss));
}

fn with_flow(residual: Residual, flow: vec4<f32>) -> Residual {
    return Residual(residual.value + flow, residual.size + abs(flow));
}

// The residual of a voxel: its six links conduct 1.
fn residual_of_voxel(row: u32) -> Residual {
    let own = heat[row];
    var residual = lost(row);
    for (var side = 0u; side < 6u; side++) {
        let neighbor = neighbors[side * params.rows + row];
        if neighbor != NONE {
            residual = with_flow(residual, heat[neighbor] - own);
        }
    }
    return residual;
}

fn residual_of_row(row: u32) -> Residual {
    let own = heat[row];
    var residual = lost(row);
    for (var link = first[row]; link < first[row + 1u]; link++) {
        residual = with_flow(residual, conductance[link] * (heat[neighbors[link]] - own));
    }
    return residual;
}

fn advance(row: u32, residual: Residual) {
    let before = other[row];
    let step = residual.value * losses[row].y;
    other[row] = before + params.weight * ((heat[row] - before) + step);
}

// Notes how far Jacobi would go from here, at most, how hot it is, and what rounding may have added.
fn note(row: u32, residual: Residual) {
    let noise = params.rounding * residual.size * losses[row].y;
    let step = abs(residual.value) * losses[row].y + noise;
    let size = abs(heat[row]);
    atomicMax(&most[0], bitcast<u32>(max(max(step.x, step.y), max(step.z, step.w))));
    atomicMax(&most[1], bitcast<u32>(max(max(size.x, size.y), max(size.z, size.w))));
    atomicMax(&most[2], bitcast<u32>(max(max(noise.x, noise.y), max(noise.z, noise.w))));
}

// One atomic a workgroup and figure on memory that all of them share.
fn hand_on(local: u32) {
    workgroupBarrier();
    if local < 3u {
        atomicMax(&figures[local], atomicLoad(&most[local]));
    }
}

@compute @workgroup_size(WORKGROUP)
fn sweep_voxels(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let row = flat_index(workgroup, workgroups, local);
    if row < params.rows {
        advance(row, residual_of_voxel(row));
    }
}

@compute @workgroup_size(WORKGROUP)
fn sweep_rows(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let row = flat_index(workgroup, workgroups, local);
    if row < params.rows {
        advance(row, residual_of_row(row));
    }
}

@compute @workgroup_size(WORKGROUP)
fn check_voxels(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let row = flat_index(workgroup, workgroups, local);
    if row < params.rows {
        note(row, residual_of_voxel(row));
    }
    hand_on(local);
}

@compute @workgroup_size(WORKGROUP)
fn check_rows(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let row = flat_index(workgroup, workgroups, local);
    if row < params.rows {
        note(row, residual_of_row(row));
    }
    hand_on(local);
}
