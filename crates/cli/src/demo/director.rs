//! [`Director`]: one run of the demo, from the first process to the last words.
//!
//! ```text
//! Training --all workers done--> [Kept, with --keep] --> Stopping --> gone
//!     `------ Ctrl-C, or a task that failed ----------------^
//! ```

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::ending::Ending;
use super::message::Message;
use super::plain::Plain;
use super::screen::Screen;
use super::snapshot::{Kind, Snapshot, State};
use crate::args::DemoArgs;
use crate::serving::Signals;
use crate::tasks::{Crew, Ended, Event, News, Plan};

/// Between two looks at what changed.
const TICK: Duration = Duration::from_millis(100);
/// How long tasks may take to end: nothing is lost with a step.
const GRACE: Duration = Duration::from_secs(1);
/// How long the chief, who has done its part, waits for other workers to say so too.
const PATIENCE: Duration = Duration::from_secs(5);
/// What the tasks write to stderr goes here.
const LOG: &str = "tasks.log";

/// How a run ended.
pub(super) enum End {
    /// The network is trained.
    Finished,
    /// A task failed by itself.
    Failed(String),
    /// Somebody did not want to wait.
    Interrupted,
}

/// A task that shall die, once training has come so far.
struct Strike {
    number: usize,
    step: u64,
}

/// Who shows it.
enum Show {
    Screen(Screen),
    Plain(Plain),
}

/// Runs the demo.
pub(super) struct Director<'a> {
    args: &'a DemoArgs,
    plan: &'a Plan,
    dir: &'a Path,
    log: File,
    begin: Instant,
    now: Snapshot,
    strikes: Vec<Strike>,
    up: bool,
    /// When the chief had done its part.
    chief_done: Option<Duration>,
    end: Option<End>,
}

impl<'a> Director<'a> {
    /// Shall run the tasks of `plan`; `dir` is there.
    pub(super) fn new(args: &'a DemoArgs, plan: &'a Plan, dir: &'a Path) -> Result<Director<'a>> {
        let log = dir.join(LOG);
        // Those who go on with a training, or look in while one runs, leave what was said before.
        let log = File::options()
            .create(true)
            .append(true)
            .open(&log)
            .with_context(|| format!("{} cannot be written; try another --dir", log.display()))?;
        Ok(Director {
            args,
            plan,
            dir,
            log,
            begin: Instant::now(),
            now: Snapshot::new(plan, args.training.steps),
            strikes: strikes(args, plan),
            up: false,
            chief_done: None,
            end: None,
        })
    }

    /// Says this before all else.
    pub(super) fn note(&mut self, text: String) {
        self.now.note(Kind::Note, text);
    }

    /// Runs to the end, which leaves no process.
    pub(super) async fn run(mut self, out: &mut dyn Write) -> Result<End> {
        let mut signals = Signals::new()?;
        let mut crew = self.start()?;
        let screen = if self.args.json { None } else { Screen::open() };
        let plain = || Show::Plain(Plain::new(self.args.json));
        let mut show = screen.map_or_else(plain, Show::Screen);
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while self.end.is_none() {
            tokio::select! {
                news = crew.news() => self.take(news, &mut show, out)?,
                () = signals.stop() => self.end = Some(End::Interrupted),
                _ = ticks.tick() => self.tick(&mut show, out)?,
            }
        }
        self.now.pass(self.begin.elapsed());
        self.last_words(show, out)?;
        if self.args.keep && matches!(self.end, Some(End::Finished)) {
            self.stay(&mut crew, &mut signals).await;
        }
        crew.stop();
        loop {
            tokio::select! {
                news = crew.news() => match news {
                    News::AllGone => break,
                    News::Overdue => crew.kill(),
                    News::Of(Event::Logged { number, line }) => self.log(number, &line),
                    News::Of(_) => {}
                },
                () = signals.hurry() => {
                    self.end = Some(End::Interrupted);
                    crew.kill();
                }
            }
        }
        Ok(self.end.unwrap_or(End::Finished))
    }

    fn start(&self) -> Result<Crew> {
        let commands = self.plan.tasks.iter().map(|task| {
            let worker = task.job == "worker";
            let subcommand = if worker { "demo-worker" } else { "serve" };
            let mut command = self.plan.command(task, subcommand)?;
            command.arg(format!("--grace={}", GRACE.as_secs_f64()));
            if worker {
                command.arg("--dir").arg(self.dir);
                command.args(self.args.training.flags());
            }
            Ok(command)
        });
        Ok(Crew::start(commands.collect::<Result<_>>()?, true, GRACE))
    }

    /// Looks around and shows.
    fn tick(&mut self, show: &mut Show, out: &mut dyn Write) -> Result<()> {
        self.now.pass(self.begin.elapsed());
        self.look_for_end();
        match show {
            Show::Screen(screen) => screen.draw(&self.now, out)?,
            Show::Plain(plain) => plain.update(&self.now, out)?,
        }
        Ok(())
    }

    fn take(&mut self, news: News, show: &mut Show, out: &mut dyn Write) -> Result<()> {
        self.now.pass(self.begin.elapsed());
        match news {
            News::Of(Event::Ready { number, pid }) => {
                self.now.ready(number, pid);
                let serving = |state| state != State::Starting;
                if !self.up && self.now.tasks.iter().all(|task| serving(task.state)) {
                    self.up = true;
                    if let Show::Plain(plain) = show {
                        plain.ready(&self.now, out)?;
                    }
                }
            }
            News::Of(Event::Said { number, line }) => match Message::parse(&line) {
                Some(message) => {
                    self.now.heard(number, message);
                    self.strike();
                    self.look_for_end();
                }
                None => self.log(number, &line),
            },
            News::Of(Event::Logged { number, line }) => self.log(number, &line),
            News::Of(Event::Ended(ended)) => self.ended(&ended),
            // Only of tasks that were told to stop.
            News::Overdue | News::AllGone => {}
        }
        Ok(())
    }

    /// Whether the network is trained: the chief says so, and the others do or are lost.
    fn look_for_end(&mut self) {
        let mut workers = self.now.tasks.iter().filter(|task| task.job == "worker");
        let chief = workers.next().map(|chief| chief.state);
        if self.end.is_some() || chief != Some(State::Done) {
            return;
        }
        let since = *self.chief_done.get_or_insert(self.now.elapsed);
        let all = workers.all(|worker| worker.state == State::Done);
        if all || self.now.elapsed > since + PATIENCE {
            self.end = Some(End::Finished);
        }
    }

    /// A task that was killed comes again; one that gave up would only do so again.
    fn ended(&mut self, ended: &Ended) {
        self.now.ended(ended);
        if ended.by_signal && ended.again.is_some() {
            return;
        }
        let task = self.plan.tasks.get(ended.number);
        let name = task.map_or_else(String::new, crate::tasks::Task::name);
        let words = ended.last_words.as_deref().unwrap_or("it said nothing");
        let log = self.dir.join(LOG);
        self.end = Some(End::Failed(format!(
            "{name} ended ({}): {words}; its log is in {}",
            ended.how,
            log.display()
        )));
    }

    /// Kills whom the flags want dead, when there is a checkpoint to come back from.
    fn strike(&mut self) {
        let Some(strike) = self.strikes.first() else {
            return;
        };
        if self.now.step < strike.step || self.now.checkpoint.is_none() {
            return;
        }
        let Some(task) = self.now.tasks.get(strike.number) else {
            return;
        };
        let pid = task.pid.and_then(|pid| Pid::from_raw(pid.try_into().ok()?));
        if let Some(pid) = pid {
            let text = format!("killing {} at step {}", task.name(), self.now.step);
            // It may have died by itself just now.
            let _ = kill_process(pid, Signal::KILL);
            self.now.note(Kind::Bad, text);
            self.strikes.remove(0);
        }
    }

    fn last_words(&mut self, show: Show, out: &mut dyn Write) -> Result<()> {
        let ending = Ending {
            now: &self.now,
            dir: self.dir,
            finished: matches!(self.end, Some(End::Finished)),
            kept: self.args.keep,
        };
        match show {
            Show::Screen(screen) => {
                screen.close(&self.now, out)?;
                ending.text(out)?;
            }
            Show::Plain(mut plain) => {
                plain.update(&self.now, out)?;
                if self.args.json {
                    writeln!(out, "{}", ending.json())?;
                } else {
                    ending.text(out)?;
                }
            }
        }
        out.flush()?;
        Ok(())
    }

    /// Leaves the cluster up until somebody wants it down.
    async fn stay(&mut self, crew: &mut Crew, signals: &mut Signals) {
        loop {
            tokio::select! {
                news = crew.news() => match news {
                    News::Of(Event::Logged { number, line }) => self.log(number, &line),
                    News::AllGone => return,
                    News::Of(_) | News::Overdue => {}
                },
                () = signals.stop() => return,
            }
        }
    }

    fn log(&mut self, number: usize, line: &str) {
        let name = self.now.tasks.get(number).map(super::snapshot::Task::name);
        // A full disk is told by the checkpoints.
        let _ = writeln!(self.log, "[{}] {line}", name.unwrap_or_default());
    }
}

/// The last task of a job dies, after two fifths of the way or, the second one, after seven tenths.
fn strikes(args: &DemoArgs, plan: &Plan) -> Vec<Strike> {
    let victims = [(args.kill_a_ps, "ps", 4), (args.kill_a_worker, "worker", 7)];
    let victims = victims.into_iter().filter(|(wanted, ..)| *wanted);
    victims
        .filter_map(|(_, job, tenths)| {
            let number = plan.tasks.iter().rposition(|task| task.job == job)?;
            let step = (args.training.steps / 10).saturating_mul(tenths);
            Some(Strike { number, step })
        })
        .collect()
}
