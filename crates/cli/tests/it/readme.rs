//! What README.md tells TensorFlow's users to type, typed.

use std::path::Path;
use std::process::Command;

use tensorfleet_testkit::reference;

use crate::binary::{Served, free_port};

const README: &str = include_str!("../../../../README.md");

/// The blocks of a language, with the ports of the text replaced by others that are free.
fn blocks(language: &str, ports: &[(&str, u16)]) -> Vec<String> {
    let opening = format!("```{language}\n");
    let blocks = README.split(&opening).skip(1);
    let blocks = blocks.filter_map(|rest| Some(rest.split_once("```")?.0));
    let replaced = |block: &str| {
        ports.iter().fold(block.to_owned(), |text, (port, free)| {
            text.replace(&format!("localhost:{port}"), &format!("localhost:{free}"))
        })
    };
    blocks.map(replaced).collect()
}

/// Runs a program to its end; what it printed.
#[track_caller]
fn python(python: &Path, program: &str) -> String {
    let output = Command::new(python)
        .args(["-c", program])
        .env("TF_CPP_MIN_LOG_LEVEL", "3")
        .output()
        .unwrap();
    assert!(output.status.success(), "{program}\n{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn tensorflow_s_programs_run_as_they_are_written() {
    let Some(interpreter) = reference::python() else {
        return;
    };
    let (ps, worker) = (free_port(), free_port());
    let local = Served::start(&["local"]);
    let (_, port) = local.target.rsplit_once(':').unwrap();
    let ports = [
        ("2222", port.parse().unwrap()),
        ("2223", ps),
        ("2224", worker),
    ];
    let commands = blocks("sh", &ports).join("");
    let serve = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().skip(1).collect();
        Served::start(&words)
    };
    let lines = commands.lines();
    let servers: Vec<Served> = lines
        .filter(|line| line.starts_with("tensorfleet serve "))
        .map(serve)
        .collect();
    assert_eq!(servers.len(), 2, "{commands}");
    let programs = blocks("python", &ports);
    let [first, second] = programs.as_slice() else {
        panic!("{programs:?}");
    };
    let printed = python(&interpreter, first);
    assert!(printed.contains("[[3.6"), "{printed}");
    let printed = python(&interpreter, second);
    assert!(printed.contains("0.0574"), "{printed}");
}
