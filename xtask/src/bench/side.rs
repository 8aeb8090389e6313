//! One timing program under way: a line to its input asks for a round, a line of JSON answers.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread::JoinHandle;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::workspace;

/// A timing program that has set its case up.
pub(super) struct Side {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    /// Reads the error stream all the time: a full pipe would stop the program.
    errors: Option<JoinHandle<String>>,
}

/// What one round found, in nanoseconds per step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Round {
    pub(super) median_ns: f64,
    pub(super) min_ns: f64,
    pub(super) iters: u64,
}

impl Side {
    /// Starts the program and waits until it is ready.
    pub(super) fn start(command: &mut Command) -> Result<Self> {
        let shown = workspace::shown(command);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {shown}"))?;
        let input = child.stdin.take();
        let output = child.stdout.take().context("no pipe to the program")?;
        let stream = child.stderr.take().context("no pipe to the program")?;
        let errors = std::thread::spawn(move || last_line(stream));
        let mut side = Self {
            child,
            input,
            errors: Some(errors),
            output: BufReader::new(output),
        };
        let answer = side.answer()?;
        if answer["ready"] != Value::Bool(true) {
            bail!("{shown} did not say that it is ready but {answer}");
        }
        Ok(side)
    }

    /// Lets it run one round.
    pub(super) fn round(&mut self) -> Result<Round> {
        let input = self.input.as_mut().context("no pipe to the program")?;
        input.write_all(b"\n").and_then(|()| input.flush())?;
        let answer = self.answer()?;
        let number = |field: &str| {
            let value = answer[field].as_f64().filter(|value| *value > 0.0);
            value.with_context(|| format!("no {field} in {answer}"))
        };
        let median_ns = number("ns_per_iter")?;
        Ok(Round {
            median_ns,
            min_ns: number("min_ns").unwrap_or(median_ns),
            iters: answer["iters"].as_u64().unwrap_or(0),
        })
    }

    /// Lets it go and waits for it.
    pub(super) fn end(mut self) -> Result<()> {
        self.input = None;
        let status = self.child.wait()?;
        if !status.success() {
            bail!("ended with {status}");
        }
        Ok(())
    }

    fn answer(&mut self) -> Result<Value> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        if line.is_empty() {
            bail!("{}", self.last_words()?);
        }
        let answer: Value =
            serde_json::from_str(&line).with_context(|| format!("not JSON: {}", line.trim()))?;
        match answer["error"].as_str() {
            Some(error) => bail!("{error}"),
            None => Ok(answer),
        }
    }

    /// Why it ended before it answered: the last line it wrote to its error stream.
    fn last_words(&mut self) -> Result<String> {
        self.input = None;
        let status = self.child.wait()?;
        let last = self.errors.take().and_then(|thread| thread.join().ok());
        let last = last.unwrap_or_default();
        Ok(format!("{status}: {last}"))
    }
}

fn last_line(stream: impl Read) -> String {
    let lines = BufReader::new(stream).lines().map_while(Result::ok);
    let last = lines.filter(|line| !line.trim().is_empty()).last();
    last.unwrap_or_else(|| "no message".to_owned())
}

impl Drop for Side {
    fn drop(&mut self) {
        // After an error of the other side it still waits for a line.
        self.input = None;
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}
