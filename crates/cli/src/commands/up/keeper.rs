//! [`Keeper`]: one task's process, from its start over its restarts to its end.

use std::io::Write;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::plan::Plan;
use crate::args::UpArgs;
use crate::commands::serve::READY;

/// Between a death and the next start. It doubles with every death, up to a limit.
const PAUSE_FIRST: Duration = Duration::from_millis(500);
const PAUSE_MOST: Duration = Duration::from_secs(30);

/// Who lived so long begins with the first pause again.
const HEALTHY: Duration = Duration::from_secs(30);

/// What all tasks shall do.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Order {
    Run,
    /// End in good order.
    Stop,
    /// End at once.
    Kill,
}

/// What became of a task.
pub(super) enum Event {
    Ready { number: usize, pid: Option<u32> },
    Ended(Ended),
}

/// A process ended, or could not even start.
pub(super) struct Ended {
    /// Its place in the plan.
    pub(super) number: usize,
    pub(super) pid: Option<u32>,
    /// Whether it was ever ready to serve.
    pub(super) was_ready: bool,
    /// How, such as `exit status: 1` or `signal: 9 (SIGKILL)`.
    pub(super) how: String,
    /// The last line it wrote to stderr.
    pub(super) last_words: Option<String>,
    /// Whether it left in good order, because somebody told it to.
    pub(super) left: bool,
    /// When it will be started again, if it will.
    pub(super) again: Option<Duration>,
}

/// Keeps one task.
pub(super) struct Keeper {
    number: usize,
    name: String,
    command: Command,
    restart: bool,
    events: mpsc::UnboundedSender<Event>,
}

impl Keeper {
    pub(super) fn new(
        number: usize,
        plan: &Plan,
        args: &UpArgs,
        events: mpsc::UnboundedSender<Event>,
    ) -> Result<Keeper> {
        let task = plan.tasks.get(number).context("no such task")?;
        let program = std::env::current_exe().context("where is this program?")?;
        let mut command = Command::new(program);
        command
            .arg("serve")
            .arg(format!("--cluster={}", plan.cluster.to_json()))
            .arg(format!("--job_name={}", task.job))
            .arg(format!("--task_index={}", task.index))
            .arg("--stop_with_stdin")
            .args(args.server.flags())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        if let Some(token) = &args.server.admin_token {
            command.env("TENSORFLEET_ADMIN_TOKEN", token);
        }
        Ok(Keeper {
            number,
            name: task.name(),
            command,
            restart: args.restart,
            events,
        })
    }

    /// Runs the task until it may end for good.
    pub(super) async fn keep(mut self, mut orders: watch::Receiver<Order>) {
        let mut pause = PAUSE_FIRST;
        let mut ever_ready = false;
        loop {
            let begin = Instant::now();
            let mut ended = self.run(&mut orders).await;
            ever_ready |= ended.was_ready;
            if begin.elapsed() > HEALTHY {
                pause = PAUSE_FIRST;
            }
            // A task that never came up has a wrong address or wrong flags: that does not get better.
            let again = self.restart && ever_ready && !ended.left && *orders.borrow() == Order::Run;
            ended.again = again.then_some(pause);
            self.tell(Event::Ended(ended));
            if !again {
                return;
            }
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                // Whatever is ordered now, it is not to run.
                _ = orders.changed() => return,
            }
            pause = (pause * 2).min(PAUSE_MOST);
        }
    }

    async fn run(&mut self, orders: &mut watch::Receiver<Order>) -> Ended {
        let mut ended = Ended {
            number: self.number,
            pid: None,
            was_ready: false,
            how: String::new(),
            last_words: None,
            left: false,
            again: None,
        };
        let mut child = match self.command.spawn() {
            Ok(child) => child,
            Err(error) => {
                ended.how = format!("it cannot be started: {error}");
                return ended;
            }
        };
        ended.pid = child.id();
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let (status, was_ready, last_words) = tokio::join!(
            finish(&mut child, orders),
            self.hear_out(stdout, ended.pid),
            self.pass_on(stderr),
        );
        ended.was_ready = was_ready;
        ended.last_words = last_words;
        match status {
            Ok(status) => {
                ended.left = status.success();
                ended.how = status.to_string();
            }
            Err(error) => ended.how = format!("it cannot be waited for: {error}"),
        }
        ended
    }

    /// Reads stdout: one line says that the task is ready.
    async fn hear_out(&self, stdout: Option<impl AsyncRead + Unpin>, pid: Option<u32>) -> bool {
        let mut ready = false;
        let mut lines = Lines::new(stdout);
        while let Some(line) = lines.next().await {
            if line.starts_with(READY) {
                ready = true;
                let number = self.number;
                self.tell(Event::Ready { number, pid });
            } else {
                self.log(&line);
            }
        }
        ready
    }

    /// Shows stderr with the task's name before each line, and returns the last one.
    async fn pass_on(&self, stderr: Option<impl AsyncRead + Unpin>) -> Option<String> {
        let mut last = None;
        let mut lines = Lines::new(stderr);
        while let Some(line) = lines.next().await {
            self.log(&line);
            last = Some(line);
        }
        last
    }

    fn log(&self, line: &str) {
        let line = format!("[{}] {line}\n", self.name);
        // In one piece, so that lines of two tasks do not mix. Without a stderr there is nobody to tell.
        let _ = std::io::stderr().write_all(line.as_bytes());
    }

    fn tell(&self, event: Event) {
        // The supervisor listens until the last keeper is done, unless it failed itself.
        let _ = self.events.send(event);
    }
}

/// Waits for the end of a process and passes orders to it.
async fn finish(
    child: &mut Child,
    orders: &mut watch::Receiver<Order>,
) -> std::io::Result<ExitStatus> {
    // Kept open: its end tells the task that this process is gone.
    let mut stdin = child.stdin.take();
    loop {
        tokio::select! {
            status = child.wait() => return status,
            changed = orders.changed() => {
                let order = *orders.borrow_and_update();
                match (changed, order) {
                    (Ok(()), Order::Run) => {}
                    (Ok(()), Order::Stop) => tell_to_stop(stdin.as_mut()).await,
                    (Ok(()), Order::Kill) | (Err(_), _) => {
                        child.start_kill()?;
                        return child.wait().await;
                    }
                }
            }
        }
    }
}

async fn tell_to_stop(stdin: Option<&mut ChildStdin>) {
    if let Some(stdin) = stdin {
        // A task that does not read any more is ending already.
        let _ = stdin.write_all(b"stop\n").await;
    }
}

/// The lines of a pipe, whatever bytes are in them.
struct Lines<R> {
    pipe: Option<BufReader<R>>,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    fn new(pipe: Option<R>) -> Lines<R> {
        Lines {
            pipe: pipe.map(BufReader::new),
        }
    }

    async fn next(&mut self) -> Option<String> {
        let mut line = Vec::new();
        let length = self.pipe.as_mut()?.read_until(b'\n', &mut line).await;
        if !matches!(length, Ok(1..)) {
            return None;
        }
        let line = String::from_utf8_lossy(&line);
        Some(line.trim_end_matches(['\n', '\r']).to_owned())
    }
}
