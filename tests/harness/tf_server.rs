//! Starts `tf_server.py`, which stands beside this file: TensorFlow's own servers for Rust tests.
//!
//! `tensorfleet_testkit::reference` has it for all crates; the tests of `rpc`, on which that crate stands, take this
//! file itself.

use std::io::{BufRead, BufReader, Error, Result};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The tasks of one job.
pub struct Job<'a> {
    /// The job's name.
    pub name: &'a str,
    /// Where its tasks listen.
    pub addresses: &'a [String],
    /// What its servers are configured with: a `ConfigProto` as text, or nothing.
    pub config: &'a str,
}

/// Servers of TensorFlow's that are up. They end when this is dropped.
pub struct TfServers {
    processes: Vec<Child>,
    targets: Vec<String>,
}

impl TfServers {
    /// Starts all tasks of a cluster with this Python and waits until they are up.
    pub fn start(python: &Path, jobs: &[Job<'_>]) -> Result<TfServers> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/harness/tf_server.py");
        let named = jobs
            .iter()
            .map(|job| format!("{:?}: {:?}", job.name, job.addresses));
        let cluster = format!("{{{}}}", named.collect::<Vec<_>>().join(", "));
        let mut servers = TfServers {
            processes: Vec::new(),
            targets: Vec::new(),
        };
        for job in jobs {
            for task in 0..job.addresses.len() {
                let mut command = Command::new(python);
                command.arg(&script).args(["--cluster", &cluster]);
                command.args(["--job", job.name, "--task", &task.to_string()]);
                command.args(["--config_text", job.config]);
                command.env("TF_CPP_MIN_LOG_LEVEL", "3");
                command.stdout(Stdio::piped()).stderr(Stdio::null());
                servers.processes.push(command.spawn()?);
            }
        }
        for process in &mut servers.processes {
            let mut line = String::new();
            if let Some(output) = process.stdout.take() {
                BufReader::new(output).read_line(&mut line)?;
            }
            let target = line.trim_end().strip_prefix("ready ");
            let target = target.ok_or_else(|| Error::other("TensorFlow's server did not start"))?;
            servers.targets.push(target.to_owned());
        }
        Ok(servers)
    }

    /// The targets of the servers, job by job and task by task.
    pub fn targets(&self) -> &[String] {
        &self.targets
    }
}

impl Drop for TfServers {
    fn drop(&mut self) {
        for process in &mut self.processes {
            // It may have ended already.
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}
