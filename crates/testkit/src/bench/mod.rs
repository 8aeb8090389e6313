//! Times the cases of `cargo xtask bench` on our session.
//!
//! What a case is stands in `tests/reference/bench_cases.py`; TensorFlow's timer, which this one must
//! match in what it times, is `tests/reference/bench.py`. A case is set up once with [`Timer::open`],
//! then [`Timer::round`] times it as often as asked.

mod spec;
#[cfg(test)]
mod tests;

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use prost::Message;
use tensorfleet_graph::Registry;
use tensorfleet_proto::GraphDef;
use tensorfleet_session::{Callable, CallableOptions, Session, SessionOptions};

use spec::{Kind, Spec, Step};

/// Runs before the first round, so that it finds caches warm and memory mapped.
const WARM_UP: usize = 2;

/// Steps of a round, however long they take: a median needs some.
const FEWEST: usize = 3;

/// One case, set up.
pub struct Timer {
    work: Work,
    step: Step,
}

/// What is done once per iteration.
enum Work {
    /// The step, in a session that stays.
    Run(Session, Callable),
    /// New session, whole graph in, first step.
    Import {
        graph: Vec<u8>,
        optimize: bool,
        registry: Arc<Registry>,
    },
}

/// What one round found, in nanoseconds per iteration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Round {
    /// The middle one of the times.
    pub median_ns: f64,
    /// The shortest.
    pub min_ns: u64,
    /// How many there were.
    pub iters: usize,
}

impl Timer {
    /// Reads the case's folder, sets the case up and runs it a few times.
    pub fn open(folder: &Path) -> Result<Timer> {
        let spec = Spec::read(folder)?;
        let path = folder.join("graph.pb");
        let graph = fs::read(&path).with_context(|| path.display().to_string())?;
        // The ops are the process's, not the session's: TensorFlow too registers them once.
        let registry = tensorfleet_ops::registry()?;
        let work = match spec.kind {
            Kind::Run => {
                let session = open_session(&registry, spec.optimize, &graph)?;
                for step in &spec.setup {
                    let callable = prepare(&session, step)?;
                    session.call(&callable, &step.feeds)?;
                }
                let callable = prepare(&session, &spec.step)?;
                Work::Run(session, callable)
            }
            Kind::Import => Work::Import {
                graph,
                optimize: spec.optimize,
                registry,
            },
        };
        let timer = Timer {
            work,
            step: spec.step,
        };
        for _ in 0..WARM_UP {
            timer.once()?;
        }
        Ok(timer)
    }

    /// Does the timed work again and again for that long, at least three times.
    pub fn round(&self, length: Duration) -> Result<Round> {
        let mut times = Vec::new();
        let begin = Instant::now();
        while times.len() < FEWEST || begin.elapsed() < length {
            let start = Instant::now();
            self.once()?;
            times.push(u64::try_from(start.elapsed().as_nanos())?);
        }
        times.sort_unstable();
        Ok(Round {
            median_ns: median(&times),
            min_ns: times.first().copied().unwrap_or_default(),
            iters: times.len(),
        })
    }

    fn once(&self) -> Result<()> {
        match &self.work {
            Work::Run(session, callable) => session.call(callable, &self.step.feeds)?,
            Work::Import {
                graph,
                optimize,
                registry,
            } => {
                let session = open_session(registry, *optimize, graph)?;
                let callable = prepare(&session, &self.step)?;
                let fetched = session.call(&callable, &self.step.feeds)?;
                session.close();
                fetched
            }
        };
        Ok(())
    }
}

fn open_session(registry: &Arc<Registry>, optimize: bool, graph: &[u8]) -> Result<Session> {
    let options = SessionOptions {
        optimize,
        ..SessionOptions::default()
    };
    let session = Session::with_registry(options, registry.clone())?;
    session.extend(&GraphDef::decode(graph)?)?;
    Ok(session)
}

fn prepare(session: &Session, step: &Step) -> Result<Callable> {
    let callable = session.make_callable(CallableOptions {
        feeds: step.feed_names.clone(),
        fetches: step.fetches.clone(),
        targets: step.targets.clone(),
        ..CallableOptions::default()
    })?;
    Ok(callable)
}

/// The middle of sorted times, or halfway between the middle two.
fn median(sorted: &[u64]) -> f64 {
    let at = |index: usize| sorted.get(index).copied().unwrap_or_default() as f64;
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 {
        at(middle)
    } else {
        f64::midpoint(at(middle.saturating_sub(1)), at(middle))
    }
}
