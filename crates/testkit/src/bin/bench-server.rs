//! `bench-server NAME=TARGET NAME=TARGET [--seconds S] [--rounds N] [--json]`: servers compared by one client.
//!
//! The Rust client runs the same steps on each server in turns, so that all meet the same load of the
//! machine: a trivial fetch from 1, 4 and 16 threads, and feeds and fetches of 1 MB and 64 MB. What counts
//! is the median over the rounds of the first server's figure against each other server's.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::json;
use tensorfleet_graph::{GraphBuilder, text};
use tensorfleet_rpc::Session;
use tensorfleet_tensor::{Shape, Tensor};

const USAGE: &str =
    "usage: bench-server NAME=TARGET [NAME=TARGET…] [--seconds S] [--rounds N] [--json] [CASE…]";

const GRAPH: &str = "one = float[]{1}
    two = float[]{2}
    x = Placeholder() {dtype=float}
    y = AddV2(x, two)
    total = Sum(x, axis)";

struct Options {
    servers: Vec<(String, String)>,
    round: Duration,
    rounds: usize,
    json: bool,
    cases: Vec<String>,
}

impl Options {
    fn parse(mut args: impl Iterator<Item = String>) -> Result<Options> {
        let mut options = Options {
            servers: Vec::new(),
            round: Duration::from_secs(1),
            rounds: 5,
            json: false,
            cases: Vec::new(),
        };
        while let Some(arg) = args.next() {
            let mut value = || args.next().with_context(|| format!("{arg} needs a value"));
            match arg.as_str() {
                "--seconds" => options.round = Duration::try_from_secs_f64(value()?.parse()?)?,
                "--rounds" => options.rounds = value()?.parse()?,
                "--json" => options.json = true,
                flag if flag.starts_with('-') => bail!("unknown option {flag}\n{USAGE}"),
                other => match other.split_once('=') {
                    Some((name, target)) => {
                        options.servers.push((name.to_owned(), target.to_owned()));
                    }
                    None => options.cases.push(other.to_owned()),
                },
            }
        }
        if options.servers.is_empty() {
            bail!(USAGE);
        }
        Ok(options)
    }
}

/// What is measured, and how often at once.
#[derive(Clone, Copy)]
enum Case {
    Step { threads: usize },
    Feed { bytes: usize },
    Fetch { bytes: usize },
}

impl Case {
    const ALL: [Case; 7] = [
        Case::Step { threads: 1 },
        Case::Step { threads: 4 },
        Case::Step { threads: 16 },
        Case::Feed { bytes: 1 << 20 },
        Case::Feed { bytes: 64 << 20 },
        Case::Fetch { bytes: 1 << 20 },
        Case::Fetch { bytes: 64 << 20 },
    ];

    fn name(self) -> String {
        match self {
            Case::Step { threads } => format!("step_{threads}_threads"),
            Case::Feed { bytes } => format!("feed_{}MB", bytes >> 20),
            Case::Fetch { bytes } => format!("fetch_{}MB", bytes >> 20),
        }
    }

    fn unit(self) -> &'static str {
        match self {
            Case::Step { .. } => "runs/s",
            Case::Feed { .. } | Case::Fetch { .. } => "GB/s",
        }
    }
}

/// One round of one case: the rate, and the 50th and 99th percentile of a call.
#[derive(Clone, Copy)]
struct Round {
    rate: f64,
    p50: Duration,
    p99: Duration,
}

fn main() -> Result<()> {
    let options = Options::parse(std::env::args().skip(1))?;
    let mut sessions = Vec::new();
    for (name, target) in &options.servers {
        sessions.push(Arc::new(open(target).with_context(|| name.clone())?));
    }
    let mut out = io::stdout().lock();
    for case in Case::ALL {
        let name = case.name();
        if !options.cases.is_empty() && !options.cases.iter().any(|part| name.contains(part)) {
            continue;
        }
        for session in &sessions {
            measure(session, case, options.round / 10)?;
        }
        let mut rounds: Vec<Vec<Round>> = vec![Vec::new(); sessions.len()];
        for _ in 0..options.rounds {
            for (session, rounds) in sessions.iter().zip(&mut rounds) {
                rounds.push(measure(session, case, options.round)?);
            }
        }
        report(&mut out, &options, case, &rounds)?;
    }
    Ok(())
}

fn open(target: &str) -> Result<Session> {
    let session = Session::connect(target)?;
    let mut builder = GraphBuilder::new(tensorfleet_ops::registry()?);
    let graph = GRAPH.replace("    total", "    axis = int32[]{0}\n    total");
    text::parse_graph(&mut builder, &graph)?;
    let x = builder
        .graph()
        .find_output("x:0")
        .context("x is in the graph")?;
    builder.op("Identity").name("same").input(x).build()?;
    session.extend(&builder.finish().export()?)?;
    Ok(session)
}

fn measure(session: &Arc<Session>, case: Case, round: Duration) -> Result<Round> {
    let (threads, bytes) = match case {
        Case::Step { threads } => (threads, 0),
        Case::Feed { bytes } | Case::Fetch { bytes } => (1, bytes),
    };
    let fed = Tensor::zeros(
        tensorfleet_tensor::DType::F32,
        Shape::new(&[(bytes / 4) as i64])?,
    )?;
    let stop = Arc::new(AtomicBool::new(false));
    let began = Instant::now();
    let workers: Vec<_> = (0..threads)
        .map(|_| {
            let (session, fed, stop) = (session.clone(), fed.clone(), stop.clone());
            thread::spawn(move || -> Result<Vec<Duration>> {
                let mut times = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    let start = Instant::now();
                    match case {
                        Case::Step { .. } => session.run(&[], &["one:0"], &[])?,
                        Case::Feed { .. } => {
                            session.run(&[("x:0", fed.clone())], &["total:0"], &[])?
                        }
                        Case::Fetch { .. } => {
                            session.run(&[("x:0", fed.clone())], &["same:0"], &[])?
                        }
                    };
                    times.push(start.elapsed());
                }
                Ok(times)
            })
        })
        .collect();
    thread::sleep(round);
    stop.store(true, Ordering::Relaxed);
    let mut times = Vec::new();
    for worker in workers {
        match worker.join() {
            Ok(done) => times.extend(done?),
            Err(_) => bail!("a client thread panicked"),
        }
    }
    let took = began.elapsed().as_secs_f64();
    times.sort_unstable();
    let percentile = |share: f64| {
        let index = ((times.len() as f64 - 1.0) * share).round();
        times.get(index as usize).copied().unwrap_or_default()
    };
    let amount = match case {
        Case::Step { .. } => 1.0,
        Case::Feed { .. } => bytes as f64 / 1e9,
        // It goes there and comes back.
        Case::Fetch { .. } => 2.0 * bytes as f64 / 1e9,
    };
    Ok(Round {
        rate: times.len() as f64 * amount / took,
        p50: percentile(0.5),
        p99: percentile(0.99),
    })
}

fn report(out: &mut dyn Write, options: &Options, case: Case, rounds: &[Vec<Round>]) -> Result<()> {
    let medians: Vec<Round> = rounds
        .iter()
        .map(|rounds| Round {
            rate: median(rounds.iter().map(|round| round.rate)),
            p50: Duration::from_secs_f64(median(rounds.iter().map(|r| r.p50.as_secs_f64()))),
            p99: Duration::from_secs_f64(median(rounds.iter().map(|r| r.p99.as_secs_f64()))),
        })
        .collect();
    let ratio = |other: usize| {
        let pairs = rounds[0].iter().zip(&rounds[other]);
        median(pairs.map(|(first, other)| first.rate / other.rate))
    };
    if options.json {
        let servers: Vec<_> = options
            .servers
            .iter()
            .zip(&medians)
            .enumerate()
            .map(|(index, ((name, _), round))| {
                json!({"server": name, "rate": round.rate, "p50_us": round.p50.as_micros(),
                       "p99_us": round.p99.as_micros(), "first_to_this": ratio(index)})
            })
            .collect();
        let line = json!({"case": case.name(), "unit": case.unit(), "servers": servers});
        writeln!(out, "{line}")?;
        return Ok(());
    }
    write!(out, "{:<16}", case.name())?;
    for (index, ((name, _), round)) in options.servers.iter().zip(&medians).enumerate() {
        write!(
            out,
            "  {name} {:.2} {} p50 {:.0?} p99 {:.0?}",
            round.rate,
            case.unit(),
            round.p50,
            round.p99
        )?;
        if index > 0 {
            write!(out, "  ratio {:.2}", ratio(index))?;
        }
    }
    writeln!(out)?;
    Ok(())
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
