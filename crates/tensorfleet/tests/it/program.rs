//! Examples as processes, and the losses they print.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

const PAUSE: Duration = Duration::from_millis(20);

/// Whoever does not move for so many pauses hangs: two minutes and more, less than what a test may take, so that it can
/// say who. Neither how long all of it takes nor the clock proves anything: on a busy machine pauses are longer, and a
/// test that is stopped makes none.
const PAUSES: u32 = 6_000;

/// Waits for something that happens; fails when nothing has moved for long.
pub(crate) struct Patience<P> {
    seen: Option<P>,
    pauses: u32,
}

impl<P: PartialEq> Patience<P> {
    pub(crate) fn new() -> Patience<P> {
        Patience {
            seen: None,
            pauses: 0,
        }
    }

    /// Pauses for a moment; `progress` is whatever changes while things go well.
    #[track_caller]
    pub(crate) fn pause(&mut self, who: &str, progress: P) {
        let progress = Some(progress);
        self.pauses = if self.seen == progress {
            self.pauses + 1
        } else {
            0
        };
        self.seen = progress;
        assert!(self.pauses < PAUSES, "{who} hangs");
        std::thread::sleep(PAUSE);
    }
}

/// One example at a time builds what is missing.
static BUILDING: Mutex<()> = Mutex::new(());

/// The program of an example. `cargo test` builds it beside the tests; a test that was asked for alone builds
/// it itself.
pub(crate) fn program(name: &str) -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let profile = tests.ancestors().nth(2).unwrap().to_owned();
    let program = profile.join("examples").join(name);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("examples/{name}.rs"));
    let _one = BUILDING.lock();
    if modified(&program) < modified(&source) {
        let mut cargo = Command::new(env!("CARGO"));
        // The whole workspace: with the features that tests are built with, nothing below is built again.
        cargo.args(["build", "--quiet", "--workspace", "--examples"]);
        if profile.ends_with("release") {
            cargo.arg("--release");
        }
        assert!(cargo.status().unwrap().success(), "{name} does not build");
    }
    program
}

fn modified(path: &Path) -> Option<SystemTime> {
    path.metadata().and_then(|file| file.modified()).ok()
}

/// A running example; it ends with the test. What it printed stays in a file if the test fails.
pub(crate) struct Running {
    pub(crate) name: String,
    child: Child,
    output: PathBuf,
}

impl Running {
    pub(crate) fn start(name: &str, args: &[&str]) -> Running {
        static STARTED: AtomicUsize = AtomicUsize::new(0);
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let output = format!("{name}-{}-{number}.log", std::process::id());
        let output = Path::new(env!("CARGO_TARGET_TMPDIR")).join(output);
        let file = File::create(&output).unwrap();
        let child = Command::new(program(name))
            .args(args)
            .env_remove("TF_CONFIG")
            .stdin(Stdio::null())
            .stdout(file.try_clone().unwrap())
            .stderr(file)
            .spawn()
            .unwrap();
        Running {
            name: format!("{name} {}", args.join(" ")),
            child,
            output,
        }
    }

    /// What it printed so far.
    pub(crate) fn output(&self) -> String {
        std::fs::read_to_string(&self.output).unwrap()
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Ends it at once.
    pub(crate) fn kill(mut self) -> String {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.output()
    }

    /// What it printed, when it has ended well.
    pub(crate) fn finish(mut self) -> String {
        let mut patience = Patience::new();
        while self.is_running() {
            patience.pause(&self.name, self.output().len());
        }
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{}: {status}", self.name);
        self.output()
    }
}

impl Drop for Running {
    #[expect(clippy::print_stderr, reason = "why a test fails is worth knowing")]
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if !std::thread::panicking() {
            let _ = std::fs::remove_file(&self.output);
            return;
        }
        let output = std::fs::read_to_string(&self.output).unwrap_or_default();
        let lines: Vec<&str> = output.lines().collect();
        let end = lines[lines.len().saturating_sub(20)..].join("\n");
        eprintln!("{}\nends in {}:\n{end}", self.name, self.output.display());
    }
}

/// The losses that an example prints, run with these arguments to its end.
pub(crate) fn losses_of(name: &str, args: &[&str]) -> Vec<(i64, f32)> {
    let output = Running::start(name, args).finish();
    let losses = losses(&output);
    assert!(losses.len() > 1, "{name}: {output}");
    losses
}

/// The numbers of all lines `… step N loss X`, by step.
pub(crate) fn losses(output: &str) -> Vec<(i64, f32)> {
    let mut found: Vec<(i64, f32)> = output.lines().filter_map(loss).collect();
    found.sort_by_key(|(step, _)| *step);
    found
}

fn loss(line: &str) -> Option<(i64, f32)> {
    let (_, line) = line.split_once("step ")?;
    let (step, loss) = line.split_once(" loss ")?;
    Some((step.parse().ok()?, loss.parse().ok()?))
}

/// Losses fall to a part of what they were.
pub(crate) fn assert_fall(name: &str, losses: &[(i64, f32)], part: f32) {
    let (first, last) = (losses[0].1, losses[losses.len() - 1].1);
    assert!(last < first * part, "{name}: from {first} to {last}");
    assert!(losses.iter().all(|(_, loss)| loss.is_finite()), "{name}");
}

/// A checkpoint of the last step. Each of two workers may make a step or two more before it sees the last.
pub(crate) fn assert_at_last(checkpoint: &str, last: i64) {
    let step: i64 = checkpoint.rsplit('-').next().unwrap().parse().unwrap();
    assert!((last..=last + 4).contains(&step), "{checkpoint}");
}
