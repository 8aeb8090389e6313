//! Real TensorFlow: runs cases in one Python process, JSON lines both ways, and starts its servers.

#[path = "../../../tests/harness/tf_server.rs"]
mod tf_server;

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use prost::Message as _;
use serde_json::{Value, json};
use tensorfleet_proto::TensorProto;
use tensorfleet_status::{Code, Status};
use tensorfleet_tensor::Tensor;

use crate::cases::Case;
use crate::run::StepResult;

pub use tf_server::{Job, TfServers};

/// The environment variable that names a Python with TensorFlow.
pub const PYTHON_VARIABLE: &str = "TENSORFLEET_TF_PYTHON";

/// How long TensorFlow may take for an answer, on a machine that has other things to do. Less than what a test may take,
/// so that a test can say who did not answer.
const SILENCE: Duration = Duration::from_secs(150);

/// The Python with TensorFlow, if there is one; says loudly that the comparison is skipped if not.
#[allow(clippy::print_stderr)] // a skipped comparison must be seen
pub fn python() -> Option<PathBuf> {
    let found = std::env::var_os(PYTHON_VARIABLE).map(PathBuf::from);
    if found.is_none() {
        eprintln!("SKIPPED: {PYTHON_VARIABLE} is not set, nothing is compared with TensorFlow");
    }
    found
}

/// The results of each case by name; a case that TensorFlow could not run at all has none.
pub fn run_all(python: &Path, cases: &[Case]) -> Result<BTreeMap<String, Vec<StepResult>>> {
    let requests: Vec<Value> = cases.iter().map(request).collect::<Result<_>>()?;
    let mut results = BTreeMap::new();
    for value in ask(python, "run_graphs.py", &requests)? {
        let (name, steps) = answer(&value).with_context(|| format!("answer {value:.200}"))?;
        results.insert(name, steps);
    }
    Ok(results)
}

/// What a script of `tests/reference` answers: one JSON line for each request, by the script's rule.
pub fn ask(python: &Path, script: &str, requests: &[Value]) -> Result<Vec<Value>> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/reference")
        .join(script);
    let mut input = String::new();
    for request in requests {
        input.push_str(&request.to_string());
        input.push('\n');
    }
    let mut child = Command::new(python)
        .arg(script)
        .env("TF_CPP_MIN_LOG_LEVEL", "3")
        // Its kernels round otherwise and fail with other codes, and TensorFlow takes them on some processors only: the
        // reference is the same everywhere.
        .env("TF_ENABLE_ONEDNN_OPTS", "0")
        // Fresh memory is full of 0x40: a kernel that leaves some of its result as it was differs
        // from ours in every run, not in the unlucky one.
        .env("MALLOC_PERTURB_", "191")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {}", python.display()))?;
    let mut stdin = child.stdin.take().context("no standard input")?;
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let stdout = child.stdout.take().context("no standard output")?;
    let (told, answers) = channel();
    let reader = std::thread::spawn(move || {
        let mut lines = BufReader::new(stdout).lines();
        lines.try_for_each(|line| told.send(line).map_err(drop))
    });
    let mut values = Vec::new();
    let ended = loop {
        match answers.recv_timeout(SILENCE) {
            Ok(line) => {
                let line = line?;
                let value = serde_json::from_str(&line);
                values.push(value.with_context(|| format!("answer {line:.200}"))?);
            }
            Err(RecvTimeoutError::Disconnected) => break child.wait()?,
            Err(RecvTimeoutError::Timeout) => {
                child.kill()?;
                child.wait()?;
                let (given, asked) = (values.len(), requests.len());
                bail!("TensorFlow gave {given} of {asked} answers, then none for {SILENCE:?}");
            }
        }
    };
    // A broken pipe shows as missing answers.
    let _ = (writer.join(), reader.join());
    if !ended.success() {
        bail!("the reference run ended with {ended}");
    }
    Ok(values)
}

fn request(case: &Case) -> Result<Value> {
    let graph = STANDARD.encode(case.graph.export()?.encode_to_vec());
    let steps: Vec<Value> = case
        .steps
        .iter()
        .map(|step| json!({"feeds": {}, "fetches": step.fetches, "targets": step.targets}))
        .collect();
    Ok(json!({"name": case.name, "graph": graph, "steps": steps}))
}

fn answer(value: &Value) -> Result<(String, Vec<StepResult>)> {
    let name = value["name"].as_str().context("no name")?.to_owned();
    let mut steps = Vec::new();
    for step in value["steps"].as_array().context("no steps")? {
        if let Some(error) = step.get("error") {
            let code = Code::from_number(error["code"].as_i64().unwrap_or(2) as i32);
            steps.push(Err(Status::new(
                code,
                error["message"].as_str().unwrap_or_default(),
            )));
            continue;
        }
        let mut tensors = Vec::new();
        for fetch in step["fetches"].as_array().context("no fetches")? {
            let bytes = STANDARD.decode(fetch.as_str().context("no tensor")?)?;
            tensors.push(Tensor::from_proto(&TensorProto::decode(bytes.as_slice())?)?);
        }
        steps.push(Ok(tensors));
    }
    Ok((name, steps))
}
