//! `bench --cases DIR --case NAME --seconds S`: times one case of `cargo xtask bench`.
//!
//! Says when the case is set up, then answers each line on standard input with one round, as
//! `tests/reference/bench.py` does for TensorFlow. What goes wrong is the last line it prints,
//! `{"case": NAME, "error": TEXT}`, and the exit status is 1.

use std::io::{self, BufRead, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use tensorfleet_testkit::bench::Timer;

const USAGE: &str = "usage: bench --cases DIR --case NAME [--seconds S]";

struct Options {
    cases: PathBuf,
    case: String,
    round: Duration,
}

impl Options {
    fn parse(mut args: impl Iterator<Item = String>) -> Result<Self> {
        let (mut cases, mut case, mut round) = (None, None, Duration::from_secs(1));
        while let Some(arg) = args.next() {
            let value = args.next();
            let value = value.with_context(|| format!("{arg} needs a value; {USAGE}"))?;
            match arg.as_str() {
                "--cases" => cases = Some(PathBuf::from(value)),
                "--case" => case = Some(value),
                "--seconds" => {
                    let seconds = value.parse().ok();
                    let seconds = seconds.and_then(|s| Duration::try_from_secs_f64(s).ok());
                    round = seconds.with_context(|| format!("--seconds {value}: not a time"))?;
                }
                _ => bail!("unknown option {arg}; {USAGE}"),
            }
        }
        Ok(Self {
            cases: cases.context(USAGE)?,
            case: case.context(USAGE)?,
            round,
        })
    }
}

fn main() -> ExitCode {
    // As our servers do.
    tensorfleet_tensor::keep_freed_memory();
    let mut case = Value::Null;
    let done = Options::parse(std::env::args().skip(1)).and_then(|options| {
        case = json!(options.case);
        run(&options)
    });
    let Err(error) = done else {
        return ExitCode::SUCCESS;
    };
    // If nobody listens any more, there is nobody to tell either.
    let _ = say(&json!({"case": case, "error": format!("{error:#}")}));
    ExitCode::FAILURE
}

fn run(options: &Options) -> Result<()> {
    let case = &options.case;
    let timer = Timer::open(&options.cases.join(case))?;
    say(&json!({"case": case, "ready": true}))?;
    for line in io::stdin().lock().lines() {
        line?;
        let round = timer.round(options.round)?;
        say(&json!({
            "case": case,
            "ns_per_iter": round.median_ns,
            "min_ns": round.min_ns,
            "iters": round.iters,
        }))?;
    }
    Ok(())
}

/// One line, at once: the other end waits for it.
fn say(line: &Value) -> Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}
