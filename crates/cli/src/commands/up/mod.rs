//! `tensorfleet up`: a whole cluster on this machine.
//!
//! | file | |
//! |---|---|
//! | `plan` | the flags become a cluster: jobs, counts, ports |
//! | `report` | what is printed, for people or as JSON |
//!
//! Every task is a process of this very binary that runs `serve`; [`crate::tasks`] looks after it.

mod plan;
mod report;

use std::io::Write;
use std::time::Duration;

use anyhow::{Result, bail};
use tensorfleet_cluster::ServerSpec;
use tensorfleet_rpc::Server;

use crate::args::UpArgs;
use crate::commands::runtime;
use crate::serving::{INTERRUPTED, Settings, Signals, until_stopped};
use crate::tasks::{Crew, Event, News, Plan};
use report::Report;

pub(crate) fn run(args: &UpArgs, out: &mut dyn Write) -> Result<()> {
    let plan = plan::plan(args)?;
    // Wrong flags are said once, here, not by every task.
    let settings = Settings::new(&args.server)?;
    let report = Report::new(&plan, args, out);
    if args.in_process {
        return in_process(&plan, settings, report);
    }
    let grace = settings.grace();
    let runtime = runtime()?;
    let ended = runtime.block_on(supervise(&plan, args, grace, report))?;
    match ended {
        End::Stopped => Ok(()),
        End::Failed(why) => bail!("{why}"),
        End::Interrupted => std::process::exit(INTERRUPTED),
    }
}

fn in_process(plan: &Plan, settings: Settings, mut report: Report<'_>) -> Result<()> {
    let runtime = runtime()?;
    let mut signals = runtime.block_on(async { Signals::new() })?;
    let place = |(job, index, _): (&str, u32, &str)| {
        ServerSpec::new(plan.cluster.clone(), Some(job), Some(index))
    };
    let specs = plan
        .cluster
        .iter()
        .map(place)
        .collect::<Result<Vec<_>, _>>()?;
    let servers = settings.bind(specs)?;
    servers.iter().try_for_each(Server::start)?;
    report.ready(&vec![Some(std::process::id()); servers.len()])?;
    until_stopped(&runtime, &mut signals, &servers, None);
    Ok(())
}

/// How a cluster ended.
enum End {
    /// As was asked.
    Stopped,
    /// A task died.
    Failed(String),
    /// Somebody was in a hurry.
    Interrupted,
}

async fn supervise(
    plan: &Plan,
    args: &UpArgs,
    grace: Duration,
    mut report: Report<'_>,
) -> Result<End> {
    let mut signals = Signals::new()?;
    let commands = plan.tasks.iter().map(|task| {
        let mut command = plan.command(task, "serve")?;
        command.args(args.server.flags());
        if let Some(token) = &args.server.admin_token {
            command.env("TENSORFLEET_ADMIN_TOKEN", token);
        }
        Ok(command)
    });
    let mut crew = Crew::start(commands.collect::<Result<_>>()?, args.restart, grace);
    let mut end = End::Stopped;
    let mut pids = vec![None; plan.tasks.len()];
    let mut up = false;
    loop {
        let stopping = crew.stopping();
        tokio::select! {
            news = crew.news() => match news {
                News::AllGone => return Ok(end),
                News::Overdue => {
                    report.killing()?;
                    crew.kill();
                }
                News::Of(Event::Ready { number, pid }) => {
                    if let Some(known) = pids.get_mut(number) {
                        *known = pid;
                    }
                    if up {
                        report.restarted(number, pid)?;
                    } else if pids.iter().all(Option::is_some) {
                        up = true;
                        report.ready(&pids)?;
                    }
                }
                News::Of(Event::Said { number, line } | Event::Logged { number, line }) => {
                    report.log(number, &line);
                }
                News::Of(Event::Ended(ended)) if !stopping => {
                    let text = report.ended(&ended)?;
                    if !ended.left && ended.again.is_none() {
                        end = End::Failed(text);
                        crew.stop();
                    }
                }
                News::Of(Event::Ended(_)) => {}
            },
            () = signals.wish(stopping) => {
                if stopping {
                    end = End::Interrupted;
                    crew.kill();
                } else {
                    report.stopping()?;
                    crew.stop();
                }
            }
        }
    }
}
