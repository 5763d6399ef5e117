// Linear blend and dual quaternion skinning (Kavan, Collins, Zara, O'Sullivan 2007 and 2008): an invocation loads one vertex
// and moves it by the palettes of several poses. Weights are divided by their sum, so any unit will do.

// Sets of four influences a vertex: 1 or 2.
override SETS: u32 = 1u;
// Bits a joint (32 or 16) and a weight (32: a float; 16 or 8: a whole number).
override JOINT_BITS: u32 = 32u;
override WEIGHT_BITS: u32 = 32u;
override NORMALS: bool = false;
override TANGENTS: bool = false;

// Below this share of what its matrix could make of it, a normal or tangent is rounding error: the rest vector stays.
const COLLAPSED: f32 = 1e-6;

struct SkinParams {
    vertices: u32,
    poses: u32,
    // Poses that an invocation moves its vertex to.
    poses_each: u32,
    joints: u32,
    // The palette: vectors up to that of the first pose, a pose, and within a pose up to dual quaternions and stretches.
    palette_first: u32,
    palette_pose: u32,
    rigid: u32,
    stretch: u32,
    // Words up to the first vertex, and from one vertex to the next.
    positions: vec2<u32>,
    normals: vec2<u32>,
    tangents: vec2<u32>,
    joint_words: vec2<u32>,
    weight_words: vec2<u32>,
    shares: vec2<u32>,
    posed_positions: vec2<u32>,
    posed_normals: vec2<u32>,
    posed_tangents: vec2<u32>,
    // Words from a pose to the next.
    posed_pose: u32,
}

@group(0) @binding(0) var<uniform> params: SkinParams;
@group(0) @binding(1) var<storage, read> positions: array<f32>;
@group(0) @binding(2) var<storage, read> normals: array<f32>;
@group(0) @binding(3) var<storage, read> tangents: array<f32>;
@group(0) @binding(4) var<storage, read> joint_words: array<u32>;
@group(0) @binding(5) var<storage, read> weight_words: array<u32>;
@group(0) @binding(6) var<storage, read> palette: array<vec4<f32>>;
@group(0) @binding(7) var<storage, read_write> posed: array<f32>;
@group(0) @binding(8) var<storage, read> shares: array<f32>;

// What an invocation works on.
struct Task {
    vertex: u32,
    first_pose: u32,
    end_pose: u32,
}

struct Vertex {
    position: vec3<f32>,
    normal: vec3<f32>,
    tangent: vec4<f32>,
}

// Up to eight influences, their weights adding up to 1; `strongest` is the joint of the largest, the first of equals.
struct Influences {
    bare: bool,
    strongest: u32,
    joints_a: vec4<u32>,
    joints_b: vec4<u32>,
    weights_a: vec4<f32>,
    weights_b: vec4<f32>,
}

// The rows of a matrix of three rows and four columns.
struct Rows {
    x: vec4<f32>,
    y: vec4<f32>,
    z: vec4<f32>,
}

// A dual quaternion of any length: vector and scalar of its two parts.
struct Motion {
    real: vec4<f32>,
    dual: vec4<f32>,
}

struct Strongest {
    weight: f32,
    joint: u32,
}

// Neighbouring invocations have neighbouring vertices; after the last vertex come those of the next poses.
fn task(index: u32) -> Task {
    let first = index / params.vertices * params.poses_each;
    return Task(index % params.vertices, first, min(first + params.poses_each, params.poses));
}

fn place(at: vec2<u32>, vertex: u32) -> u32 {
    return at.x + vertex * at.y;
}

fn load_vertex(vertex: u32) -> Vertex {
    var v: Vertex;
    let p = place(params.positions, vertex);
    v.position = vec3(positions[p], positions[p + 1u], positions[p + 2u]);
    if NORMALS {
        let n = place(params.normals, vertex);
        v.normal = vec3(normals[n], normals[n + 1u], normals[n + 2u]);
    }
    if TANGENTS {
        let t = place(params.tangents, vertex);
        v.tangent = vec4(tangents[t], tangents[t + 1u], tangents[t + 2u], tangents[t + 3u]);
    }
    return v;
}

fn load_joints(at: u32) -> vec4<u32> {
    var joints: vec4<u32>;
    if JOINT_BITS == 16u {
        let low = joint_words[at];
        let high = joint_words[at + 1u];
        joints = vec4(low & 0xffffu, low >> 16u, high & 0xffffu, high >> 16u);
    } else {
        joints = vec4(joint_words[at], joint_words[at + 1u], joint_words[at + 2u], joint_words[at + 3u]);
    }
    return min(joints, vec4(params.joints - 1u));
}

fn load_weights(at: u32) -> vec4<f32> {
    let first = weight_words[at];
    if WEIGHT_BITS == 8u {
        return vec4<f32>((vec4(first) >> vec4(0u, 8u, 16u, 24u)) & vec4(0xffu));
    }
    if WEIGHT_BITS == 16u {
        let second = weight_words[at + 1u];
        return vec4<f32>(vec4(first & 0xffffu, first >> 16u, second & 0xffffu, second >> 16u));
    }
    return bitcast<vec4<f32>>(vec4(first, weight_words[at + 1u], weight_words[at + 2u], weight_words[at + 3u]));
}

fn stronger(best: Strongest, weight: f32, joint: u32) -> Strongest {
    if weight > best.weight {
        return Strongest(weight, joint);
    }
    return best;
}

fn strongest_of(before: Strongest, weights: vec4<f32>, joints: vec4<u32>) -> Strongest {
    var best = stronger(before, weights.x, joints.x);
    best = stronger(best, weights.y, joints.y);
    best = stronger(best, weights.z, joints.z);
    return stronger(best, weights.w, joints.w);
}

fn load_influences(vertex: u32) -> Influences {
    var i: Influences;
    let joints = place(params.joint_words, vertex);
    let weights = place(params.weight_words, vertex);
    i.joints_a = load_joints(joints);
    i.weights_a = load_weights(weights);
    var total = dot(i.weights_a, vec4(1.0));
    var best = strongest_of(Strongest(0.0, 0u), i.weights_a, i.joints_a);
    if SETS == 2u {
        i.joints_b = load_joints(joints + JOINT_BITS / 8u);
        i.weights_b = load_weights(weights + WEIGHT_BITS / 8u);
        total += dot(i.weights_b, vec4(1.0));
        best = strongest_of(best, i.weights_b, i.joints_b);
    }
    i.strongest = best.joint;
    i.bare = !(total > 0.0);
    if !i.bare {
        i.weights_a /= total;
        i.weights_b /= total;
    }
    return i;
}

fn add_rows(sum: Rows, first: u32, joint: u32, weight: f32) -> Rows {
    let at = first + 3u * joint;
    return Rows(sum.x + weight * palette[at], sum.y + weight * palette[at + 1u], sum.z + weight * palette[at + 2u]);
}

fn add_four_rows(before: Rows, first: u32, joints: vec4<u32>, weights: vec4<f32>) -> Rows {
    var sum = add_rows(before, first, joints.x, weights.x);
    sum = add_rows(sum, first, joints.y, weights.y);
    sum = add_rows(sum, first, joints.z, weights.z);
    return add_rows(sum, first, joints.w, weights.w);
}

// The weighted mean of matrices that begin at `first`; the identity where nothing has weight.
fn blend_rows(i: Influences, first: u32) -> Rows {
    if i.bare {
        return Rows(vec4(1.0, 0.0, 0.0, 0.0), vec4(0.0, 1.0, 0.0, 0.0), vec4(0.0, 0.0, 1.0, 0.0));
    }
    var sum = add_four_rows(Rows(), first, i.joints_a, i.weights_a);
    if SETS == 2u {
        sum = add_four_rows(sum, first, i.joints_b, i.weights_b);
    }
    return sum;
}

// Comparing, not multiplying by a sign: the sign of a product of exactly 0 would drop the term.
fn add_motion(sum: Motion, pivot: vec4<f32>, first: u32, joint: u32, weight: f32) -> Motion {
    let at = first + 2u * joint;
    let real = palette[at];
    let side = select(weight, -weight, dot(real, pivot) < 0.0);
    return Motion(sum.real + side * real, sum.dual + side * palette[at + 1u]);
}

fn add_four_motions(before: Motion, pivot: vec4<f32>, first: u32, joints: vec4<u32>, weights: vec4<f32>) -> Motion {
    var sum = add_motion(before, pivot, first, joints.x, weights.x);
    sum = add_motion(sum, pivot, first, joints.y, weights.y);
    sum = add_motion(sum, pivot, first, joints.z, weights.z);
    return add_motion(sum, pivot, first, joints.w, weights.w);
}

// The weighted mean of motions, each on the side of the strongest influence.
fn blend_motions(i: Influences, first: u32) -> Motion {
    if i.bare {
        return Motion(vec4(0.0, 0.0, 0.0, 1.0), vec4(0.0));
    }
    let pivot = palette[first + 2u * i.strongest];
    var sum = add_four_motions(Motion(), pivot, first, i.joints_a, i.weights_a);
    if SETS == 2u {
        sum = add_four_motions(sum, pivot, first, i.joints_b, i.weights_b);
    }
    return sum;
}

// A vector at unit length, whatever its length was, unless it is a rounding error beside `most`.
fn unit_unless_collapsed(moved: vec3<f32>, most: f32, rest: vec3<f32>) -> vec3<f32> {
    let largest = max(abs(moved.x), max(abs(moved.y), abs(moved.z)));
    if !(largest > COLLAPSED * most) {
        return rest;
    }
    return normalize(moved / largest);
}

fn move_by_rows(m: Rows, v: Vertex) -> Vertex {
    var moved = v;
    let p = vec4(v.position, 1.0);
    moved.position = vec3(dot(m.x, p), dot(m.y, p), dot(m.z, p));
    if NORMALS || TANGENTS {
        let size = dot(m.x.xyz, m.x.xyz) + dot(m.y.xyz, m.y.xyz) + dot(m.z.xyz, m.z.xyz);
        if NORMALS {
            // The inverse transpose but for the determinant, whose sign counts.
            let yz = cross(m.y.xyz, m.z.xyz);
            let outer = vec3(dot(yz, v.normal), dot(cross(m.z.xyz, m.x.xyz), v.normal), dot(cross(m.x.xyz, m.y.xyz), v.normal));
            let outward = select(outer, -outer, dot(m.x.xyz, yz) < 0.0);
            moved.normal = unit_unless_collapsed(outward, size * length(v.normal), v.normal);
        }
        if TANGENTS {
            let t = v.tangent.xyz;
            let along = vec3(dot(m.x.xyz, t), dot(m.y.xyz, t), dot(m.z.xyz, t));
            moved.tangent = vec4(unit_unless_collapsed(along, sqrt(size) * length(t), t), v.tangent.w);
        }
    }
    return moved;
}

fn turn(m: Motion, v: vec3<f32>) -> vec3<f32> {
    let r = m.real.xyz;
    return v + 2.0 / dot(m.real, m.real) * cross(r, cross(r, v) + m.real.w * v);
}

// The length of a mean of motions is at least the strongest weight: all terms lie on one side.
fn move_by_motion(m: Motion, v: Vertex) -> Vertex {
    var moved = v;
    let r = m.real.xyz;
    let inner = cross(r, v.position) + m.real.w * v.position + m.dual.xyz;
    let outer = cross(r, inner) + m.real.w * m.dual.xyz - m.dual.w * r;
    moved.position = v.position + 2.0 / dot(m.real, m.real) * outer;
    if NORMALS {
        let n = turn(m, v.normal);
        moved.normal = unit_unless_collapsed(n, 0.0, v.normal);
    }
    if TANGENTS {
        let t = turn(m, v.tangent.xyz);
        moved.tangent = vec4(unit_unless_collapsed(t, 0.0, v.tangent.xyz), v.tangent.w);
    }
    return moved;
}

// Stretches first, where a pose has any (its first vector says so), then the rigid motions.
fn move_dual(i: Influences, pose_palette: u32, v: Vertex) -> Vertex {
    var stretched = v;
    if palette[pose_palette].x > 0.0 {
        stretched = move_by_rows(blend_rows(i, pose_palette + params.stretch), v);
    }
    return move_by_motion(blend_motions(i, pose_palette + params.rigid), stretched);
}

fn mix_directions(a: vec3<f32>, b: vec3<f32>, share: f32) -> vec3<f32> {
    return unit_unless_collapsed(mix(a, b, share), length(a) + length(b), b);
}

fn store(v: Vertex, vertex: u32, pose: u32) {
    let first = pose * params.posed_pose;
    let p = first + place(params.posed_positions, vertex);
    posed[p] = v.position.x;
    posed[p + 1u] = v.position.y;
    posed[p + 2u] = v.position.z;
    if NORMALS {
        let n = first + place(params.posed_normals, vertex);
        posed[n] = v.normal.x;
        posed[n + 1u] = v.normal.y;
        posed[n + 2u] = v.normal.z;
    }
    if TANGENTS {
        let t = first + place(params.posed_tangents, vertex);
        posed[t] = v.tangent.x;
        posed[t + 1u] = v.tangent.y;
        posed[t + 2u] = v.tangent.z;
        posed[t + 3u] = v.tangent.w;
    }
}

@compute @workgroup_size(WORKGROUP)
fn linear(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let work = task(flat_index(workgroup, workgroups, local));
    if work.first_pose >= params.poses {
        return;
    }
    let v = load_vertex(work.vertex);
    let i = load_influences(work.vertex);
    for (var pose = work.first_pose; pose < work.end_pose; pose++) {
        let matrices = params.palette_first + pose * params.palette_pose;
        store(move_by_rows(blend_rows(i, matrices), v), work.vertex, pose);
    }
}

@compute @workgroup_size(WORKGROUP)
fn dual_quaternion(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let work = task(flat_index(workgroup, workgroups, local));
    if work.first_pose >= params.poses {
        return;
    }
    let v = load_vertex(work.vertex);
    let i = load_influences(work.vertex);
    for (var pose = work.first_pose; pose < work.end_pose; pose++) {
        store(move_dual(i, params.palette_first + pose * params.palette_pose, v), work.vertex, pose);
    }
}

// Both, by the share of dual quaternion of the vertex. The matrices stand behind the first vector of a pose.
@compute @workgroup_size(WORKGROUP)
fn mixed(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let work = task(flat_index(workgroup, workgroups, local));
    if work.first_pose >= params.poses {
        return;
    }
    let v = load_vertex(work.vertex);
    let i = load_influences(work.vertex);
    let share = shares[place(params.shares, work.vertex)];
    for (var pose = work.first_pose; pose < work.end_pose; pose++) {
        let pose_palette = params.palette_first + pose * params.palette_pose;
        let a = move_by_rows(blend_rows(i, pose_palette + 1u), v);
        let b = move_dual(i, pose_palette, v);
        var both = v;
        both.position = mix(a.position, b.position, share);
        if NORMALS {
            both.normal = mix_directions(a.normal, b.normal, share);
        }
        if TANGENTS {
            both.tangent = vec4(mix_directions(a.tangent.xyz, b.tangent.xyz, share), v.tangent.w);
        }
        store(both, work.vertex, pose);
    }
}
