//! [`Keeper`]: one task's process, from its start over its restarts to its end.

use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::last_words::LastWords;
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

/// What became of a task, which is named by its place in the plan.
pub(crate) enum Event {
    Ready {
        number: usize,
        pid: Option<u32>,
    },
    /// It wrote a line to stdout that is not the one that says it is ready.
    Said {
        number: usize,
        line: String,
    },
    /// It wrote a line to stderr.
    Logged {
        number: usize,
        line: String,
    },
    Ended(Ended),
}

/// A process ended, or could not even start.
pub(crate) struct Ended {
    /// Its place in the plan.
    pub(crate) number: usize,
    pub(crate) pid: Option<u32>,
    /// Whether it was ever ready to serve.
    pub(crate) was_ready: bool,
    /// How, such as `exit status: 1` or `signal: 9 (SIGKILL)`.
    pub(crate) how: String,
    /// Whether a signal ended it: it did not fail by itself.
    pub(crate) by_signal: bool,
    /// What it complained about last, on stderr.
    pub(crate) last_words: Option<String>,
    /// Whether it left in good order, because somebody told it to.
    pub(crate) left: bool,
    /// When it will be started again, if it will.
    pub(crate) again: Option<Duration>,
}

/// Keeps one task.
pub(super) struct Keeper {
    number: usize,
    command: Command,
    restart: bool,
    events: mpsc::UnboundedSender<Event>,
}

impl Keeper {
    /// Shall keep the process that `command` starts, which is the task in place `number`, and tell `events`.
    pub(super) fn new(
        number: usize,
        mut command: Command,
        restart: bool,
        events: mpsc::UnboundedSender<Event>,
    ) -> Keeper {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        Keeper {
            number,
            command,
            restart,
            events,
        }
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
            by_signal: false,
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
                ended.by_signal = status.signal().is_some();
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
        let number = self.number;
        while let Some(line) = lines.next().await {
            if line.starts_with(READY) {
                ready = true;
                self.tell(Event::Ready { number, pid });
            } else {
                self.tell(Event::Said { number, line });
            }
        }
        ready
    }

    /// Reads stderr and returns the last complaint.
    async fn pass_on(&self, stderr: Option<impl AsyncRead + Unpin>) -> Option<String> {
        let mut last = LastWords::default();
        let mut lines = Lines::new(stderr);
        let number = self.number;
        while let Some(line) = lines.next().await {
            last.hear(&line);
            self.tell(Event::Logged { number, line });
        }
        last.text()
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
