//! Every shader parses and validates, keeps within wgpu's default limits, and lays out its structs as the host does.

use std::collections::BTreeSet;
use std::mem::{offset_of, size_of};
use std::path::Path;

use naga::valid::{Capabilities, ValidationFlags, Validator};
use naga::{AddressSpace, ArraySize, Module, TypeInner};
use skinbind::crawl::MAX_LABELS;
use skinbind::crawl::gpu::{CrawlParams, FARTHEST, LENGTHS, NO_LABEL, WGSL as CRAWL_WGSL, Window, label_count};
use skinbind::gpu::required_limits;
use skinbind::heat::gpu::{SweepParams, WGSL as HEAT_WGSL};
use skinbind::influence::gpu::{InfluenceParams, Position, WGSL as INFLUENCE_WGSL};
use skinbind::render::gpu::{RasterParams, WGSL as RASTER_WGSL};
use skinbind::skin::gpu::{SkinParams, WGSL as SKIN_WGSL};
use skinbind::voxelize::gpu::{
    BRICKS_WGSL, Brick, BrickParams, FloodParams, INTERIOR_WGSL, SURFACE_WGSL, SurfaceParams,
};

/// As many labels as there can be: the most memory that a shader takes.
const LABELS: &str = "const LABELS: u32 = 17u;\n";

/// The shaders as they are handed to the device: the file's name and its parts.
const SHADERS: [(&str, &[&str]); 8] = [
    ("voxelize.wgsl", &SURFACE_WGSL),
    ("interior.wgsl", &INTERIOR_WGSL),
    ("bricks.wgsl", &BRICKS_WGSL),
    ("crawl.wgsl", &[LABELS, CRAWL_WGSL[0], CRAWL_WGSL[1], CRAWL_WGSL[2]]),
    ("heat.wgsl", &HEAT_WGSL),
    ("influence.wgsl", &[LABELS, INFLUENCE_WGSL[0], INFLUENCE_WGSL[1], INFLUENCE_WGSL[2]]),
    ("skin.wgsl", &SKIN_WGSL),
    ("raster.wgsl", &[RASTER_WGSL]),
];

fn parsed(name: &str) -> Module {
    let (_, parts) = SHADERS.iter().find(|(shader, _)| *shader == name).expect("a shader");
    naga::front::wgsl::parse_str(&parts.concat()).unwrap_or_else(|e| panic!("{name}: {}", e.emit_to_string("")))
}

/// Offsets of a struct's members and its size.
fn layout(module: &Module, name: &str) -> (Vec<(String, usize)>, usize) {
    let (_, found) = module.types.iter().find(|(_, t)| t.name.as_deref() == Some(name)).expect("a struct");
    let TypeInner::Struct { members, span } = &found.inner else { panic!("{name} is no struct") };
    let offsets = members.iter().map(|m| (m.name.clone().expect("a name"), m.offset as usize)).collect();
    (offsets, *span as usize)
}

/// Checks the members of a Rust struct (padding left out) against the WGSL struct of the same name.
macro_rules! assert_same_layout {
    ($module:expr, $type:ident: $($field:ident),+) => {
        let (offsets, size) = layout($module, stringify!($type));
        let expected = vec![$((stringify!($field).to_string(), offset_of!($type, $field))),+];
        assert_eq!((offsets, size), (expected, size_of::<$type>()), stringify!($type));
    };
}

#[test]
fn all_shaders_are_listed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("shaders");
    let files: BTreeSet<String> = std::fs::read_dir(folder)
        .expect("shaders")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .filter(|name| name.ends_with(".wgsl"))
        .collect();
    assert_eq!(files, SHADERS.iter().map(|(name, _)| name.to_string()).collect());
}

#[test]
fn all_shaders_are_valid() {
    for (name, parts) in SHADERS {
        // No capability beyond core WGSL.
        Validator::new(ValidationFlags::all(), Capabilities::empty())
            .validate(&parsed(name))
            .unwrap_or_else(|e| panic!("{name}: {e:?}"));
        assert!(!parts.concat().to_lowercase().contains("todo"), "{name}");
    }
}

#[test]
fn all_shaders_keep_within_the_default_limits() {
    let limits = required_limits();
    for (name, _) in SHADERS {
        let module = parsed(name);
        assert!(!module.entry_points.is_empty(), "{name}");
        let variables = || module.global_variables.iter().map(|(_, v)| v);
        // Over all entry points of the file, which is more than any one of them uses.
        let storage = variables().filter(|v| matches!(v.space, AddressSpace::Storage { .. })).count();
        assert!(storage <= limits.max_storage_buffers_per_shader_stage as usize, "{name}: {storage} storage buffers");
        let workgroup: u32 = variables()
            .filter(|v| v.space == AddressSpace::WorkGroup)
            .map(|v| match module.types[v.ty].inner {
                // As many entries as the workgroup has invocations, at most.
                TypeInner::Array { size: ArraySize::Pending(_), stride, .. } => {
                    stride * limits.max_compute_invocations_per_workgroup
                }
                ref inner => inner.size(module.to_ctx()),
            })
            .sum();
        assert!(
            workgroup <= limits.max_compute_workgroup_storage_size,
            "{name}: {workgroup} bytes of workgroup memory"
        );
    }
}

#[test]
fn structs_are_laid_out_as_on_the_host() {
    let (surface, flood, bricks) = (parsed("voxelize.wgsl"), parsed("interior.wgsl"), parsed("bricks.wgsl"));
    assert_same_layout!(&surface, SurfaceParams: dims, words_per_row, slab_first, slab_slices, triangles, first_item, items);
    assert_same_layout!(&flood, FloodParams: words_per_row, rows, first, slices, bound_slices);
    assert_same_layout!(
        &bricks,
        BrickParams: dims, words_per_row, extent, first_slice, first_place, places, first_block, blocks
    );
    assert_same_layout!(&bricks, Brick: place, first_voxel, mask);
    let (crawl, influence) = (parsed("crawl.wgsl"), parsed("influence.wgsl"));
    assert_same_layout!(&crawl, CrawlParams: window, extent, bricks, most_axes, queue, ring, batch, seeded, flags);
    assert_same_layout!(&crawl, Brick: place, first_voxel, mask);
    assert_same_layout!(&crawl, Window: first_layer, end_layer, first_voxel, second_voxel);
    assert_same_layout!(&influence, Window: first_layer, end_layer, first_voxel, second_voxel);
    assert_same_layout!(&parsed("heat.wgsl"), SweepParams: rows, weight, rounding);
    assert_same_layout!(&influence, Brick: place, first_voxel, mask);
    assert_same_layout!(
        &influence,
        InfluenceParams: window, extent, positions, scale, floor, smoothing, power, whole_power, most, places, threshold,
        considered, is_short
    );
    assert_same_layout!(&parsed("raster.wgsl"), RasterParams: scale, top);
    assert_same_layout!(
        &parsed("skin.wgsl"),
        SkinParams: vertices, poses, poses_each, joints, palette_first, palette_pose, rigid, stretch, positions, normals,
        tangents, joint_words, weight_words, shares, posed_positions, posed_normals, posed_tangents, posed_pose
    );
    assert_same_layout!(&influence, Position: low_x, low_y, low_z, beyond_x, beyond_y, beyond_z);
}

#[test]
fn constants_are_those_of_the_host() {
    assert_eq!(LABELS, label_count(MAX_LABELS));
    let text = CRAWL_WGSL.concat();
    let [face, edge, corner] = LENGTHS;
    for constant in [
        format!("LENGTHS: vec3<u32> = vec3({face}u, {edge}u, {corner}u)"),
        format!("FARTHEST: u32 = {FARTHEST:#x}u"),
        format!("NO_LABEL: vec2<u32> = vec2({:#x}u, {:#x}u)", NO_LABEL[0], NO_LABEL[1]),
    ] {
        assert!(text.contains(&constant), "{constant}");
    }
    for (axes, length) in (1..).zip(LENGTHS) {
        assert_eq!(length, (65_536.0 * f64::from(axes).sqrt()).round() as u32);
    }
}
