//! The command line: one file a command; this one has what they share, down to the exit codes.

#[cfg(feature = "gpu")]
mod bench;
#[cfg(feature = "gpu")]
mod bench_skin;
mod bind;
mod compare;
mod demo;
mod device;
#[cfg(feature = "gpu")]
mod devices;
mod edit;
mod input;
mod inspect;
mod makehuman;
mod motion;
mod pose;
mod progress;
mod render;
mod rigged;
mod screen;
mod transfer;
#[cfg(feature = "gpu")]
mod verify;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::{Parser, Subcommand};
use skinbind::{Error, Result};

const PIPELINE: &str = "\
The way of a character:
  mesh (.glb .gltf .obj) + skeleton (.json, or the joints of the .glb)
    -> bind        voxels of the body -> distance from each bone through them -> weights
    -> a rigged .glb / .gltf with everything the input had, or weights as .mhw / .json
    -> edit        weights limited, smoothed, mirrored ...
    -> transfer    the weights of a rigged body for its clothes
    -> inspect     what is in a file
    -> compare     how far apart two sets of weights are
    -> pose        the mesh in poses of an animation, as .obj or .glb
    -> render      a picture of the mesh or of its weights, as .png
  MakeHuman's files -> makehuman -> the same outputs

Examples:
  skinbind demo
  skinbind bind body.glb -s skeleton.json -o rigged.glb
  skinbind inspect rigged.glb
  skinbind render rigged.glb --bones -o weights.png

Exit codes: 0 done, 2 wrong use, 3 fault of the input, 4 of the output, 5 of the device or its limits,
6 a check failed, 130 interrupted (no file is left).";

/// Binds 3D characters to their skeletons.
#[derive(Parser)]
#[command(name = "skinbind", version, after_help = PIPELINE, max_term_width = 110)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Bind(bind::Args),
    Inspect(inspect::Args),
    Compare(compare::Args),
    Pose(pose::Args),
    Render(render::Args),
    Edit(edit::Args),
    Transfer(transfer::Args),
    Demo(demo::Args),
    Makehuman(makehuman::Args),
    #[cfg(feature = "gpu")]
    Devices(devices::Args),
    #[cfg(feature = "gpu")]
    Verify(verify::Args),
    #[cfg(feature = "gpu")]
    Bench(bench::Args),
}

/// What the surroundings give a command.
struct Context {
    /// Set when the user asks to stop.
    cancel: Arc<AtomicBool>,
    /// Most bytes that were allocated at once so far.
    peak_bytes: fn() -> u64,
}

impl Context {
    /// # Errors
    /// [`Error::Cancelled`] once the user has asked to stop.
    fn check_cancelled(&self) -> Result<()> {
        if self.cancel.load(Ordering::Relaxed) { Err(Error::Cancelled) } else { Ok(()) }
    }
}

/// Runs the program; `peak_bytes` tells the most bytes that were allocated at once so far.
pub fn main(peak_bytes: fn() -> u64) -> ExitCode {
    // Wrong use ends here, with clap's own message and exit code 2.
    let cli = Cli::parse();
    let context = Context { cancel: Arc::default(), peak_bytes };
    let cancel = context.cancel.clone();
    if let Err(error) = ctrlc::set_handler(move || cancel.store(true, Ordering::Relaxed)) {
        screen::say(&format!("warning: an interrupt will not be noticed: {error}"));
    }
    let done = match cli.command {
        Command::Bind(args) => bind::run(&args, &context),
        Command::Inspect(args) => inspect::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Pose(args) => pose::run(&args, &context),
        Command::Render(args) => render::run(&args),
        Command::Edit(args) => edit::run(&args, &context),
        Command::Transfer(args) => transfer::run(&args, &context),
        Command::Demo(args) => demo::run(&args, &context),
        Command::Makehuman(args) => makehuman::run(&args, &context),
        #[cfg(feature = "gpu")]
        Command::Devices(args) => devices::run(&args),
        #[cfg(feature = "gpu")]
        Command::Verify(args) => verify::run(&args, &context),
        #[cfg(feature = "gpu")]
        Command::Bench(args) => bench::run(&args, &context),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            screen::say(&format!("error: {error}"));
            ExitCode::from(exit_code(&error))
        }
    }
}

fn exit_code(error: &Error) -> u8 {
    match error.root() {
        Error::Parameter { .. } => 2,
        Error::Write { .. } | Error::Exists(_) => 4,
        Error::Device { .. } | Error::Limit { .. } => 5,
        Error::Check(_) => 6,
        Error::Cancelled => 130,
        _ => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent_and_every_command_has_an_example() {
        let mut command = Cli::command();
        command.clone().debug_assert();
        for sub in command.get_subcommands_mut() {
            let help = sub.render_long_help().to_string();
            assert!(help.contains("Example"), "{help}");
            assert!(help.contains(&format!("skinbind {}", sub.get_name())), "{help}");
        }
    }

    #[test]
    fn exit_codes_follow_the_kind_of_error_under_the_file_name() {
        for (error, code) in [
            (Error::NoFaces, 3),
            (Error::Cancelled, 130),
            (Error::Check(String::new()), 6),
            (Error::Exists("x".into()), 4),
            (Error::Device { name: "no-such".into(), what: String::new() }, 5),
        ] {
            assert_eq!(exit_code(&error.in_file("a file")), code);
        }
    }
}
