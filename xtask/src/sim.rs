//! `cargo xtask sim`: whole clusters in one thread and in virtual time, under seeds.
//!
//! The simulation is `crates/testkit/src/sim`; `docs/simulation.md` says what it does and what it checks.

use std::process::Command;

use anyhow::{Result, bail};

use crate::workspace;

const USAGE: &str = "\
usage: cargo xtask sim [--seeds N] [--first S] [--seed S] [--trace] [--release]

Runs masters, workers and clients of a cluster under each seed and checks what must hold.
  --seeds N    how many seeds (300)
  --first S    the first of them (0)
  --seed S     this one only
  --trace      every message, not only the last ones of seeds that fail
  --release    optimised: slower to build, for thousands of seeds";

/// How many seeds guard main.
const GUARDS: &str = "300";

/// Runs what `args` ask for.
pub(crate) fn run(args: &[String]) -> Result<()> {
    if args.iter().any(|arg| arg == "--help" || arg == "-h") {
        println!("{USAGE}");
        return Ok(());
    }
    let (release, passed): (Vec<_>, Vec<_>) = args.iter().partition(|arg| *arg == "--release");
    for arg in passed.iter().filter(|arg| arg.starts_with('-')) {
        if !["--seeds", "--first", "--seed", "--trace"].contains(&arg.as_str()) {
            bail!("unknown option {arg}\n{USAGE}");
        }
    }
    let program = workspace::program("sim", !release.is_empty())?;
    workspace::succeed(Command::new(program).args(passed))
}

/// The part of `cargo xtask test`.
pub(crate) fn guard() -> Result<Command> {
    let mut command = Command::new(workspace::program("sim", false)?);
    command.args(["--seeds", GUARDS]);
    Ok(command)
}
