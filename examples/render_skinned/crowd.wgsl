// A crowd on a studio floor: one sun with a shadow map, light from the sky, a little shine, and haze in the distance.

struct Scene {
    view: mat4x4<f32>,
    light: mat4x4<f32>,
    eye: vec4<f32>,
    // Towards the sun.
    sun: vec4<f32>,
    haze: vec4<f32>,
}

@group(0) @binding(0) var<uniform> scene: Scene;
@group(0) @binding(1) var shadows: texture_depth_2d;
@group(0) @binding(2) var nearer: sampler_comparison;

struct Body {
    // As the skinning left them.
    @location(0) position: vec3<f32>,
    @location(1) normal: vec3<f32>,
    // Where the instance stands, and the cosine and sine of the angle that it is turned by.
    @location(2) place: vec4<f32>,
    @location(3) colour: vec3<f32>,
}

struct Seen {
    @builtin(position) clip: vec4<f32>,
    @location(0) position: vec3<f32>,
    @location(1) normal: vec3<f32>,
    @location(2) colour: vec3<f32>,
}

fn turned(v: vec3<f32>, place: vec4<f32>) -> vec3<f32> {
    return vec3(place.z * v.x + place.w * v.z, v.y, place.z * v.z - place.w * v.x);
}

fn in_world(body: Body) -> vec3<f32> {
    return turned(body.position, body.place) + vec3(body.place.x, 0.0, body.place.y);
}

@vertex
fn body_vertex(body: Body) -> Seen {
    let position = in_world(body);
    return Seen(scene.view * vec4(position, 1.0), position, turned(body.normal, body.place), body.colour);
}

@vertex
fn shadow_vertex(body: Body) -> @builtin(position) vec4<f32> {
    return scene.light * vec4(in_world(body), 1.0);
}

@vertex
fn floor_vertex(@builtin(vertex_index) index: u32) -> Seen {
    let corner = vec2(f32(index & 1u), f32(index >> 1u)) * 2.0 - 1.0;
    let position = vec3(corner.x * 90.0, 0.0, corner.y * 90.0);
    return Seen(scene.view * vec4(position, 1.0), position, vec3(0.0, 1.0, 0.0), vec3(0.0));
}

// The share of the sun that reaches a point: the mean over 5 x 5 comparisons with the shadow map.
fn sunlit(position: vec3<f32>, normal: vec3<f32>) -> f32 {
    let at = scene.light * vec4(position + normal * 0.012, 1.0);
    let place = at.xy * vec2(0.5, -0.5) + 0.5;
    if any(place < vec2(0.0)) || any(place > vec2(1.0)) {
        return 1.0;
    }
    let step = 1.3 / vec2<f32>(textureDimensions(shadows));
    var sum = 0.0;
    for (var y = -2; y <= 2; y++) {
        for (var x = -2; x <= 2; x++) {
            let offset = vec2(f32(x), f32(y)) * step;
            sum += textureSampleCompareLevel(shadows, nearer, place + offset, at.z - 0.0006);
        }
    }
    return sum / 25.0;
}

fn hazy(colour: vec3<f32>, position: vec3<f32>) -> vec3<f32> {
    let away = distance(position, scene.eye.xyz);
    return mix(colour, scene.haze.rgb, smoothstep(17.0, 46.0, away));
}

@fragment
fn body_fragment(seen: Seen) -> @location(0) vec4<f32> {
    let normal = normalize(seen.normal);
    let viewer = normalize(scene.eye.xyz - seen.position);
    let towards = dot(normal, scene.sun.xyz);
    let sun = max(towards, 0.0) * sunlit(seen.position, normal);
    let sky = mix(vec3(0.13, 0.11, 0.10), vec3(0.34, 0.38, 0.46), normal.y * 0.5 + 0.5);
    // Near the floor less of the sky is seen.
    let open = 0.45 + 0.55 * smoothstep(0.0, 0.9, seen.position.y);
    let half_way = normalize(scene.sun.xyz + viewer);
    let shine = 0.16 * pow(max(dot(normal, half_way), 0.0), 40.0) * sun;
    let edge = pow(1.0 - max(dot(normal, viewer), 0.0), 3.0);
    let light = sun * vec3(1.25, 1.16, 1.02) + sky * open;
    return vec4(hazy(seen.colour * light + vec3(shine) + 0.16 * edge * sky, seen.position), 1.0);
}

@fragment
fn floor_fragment(seen: Seen) -> @location(0) vec4<f32> {
    let sun = sunlit(seen.position, vec3(0.0, 1.0, 0.0));
    let colour = vec3(0.50, 0.51, 0.53) * (0.42 + 0.68 * sun);
    return vec4(hazy(colour, seen.position), 1.0);
}
