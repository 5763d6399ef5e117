// Which triangle is nearest at each sample of a strip of a picture: corners come in picture coordinates, the numbers of
// triangles go out. Light and colour are added on the host.

struct RasterParams {
    // Pixels to clip space, along x and y.
    scale: vec2<f32>,
    // The strip's first row of pixels.
    top: f32,
}

@group(0) @binding(0) var<uniform> params: RasterParams;

struct Corner {
    @builtin(position) clip: vec4<f32>,
    @location(0) @interpolate(flat) triangle: u32,
}

// `at` is x and y in pixels and the distance from the nearest (0) to the farthest (1); three corners a triangle. The instance is
// the number of the first triangle of a draw.
@vertex
fn corner(
    @location(0) at: vec3<f32>,
    @builtin(vertex_index) vertex: u32,
    @builtin(instance_index) first: u32,
) -> Corner {
    let x = at.x * params.scale.x - 1.0;
    let y = 1.0 - (at.y - params.top) * params.scale.y;
    return Corner(vec4(x, y, at.z, 1.0), first + vertex / 3u);
}

@fragment
fn nearest(seen: Corner) -> @location(0) u32 {
    return seen.triangle;
}
