//! `tensorfleet up`: a whole cluster on this machine.
//!
//! | file | |
//! |---|---|
//! | `plan` | the flags become a cluster: jobs, counts, ports |
//! | `keeper` | one task's process: started, listened to, started again, stopped |
//! | `report` | what is printed, for people or as JSON |
//!
//! Every task is a process of this very binary that runs `serve`. It ends when its stdin ends, so no task
//! outlives this process, whatever kills it. Each is its own process group: Ctrl-C comes to this process alone,
//! which then decides.

mod keeper;
mod plan;
mod report;

use std::io::Write;
use std::time::Duration;

use anyhow::{Result, bail};
use tensorfleet_cluster::ServerSpec;
use tensorfleet_rpc::Server;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::args::UpArgs;
use crate::commands::runtime;
use crate::serving::{INTERRUPTED, Settings, Signals, until_stopped};
use keeper::{Event, Keeper, Order};
use plan::Plan;
use report::Report;

/// What a task may take to end after its grace period before it is killed.
const LAST_PATIENCE: Duration = Duration::from_secs(5);

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

/// What is done with the whole cluster.
struct Supervisor {
    orders: watch::Sender<Order>,
    grace: Duration,
    /// When to lose patience; set once the tasks were told to stop.
    deadline: Option<Instant>,
    end: End,
}

impl Supervisor {
    fn stopping(&self) -> bool {
        *self.orders.borrow() != Order::Run
    }

    fn stop(&mut self) {
        if !self.stopping() {
            self.orders.send_replace(Order::Stop);
            self.deadline = Instant::now().checked_add(self.grace.saturating_add(LAST_PATIENCE));
        }
    }

    fn kill(&mut self) {
        self.orders.send_replace(Order::Kill);
        self.deadline = None;
    }
}

async fn supervise(
    plan: &Plan,
    args: &UpArgs,
    grace: Duration,
    mut report: Report<'_>,
) -> Result<End> {
    let mut signals = Signals::new()?;
    let (orders, _) = watch::channel(Order::Run);
    let (events, mut happened) = mpsc::unbounded_channel();
    let mut keepers = JoinSet::new();
    for number in 0..plan.tasks.len() {
        let keeper = Keeper::new(number, plan, args, events.clone())?;
        keepers.spawn(keeper.keep(orders.subscribe()));
    }
    drop(events);
    let mut cluster = Supervisor {
        orders,
        grace,
        deadline: None,
        end: End::Stopped,
    };
    let mut pids = vec![None; plan.tasks.len()];
    let mut up = false;
    loop {
        let stopping = cluster.stopping();
        let patience = cluster.deadline;
        tokio::select! {
            event = happened.recv() => match event {
                // The last keeper has let go of its task.
                None => return Ok(cluster.end),
                Some(Event::Ready { number, pid }) => {
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
                Some(Event::Ended(ended)) if !stopping => {
                    let text = report.ended(&ended)?;
                    if !ended.left && ended.again.is_none() {
                        cluster.end = End::Failed(text);
                        cluster.stop();
                    }
                }
                Some(Event::Ended(_)) => {}
            },
            () = wish(&mut signals, stopping) => {
                if stopping {
                    cluster.end = End::Interrupted;
                    cluster.kill();
                } else {
                    report.stopping()?;
                    cluster.stop();
                }
            }
            () = sleep_until(patience) => {
                report.killing()?;
                cluster.kill();
            }
        }
    }
}

/// The first signal, or the one that says it shall be quick.
async fn wish(signals: &mut Signals, stopping: bool) {
    if stopping {
        signals.hurry().await;
    } else {
        signals.stop().await;
    }
}

async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
