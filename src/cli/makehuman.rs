//! `skinbind makehuman`: a MakeHuman character from its own files, rigged, dressed and posed.

use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde::Serialize;
use skinbind::bind::Seconds;
use skinbind::io::bvh::Bvh;
use skinbind::io::export::{self, Character, Format};
use skinbind::io::gltf::{Document, RotationTrack, TranslationTrack};
use skinbind::io::makehuman::pose::Driver;
use skinbind::io::makehuman::{Base, Proxy, Rig, reference, weights};
use skinbind::io::obj::{self, Parsed};
use skinbind::io::output::{self, Outputs};
use skinbind::io::texture::{Split, Texture};
use skinbind::io::weights_file;
use skinbind::model::{Code, Mesh, Pose, Warning, Weights};
use skinbind::{Error, Result};

use super::bind::{write_document, write_exported};
use super::input::{self, Kind};
use super::{Context, screen};

const EXAMPLES: &str = "\
Examples:
  skinbind makehuman base.obj --rig default.mhskel --weights default_weights.mhw -o body.glb
  skinbind makehuman base.obj --rig game_engine.mhskel --master-rig default.mhskel \\
      --weights default_weights.mhw --pose run01.bvh \\
      --proxy shoes01.mhclo --proxy-mesh shoes01.obj -o runner.glb
  skinbind makehuman base.obj --rig default.mhskel --weights default_weights.mhw \\
      --proxy suit.mhclo --proxy-mesh suit.obj -o suit.mhw";

/// MakeHuman's unit is the decimetre.
const METERS: f64 = 0.1;

/// Build a character from MakeHuman's files.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The base mesh with its helpers: .obj.
    base: PathBuf,
    /// The rig: .mhskel, or MPFB's rig.*.json.
    #[arg(long, value_name = "FILE")]
    rig: PathBuf,
    /// Weights for the base mesh: .mhw, .jsonw, or MPFB's weights.*.json. Of the master rig, where one is given.
    #[arg(long, value_name = "FILE")]
    weights: PathBuf,
    /// The rig that weights and poses were made for, where that is not --rig; they go through its references.
    #[arg(long, value_name = "FILE")]
    master_rig: Option<PathBuf>,
    /// Weights made for --rig itself, in place of those derived from the master rig's.
    #[arg(long, value_name = "FILE", requires = "master_rig")]
    rig_weights: Option<PathBuf>,
    /// Clothes or another proxy: .mhclo or .proxy. May be repeated, each with its --proxy-mesh.
    #[arg(long, value_name = "FILE")]
    proxy: Vec<PathBuf>,
    /// The mesh of the proxy of the same place in the line: .obj.
    #[arg(long, value_name = "FILE")]
    proxy_mesh: Vec<PathBuf>,
    /// Leave out faces of the body that the proxies say they cover.
    #[arg(long)]
    hide_covered: bool,
    /// A pose or a motion: .bvh. It becomes an animation.
    #[arg(long, value_name = "FILE")]
    pose: Option<PathBuf>,
    /// Take the pose at this time in seconds only.
    #[arg(long, value_name = "T", requires = "pose")]
    time: Option<f64>,
    /// Which bones the joints of the pose mean, where their names differ: .json, {"joint": "bone"}.
    #[arg(long, value_name = "FILE", requires = "pose")]
    pose_names: Option<PathBuf>,
    /// Bring limbs to where they are in the pose file, for files whose rest pose is another than the rig's.
    #[arg(long, requires = "pose")]
    align_pose: bool,
    /// Most bones that move one vertex; all that the weights have where left out.
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u64).range(1..=64))]
    max_influences: Option<u64>,
    /// Where to write: .glb, .gltf, .dae, .mesh.xml or .md5mesh for the character, .mhw or .json for weights (of the proxy,
    /// where there is one). May be repeated.
    #[arg(short, long, value_name = "FILE", required = true)]
    output: Vec<PathBuf>,
    /// Overwrite outputs that are there already.
    #[arg(long)]
    force: bool,
    /// Write the report as JSON.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Print the report as JSON.
    #[arg(long)]
    json: bool,
    /// Print neither warnings nor what was written.
    #[arg(short, long)]
    quiet: bool,
}

/// What the run did.
#[derive(Debug, Default, Serialize)]
struct Report {
    /// Of the base mesh, helpers included.
    vertices: usize,
    bones: usize,
    /// What became of the weights of the base mesh.
    weights: weights::Report,
    proxies: Vec<ProxyReport>,
    /// The largest share of a vertex' weight that the cap cut off.
    largest_pruned_share: f64,
    /// How many bones the pose turns.
    #[serde(skip_serializing_if = "Option::is_none")]
    posed_bones: Option<usize>,
    seconds: Seconds,
    peak_bytes: u64,
    warnings: Vec<Warning>,
}

#[derive(Debug, Serialize)]
struct ProxyReport {
    name: String,
    vertices: usize,
    weights: weights::Report,
}

/// A mesh of the character.
struct Piece {
    name: String,
    mesh: Mesh,
    weights: Weights,
    texture: Texture,
}

/// The rigs of a run: the master is the rig itself where none other is given.
struct Rigs {
    rig: Rig,
    master: Option<Rig>,
}

impl Rigs {
    fn master(&self) -> &Rig {
        self.master.as_ref().unwrap_or(&self.rig)
    }
}

/// Runs the command.
pub fn run(args: &Args, context: &Context) -> Result<()> {
    check(args)?;
    output::check(&targets(args)?, args.force)?;
    let clock = Instant::now();
    let mut report = Report::default();
    let base = Base::read(&args.base)?;
    let master = args.master_rig.as_ref().map(|path| Rig::read(path, &base)).transpose()?;
    let rigs = Rigs { rig: Rig::read(&args.rig, &base)?, master };
    let body = body_weights(args, &base, &rigs, &mut report)?;
    context.check_cancelled()?;
    let proxies = read_proxies(args, &base, &rigs, &body, &mut report)?;
    let driver = args.pose.as_ref().map(|path| driver(path, args, &rigs, &mut report)).transpose()?;
    report.vertices = base.vertices();
    report.bones = rigs.rig.skeleton.len();
    report.seconds.add("read", clock.elapsed().as_secs_f64());
    context.check_cancelled()?;

    let clock = Instant::now();
    let mut outputs = Outputs::new(args.force);
    write_all(args, &base, &rigs.rig, &body, &proxies, driver.as_ref(), &mut report, &mut outputs)?;
    report.seconds.add("write", clock.elapsed().as_secs_f64());
    report.peak_bytes = (context.peak_bytes)();
    if let Some(path) = &args.report {
        let text = screen::json(&report)?;
        outputs.write(path, |out| out.write_all(text.as_bytes()))?;
    }
    context.check_cancelled()?;
    outputs.commit()?;
    tell(args, &report)
}

/// Faults of the command line that clap can not see.
fn check(args: &Args) -> Result<()> {
    let fault = |name, value: String, allowed| Err(Error::Parameter { name, value, allowed });
    if args.proxy.len() != args.proxy_mesh.len() {
        let value = format!("given {} times", args.proxy_mesh.len());
        return fault("proxy-mesh", value, "each --proxy needs one --proxy-mesh");
    }
    let only_weights = args.output.iter().all(|path| input::kind(path) == Some(Kind::Json));
    if only_weights && args.pose.is_some() {
        return fault("pose", "given".into(), "weights have no pose; it needs an output that holds the character");
    }
    if args.time.is_some_and(|t| !t.is_finite()) {
        return fault("time", "not finite".into(), "it must be a number of seconds");
    }
    let weights = args.output.iter().any(|path| input::kind(path) == Some(Kind::Json));
    if weights && args.proxy.len() > 1 {
        return fault("proxy", format!("given {} times", args.proxy.len()), "a weights file is for one mesh; give one");
    }
    Ok(())
}

/// All files that the run will write.
fn targets(args: &Args) -> Result<Vec<PathBuf>> {
    let mut targets = super::bind::targets_of(&args.output)?;
    targets.extend(args.report.clone());
    Ok(targets)
}

/// A file's name for messages.
fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// Weights of a file for a rig, with what there is to say about them.
fn load(path: &Path, rig: &Rig, vertices: usize, warnings: &mut Vec<Warning>) -> Result<(Weights, weights::Report)> {
    let file = weights_file::read(path)?;
    let (loaded, report) = weights::load(file, &rig.skeleton, vertices).map_err(|e| e.in_file(path))?;
    warnings.extend(report.warnings(&file_name(path), rig.root()));
    Ok((loaded, report))
}

/// The weights of the whole base mesh for the rig: its own, or the master's through its references.
fn body_weights(args: &Args, base: &Base, rigs: &Rigs, report: &mut Report) -> Result<Weights> {
    let count = base.vertices();
    let own = own_weights(args, rigs);
    let direct = if rigs.master.is_none() { Some(args.weights.clone()) } else { own };
    if let Some(path) = direct {
        let (loaded, rules) = load(&path, &rigs.rig, count, &mut report.warnings)?;
        report.weights = rules;
        return Ok(loaded);
    }
    let (loaded, _) = load(&args.weights, rigs.master(), count, &mut report.warnings)?;
    let (derived, found) = derive(&loaded, rigs, &args.rig)?;
    report.warnings.extend(found.warnings(&file_name(&args.rig), rigs.rig.root()));
    report.weights = found.rules;
    Ok(derived)
}

fn derive(weights: &Weights, rigs: &Rigs, path: &Path) -> Result<(Weights, reference::Report)> {
    reference::derive(weights, rigs.master(), &rigs.rig).map_err(|e| e.in_file(path))
}

/// A weights file for the rig itself beside a master's: named by the user, or by the rig and lying beside it.
fn own_weights(args: &Args, rigs: &Rigs) -> Option<PathBuf> {
    if let Some(path) = &args.rig_weights {
        return Some(path.clone());
    }
    let path = args.rig.with_file_name(rigs.rig.weights_file.as_ref()?);
    let same = || path.canonicalize().ok() == args.weights.canonicalize().ok();
    (path.is_file() && !same()).then_some(path)
}

/// Clothes and proxies, fitted to the body.
fn read_proxies(
    args: &Args,
    base: &Base,
    rigs: &Rigs,
    body: &Weights,
    report: &mut Report,
) -> Result<Vec<(Proxy, Piece)>> {
    let mut list = Vec::new();
    for (path, mesh_path) in args.proxy.iter().zip(&args.proxy_mesh) {
        let proxy = Proxy::read(path)?;
        let Parsed { mesh, texture, .. } = obj::read_all(mesh_path)?;
        let in_file = |e: Error| e.in_file(path);
        proxy.check(base.vertices(), mesh.positions().len()).map_err(in_file)?;
        for (line, word) in &proxy.left_out {
            let text = format!("{}, line {line}: {word} is not supported and was left out.", file_name(path));
            report.warnings.push(Warning::new(Code::FileIgnored, text));
        }
        let places = proxy.fit(base.mesh.positions()).map_err(in_file)?;
        let (weights, rules) = proxy_weights(path, &proxy, rigs, body, report)?;
        let name = if proxy.name.is_empty() { screen::stem(path) } else { proxy.name.clone() };
        report.proxies.push(ProxyReport { name: name.clone(), vertices: places.len(), weights: rules });
        let mesh = Mesh::new(places, mesh.triangles().to_vec()).map_err(in_file)?;
        list.push((proxy, Piece { name, mesh, weights, texture }));
    }
    Ok(list)
}

/// The proxy's own weights, where its file names some; else those of the body below it.
fn proxy_weights(
    path: &Path,
    proxy: &Proxy,
    rigs: &Rigs,
    body: &Weights,
    report: &mut Report,
) -> Result<(Weights, weights::Report)> {
    let name = file_name(path);
    if let Some(own) = &proxy.weights_file {
        let file = path.with_file_name(own);
        if file.is_file() {
            return own_proxy_weights(&file, proxy, rigs, report);
        }
        let text = format!("{name}: its weights file {own} is not beside it; the body's weights are used.");
        report.warnings.push(Warning::new(Code::Fallback, text));
    }
    let (weights, rules) = proxy.weights(body, &rigs.rig.skeleton).map_err(|e| e.in_file(path))?;
    report.warnings.extend(rules.warnings(&name, rigs.rig.root()));
    Ok((weights, rules))
}

/// Weights files of clothes are for the master rig as a rule; one that knows more bones of the rig itself is for that.
fn own_proxy_weights(
    file: &Path,
    proxy: &Proxy,
    rigs: &Rigs,
    report: &mut Report,
) -> Result<(Weights, weights::Report)> {
    let parsed = weights_file::read(file)?;
    let known =
        |rig: &Rig| parsed.bones.iter().filter(|(n, l)| !l.is_empty() && rig.skeleton.find(n).is_some()).count();
    let for_master = rigs.master.as_ref().is_some_and(|master| known(master) > known(&rigs.rig));
    let rig = if for_master { rigs.master() } else { &rigs.rig };
    let (weights, rules) = weights::load(parsed, &rig.skeleton, proxy.fits.len()).map_err(|e| e.in_file(file))?;
    report.warnings.extend(rules.warnings(&file_name(file), rig.root()));
    if !for_master {
        return Ok((weights, rules));
    }
    let (derived, found) = derive(&weights, rigs, file)?;
    Ok((derived, found.rules))
}

fn driver(path: &Path, args: &Args, rigs: &Rigs, report: &mut Report) -> Result<Driver> {
    let renamed: HashMap<String, String> = match &args.pose_names {
        None => HashMap::new(),
        Some(names) => {
            let text = std::fs::read(names).map_err(|e| Error::Read(e).in_file(names))?;
            let fault = |e: serde_json::Error| Error::Line { line: e.line(), what: e.to_string() }.in_file(names);
            serde_json::from_slice(&text).map_err(fault)?
        }
    };
    let driver = Driver::new(Bvh::read(path)?, &renamed, args.align_pose, rigs.master(), &rigs.rig)
        .map_err(|e| e.in_file(path))?;
    report.posed_bones = Some(driver.bones());
    report.warnings.extend(driver.warnings(&file_name(path)));
    if let Some(time) = args.time.filter(|t| !(0.0..=driver.end()).contains(t)) {
        let text = format!("{}: it ends at {} s; time {time} is beyond.", file_name(path), driver.end());
        report.warnings.push(Warning::new(Code::Fallback, text));
    }
    Ok(driver)
}

#[expect(clippy::too_many_arguments, reason = "the parts of a run, each used once")]
fn write_all(
    args: &Args,
    base: &Base,
    rig: &Rig,
    body: &Weights,
    proxies: &[(Proxy, Piece)],
    driver: Option<&Driver>,
    report: &mut Report,
    outputs: &mut Outputs,
) -> Result<()> {
    let names: Vec<&str> = rig.skeleton.bones().iter().map(|b| b.name.as_str()).collect();
    for path in &args.output {
        if input::kind(path) == Some(Kind::Json) {
            let whole = proxies.first().map_or(body, |(_, piece)| &piece.weights);
            let title = proxies.first().map_or_else(|| screen::stem(&args.base), |(_, piece)| piece.name.clone());
            let weights = cap(args, whole, report)?;
            outputs.write(path, |out| weights_file::write(out, &title, &names, &weights))?;
            continue;
        }
        let pieces = shown(args, base, body, proxies, report)?;
        if let Some(format) = Format::of(path) {
            export(format, &pieces, rig, path, outputs)?;
            if driver.is_some() {
                let text =
                    format!("{}: this format is written without animations; the pose is left out.", file_name(path));
                report.warnings.push(Warning::new(Code::Fallback, text));
            }
        } else {
            write_document(&document(args, &pieces, rig, driver)?, path, outputs)?;
        }
    }
    Ok(())
}

fn cap(args: &Args, weights: &Weights, report: &mut Report) -> Result<Weights> {
    let Some(most) = args.max_influences else { return Ok(weights.clone()) };
    let (kept, lost) = weights::reduce(weights, most as usize)?;
    report.largest_pruned_share = report.largest_pruned_share.max(lost);
    Ok(kept)
}

/// The meshes that the character shows: the body first.
fn shown(
    args: &Args,
    base: &Base,
    body: &Weights,
    proxies: &[(Proxy, Piece)],
    report: &mut Report,
) -> Result<Vec<Piece>> {
    let covered = proxies.iter().filter(|_| args.hide_covered).flat_map(|(proxy, _)| &proxy.hides);
    let hidden: Vec<[u32; 2]> = covered.copied().collect();
    let part = base.body(&hidden).map_err(|e| e.in_file(&args.base))?;
    let of_body = part.weights(body);
    let body = Piece { name: screen::stem(&args.base), weights: of_body, mesh: part.mesh, texture: part.texture };
    let mut pieces = Vec::new();
    for piece in std::iter::once(&body).chain(proxies.iter().map(|(_, piece)| piece)) {
        let mesh = piece.mesh.clone().with_normals(piece.mesh.smooth_normals())?;
        let (name, texture) = (piece.name.clone(), piece.texture.clone());
        pieces.push(Piece { name, mesh, texture, weights: cap(args, &piece.weights, report)? });
    }
    Ok(pieces)
}

/// Meshes, skeleton and animation as one glTF document.
fn document(args: &Args, pieces: &[Piece], rig: &Rig, driver: Option<&Driver>) -> Result<Document> {
    let split = pieces.iter().map(|piece| piece.texture.split(&piece.mesh)).collect::<Result<Vec<_>>>()?;
    let named: Vec<(&str, &Split)> = pieces.iter().map(|piece| piece.name.as_str()).zip(&split).collect();
    let mut document = Document::from_textured(&named)?;
    let joints = document.add_joints(&rig.skeleton, &rig.rest())?;
    let scattered = |(piece, split): (&Piece, &Split)| piece.weights.scatter(&split.vertices);
    let weights: Vec<Weights> = pieces.iter().zip(&split).map(scattered).collect();
    document.add_skin(&rig.skeleton, Some(&joints), &Weights::concat(&weights))?;
    if let (Some(driver), Some(path)) = (driver, &args.pose) {
        let (rotations, translations) = tracks(args, rig, driver)?;
        document.add_motion(&screen::stem(path), &joints, &rotations, &translations)?;
    }
    Ok(document)
}

fn export(format: Format, pieces: &[Piece], rig: &Rig, path: &Path, outputs: &mut Outputs) -> Result<()> {
    let mut views = Vec::with_capacity(pieces.len());
    for piece in pieces {
        views.push(export::Piece { name: &piece.name, mesh: &piece.mesh, weights: &piece.weights });
    }
    let rest = rig.rest();
    let character = Character { pieces: &views, skeleton: &rig.skeleton, rest: &rest, meters: METERS };
    write_exported(format, &character, path, outputs)
}

/// What differs from the rest pose at any time, as tracks.
fn tracks(args: &Args, rig: &Rig, driver: &Driver) -> Result<(Vec<RotationTrack>, Vec<TranslationTrack>)> {
    let (times, poses): (Vec<f64>, Vec<Pose>) = match args.time {
        Some(time) => (vec![0.0], vec![driver.pose(time)]),
        None => driver.times().into_iter().map(|time| (time, driver.pose(time))).unzip(),
    };
    let rest = rig.rest();
    let (mut rotations, mut translations) = (Vec::new(), Vec::new());
    for (joint, still) in rest.locals.iter().enumerate() {
        if poses.iter().any(|pose| pose.locals[joint].rotation != still.rotation) {
            let turns = poses.iter().map(|pose| pose.locals[joint].rotation).collect();
            rotations.push(RotationTrack { joint, times: times.clone(), rotations: turns });
        }
        if poses.iter().any(|pose| pose.locals[joint].translation != still.translation) {
            let places = poses.iter().map(|pose| pose.locals[joint].translation).collect();
            translations.push(TranslationTrack { joint, times: times.clone(), translations: places });
        }
    }
    Ok((rotations, translations))
}

fn tell(args: &Args, report: &Report) -> Result<()> {
    if !args.quiet {
        screen::warn(&report.warnings);
        let written: Vec<String> = args.output.iter().map(|p| p.display().to_string()).collect();
        let total = report.seconds.of("total").unwrap_or_default();
        let (vertices, bones, most) = (report.vertices, report.bones, report.weights.most_influences);
        let off = report.weights.sums_off;
        screen::say(&format!(
            "wrote {}: {vertices} vertices ({off} had weights that did not add up to 1), {bones} bones, at most {most} a vertex, \
             {} proxies, {total:.2} s",
            written.join(", "),
            report.proxies.len()
        ));
    }
    if args.json { screen::print_json(report) } else { Ok(()) }
}
