//! Runs the binary, and keeps servers of it.

use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::process::{Child, ChildStdout, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

/// Nothing here takes this long unless it hangs.
const PATIENCE: Duration = Duration::from_secs(20);

/// The binary without what the environment of the tests would tell it.
pub(crate) fn tensorfleet(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tensorfleet"));
    command
        .args(args)
        .env_remove("TF_CONFIG")
        .env_remove("TENSORFLEET_ADMIN_TOKEN");
    command
}

/// Runs it to its end.
pub(crate) fn output(args: &[&str]) -> Output {
    tensorfleet(args).output().unwrap()
}

/// What it printed when all went well.
#[track_caller]
pub(crate) fn stdout(args: &[&str]) -> String {
    let output = output(args);
    assert!(output.status.success(), "{args:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The JSON it printed.
#[track_caller]
pub(crate) fn json(args: &[&str]) -> serde_json::Value {
    serde_json::from_str(&stdout(args)).unwrap()
}

/// It must end with this code and these words on stderr.
#[track_caller]
pub(crate) fn fails(command: &mut Command, code: i32, words: &[&str]) {
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait(&mut child);
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{text}");
    for word in words {
        assert!(text.contains(word), "'{word}' is not in: {text}");
    }
}

/// A port that was free just now.
pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// Sends a signal by name, such as `TERM`.
#[track_caller]
pub(crate) fn signal(pid: u32, name: &str) {
    let pid = pid.to_string();
    let sent = Command::new("kill").args(["-s", name, &pid]).status();
    assert!(sent.unwrap().success());
}

/// A server; it ends with its test.
pub(crate) struct Served {
    child: Child,
    /// What it prints after that line.
    out: BufReader<ChildStdout>,
    /// The line it prints when it is ready.
    pub(crate) ready: String,
    pub(crate) target: String,
}

impl Served {
    #[track_caller]
    pub(crate) fn start(args: &[&str]) -> Served {
        Served::spawn(&mut tensorfleet(args))
    }

    #[track_caller]
    pub(crate) fn spawn(command: &mut Command) -> Served {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut ready = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        out.read_line(&mut ready).unwrap();
        let ready = ready.trim_end().to_owned();
        let (_, target) = ready.rsplit_once(' ').unwrap_or_default();
        Served {
            target: target.to_owned(),
            child,
            out,
            ready,
        }
    }

    /// Sends a signal by name, such as `TERM`.
    pub(crate) fn signal(&self, name: &str) {
        signal(self.child.id(), name);
    }

    /// The next line it prints.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// All that it wrote to stderr, which must be piped, until its end.
    pub(crate) fn errors(&mut self) -> String {
        let mut text = String::new();
        let mut errors = self.child.stderr.take().unwrap();
        errors.read_to_string(&mut text).unwrap();
        text
    }

    /// Its end.
    #[track_caller]
    pub(crate) fn end(&mut self) -> ExitStatus {
        wait(&mut self.child)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits for something that happens by itself.
#[track_caller]
pub(crate) fn until(what: &str, mut happened: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !happened() {
        assert!(begin.elapsed() < PATIENCE, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[track_caller]
fn wait(child: &mut Child) -> ExitStatus {
    let begin = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if begin.elapsed() > PATIENCE {
            // The test fails either way.
            let _ = child.kill();
            panic!("it did not end");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
