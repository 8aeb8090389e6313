//! `cargo xtask sim`: whole clusters in one thread and in virtual time, under seeds.
//!
//! The simulation is `crates/testkit/src/sim`; `docs/simulation.md` says what it does and what it checks.

use std::process::Command;

use anyhow::{Context, Result, bail};

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
    let mut command = program(!release.is_empty());
    command.args(passed);
    let status = command
        .status()
        .with_context(|| format!("cannot start {}", workspace::shown(&command)))?;
    if !status.success() {
        bail!("the simulation failed");
    }
    Ok(())
}

/// The part of `cargo xtask test`.
pub(crate) fn guard() -> Command {
    let mut command = program(false);
    command.args(["--seeds", GUARDS]);
    command
}

fn program(release: bool) -> Command {
    let mut command = workspace::cargo(["run", "--quiet", "--package", "tensorfleet-testkit"]);
    command.args(release.then_some("--release"));
    command.args(["--bin", "sim", "--"]);
    command
}
