//! `cargo xtask test`: everything that guards main, part after part.
//!
//! A failing part does not stop the others; the summary names it with the command that
//! runs it alone. The last line counts tests in the parts that run tests and one check
//! for every other part.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::{tensorflow, tidy, workspace};

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
                "--quiet",
            ]))
        },
    },
    Part {
        name: "tidy",
        heading: "house rules",
        slow: false,
        needs_tensorflow: false,
        run: || tidy::check_workspace().map(|()| Counts::ONE_PASSED),
    },
    Part {
        name: "records",
        heading: "what is recorded of TensorFlow is true",
        slow: true,
        needs_tensorflow: true,
        run: || tensorflow::check_records().map(|()| Counts::ONE_PASSED),
    },
    Part {
        name: "tensorflow",
        heading: "comparison with TensorFlow",
        slow: true,
        needs_tensorflow: true,
        run: compare_with_tensorflow,
    },
];

/// What came out of a part.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Counts {
    passed: usize,
    failed: usize,
    skipped: usize,
}

impl Counts {
    const ONE_PASSED: Self = Self {
        passed: 1,
        failed: 0,
        skipped: 0,
    };
    const ONE_FAILED: Self = Self {
        passed: 0,
        failed: 1,
        skipped: 0,
    };
    const ONE_SKIPPED: Self = Self {
        passed: 0,
        failed: 0,
        skipped: 1,
    };
}

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
        println!("--- {}: {} in {:.1?}", part.name, word(counts), elapsed);
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
            word(*counts),
            counts.passed,
            counts.failed,
            counts.skipped,
            elapsed.as_secs_f64()
        );
        total.passed += counts.passed;
        total.failed += counts.failed;
        total.skipped += counts.skipped;
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

fn word(counts: Counts) -> &'static str {
    match counts {
        Counts { failed: 1.., .. } => "FAILED",
        Counts {
            passed: 0,
            skipped: 1..,
            ..
        } => "skipped",
        _ => "ok",
    }
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

/// Runs a command that says by its exit status whether all is well.
fn check(command: &mut Command) -> Result<Counts> {
    println!("{}", workspace::shown(command));
    let status = command
        .status()
        .with_context(|| format!("cannot start {}", workspace::shown(command)))?;
    if status.success() {
        Ok(Counts::ONE_PASSED)
    } else {
        Ok(Counts::ONE_FAILED)
    }
}

/// Runs a command that runs tests; shows what it prints and reads the counts out of it.
fn count_tests(command: &mut Command) -> Result<Counts> {
    println!("{}", workspace::shown(command));
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {}", workspace::shown(command)))?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let mut counts = std::thread::scope(|scope| {
        let errors = scope.spawn(|| stderr.map(|lines| pass_on(lines, std::io::stderr())));
        let mut counts = Counts::default();
        let streams = [
            stdout.map(|lines| pass_on(lines, std::io::stdout())),
            errors.join().unwrap_or_default(),
        ];
        for seen in streams.into_iter().flatten() {
            counts.passed += seen.passed;
            counts.failed += seen.failed;
            counts.skipped += seen.skipped;
        }
        counts
    });
    let status = child.wait()?;
    if !status.success() && counts.failed == 0 {
        // It did not get as far as a failing test.
        counts.failed = 1;
    }
    Ok(counts)
}

fn pass_on(lines: impl std::io::Read, mut to: impl Write) -> Counts {
    let mut counts = Counts::default();
    for line in BufReader::new(lines).split(b'\n').map_while(Result::ok) {
        // A closed terminal is no reason to fail a test run.
        let _ = to.write_all(&line).and_then(|()| to.write_all(b"\n"));
        add_counts(&String::from_utf8_lossy(&line), &mut counts);
    }
    counts
}

/// Reads `5 tests run: 4 passed, 1 failed, 2 skipped` (nextest) and
/// `test result: ok. 4 passed; 1 failed; 2 ignored; …` (cargo test).
fn add_counts(line: &str, counts: &mut Counts) {
    if !line.contains("test run: ")
        && !line.contains("tests run: ")
        && !line.contains("test result: ")
    {
        return;
    }
    let words: Vec<&str> = line
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect();
    for pair in words.windows(2) {
        let Ok(number) = pair[0].parse::<usize>() else {
            continue;
        };
        match pair[1] {
            "passed" => counts.passed += number,
            "failed" | "timed" | "exec" => counts.failed += number,
            "skipped" | "ignored" => counts.skipped += number,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(lines: &str) -> (usize, usize, usize) {
        let counts = pass_on(lines.as_bytes(), std::io::sink());
        (counts.passed, counts.failed, counts.skipped)
    }

    #[test]
    fn counts_what_nextest_says() {
        let text = "     Summary [   0.011s] 12 tests run: 9 passed (1 slow), 2 failed, 1 timed out, 4 skipped\n";
        assert_eq!(counted(text), (9, 3, 4));
        assert_eq!(
            counted("Summary [0.1s] 1 test run: 1 passed, 0 skipped"),
            (1, 0, 0)
        );
    }

    #[test]
    fn adds_up_what_cargo_test_says() {
        let text = "running 3 tests\n\
            test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\
            test result: FAILED. 1 passed; 3 failed; 0 ignored; 0 measured; 7 filtered out; finished in 0.00s\n";
        assert_eq!(counted(text), (3, 3, 1));
    }

    #[test]
    fn ignores_other_lines() {
        assert_eq!(counted("3 passed the door\n"), (0, 0, 0));
    }

    #[test]
    fn a_part_with_one_failed_test_has_failed() {
        let counts = |passed, failed, skipped| Counts {
            passed,
            failed,
            skipped,
        };
        assert_eq!(word(counts(8, 1, 0)), "FAILED");
        assert_eq!(word(counts(8, 0, 1)), "ok");
        assert_eq!(word(counts(0, 0, 1)), "skipped");
    }
}
