//! Examples on TensorFlow's servers: step by step the same losses as on ours. Skipped, loudly, where there is no
//! TensorFlow.
//!
//! One worker makes the same steps in the same order wherever it runs; what differs is how sums are rounded.

use std::path::Path;

use tensorfleet::LocalCluster;
use tensorfleet_rpc::{Session, free_ports};
use tensorfleet_testkit::reference::{self, Job, TfServers};

use crate::program::losses_of;

/// How far losses may lie apart, relative to the larger of them and 0.01.
const TOLERANCE: f32 = 1e-4;
const LEAST: f32 = 1e-2;

/// Two parameter servers and a worker with four CPUs, all of them TensorFlow's.
struct Servers {
    addresses: Vec<String>,
    _processes: Option<TfServers>,
}

impl Servers {
    fn start(python: &Path) -> Servers {
        let ports = free_ports("localhost", 3).unwrap().into_iter();
        let addresses: Vec<String> = ports.map(|port| format!("localhost:{port}")).collect();
        let (ps, worker) = addresses.split_at(2);
        let job = |name, addresses, config| Job {
            name,
            addresses,
            config,
        };
        let cpus = r#"device_count { key: "CPU" value: 4 }"#;
        let jobs = [job("ps", ps, ""), job("worker", worker, cpus)];
        Servers {
            _processes: Some(TfServers::start(python, &jobs).unwrap()),
            addresses,
        }
    }

    fn target(&self) -> String {
        format!("grpc://{}", self.addresses[2])
    }

    /// The flags that name the cluster with so many ps.
    fn hosts(&self, ps: usize) -> Vec<String> {
        let ps = self.addresses[..ps].join(",");
        let worker = &self.addresses[2];
        vec![
            format!("--ps_hosts={ps}"),
            format!("--worker_hosts={worker}"),
            "--job_name=worker".to_owned(),
            "--task_index=0".to_owned(),
        ]
    }

    /// Forgets all variables.
    fn reset(&self) {
        Session::reset(&self.target(), &[]).unwrap();
    }
}

#[expect(clippy::print_stderr, reason = "how close they are is worth knowing")]
fn same(name: &str, theirs: &[(i64, f32)], ours: &[(i64, f32)]) {
    assert_eq!(theirs.len(), ours.len(), "{name}: {theirs:?} {ours:?}");
    let mut furthest = 0f32;
    for ((step, theirs), (our_step, ours)) in theirs.iter().zip(ours) {
        assert_eq!(step, our_step, "{name}");
        let apart = (theirs - ours).abs() / theirs.max(*ours).max(LEAST);
        furthest = furthest.max(apart);
        assert!(
            apart < TOLERANCE,
            "{name} step {step}: {theirs} on TensorFlow's server, {ours} on ours"
        );
    }
    eprintln!("{name}: {} losses at most {furthest:.1e} apart", ours.len());
}

#[test]
fn losses_are_those_of_tensorflow_s_servers() {
    let Some(python) = reference::python() else {
        return;
    };
    let servers = Servers::start(&python);
    let target = servers.target();
    let log = ["--log_steps", "1"];
    let on_target = ["--log_steps", "1", "--target", &target];
    // Ours by default, theirs by target.
    for name in [
        "drive_tensorflow",
        "restore_tensorflow",
        "towers",
        "dataset",
        "embeddings",
        "wide_and_deep",
        "lstm",
    ] {
        servers.reset();
        same(name, &losses_of(name, &on_target), &losses_of(name, &log));
    }
    // Whole trainers: one worker as the chief, on servers that are there already.
    let ours = LocalCluster::start(&[("ps", 2), ("worker", 1)]).unwrap();
    let address = |job: &str, task| ours.spec().task_address(job, task).unwrap().to_owned();
    let ours_at = Servers {
        addresses: vec![address("ps", 0), address("ps", 1), address("worker", 0)],
        _processes: None,
    };
    for name in ["trainer", "sync_trainer"] {
        let [theirs, ours] = [&servers, &ours_at].map(|servers| {
            servers.reset();
            let target = servers.target();
            let hosts = servers.hosts(2);
            let mut args = vec!["--log_steps", "1", "--target", &target];
            args.extend(hosts.iter().map(String::as_str));
            losses_of(name, &args)
        });
        same(name, &theirs, &ours);
    }
}
