//! Beside TensorFlow's own servers. Skipped, loudly, where there are none.

use tensorfleet_testkit::reference::{self, Job, TfServers};

use crate::binary::free_port;
use crate::doctor::{doctor, findings};

#[test]
fn doctor_says_that_one_server_does_not_lead_to_the_others() {
    let Some(python) = reference::python() else {
        return;
    };
    let [ps, worker] = [free_port(), free_port()].map(|port| [format!("localhost:{port}")]);
    let job = |name, addresses| Job {
        name,
        addresses,
        config: "",
    };
    let jobs = [job("ps", &ps), job("worker", &worker)];
    let _servers = TfServers::start(&python, &jobs).unwrap();
    let report = doctor(&[&worker[0], "--timeout=60"], 0);
    let found = findings(&report, "/job:worker/task:0");
    for word in ["warning", "/job:ps/replica:0/task:0", "--cluster"] {
        assert!(found.contains(word), "'{word}' is not in: {found}");
    }
    let both = ["--ps_hosts", &ps[0], "--worker_hosts", &worker[0]];
    let report = doctor(&[&both[..], &["--timeout=60"]].concat(), 0);
    for task in ["/job:ps/task:0", "/job:worker/task:0"] {
        assert_eq!(findings(&report, task), "");
    }
}
