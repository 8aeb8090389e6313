//! What a part found: run a command, show what it prints, count what passed and failed.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::workspace;

/// What came out of a part.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Counts {
    pub(super) passed: usize,
    pub(super) failed: usize,
    pub(super) skipped: usize,
}

impl Counts {
    pub(super) const ONE_PASSED: Self = Self {
        passed: 1,
        failed: 0,
        skipped: 0,
    };
    pub(super) const ONE_FAILED: Self = Self {
        passed: 0,
        failed: 1,
        skipped: 0,
    };
    pub(super) const ONE_SKIPPED: Self = Self {
        passed: 0,
        failed: 0,
        skipped: 1,
    };

    pub(super) fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }

    /// The result in one word.
    pub(super) fn word(self) -> &'static str {
        match self {
            Counts { failed: 1.., .. } => "FAILED",
            Counts {
                passed: 0,
                skipped: 1..,
                ..
            } => "skipped",
            _ => "ok",
        }
    }
}

/// Runs a command that says by its exit status whether all is well.
pub(super) fn check(command: &mut Command) -> Result<Counts> {
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
pub(super) fn count_tests(command: &mut Command) -> Result<Counts> {
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
            counts.add(seen);
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

/// Reads `5 tests run: 4 passed, 1 failed, 2 skipped` (nextest, `tests/harness`) and
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
        assert_eq!(counts(8, 1, 0).word(), "FAILED");
        assert_eq!(counts(8, 0, 1).word(), "ok");
        assert_eq!(counts(0, 0, 1).word(), "skipped");
    }
}
