//! The lifecycle on TensorFlow's own server. Skipped, loudly, where there is none.

#[path = "../../../../tests/harness/tf_server.rs"]
#[expect(unreachable_pub, reason = "testkit hands it on to other crates")]
mod tf_server;

use std::path::Path;

use crate::cluster::free_address;
use crate::lifecycle;
use tf_server::{Job, TfServers};

#[test]
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn the_lifecycle_is_the_same_on_tensorflow_s_server() {
    let Some(python) = std::env::var_os("TENSORFLEET_TF_PYTHON") else {
        eprintln!("SKIPPED: TENSORFLEET_TF_PYTHON is not set");
        return;
    };
    let job = Job {
        name: "local",
        addresses: &[free_address()],
        config: "",
    };
    let servers = TfServers::start(Path::new(&python), &[job]).unwrap();
    let target = &servers.targets()[0];
    let mut wrong = Vec::new();
    for (name, check) in lifecycle::CHECKS {
        if let Err(panic) = std::panic::catch_unwind(|| check(target)) {
            let text = panic.downcast_ref::<String>().cloned();
            wrong.push(format!("{name}: {}", text.unwrap_or_default()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
