//! The program: counts its allocations, parses the command line and turns errors into exit codes.

#![deny(unsafe_code)]

mod cli;

use std::process::ExitCode;

use peak_alloc::PeakAlloc;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

fn main() -> ExitCode {
    cli::main(|| MEMORY.peak_usage() as u64)
}
