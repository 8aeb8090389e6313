//! `cargo xtask bench`: the same graphs timed in TensorFleet and in TensorFlow, in turns.
//!
//! The cases and the contract with the two timing programs stand in
//! `tests/reference/bench_cases.py`, `bench_breadth.py` and `bench.py`. For each case both programs are set up,
//! then asked for rounds alternately, so that both meet the same load of the machine. What
//! counts is the median over the rounds of TensorFlow's time divided by ours.

mod machine;
mod report;
mod side;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::{tensorflow, workspace};
use report::Measured;
use side::Side;

const USAGE: &str = "\
usage: cargo xtask bench [PART…] [--rounds N] [--seconds S] [--update-docs] [--against-itself]

Runs the cases whose name contains one of the parts, or all but `each_…`: those time many single ops.
  --rounds N         rounds of each side per case (5)
  --seconds S        length of a round (1)
  --update-docs      writes the table of docs/benchmarks.md
  --against-itself   TensorFlow on both sides: how much of a ratio is noise";

const PROGRAM: &str = "tests/reference/bench.py";
const DOCS: &str = "docs/benchmarks.md";

struct Options {
    parts: Vec<String>,
    rounds: usize,
    seconds: f64,
    update_docs: bool,
    against_itself: bool,
}

impl Options {
    fn parse(args: &[String]) -> Result<Self> {
        let mut options = Self {
            parts: Vec::new(),
            rounds: 5,
            seconds: 1.0,
            update_docs: false,
            against_itself: false,
        };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let mut number = || {
                let value = args
                    .next()
                    .with_context(|| format!("{arg} needs a number"))?;
                let number: f64 = value
                    .parse()
                    .with_context(|| format!("{arg} {value}: not a number"))?;
                if !(number > 0.0 && number < 1e6) {
                    bail!("{arg} {value}: not a sensible number");
                }
                Ok(number)
            };
            match arg.as_str() {
                "--rounds" => options.rounds = number()?.ceil() as usize,
                "--seconds" => options.seconds = number()?,
                "--update-docs" => options.update_docs = true,
                "--against-itself" => options.against_itself = true,
                flag if flag.starts_with('-') => bail!("unknown option {flag}\n{USAGE}"),
                part => options.parts.push(part.to_owned()),
            }
        }
        Ok(options)
    }
}

/// Runs the task.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let options = Options::parse(args)?;
    let folder = workspace::target_dir()?.join("bench");
    let cases = folder.join("cases");
    let python = tensorflow::python()?;
    let names = list(&python, &options.parts)?;
    write_cases(&python, &cases, &names)?;
    let ours = if options.against_itself {
        None
    } else {
        Some(build_ours()?)
    };

    println!("{}", machine::describe());
    if options.against_itself {
        println!("TensorFlow in both columns: what is not 1.00 is noise");
    }
    println!("{}", report::HEAD);
    let mut failed = 0;
    for name in &names {
        let theirs = || Side::start(&mut timer(&python, &cases, name, options.seconds));
        let ours = || match &ours {
            Some(program) => Side::start(&mut our_timer(program, &cases, name, options.seconds)),
            None => theirs(),
        };
        match measure(name, &cases, ours, theirs, options.rounds) {
            Ok(measured) => {
                println!("{}", measured.row());
                if !options.against_itself {
                    measured.save(&folder)?;
                }
            }
            Err(error) => {
                failed += 1;
                println!("| {name} | failed: {error:#} | | | | | |");
            }
        }
    }
    if options.update_docs {
        let all = list(&python, &[])?;
        report::update_docs(&workspace::root().join(DOCS), &folder, &all)?;
        println!("wrote the table of {DOCS}");
    }
    if failed > 0 {
        bail!("{failed} of {} cases failed", names.len());
    }
    Ok(())
}

fn list(python: &Path, parts: &[String]) -> Result<Vec<String>> {
    let names = workspace::output(reference(python).arg("list").args(parts))?;
    let names: Vec<String> = names.lines().map(str::to_owned).collect();
    if names.is_empty() {
        bail!("no case has a name that contains {}", parts.join(" or "));
    }
    Ok(names)
}

fn write_cases(python: &Path, cases: &Path, names: &[String]) -> Result<()> {
    let mut command = reference(python);
    command.arg("write").arg("--cases").arg(cases).args(names);
    workspace::output(&mut command).map(drop)
}

fn reference(python: &Path) -> Command {
    let mut command = Command::new(python);
    command.arg(PROGRAM).current_dir(workspace::root());
    command
}

/// TensorFlow's timing program.
fn timer(python: &Path, cases: &Path, name: &str, seconds: f64) -> Command {
    let mut command = reference(python);
    command.arg("run");
    case_arguments(&mut command, cases, name, seconds);
    command
}

/// Our timing program.
fn our_timer(program: &Path, cases: &Path, name: &str, seconds: f64) -> Command {
    let mut command = Command::new(program);
    case_arguments(&mut command, cases, name, seconds);
    command
}

fn case_arguments(command: &mut Command, cases: &Path, name: &str, seconds: f64) {
    command.arg("--cases").arg(cases).args(["--case", name]);
    command.args(["--seconds", &seconds.to_string()]);
}

fn build_ours() -> Result<PathBuf> {
    let package = ["--package", "tensorfleet-testkit", "--bin", "bench"];
    let mut build = workspace::cargo(["build", "--quiet", "--profile", "bench"]);
    build.args(package);
    let status = build.status().context("cannot start cargo")?;
    if !status.success() {
        bail!("{} failed", workspace::shown(&build));
    }
    Ok(workspace::target_dir()?.join("release/bench"))
}

/// Sets both sides up and lets them run in turns.
fn measure(
    name: &str,
    cases: &Path,
    ours: impl FnOnce() -> Result<Side>,
    theirs: impl FnOnce() -> Result<Side>,
    rounds: usize,
) -> Result<Measured> {
    let path = cases.join(name).join("spec.json");
    let spec = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let spec: Value = serde_json::from_str(&spec)?;
    let mut ours = ours().context("TensorFleet")?;
    let mut theirs = theirs().context("TensorFlow")?;
    let mut measured = Measured::new(spec);
    for round in 0..rounds {
        // Whoever comes first may find another clock rate: take turns in that too.
        if round % 2 == 0 {
            measured.ours.push(ours.round().context("TensorFleet")?);
            measured.theirs.push(theirs.round().context("TensorFlow")?);
        } else {
            measured.theirs.push(theirs.round().context("TensorFlow")?);
            measured.ours.push(ours.round().context("TensorFleet")?);
        }
    }
    ours.end().context("TensorFleet")?;
    theirs.end().context("TensorFlow")?;
    Ok(measured)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Result<Options> {
        let args: Vec<String> = args.iter().map(|&arg| arg.to_owned()).collect();
        Options::parse(&args)
    }

    #[test]
    fn reads_options() {
        let options = parse(&["matmul", "--rounds", "7", "--update-docs", "conv"]).unwrap();
        assert_eq!(options.parts, ["matmul", "conv"]);
        assert_eq!((options.rounds, options.seconds), (7, 1.0));
        assert!(options.update_docs && !options.against_itself);
    }

    #[test]
    fn refuses_nonsense() {
        for args in [
            &["--rounds"][..],
            &["--rounds", "x"],
            &["--seconds", "0"],
            &["--huh"],
        ] {
            assert!(parse(args).is_err(), "{args:?}");
        }
    }

    /// A stand-in for a timing program: ready, then one answer per line.
    fn fake(ns: u32) -> Result<Side> {
        let script = format!(
            "echo '{{\"case\":\"x\",\"ready\":true}}'; while read l; do echo '{{\"case\":\"x\",\"ns_per_iter\":{ns},\"min_ns\":{ns},\"iters\":3}}'; done"
        );
        Side::start(Command::new("sh").args(["-c", &script]))
    }

    #[test]
    fn takes_the_median_of_alternating_rounds() {
        let cases = tempfile::tempdir().unwrap();
        fs::create_dir(cases.path().join("x")).unwrap();
        fs::write(
            cases.path().join("x/spec.json"),
            r#"{"case": "x", "units": 10, "unit": "op", "flops": 0, "bytes": 0, "want": {"ratio": 2.0}}"#,
        )
        .unwrap();
        let measured = measure("x", cases.path(), || fake(1000), || fake(3000), 3).unwrap();
        assert_eq!((measured.ours.len(), measured.theirs.len()), (3, 3));
        assert!((measured.ratio() - 3.0).abs() < 1e-9);
    }

    #[test]
    fn says_which_side_failed() {
        let broken = || Side::start(Command::new("sh").args(["-c", "echo no such op >&2; exit 3"]));
        let cases = tempfile::tempdir().unwrap();
        fs::create_dir(cases.path().join("x")).unwrap();
        fs::write(cases.path().join("x/spec.json"), r#"{"case": "x"}"#).unwrap();
        let error = measure("x", cases.path(), broken, || fake(1), 1).unwrap_err();
        assert!(
            format!("{error:#}").starts_with("TensorFleet: "),
            "{error:#}"
        );
        assert!(format!("{error:#}").contains("no such op"), "{error:#}");

        let line = r#"echo '{"case": "x", "error": "no such op"}'; exit 1"#;
        let broken = || Side::start(Command::new("sh").args(["-c", line]));
        let error = measure("x", cases.path(), broken, || fake(1), 1).unwrap_err();
        assert_eq!(format!("{error:#}"), "TensorFleet: no such op");
    }
}
