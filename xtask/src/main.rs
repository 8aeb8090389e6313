//! `cargo xtask`: the project's own chores, written in Rust so that they run everywhere.
#![expect(clippy::print_stdout, reason = "a program for a person at a terminal")]

mod bench;
mod codegen;
mod sim;
mod tensorflow;
mod test;
mod tidy;
mod workspace;

use std::process::ExitCode;

use anyhow::{Result, bail};

const USAGE: &str = "\
usage: cargo xtask TASK

  test [--no-tf] [--fast] [PART…]   everything that guards main
  tidy                              the house rules alone
  bench [PART…]                     times graphs beside TensorFlow
  sim [--seeds N] [--seed S]        runs whole clusters in virtual time under seeds
  codegen                           writes the Rust code of the .proto files and the builders of ops";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &[String]) -> Result<()> {
    let Some((task, rest)) = args.split_first() else {
        bail!("no task\n{USAGE}");
    };
    match (task.as_str(), rest) {
        ("test", rest) => test::run(rest),
        ("tidy", []) => tidy::check_workspace(),
        ("bench", rest) => bench::run(rest),
        ("sim", rest) => sim::run(rest),
        ("codegen", []) => codegen::run(),
        ("help" | "--help" | "-h", _) => {
            println!("{USAGE}");
            Ok(())
        }
        _ => bail!("unknown task: {}\n{USAGE}", args.join(" ")),
    }
}
