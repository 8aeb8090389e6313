//! `cargo xtask test`: everything that guards main, part after part.
//!
//! A failing part does not stop the others; the summary names it with the command that
//! runs it alone. The last line counts tests in the parts that run tests and one check
//! for every other part.

mod counts;

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::{sim, tensorflow, tidy, workspace};
use counts::{Counts, check, count_tests};

const USAGE: &str = "usage: cargo xtask test [--no-tf] [--fast] [PART…]";

/// One thing that is checked.
struct Part {
    /// How it is called on the command line.
    name: &'static str,
    heading: &'static str,
    /// Left out with `--fast`.
    slow: bool,
    /// Left out with `--no-tf`.
    needs_tensorflow: bool,
    run: fn() -> Result<Counts>,
}

const PARTS: &[Part] = &[
    Part {
        name: "fmt",
        heading: "formatting",
        slow: false,
        needs_tensorflow: false,
        run: || check(&mut workspace::cargo(["fmt", "--all", "--check"])),
    },
    Part {
        name: "clippy",
        heading: "lints",
        slow: false,
        needs_tensorflow: false,
        run: || {
            check(&mut workspace::cargo([
                "clippy",
                "--workspace",
                "--all-targets",
                "--quiet",
                "--",
                "-D",
                "warnings",
            ]))
        },
    },
    Part {
        name: "unit",
        heading: "unit and integration tests",
        slow: false,
        needs_tensorflow: false,
        run: || count_tests(&mut test_command(None)),
    },
    Part {
        name: "doc",
        heading: "doc tests",
        slow: true,
        needs_tensorflow: false,
        run: || {
            count_tests(&mut workspace::cargo([
                "test",
                "--doc",
                "--workspace",
                "--no-fail-fast",
                "--quiet",
            ]))
        },
    },
    Part {
        name: "features",
        heading: "what is built alone, and only when asked for",
        slow: true,
        needs_tensorflow: false,
        run: run_features,
    },
    Part {
        name: "tidy",
        heading: "house rules",
        slow: false,
        needs_tensorflow: false,
        run: || tidy::check_workspace().map(|()| Counts::ONE_PASSED),
    },
    Part {
        name: "sim",
        heading: "whole clusters under seeds",
        slow: true,
        needs_tensorflow: false,
        run: || check(&mut sim::guard()?),
    },
    Part {
        name: "records",
        heading: "what is recorded of TensorFlow is true",
        slow: true,
        needs_tensorflow: true,
        run: || tensorflow::check_records().map(|()| Counts::ONE_PASSED),
    },
    Part {
        name: "scripts",
        heading: "comparisons with TensorFlow written in Python",
        slow: true,
        needs_tensorflow: true,
        run: run_scripts,
    },
    Part {
        name: "interop",
        heading: "TensorFlow's client against our server",
        slow: true,
        needs_tensorflow: true,
        run: || judge_servers("tests/interop/run.py"),
    },
    Part {
        name: "acceptance",
        heading: "TensorFlow's client and training programs against clusters of our servers",
        slow: true,
        needs_tensorflow: true,
        run: || judge_servers("tests/acceptance/run.py"),
    },
    Part {
        name: "tensorflow",
        heading: "comparison with TensorFlow",
        slow: true,
        needs_tensorflow: true,
        run: compare_with_tensorflow,
    },
];

struct Outcome {
    part: &'static Part,
    counts: Counts,
    elapsed: Duration,
}

/// Runs the parts that `args` ask for.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let (mut no_tf, mut fast, mut only) = (false, false, Vec::new());
    for arg in args {
        match arg.as_str() {
            "--no-tf" => no_tf = true,
            "--fast" => fast = true,
            name if PARTS.iter().any(|part| part.name == name) => only.push(name),
            other => {
                let names: Vec<_> = PARTS.iter().map(|part| part.name).collect();
                bail!(
                    "unknown argument {other}\n{USAGE}\nparts: {}",
                    names.join(", ")
                );
            }
        }
    }
    let mut outcomes = Vec::new();
    for part in PARTS {
        if !only.is_empty() && !only.contains(&part.name) {
            continue;
        }
        let start = Instant::now();
        println!("\n=== {} ({})", part.heading, part.name);
        let counts = if part.needs_tensorflow && no_tf {
            println!("SKIPPED by --no-tf: nothing was compared with TensorFlow");
            Counts::ONE_SKIPPED
        } else if part.slow && fast && only.is_empty() {
            println!("SKIPPED by --fast");
            Counts::ONE_SKIPPED
        } else {
            (part.run)().unwrap_or_else(|error| {
                println!("{error:#}");
                Counts::ONE_FAILED
            })
        };
        let elapsed = start.elapsed();
        println!("--- {}: {} in {:.1?}", part.name, counts.word(), elapsed);
        outcomes.push(Outcome {
            part,
            counts,
            elapsed,
        });
    }
    summarise(&outcomes)
}

fn summarise(outcomes: &[Outcome]) -> Result<()> {
    println!("\n=== summary");
    println!(
        "{:<12} {:<8} {:>7} {:>7} {:>8} {:>9}",
        "part", "result", "passed", "failed", "skipped", "seconds"
    );
    let mut total = Counts::default();
    for Outcome {
        part,
        counts,
        elapsed,
    } in outcomes
    {
        println!(
            "{:<12} {:<8} {:>7} {:>7} {:>8} {:>9.1}",
            part.name,
            counts.word(),
            counts.passed,
            counts.failed,
            counts.skipped,
            elapsed.as_secs_f64()
        );
        total.add(*counts);
    }
    let failed: Vec<_> = outcomes
        .iter()
        .filter(|outcome| outcome.counts.failed > 0)
        .map(|outcome| outcome.part)
        .collect();
    for part in &failed {
        println!(
            "FAILED: {}; run it alone: cargo xtask test {}",
            part.heading, part.name
        );
    }
    println!(
        "{} passed, {} failed, {} skipped",
        total.passed, total.failed, total.skipped
    );
    if !failed.is_empty() {
        // Everything is said already, and the counts must stay the last line.
        std::process::exit(1);
    }
    Ok(())
}

/// Unit and integration tests of all packages; `filter` selects by a part of the test's path.
fn test_command(filter: Option<&str>) -> Command {
    let mut version = workspace::cargo(["nextest", "--version"]);
    version.stdout(Stdio::null()).stderr(Stdio::null());
    let nextest = version.status().is_ok_and(|status| status.success());
    let mut command = if nextest {
        workspace::cargo(["nextest", "run", "--workspace", "--no-tests=pass"])
    } else {
        // Not the doc tests: they are a part of their own.
        let targets = ["--lib", "--bins", "--tests", "--examples"];
        let mut command = workspace::cargo(["test", "--workspace", "--no-fail-fast"]);
        command.args(targets);
        command
    };
    if nextest {
        command.args(["--no-fail-fast", "--status-level", "slow"]);
        command.args(["--final-status-level", "slow"]);
    }
    command.args(filter);
    command
}

/// Lints and tests what the other parts do not see, as they build the whole workspace at once, where a crate gets the features
/// that another asks for: the server and the library alone, as users build them, and features that must be asked for.
fn run_features() -> Result<Counts> {
    let lint = |of: &[&str]| {
        let mut lints = workspace::cargo(["clippy", "--quiet", "--package"]);
        check(lints.args(of).args(["--", "-D", "warnings"]))
    };
    let object_store = ["tensorfleet-input", "--features", "object-store"];
    let mut counts = lint(&["tensorfleet-cli"])?;
    counts.add(lint(&["tensorfleet"])?);
    counts.add(lint(&[&object_store[..], &["--all-targets"]].concat())?);
    let mut tests = workspace::cargo(["test", "--quiet", "--package"]);
    counts.add(count_tests(tests.args(object_store))?);
    Ok(counts)
}

/// Runs the tests that drive TensorFlow. By convention their path contains `tensorflow`.
fn compare_with_tensorflow() -> Result<Counts> {
    let python = tensorflow::python()?;
    let mut command = test_command(Some("tensorflow"));
    command.env(tensorflow::PYTHON_FOR_TESTS, &python);
    println!("{}={}", tensorflow::PYTHON_FOR_TESTS, python.display());
    // Tests left out by the filter are no skipped comparisons.
    count_tests(&mut command).map(|counts| Counts {
        skipped: 0,
        ..counts
    })
}

/// Runs each `tests/check_*.py` of a crate: it fails by its exit status. It finds the examples that it runs in
/// `TENSORFLEET_EXAMPLES`; run by hand, without that, it asks cargo for them.
fn run_scripts() -> Result<Counts> {
    let python = tensorflow::python()?;
    let examples = workspace::examples()?;
    let mut total = Counts::default();
    for script in workspace::files()?.iter().filter(|path| is_script(path)) {
        let mut command = Command::new(&python);
        command.arg(script).current_dir(workspace::root());
        command.env("TENSORFLEET_EXAMPLES", &examples);
        total.add(check(&mut command)?);
    }
    Ok(total)
}

/// Builds the server and lets the programs of a suite judge it with TensorFlow's client.
fn judge_servers(suite: &str) -> Result<Counts> {
    let python = tensorflow::python()?;
    let server = workspace::program("tensorfleet", false)?;
    let command = format!(
        "{} serve --cluster {{cluster_json}} --job_name {{job}} --task_index {{task}} --config={{config}}",
        server.display()
    );
    count_tests(
        Command::new(python)
            .args([suite, "-v", "-j", "2", "--server-cmd", &command])
            .current_dir(workspace::root()),
    )
}

fn is_script(path: &str) -> bool {
    let name = path.split_once("/tests/check_").map(|(_, name)| name);
    path.starts_with("crates/")
        && name.is_some_and(|name| name.ends_with(".py") && !name.contains('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_scripts() {
        assert!(is_script("crates/proto/tests/check_fields.py"));
        assert!(!is_script("crates/proto/tests/make_golden.py"));
        assert!(!is_script("tests/reference/op_defs.py"));
    }
}
