// Whether a triangle touches a box of voxels, decided exactly in 32-bit integers.
//
// The separating axes of a triangle and a box (Akenine-Moller 2001) in the form of Schwarz and Seidel 2010: the triangle's
// bounding box, its plane, and in each of the three projections its three edges. Contact counts as touching.
//
// Corners lie on the lattice: 256 steps a voxel, at most 1027 voxels, so |coordinate| <= 2^18.01. The value of an edge
// function or of the plane at a voxel's corner is 256 * (a * i + b * j) + c with integers a, b, c. It is >= 0 exactly where
// a * i + b * j + floor(c / 256) >= 0, so the factor 256 never enters and edge functions stay below 2^31. The plane's normal
// has 37 bits and is kept as high * 2^19 + low, 0 <= low < 2^19.

const STEP_BITS: u32 = 8u;
const STEP_MASK: i32 = 255;
const LOW_BITS: u32 = 19u;
const LOW_MASK: i32 = 0x7ffff;

// Three edge functions of a projection, one a lane: u * i + v * j + c, not negative on the triangle's side.
struct Edges {
    u: vec3<i32>,
    v: vec3<i32>,
    c: vec3<i32>,
}

// A plane: normal * (i, j, k) + c, both in two limbs.
struct Plane {
    high: vec3<i32>,
    low: vec3<i32>,
    c_high: i32,
    c_low: i32,
}

// A triangle, ready to be tested. Voxels count from the one that holds its first corner.
struct Contact {
    yz: Edges,
    zx: Edges,
    xy: Edges,
    front: Plane,
    back: Plane,
}

// The edges of a projection, from the corners' coordinates; `flip` where the corners run clockwise. Where the projection
// is a segment, its edges run to and fro and bound it on both sides.
fn edges_of(u: vec3<i32>, v: vec3<i32>, flip: bool) -> Edges {
    let side = select(1, -1, flip);
    var e: Edges;
    e.u = side * (v - v.yzx);
    e.v = side * (u.yzx - u);
    let step_mask = vec3(STEP_MASK);
    let whole = e.u * (u >> vec3(STEP_BITS)) + e.v * (v >> vec3(STEP_BITS));
    let part = e.u * (u & step_mask) + e.v * (v & step_mask);
    e.c = (-part >> vec3(STEP_BITS)) - whole;
    return e;
}

// Whether the box from `low` to `high` (corners of voxels) reaches the inner side of all three edges.
fn edges_touch(e: Edges, low: vec2<i32>, high: vec2<i32>) -> bool {
    let i = select(vec3(low.x), vec3(high.x), e.u > vec3(0));
    let j = select(vec3(low.y), vec3(high.y), e.v > vec3(0));
    return all(e.u * i + e.v * j + e.c >= vec3(0));
}

// The half space in front of a plane through a lattice point of voxel (0, 0, 0).
fn plane_of(high: vec3<i32>, low: vec3<i32>, point: vec3<i32>) -> Plane {
    // c = floor(-normal * point / 256); the high limbs' part is a multiple of 256 already.
    let high_part = -dot(high, point);
    let low_part = -dot(low, point) >> STEP_BITS;
    let rest = ((high_part & STEP_MASK) << (LOW_BITS - STEP_BITS)) + low_part;
    return Plane(high, low, (high_part >> STEP_BITS) + (rest >> LOW_BITS), rest & LOW_MASK);
}

// Whether the box from `low` to `high` reaches the half space.
fn plane_touches(p: Plane, low: vec3<i32>, high: vec3<i32>) -> bool {
    let corner = select(low, high, p.high >= vec3(0));
    let high_sum = dot(p.high, corner) + p.c_high;
    let low_sum = dot(p.low, corner) + p.c_low;
    return high_sum + (low_sum >> LOW_BITS) >= 0;
}

// Prepares a triangle by its corners on the lattice, relative to the lower corner of the voxel that holds `a`.
fn contact_of(a: vec3<i32>, b: vec3<i32>, c: vec3<i32>) -> Contact {
    // normal = (b - a) x (c - b), with c - b in two limbs of 10 bits.
    let s = b - a;
    let t = c - b;
    let t_high = t >> vec3(10u);
    let t_low = t & vec3(1023);
    let n_high = s.yzx * t_high.zxy - s.zxy * t_high.yzx;
    let n_low = s.yzx * t_low.zxy - s.zxy * t_low.yzx;
    let rest = ((n_high & vec3(511)) << vec3(10u)) + n_low;
    let high = (n_high >> vec3(9u)) + (rest >> vec3(LOW_BITS));
    let low = rest & vec3(LOW_MASK);
    let back_low = -low & vec3(LOW_MASK);
    let back_high = (-low >> vec3(LOW_BITS)) - high;

    var contact: Contact;
    contact.yz = edges_of(vec3(a.y, b.y, c.y), vec3(a.z, b.z, c.z), high.x < 0);
    contact.zx = edges_of(vec3(a.z, b.z, c.z), vec3(a.x, b.x, c.x), high.y < 0);
    contact.xy = edges_of(vec3(a.x, b.x, c.x), vec3(a.y, b.y, c.y), high.z < 0);
    contact.front = plane_of(high, low, a);
    contact.back = plane_of(back_high, back_low, a);
    return contact;
}

// Whether the triangle touches the voxels from `first` to `last`, both of which must lie within the voxels that its
// bounding box touches.
fn touches(t: Contact, first: vec3<i32>, last: vec3<i32>) -> bool {
    let end = last + vec3(1);
    return plane_touches(t.front, first, end) && plane_touches(t.back, first, end)
        && edges_touch(t.yz, first.yz, end.yz)
        && edges_touch(t.zx, first.zx, end.zx)
        && edges_touch(t.xy, first.xy, end.xy);
}

