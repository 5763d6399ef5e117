//! Skinning on the GPU against the formulas in f64 on the same stored weights: every format, strides and offsets, many poses,
//! closed forms, and what must stay as it was.

#[path = "common/mod.rs"]
mod common;
#[path = "common/gpu.rs"]
mod gpu_tests;

use std::process::ExitCode;

use common::shapes::Random;
use glam::{DAffine3, DMat3, DQuat, DVec3, DVec4};
use gpu_tests::{changed, parts};
use skinbind::gpu::{Context, Readback, catch_blocking, storage, storage_with};
use skinbind::influence::gpu::JointFormat;
use skinbind::model::{Influence, Palette, Weights};
use skinbind::skin::gpu::{
    Blend, InfluenceWords, Palettes, Place, SkinFormat, SkinKernels, Source, Stream, Target, WGSL, WeightFormat,
    influence_words,
};
use skinbind::skin::split::split;
use skinbind::skin::{Method, Posed, Surface, reference};
use skinbind::{Error, wgpu};

/// Of the larger of the point's distance from the origin and the diagonal of the bounding box, f32 being good to 6e-8. The
/// palette is rounded once; a linear blend of eight terms and a product with the point round some 20 times, each by 6e-8 of at
/// most the size. Dual quaternions round about as often, and 1 / |sum| enlarges it, which is near 1 where joints turn
/// alike and up to 4 where four turn in all directions.
const BOUND: f64 = 2e-6;
/// Radians, for normals and tangents of which at least `DEFINED` is left after the blend: 6e-8 x some 10 roundings / 0.01.
const ANGLE: f64 = 1e-4;
const DEFINED: f64 = 1e-2;

/// What words that are not to be written hold.
const UNTOUCHED: u32 = 0xabcd_1234;

fn main() -> ExitCode {
    gpu_tests::run(&[
        ("every_format_equals_f64", every_format_equals_f64),
        ("scale_mirror_shear_and_flat_matrices_equal_f64", scale_mirror_shear_and_flat_matrices_equal_f64),
        ("one_joint_is_a_rigid_motion", one_joint_is_a_rigid_motion),
        ("half_a_half_turn", half_a_half_turn),
        ("both_signs_of_a_quaternion_are_one_motion", both_signs_of_a_quaternion_are_one_motion),
        ("vertices_without_weights_stay", vertices_without_weights_stay),
        ("windows_change_nothing", windows_change_nothing),
        ("more_workgroups_than_one_row_holds", more_workgroups_than_one_row_holds),
        ("faults_are_named", faults_are_named),
        ("broken_shaders_are_found", broken_shaders_are_found),
        ("changed_input_is_found", changed_input_is_found),
    ])
}

/// A mesh and poses. Positions and directions are f32 numbers, so that only the computation is compared.
struct Case {
    positions: Vec<DVec3>,
    normals: Vec<DVec3>,
    tangents: Vec<DVec4>,
    shares: Vec<f64>,
    weights: Weights,
    palettes: Vec<Palette>,
}

/// What joints do besides turning and moving.
#[derive(Clone, Copy, PartialEq)]
enum Joints {
    Rigid,
    Any,
}

fn rounded(v: DVec3) -> DVec3 {
    v.as_vec3().as_dvec3()
}

impl Case {
    fn random(seed: u64, vertices: usize, influences: usize, joints: u32, poses: usize, kind: Joints) -> Self {
        let mut random = Random(seed);
        let mut weights = Weights::default();
        let mut case = Self {
            positions: Vec::new(),
            normals: Vec::new(),
            tangents: Vec::new(),
            shares: Vec::new(),
            weights: Weights::default(),
            palettes: Vec::new(),
        };
        for v in 0..vertices {
            case.positions.push(rounded(random.in_cube() * 0.9 + DVec3::new(0.3, 1.0, -0.2)));
            case.normals.push(rounded(random.in_cube().normalize()));
            let side = if random.below(2) == 0 { 1.0 } else { -1.0 };
            case.tangents.push(rounded(random.in_cube().normalize()).extend(side));
            case.shares.push(f64::from((v % 5) as f32 / 4.0));
            // As many as there can be, or fewer.
            let count = if v % 3 == 0 { influences } else { 1 + random.below(influences as u64) as usize };
            let first = random.below(u64::from(joints)) as u32;
            let row =
                (0..count as u32).map(|i| Influence { joint: (first + 3 * i) % joints, weight: 0.02 + random.unit() });
            weights.push(row.collect::<Vec<_>>());
        }
        case.weights = weights;
        for _ in 0..poses {
            let matrix = |_| {
                let axis = random.in_cube().normalize();
                let turn = DQuat::from_axis_angle(axis, random.unit() * 2.6);
                let scale = match random.below(6) {
                    _ if kind == Joints::Rigid => DVec3::ONE,
                    0 => DVec3::new(-1.0, 1.0, 1.0),
                    1 => DVec3::new(1.0, 0.0, 1.2),
                    _ => DVec3::ONE + random.in_cube() * 0.4,
                };
                let shear = if kind == Joints::Any && random.below(3) == 0 { 0.4 } else { 0.0 };
                let shape =
                    DMat3::from_cols(DVec3::X, DVec3::new(shear, 1.0, 0.0), DVec3::Z) * DMat3::from_diagonal(scale);
                DAffine3 { matrix3: DMat3::from_quat(turn) * shape, translation: random.in_cube() }
            };
            let matrices: Vec<DAffine3> = (0..joints).map(matrix).collect();
            let centers = (0..joints).map(|_| random.in_cube()).collect();
            case.palettes.push(Palette { matrices, centers });
        }
        case
    }

    fn surface(&self) -> Surface<'_> {
        Surface { positions: &self.positions, normals: Some(&self.normals), tangents: Some(&self.tangents) }
    }

    fn method(&self, blend: Blend) -> Method<'_> {
        match blend {
            Blend::Linear => Method::Linear,
            Blend::DualQuaternion => Method::DualQuaternion,
            Blend::Mixed => Method::Mixed(&self.shares),
        }
    }
}

/// The weights that words hold, whole numbers as they are.
fn stored(words: &InfluenceWords, format: &SkinFormat) -> Weights {
    let joints: Vec<u32> = match format.joints {
        JointFormat::U32 => words.joints.clone(),
        JointFormat::U16 => words.joints.iter().flat_map(|w| [w & 0xffff, w >> 16]).collect(),
    };
    let weights: Vec<f64> = match format.weights {
        WeightFormat::F32 => words.weights.iter().map(|w| f64::from(f32::from_bits(*w))).collect(),
        WeightFormat::Unorm16 => words.weights.iter().flat_map(|w| [w & 0xffff, w >> 16]).map(f64::from).collect(),
        WeightFormat::Unorm8 => words.weights.iter().flat_map(|w| w.to_le_bytes()).map(f64::from).collect(),
    };
    let slots = words.sets as usize * 4;
    let mut all = Weights::default();
    for (joints, weights) in joints.chunks(slots).zip(weights.chunks(slots)) {
        let row = joints.iter().zip(weights).filter(|(_, weight)| **weight > 0.0);
        all.push(row.map(|(&joint, &weight)| Influence { joint, weight }));
    }
    all
}

/// Where attributes stand in a test.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Order {
    /// All of a vertex together with gaps, at an offset, in one buffer.
    Interleaved,
    /// Each attribute by itself.
    Apart,
}

/// Runs of words of each vertex, put behind each other with gaps between and an offset; and the place of each.
fn interleave(attributes: &[(Vec<u32>, u32)], vertices: usize) -> (Vec<u32>, Vec<Place>) {
    let (offset, gap) = (7u64, 2u32);
    let stride: u32 = attributes.iter().map(|(_, words)| words + gap).sum();
    let mut all = vec![UNTOUCHED; offset as usize + vertices * stride as usize];
    let (mut places, mut at) = (Vec::new(), offset);
    for (values, words) in attributes {
        for (v, value) in values.chunks(*words as usize).enumerate() {
            all[at as usize + v * stride as usize..][..value.len()].copy_from_slice(value);
        }
        places.push(Place { offset: at, stride });
        at += u64::from(words + gap);
    }
    (all, places)
}

fn floats<const N: usize>(values: impl IntoIterator<Item = [f64; N]>) -> Vec<u32> {
    values.into_iter().flatten().map(|x| (x as f32).to_bits()).collect()
}

/// The words of one pose of the target, and those between poses.
struct Posing {
    positions: Place,
    normals: Option<Place>,
    tangents: Option<Place>,
    pose_words: u64,
    words: usize,
}

impl Posing {
    fn new(order: Order, format: &SkinFormat, vertices: usize, poses: usize) -> Self {
        let v = vertices as u64;
        let (places, pose_words) = match order {
            Order::Interleaved => ([5, 9, 14].map(|offset| Place { offset, stride: 15 }), 15 * v + 11),
            Order::Apart => {
                let place = |offset, stride| Place { offset, stride };
                ([place(0, 3), place(3 * v, 3), place(6 * v, 4)], 10 * v)
            }
        };
        let [positions, normals, tangents] = places;
        Self {
            positions,
            normals: format.normals.then_some(normals),
            tangents: format.tangents.then_some(tangents),
            pose_words,
            words: (pose_words as usize) * poses + 32,
        }
    }
}

/// All words of the target after skinning, and how many dispatches it took.
fn skin_words(
    context: &Context,
    case: &Case,
    kernels: &SkinKernels,
    words: &InfluenceWords,
    order: Order,
    posing: &Posing,
) -> (Vec<u32>, usize) {
    let (device, queue, format) = (&context.device, &context.queue, kernels.format());
    let attributes = [
        (floats(case.positions.iter().map(|p| p.to_array())), 3),
        (floats(case.normals.iter().map(|n| n.to_array())), 3),
        (floats(case.tangents.iter().map(|t| t.to_array())), 4),
        (words.joints.clone(), format.joint_words()),
        (words.weights.clone(), format.weight_words()),
        (floats(case.shares.iter().map(|s| [*s])), 1),
    ];
    let (together, places) = interleave(&attributes, case.positions.len());
    let together = storage_with(device, "vertices", &together);
    let apart: Vec<wgpu::Buffer> =
        attributes.iter().map(|(values, _)| storage_with(device, "attribute", values)).collect();
    let stream = |k: usize| match order {
        Order::Interleaved => Stream { buffer: &together, place: places[k] },
        Order::Apart => Stream::tight(&apart[k], attributes[k].1),
    };
    let target = storage_with(device, "posed", &vec![UNTOUCHED; posing.words]);
    catch_blocking(device, "test", || {
        let joints = case.palettes[0].len() as u32;
        let mut palettes = Palettes::new(device, format.blend, joints, case.palettes.len() as u32)?;
        for (pose, palette) in (0..).zip(&case.palettes) {
            palettes.write(queue, pose, palette)?;
        }
        let source = Source {
            vertices: case.positions.len() as u32,
            positions: stream(0),
            normals: format.normals.then(|| stream(1)),
            tangents: format.tangents.then(|| stream(2)),
            joints: stream(3),
            weights: stream(4),
            shares: (format.blend == Blend::Mixed).then(|| stream(5)),
        };
        let job = kernels.bind(
            device,
            source,
            &palettes,
            Target {
                buffer: &target,
                pose_words: posing.pose_words,
                positions: posing.positions,
                normals: posing.normals,
                tangents: posing.tangents,
            },
        )?;
        let mut encoder = device.create_command_encoder(&Default::default());
        job.record(kernels, &mut encoder)?;
        let read = Readback::record(device, &mut encoder, &target, 0, target.size());
        queue.submit([encoder.finish()]);
        Ok((read.read_blocking::<u32>()?, job.dispatches()))
    })
    .expect("skins")
}

/// The posed surfaces in the target's words; every other word must be as it was.
fn unpack(words: &[u32], posing: &Posing, vertices: usize, poses: usize) -> Vec<Posed> {
    let mut seen = vec![false; words.len()];
    let mut take = |place: Place, pose: usize, v: usize, count: usize| -> Vec<f64> {
        let at = pose * posing.pose_words as usize + place.offset as usize + v * place.stride as usize;
        seen[at..at + count].fill(true);
        words[at..at + count].iter().map(|w| f64::from(f32::from_bits(*w))).collect()
    };
    let mut all = Vec::new();
    for pose in 0..poses {
        let mut three =
            |place: Place| (0..vertices).map(|v| DVec3::from_slice(&take(place, pose, v, 3))).collect::<Vec<_>>();
        let (positions, normals) = (three(posing.positions), posing.normals.map(&mut three));
        let tangents =
            posing.tangents.map(|t| (0..vertices).map(|v| DVec4::from_slice(&take(t, pose, v, 4))).collect());
        all.push(Posed { positions, normals, tangents });
    }
    let spared = words.iter().zip(&seen).filter(|(_, seen)| !**seen);
    assert!(spared.clone().count() >= 32);
    assert!(spared.clone().all(|(word, _)| *word == UNTOUCHED), "words between attributes were written");
    all
}

/// The worst of a comparison, as shares of what is allowed.
#[derive(Debug, Default)]
struct Worst {
    position: f64,
    direction: f64,
    /// Vertices and directions that were compared, and those that are not defined.
    compared: usize,
    open: usize,
}

impl Worst {
    fn is_close(&self) -> bool {
        self.position <= 1.0 && self.direction <= 1.0
    }
}

/// The blend of matrices with weights that need not add up to 1.
fn blended(row: &[Influence], matrices: &[DAffine3]) -> DMat3 {
    let total: f64 = row.iter().map(|i| i.weight).sum();
    row.iter().fold(DMat3::ZERO, |sum, i| sum + matrices[i.joint as usize].matrix3 * (i.weight / total))
}

/// Whether rounding leaves a normal and a tangent their direction, and the normal its side.
fn defined(m: &DMat3, normal: DVec3, tangent: DVec3) -> [bool; 2] {
    let size = m.x_axis.length_squared() + m.y_axis.length_squared() + m.z_axis.length_squared();
    let cofactors = [m.y_axis.cross(m.z_axis), m.z_axis.cross(m.x_axis), m.x_axis.cross(m.y_axis)];
    let moved = cofactors[0] * normal.x + cofactors[1] * normal.y + cofactors[2] * normal.z;
    let sided = m.determinant().abs() > 1e-5 * size.powf(1.5);
    [moved.length() > DEFINED * size && sided, (*m * tangent).length() > DEFINED * size.sqrt()]
}

fn angle(a: DVec3, b: DVec3) -> f64 {
    a.cross(b).length().atan2(a.dot(b))
}

/// Compares poses with the reference on the same weights.
fn compare(case: &Case, weights: &Weights, blend: Blend, found: &[Posed]) -> Worst {
    let mut worst = Worst::default();
    let (low, high) =
        case.positions.iter().fold((DVec3::INFINITY, DVec3::NEG_INFINITY), |(l, h), p| (l.min(*p), h.max(*p)));
    let diagonal = (high - low).length();
    let take = |slot: &mut f64, off: f64| *slot = if off.is_nan() { f64::INFINITY } else { slot.max(off) };
    for (palette, found) in case.palettes.iter().zip(found) {
        let expected = reference::skin(weights, palette, case.method(blend), case.surface()).expect("skins");
        let splits: Vec<_> = palette.matrices.iter().zip(&palette.centers).map(|(m, c)| split(m, *c)).collect();
        let stretches: Vec<DAffine3> = splits.iter().map(|s| s.stretch).collect();
        for v in 0..case.positions.len() {
            let row = weights.of(v);
            let pivot = row
                .iter()
                .rev()
                .max_by(|a, b| a.weight.total_cmp(&b.weight))
                .map(|i| splits[i.joint as usize].rigid.real);
            let undecided =
                |i: &Influence| pivot.is_some_and(|p| splits[i.joint as usize].rigid.real.dot(p).abs() < 1e-6);
            if blend != Blend::Linear && row.iter().any(undecided) {
                worst.open += 1;
                continue;
            }
            let (at, place) = (found.positions[v], expected.positions[v]);
            let size = place.length().max(case.positions[v].length()).max(diagonal);
            take(&mut worst.position, at.distance(place) / size / BOUND);
            worst.compared += 1;
            let (normal, tangent) = (case.normals[v], case.tangents[v].truncate());
            let mut clear = [true; 2];
            for (used, matrices) in
                [(blend != Blend::DualQuaternion, &palette.matrices), (blend != Blend::Linear, &stretches)]
            {
                if used && !row.is_empty() {
                    let d = defined(&blended(row, matrices), normal, tangent);
                    clear = [clear[0] && d[0], clear[1] && d[1]];
                }
            }
            if blend == Blend::Mixed {
                // Where the two methods point away from each other, the mix has no direction.
                let [a, b] = [Method::Linear, Method::DualQuaternion].map(|m| {
                    let one = one_vertex(case, v, row);
                    reference::skin(&one.0, palette, m, one.1.surface()).expect("skins")
                });
                let share = case.shares[v];
                let left = |a: DVec3, b: DVec3| a.lerp(b, share).length() > 0.1;
                let [(na, nb), (ta, tb)] = [
                    (a.normals.as_ref().expect("normals")[0], b.normals.as_ref().expect("normals")[0]),
                    (
                        a.tangents.as_ref().expect("tangents")[0].truncate(),
                        b.tangents.as_ref().expect("tangents")[0].truncate(),
                    ),
                ];
                clear = [clear[0] && left(na, nb), clear[1] && left(ta, tb)];
            }
            if let (Some(a), Some(b)) = (&found.normals, &expected.normals) {
                if clear[0] {
                    take(&mut worst.direction, angle(a[v], b[v]) / ANGLE)
                } else {
                    worst.open += 1
                }
                // Whatever its direction, a normal has unit length.
                take(&mut worst.direction, (a[v].length() - 1.0).abs() / 1e-6);
            }
            if let (Some(a), Some(b)) = (&found.tangents, &expected.tangents) {
                let off = angle(a[v].truncate(), b[v].truncate());
                if clear[1] {
                    take(&mut worst.direction, off / ANGLE)
                } else {
                    worst.open += 1
                }
                take(&mut worst.direction, if a[v].w == case.tangents[v].w { 0.0 } else { f64::INFINITY });
            }
        }
    }
    worst
}

/// A vertex of a case by itself.
fn one_vertex(case: &Case, v: usize, row: &[Influence]) -> (Weights, Case) {
    let mut weights = Weights::default();
    weights.push(row.iter().copied());
    let one = Case {
        positions: vec![case.positions[v]],
        normals: vec![case.normals[v]],
        tangents: vec![case.tangents[v]],
        shares: vec![case.shares[v]],
        weights: Weights::default(),
        palettes: Vec::new(),
    };
    (weights, one)
}

fn kernels(context: &Context, format: SkinFormat, wgsl: &[&str]) -> SkinKernels {
    catch_blocking(&context.device, "test", || SkinKernels::from_wgsl(&context.device, format, wgsl)).expect("a kernel")
}

fn skinned(context: &Context, case: &Case, kernels: &SkinKernels, order: Order) -> (Weights, Vec<Posed>) {
    let format = kernels.format();
    let words = influence_words(&case.weights, format.joints, format.weights).expect("packs");
    assert_eq!(words.sets, format.sets);
    let posing = Posing::new(order, &format, case.positions.len(), case.palettes.len());
    let (found, _) = skin_words(context, case, kernels, &words, order, &posing);
    let posed = unpack(&found, &posing, case.positions.len(), case.palettes.len());
    (stored(&words, &format), posed)
}

fn worst(context: &Context, case: &Case, kernels: &SkinKernels, order: Order) -> Worst {
    let (weights, posed) = skinned(context, case, kernels, order);
    compare(case, &weights, kernels.format().blend, &posed)
}

const BLENDS: [Blend; 3] = [Blend::Linear, Blend::DualQuaternion, Blend::Mixed];

fn every_format_equals_f64(context: &Context) {
    let cases = [4, 8].map(|influences| Case::random(11, 301, influences, 29, 7, Joints::Rigid));
    // Every format of joints with every one of weights, sets and methods; orders and attributes take turns.
    let mut turn = 0;
    for (sets, case) in (1..).zip(&cases) {
        for blend in BLENDS {
            for joints in [JointFormat::U32, JointFormat::U16] {
                for weights in [WeightFormat::F32, WeightFormat::Unorm16, WeightFormat::Unorm8] {
                    turn += 1;
                    let (normals, tangents) = (turn % 4 != 0, turn % 3 != 0);
                    let format = SkinFormat { blend, sets, joints, weights, normals, tangents };
                    let order = if turn % 2 == 0 { Order::Interleaved } else { Order::Apart };
                    // One pose an invocation, some, more than there are.
                    let kernels = kernels(context, format, &WGSL).with_poses_each([1, 3, 16][turn % 3]);
                    let worst = worst(context, case, &kernels, order);
                    assert!(worst.is_close(), "{format:?} {order:?}: {worst:?}");
                    assert!(worst.position > 0.0, "f32 cannot be exact");
                    // Four joints that turn at random rarely cancel out.
                    assert!(worst.compared > 2000 && worst.open < worst.compared / 5, "{worst:?}");
                }
            }
        }
    }
}

fn whole_format(blend: Blend) -> SkinFormat {
    SkinFormat { blend, normals: true, tangents: true, ..SkinFormat::default() }
}

fn scale_mirror_shear_and_flat_matrices_equal_f64(context: &Context) {
    let case = Case::random(5, 301, 4, 29, 7, Joints::Any);
    for blend in BLENDS {
        let worst = worst(context, &case, &kernels(context, whole_format(blend), &WGSL), Order::Interleaved);
        assert!(worst.is_close(), "{blend:?}: {worst:?}");
        assert!(worst.compared > 2000 && worst.open < worst.compared / 2, "{worst:?}");
    }
    // One joint, whatever its matrix, does what the matrix says, by either method.
    let mut single = Case::random(6, 60, 1, 29, 7, Joints::Any);
    single.positions.truncate(60);
    for blend in BLENDS {
        let (_, posed) = skinned(context, &single, &kernels(context, whole_format(blend), &WGSL), Order::Interleaved);
        for (palette, posed) in single.palettes.iter().zip(&posed) {
            for (v, p) in single.positions.iter().enumerate() {
                let place = palette.matrices[single.weights.of(v)[0].joint as usize].transform_point3(*p);
                // Points lie within 3 of the origin, and so do centres and shifts.
                assert!(posed.positions[v].distance(place) <= BOUND * 3.0, "{blend:?} {v}");
            }
        }
    }
}

/// A ring about x.
fn ring(weights: &[(u32, f64)], palettes: Vec<Palette>) -> Case {
    let mut case = Case::random(1, 8, 1, 1, 0, Joints::Rigid);
    let point = |i: usize| rounded(DQuat::from_rotation_x(i as f64 * 0.7) * DVec3::new(0.4, 1.5, 0.0));
    case.positions = (0..8).map(point).collect();
    case.weights = Weights::default();
    for _ in 0..8 {
        case.weights.push(weights.iter().map(|&(joint, weight)| Influence { joint, weight }));
    }
    case.palettes = palettes;
    case
}

fn one_joint_is_a_rigid_motion(context: &Context) {
    let rotation = DQuat::from_axis_angle(DVec3::new(1., 2., -3.).normalize(), 2.0);
    let motion = DAffine3::from_rotation_translation(rotation, DVec3::new(0.5, -2., 1.));
    let case = ring(&[(1, 0.3)], vec![Palette::new(vec![DAffine3::IDENTITY, motion])]);
    for blend in BLENDS {
        let (_, posed) = skinned(context, &case, &kernels(context, whole_format(blend), &WGSL), Order::Apart);
        for v in 0..8 {
            // 32 roundings of numbers below 4.
            let close = 32.0 * 4.0 * 2f64.powi(-24);
            assert!(posed[0].positions[v].distance(motion.transform_point3(case.positions[v])) < close);
            assert!(posed[0].positions[v].distance(case.positions[v]) > 0.5);
            let (normals, tangents) = (posed[0].normals.as_ref().unwrap(), posed[0].tangents.as_ref().unwrap());
            assert!(angle(normals[v], rotation * case.normals[v]) < 1e-6);
            assert!(angle(tangents[v].truncate(), rotation * case.tangents[v].truncate()) < 1e-6);
            assert_eq!(tangents[v].w, case.tangents[v].w);
        }
    }
}

fn half_a_half_turn(context: &Context) {
    // The quaternions' dot product is exactly 0: the term must not be lost.
    let twist = DAffine3::from_mat3(DMat3::from_diagonal(DVec3::new(1., -1., -1.)));
    let palette = Palette::new(vec![DAffine3::IDENTITY, twist]);
    let close = 16.0 * 1.5 * 2f64.powi(-24);
    for weights in [[(0, 0.5), (1, 0.5)], [(1, 0.5), (0, 0.5)]] {
        let case = ring(&weights, vec![palette.clone()]);
        let posed = |blend| skinned(context, &case, &kernels(context, whole_format(blend), &WGSL), Order::Apart).1;
        for p in &posed(Blend::Linear)[0].positions {
            assert!(p.distance(DVec3::new(0.4, 0.0, 0.0)) < close, "collapses to the axis: {p}");
        }
        for (p, rest) in posed(Blend::DualQuaternion)[0].positions.iter().zip(&case.positions) {
            assert!((p.y.hypot(p.z) - 1.5).abs() < close && (p.x - 0.4).abs() < close, "keeps its radius: {p}");
            assert!(p.distance(*rest) > 1.0, "a quarter turn");
        }
    }
}

fn both_signs_of_a_quaternion_are_one_motion(context: &Context) {
    let (device, queue) = (&context.device, &context.queue);
    let case = Case::random(21, 97, 4, 29, 1, Joints::Rigid);
    let format = SkinFormat { blend: Blend::DualQuaternion, normals: false, ..SkinFormat::default() };
    let kernels = kernels(context, format, &WGSL);
    let words = influence_words(&case.weights, format.joints, format.weights).expect("packs");
    let [positions, joints, weights] =
        [floats(case.positions.iter().map(|p| p.to_array())), words.joints.clone(), words.weights.clone()]
            .map(|values| storage_with(device, "attribute", &values));
    let run = |side: &dyn Fn(usize) -> f32, dual: f32| -> Vec<u32> {
        catch_blocking(device, "test", || {
            let palettes = Palettes::new(device, format.blend, 29, 1)?;
            let mut vectors = vec![[0f32; 4]];
            for (joint, m) in case.palettes[0].matrices.iter().enumerate() {
                let rigid = split(m, DVec3::ZERO).rigid;
                vectors.push(rigid.real.to_array().map(|x| x as f32 * side(joint)));
                vectors.push(rigid.dual.to_array().map(|x| x as f32 * side(joint) * dual));
            }
            queue.write_buffer(palettes.buffer(), 0, bytemuck::cast_slice(&vectors));
            let target = storage(device, "posed", 97 * 12);
            let source = Source {
                vertices: 97,
                positions: Stream::tight(&positions, 3),
                normals: None,
                tangents: None,
                joints: Stream::tight(&joints, 4),
                weights: Stream::tight(&weights, 4),
                shares: None,
            };
            let place = Place { offset: 0, stride: 3 };
            let target_of = Target { buffer: &target, pose_words: 0, positions: place, normals: None, tangents: None };
            let job = kernels.bind(device, source, &palettes, target_of)?;
            let mut encoder = device.create_command_encoder(&Default::default());
            job.record(&kernels, &mut encoder)?;
            let read = Readback::record(device, &mut encoder, &target, 0, target.size());
            queue.submit([encoder.finish()]);
            read.read_blocking()
        })
        .expect("skins")
    };
    let plain = run(&|_| 1.0, 1.0);
    // Signs go through sums and products unchanged, so not a bit may differ.
    assert_eq!(run(&|joint: usize| if joint.is_multiple_of(2) { -1.0 } else { 1.0 }, 1.0), plain);
    assert_eq!(run(&|_| -1.0, 1.0), plain);
    assert_ne!(run(&|_| 1.0, -1.0), plain, "half a change of sign is another motion");
}

fn vertices_without_weights_stay(context: &Context) {
    let case = Case::random(31, 64, 4, 29, 3, Joints::Any);
    for blend in BLENDS {
        let format = whole_format(blend);
        let mut words = influence_words(&case.weights, format.joints, format.weights).expect("packs");
        words.weights[..32 * 4].fill(0);
        // Numbers of no joint are harmless, whether they have weight or not.
        words.joints[4] = u32::MAX;
        words.joints[4 * 40 + 3] = 1_000_000;
        words.weights[4 * 40 + 3] = 0;
        let posing = Posing::new(Order::Interleaved, &format, 64, 3);
        let kernels = kernels(context, format, &WGSL);
        let (found, _) = skin_words(context, &case, &kernels, &words, Order::Interleaved, &posing);
        for posed in unpack(&found, &posing, 64, 3) {
            // To the bit, by every method; directions are of unit length already, but for rounding.
            assert_eq!(posed.positions[..32], case.positions[..32], "{blend:?}");
            assert_ne!(posed.positions[32..], case.positions[32..]);
            assert!(posed.positions.iter().all(|p| p.is_finite()));
            let normals = posed.normals.unwrap();
            assert!((0..32).all(|v| normals[v].distance(case.normals[v]) < 1e-6));
        }
    }
}

fn windows_change_nothing(context: &Context) {
    let case = Case::random(41, 301, 4, 29, 7, Joints::Any);
    for (blend, order) in
        [(Blend::Linear, Order::Interleaved), (Blend::Mixed, Order::Interleaved), (Blend::DualQuaternion, Order::Apart)]
    {
        let format = whole_format(blend);
        let words = influence_words(&case.weights, format.joints, format.weights).expect("packs");
        let posing = Posing::new(order, &format, 301, 7);
        let run = |bytes: u64| {
            let kernels = kernels(context, format, &WGSL).with_max_binding(bytes);
            skin_words(context, &case, &kernels, &words, order, &posing)
        };
        let (whole, dispatches) = run(u64::MAX);
        assert_eq!(dispatches, 1);
        // A pose is 18 KB interleaved and 12 KB apart, the vertices are 33 KB interleaved.
        let (poses, pose_windows) = run(64 << 10);
        assert_eq!(poses, whole, "{blend:?}");
        assert!((2..=4).contains(&pose_windows), "{pose_windows} windows of poses");
        if order == Order::Interleaved {
            let (vertices, vertex_windows) = run(8 << 10);
            assert_eq!(vertices, whole, "{blend:?}");
            assert!(vertex_windows > 20, "{vertex_windows} windows of vertices");
        }
    }
}

fn more_workgroups_than_one_row_holds(context: &Context) {
    let (device, queue) = (&context.device, &context.queue);
    let (vertices, poses) = (70u32, 61_000u32);
    assert!(u64::from(vertices) * u64::from(poses) > 65_535 * 64);
    let format = SkinFormat { normals: false, ..SkinFormat::default() };
    let kernels = kernels(context, format, &WGSL).with_poses_each(1);
    // A program's own palettes: shifts by the number of the pose, which f32 holds exactly.
    let rows: Vec<[[f32; 4]; 3]> =
        (0..poses).map(|k| [[1., 0., 0., k as f32], [0., 1., 0., 0.5], [0., 0., 1., 0.]]).collect();
    let points: Vec<[f32; 3]> = (0..vertices).map(|v| [0.0, v as f32, -1.0]).collect();
    let found: Vec<[f32; 3]> = catch_blocking(device, "test", || {
        let palettes = Palettes::new(device, format.blend, 1, poses)?;
        queue.write_buffer(palettes.buffer(), 0, bytemuck::cast_slice(&rows));
        let positions = storage_with(device, "positions", &points);
        let joints = storage(device, "joints", u64::from(vertices) * 16);
        let weights = storage_with(device, "weights", &vec![[1f32, 0., 0., 0.]; vertices as usize]);
        let target = storage(device, "posed", u64::from(vertices * poses) * 12);
        let source = Source {
            vertices,
            positions: Stream::tight(&positions, 3),
            normals: None,
            tangents: None,
            joints: Stream::tight(&joints, 4),
            weights: Stream::tight(&weights, 4),
            shares: None,
        };
        let place = Place { offset: 0, stride: 3 };
        let pose_words = u64::from(vertices) * 3;
        let target_of = Target { buffer: &target, pose_words, positions: place, normals: None, tangents: None };
        let job = kernels.bind(device, source, &palettes, target_of)?;
        assert_eq!(job.dispatches(), 1);
        let mut encoder = device.create_command_encoder(&Default::default());
        job.record(&kernels, &mut encoder)?;
        let read = Readback::record(device, &mut encoder, &target, 0, target.size());
        queue.submit([encoder.finish()]);
        read.read_blocking()
    })
    .expect("skins");
    for (k, pose) in found.chunks(vertices as usize).enumerate() {
        for (v, p) in pose.iter().enumerate() {
            assert_eq!(*p, [k as f32, v as f32 + 0.5, -1.0], "pose {k}, vertex {v}");
        }
    }
}

fn faults_are_named(context: &Context) {
    let (device, queue) = (&context.device, &context.queue);
    let format = SkinFormat::default();
    let kernel = kernels(context, format, &WGSL);
    assert!(matches!(
        SkinKernels::from_wgsl(device, SkinFormat { sets: 3, ..format }, &WGSL),
        Err(Error::Parameter { name: "sets of four influences", .. })
    ));
    let buffers = [12, 12, 16, 16, 24].map(|bytes| storage(device, "test", bytes * 10));
    let [positions, normals, joints, weights, posed] = &buffers;
    let source = Source {
        vertices: 10,
        positions: Stream::tight(positions, 3),
        normals: Some(Stream::tight(normals, 3)),
        tangents: None,
        joints: Stream::tight(joints, 4),
        weights: Stream::tight(weights, 4),
        shares: None,
    };
    let place = |offset| Place { offset, stride: 6 };
    let target = Target { buffer: posed, pose_words: 0, positions: place(0), normals: Some(place(3)), tangents: None };
    let mut palettes = Palettes::new(device, Blend::Linear, 2, 1).expect("palettes");
    let bind = |source, target| kernel.bind(device, source, &palettes, target).map(|job| job.dispatches());
    assert_eq!(bind(source, target).expect("fits"), 1);
    assert_eq!(bind(Source { vertices: 0, ..source }, target).expect("nothing to do"), 0);
    let text = |result: skinbind::Result<usize>| result.expect_err("a fault").to_string();
    assert!(text(bind(Source { normals: None, ..source }, target)).contains("normals of the source is missing"));
    assert!(text(bind(source, Target { normals: None, ..target })).contains("normals of the target is missing"));
    assert!(text(bind(Source { shares: Some(source.positions), ..source }, target)).contains("shares"));
    assert!(text(bind(Source { vertices: 11, ..source }, target)).contains("buffer of the positions (11 vertices)"));
    assert!(text(bind(source, Target { normals: Some(place(4)), ..target })).contains("buffer of the posed vertices"));
    assert!(text(bind(source, Target { positions: place(u64::MAX), ..target })).contains("posed vertices"));
    assert!(text(bind(Source { joints: Stream::tight(joints, 2), ..source }, target)).contains("joints"));
    assert!(text(bind(source, Target { buffer: positions, ..target })).contains("target"));
    let dual = Palettes::new(device, Blend::DualQuaternion, 2, 1).expect("palettes");
    assert!(text(kernel.bind(device, source, &dual, target).map(|job| job.dispatches())).contains("method"));
    // Attributes that lie too far apart for one binding.
    let far = storage(device, "test", 8 << 10);
    let spread = Target { buffer: &far, normals: Some(Place { offset: 1900, stride: 6 }), ..target };
    let narrow = kernels(context, format, &WGSL).with_max_binding(4 << 10);
    let result = narrow.bind(device, source, &palettes, spread).map(|job| job.dispatches());
    assert!(matches!(&result, Err(Error::Limit { what, .. }) if what.contains("posed vertices")), "{result:?}");

    let still = Palette::new(vec![DAffine3::IDENTITY; 2]);
    assert!(palettes.write(queue, 0, &still).is_ok());
    assert!(matches!(palettes.write(queue, 1, &still), Err(Error::Parameter { name: "pose", .. })));
    let three = Palette::new(vec![DAffine3::IDENTITY; 3]);
    assert!(matches!(palettes.write(queue, 0, &three), Err(Error::Joints { found: 3, .. })));
    let huge = Palette::new(vec![DAffine3::IDENTITY, DAffine3::from_scale(DVec3::splat(1e39))]);
    assert!(palettes.write(queue, 0, &huge).expect_err("not f32").to_string().contains("joint 1"));
    assert!(Palettes::new(device, Blend::Linear, 0, 1).is_err() && Palettes::new(device, Blend::Linear, 1, 0).is_err());
    assert!(matches!(Palettes::new(device, Blend::Linear, u32::MAX, u32::MAX), Err(Error::Limit { .. })));
    let mut nine = Weights::default();
    nine.push((0..9).map(|joint| Influence { joint, weight: 1.0 }));
    assert!(matches!(influence_words(&nine, JointFormat::U16, WeightFormat::F32), Err(Error::Limit { .. })));
}

fn broken_shaders_are_found(context: &Context) {
    let case = Case::random(51, 101, 8, 29, 3, Joints::Any);
    let format = |blend, weights| SkinFormat {
        blend,
        sets: 2,
        joints: JointFormat::U16,
        weights,
        normals: true,
        tangents: true,
    };
    use Blend::{DualQuaternion, Linear, Mixed};
    use WeightFormat::{F32, Unorm8, Unorm16};
    for (blend, weights, from, to) in [
        (Linear, F32, "let at = first + 3u * joint", "let at = first + 3u * (joint ^ 1u)"),
        (Linear, F32, "weight * palette[at + 2u]", "weight * palette[at + 1u]"),
        (Linear, F32, "i.weights_a /= total", "i.weights_a *= 0.9999"),
        (Linear, F32, "load_joints(joints + JOINT_BITS / 8u)", "load_joints(joints)"),
        (Linear, F32, "vec4(low & 0xffffu, low >> 16u", "vec4(low & 0xffffu, high >> 16u"),
        (Linear, Unorm8, "vec4(0u, 8u, 16u, 24u)", "vec4(0u, 8u, 24u, 16u)"),
        (Linear, Unorm16, "let second = weight_words[at + 1u]", "let second = weight_words[at]"),
        (Linear, F32, "dot(m.x.xyz, yz) < 0.0", "dot(m.x.xyz, yz) > 0.0"),
        (Linear, F32, "length(t), t), v.tangent.w)", "length(t), t), -v.tangent.w)"),
        (Linear, F32, "let first = pose * params.posed_pose", "let first = (pose ^ 1u) * params.posed_pose"),
        (Linear, F32, "return normalize(moved / largest)", "return moved / largest"),
        (DualQuaternion, F32, "dot(real, pivot) < 0.0", "dot(real, pivot) < -0.5"),
        (DualQuaternion, F32, "side * palette[at + 1u]", "side * palette[at]"),
        (DualQuaternion, F32, "weight > best.weight", "weight < best.weight"),
        (DualQuaternion, F32, "palette[pose_palette].x > 0.0", "palette[pose_palette].x < 0.0"),
        (DualQuaternion, F32, "m.dual.w * r", "m.dual.w * m.dual.xyz"),
        (DualQuaternion, F32, "cross(r, v) + m.real.w * v", "cross(r, v) - m.real.w * v"),
        (Mixed, F32, "mix(a.position, b.position, share)", "mix(b.position, a.position, share)"),
        (Mixed, F32, "pose_palette + 1u), v)", "pose_palette), v)"),
    ] {
        let run =
            |wgsl: &[&str]| worst(context, &case, &kernels(context, format(blend, weights), wgsl), Order::Interleaved);
        let text = changed(&WGSL, from, to);
        let off = run(&parts(&text));
        assert!(!off.is_close(), "{from} -> {to} went unnoticed: {off:?}");
    }
    for (blend, weights) in [(Linear, F32), (Linear, Unorm8), (Linear, Unorm16), (DualQuaternion, F32), (Mixed, F32)] {
        let right = worst(context, &case, &kernels(context, format(blend, weights), &WGSL), Order::Interleaved);
        assert!(right.is_close(), "{blend:?} {weights:?}: {right:?}");
    }
}

fn changed_input_is_found(context: &Context) {
    let case = Case::random(61, 101, 4, 29, 3, Joints::Rigid);
    for blend in [Blend::Linear, Blend::DualQuaternion] {
        let kernels = kernels(context, whole_format(blend), &WGSL);
        let (weights, posed) = skinned(context, &case, &kernels, Order::Apart);
        assert!(compare(&case, &weights, blend, &posed).is_close());
        let mut moved = Case::random(61, 101, 4, 29, 3, Joints::Rigid);
        moved.positions[7].x += 1e-4;
        assert!(!compare(&moved, &weights, blend, &posed).is_close());
        let mut turned = Case::random(61, 101, 4, 29, 3, Joints::Rigid);
        turned.normals[50] = (turned.normals[50] + DVec3::splat(1e-3)).normalize();
        assert!(!compare(&turned, &weights, blend, &posed).is_close());
        let mut other = Case::random(61, 101, 4, 29, 3, Joints::Rigid);
        for matrix in &mut other.palettes[2].matrices {
            matrix.translation.y += 1e-4;
        }
        assert!(!compare(&other, &weights, blend, &posed).is_close());
    }
}
