//! `tensorfleet demo`: a cluster of processes on this machine learns to read digits, and one can watch.
//!
//! | file | |
//! |---|---|
//! | this one | the flags become a cluster, a directory and a run |
//! | `reached` | whether there is anything to train |
//! | `director` | the run: starts, listens, kills, shows, ends |
//! | `snapshot` | what is known at one moment |
//! | `view`, `screen`, `plain` | a snapshot as lines; on a terminal; without one |
//! | `ending` | what is said at the end |
//! | `worker` | the other side: a process that serves its task and trains |
//! | `trainer`, `hooks` | its training, and what it tells about it |
//! | `model`, `data` | what is learnt, and from what |
//! | `message` | what workers tell |
//!
//! Parameter servers are processes that run `serve`, workers run `demo-worker`: both this very binary.

mod data;
mod director;
mod ending;
mod hooks;
mod message;
mod model;
mod plain;
mod reached;
mod screen;
mod snapshot;
mod trainer;
mod view;
pub(crate) mod worker;

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use tensorfleet_rpc::free_ports;

use crate::args::DemoArgs;
use crate::commands::runtime;
use crate::serving::INTERRUPTED;
use crate::tasks::Plan;
use director::{Director, End};
use reached::Reached;

/// Where the tasks listen: what is on this machine stays there.
const HOST: &str = "localhost";

pub(crate) fn run(args: &DemoArgs, out: &mut dyn Write) -> Result<()> {
    let dir = directory(args.dir.as_deref())?;
    let reached = Reached::find(&dir, args.training.steps);
    if let Some(reached) = reached.as_ref().filter(|_| !args.keep) {
        return Ok(reached.tell(args.json, out)?);
    }
    let plan = plan(args)?;
    let mut director = Director::new(args, &plan, &dir)?;
    if let Some(reached) = reached {
        director.note(reached.text());
    }
    match runtime()?.block_on(director.run(out))? {
        End::Finished => Ok(()),
        End::Failed(why) => bail!("{why}"),
        End::Interrupted => {
            out.flush()?;
            std::process::exit(INTERRUPTED)
        }
    }
}

fn plan(args: &DemoArgs) -> Result<Plan> {
    let jobs = vec![
        ("ps".to_owned(), args.ps),
        ("worker".to_owned(), args.workers),
    ];
    let count = (args.ps + args.workers) as usize;
    let ports = free_ports(HOST, count).with_context(|| format!("no free port on {HOST}"))?;
    Plan::new(HOST, jobs, &ports)
}

/// The directory that is asked for, or a new one; with its full path, which other processes understand too.
fn directory(asked: Option<&Path>) -> Result<PathBuf> {
    let dir = match asked {
        Some(dir) => {
            std::fs::create_dir_all(dir)
                .with_context(|| format!("--dir {} cannot be made", dir.display()))?;
            dir.to_owned()
        }
        None => temporary()?,
    };
    dir.canonicalize()
        .with_context(|| format!("{} cannot be found", dir.display()))
}

fn temporary() -> Result<PathBuf> {
    let base = std::env::temp_dir();
    for number in 0..1000 {
        let dir = base.join(format!("tensorfleet-demo-{}-{number}", std::process::id()));
        match std::fs::create_dir(&dir) {
            Ok(()) => return Ok(dir),
            // Of an earlier process that had the same number.
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => {
                let why = format!("{} cannot be made; name another with --dir", dir.display());
                return Err(error).context(why);
            }
        }
    }
    bail!("{} is full of old demos", base.display())
}
