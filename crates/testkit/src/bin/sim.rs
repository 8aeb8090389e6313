//! `sim [--seeds N] [--first S] [--seed S] [--trace]`: runs whole clusters under seeds; see `docs/simulation.md`.

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tensorfleet_testkit::sim::{self, Report};

const USAGE: &str = "usage: sim [--seeds N] [--first S] [--seed S] [--trace]";

/// No seed takes so long unless it runs in circles.
const PATIENCE: Duration = Duration::from_secs(120);

struct Options {
    seeds: u64,
    first: u64,
    trace: bool,
}

impl Options {
    fn parse(mut args: impl Iterator<Item = String>) -> Result<Options> {
        let mut options = Options {
            seeds: 300,
            first: 0,
            trace: false,
        };
        while let Some(arg) = args.next() {
            if arg == "--trace" {
                options.trace = true;
                continue;
            }
            let value = args.next();
            let value = value.with_context(|| format!("{arg} needs a number; {USAGE}"))?;
            let number: u64 = value
                .parse()
                .with_context(|| format!("{arg} {value}: not a number; {USAGE}"))?;
            match arg.as_str() {
                "--seeds" => options.seeds = number,
                "--first" => options.first = number,
                "--seed" => (options.first, options.seeds) = (number, 1),
                _ => bail!("unknown option {arg}; {USAGE}"),
            }
        }
        Ok(options)
    }
}

fn main() -> ExitCode {
    let done = Options::parse(std::env::args().skip(1)).and_then(|options| run(&options));
    match done {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            say(&format!("sim: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// How many seeds failed.
fn run(options: &Options) -> Result<usize> {
    let registry = tensorfleet_ops::registry()?;
    sim::notice_panics();
    let current = Arc::new(AtomicU64::new(options.first));
    watch(current.clone());
    let begin = Instant::now();
    let (mut failed, mut events, mut added) = (0, 0, 0);
    for seed in options.first..options.first.saturating_add(options.seeds) {
        current.store(seed, Ordering::Relaxed);
        let report = sim::run(seed, &registry, options.trace)?;
        events += report.events;
        added += report.added;
        if options.trace && report.violations.is_empty() {
            report.trace.iter().for_each(|line| say(line));
            say(&format!("seed {seed}: hash {:016x}", report.hash));
        }
        if !report.violations.is_empty() {
            failed += 1;
            explain(seed, &report);
        }
    }
    let seconds = begin.elapsed().as_secs_f64();
    say(&format!(
        "{} seeds, {failed} failed, {events} events, {added} updates, {:.1} seeds per second",
        options.seeds,
        options.seeds as f64 / seconds
    ));
    Ok(failed)
}

fn explain(seed: u64, report: &Report) {
    say(&format!("\nseed {seed} FAILED"));
    report.trace.iter().for_each(|line| say(line));
    for violation in &report.violations {
        say(&format!("seed {seed}: {violation}"));
    }
    say(&format!("replay: cargo xtask sim --seed {seed} --trace\n"));
}

/// Ends the program if a seed runs in circles: virtual time cannot notice that.
fn watch(current: Arc<AtomicU64>) {
    std::thread::spawn(move || {
        let (mut seed, mut since) = (u64::MAX, Instant::now());
        loop {
            std::thread::sleep(Duration::from_millis(500));
            let now = current.load(Ordering::Relaxed);
            if now != seed {
                (seed, since) = (now, Instant::now());
            } else if since.elapsed() > PATIENCE {
                say(&format!("seed {seed} FAILED: it runs in circles"));
                say(&format!("replay: cargo xtask sim --seed {seed} --trace"));
                std::process::exit(1);
            }
        }
    });
}

fn say(line: &str) {
    // If nobody listens any more, there is nobody to tell either.
    let _ = writeln!(io::stdout().lock(), "{line}");
}
