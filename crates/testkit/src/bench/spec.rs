//! `spec.json` of a case, with the tensors to feed.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use prost::Message;
use serde_json::Value;
use tensorfleet_proto::TensorProto;
use tensorfleet_tensor::Tensor;

/// What is timed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    /// A step in a session that was set up before.
    Run,
    /// A new session, the whole graph and the first step.
    Import,
}

/// The part of `spec.json` that a timer needs.
#[derive(Debug)]
pub(super) struct Spec {
    pub(super) kind: Kind,
    pub(super) optimize: bool,
    pub(super) setup: Vec<Step>,
    pub(super) step: Step,
}

/// What to run, with the tensors for it.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) feed_names: Vec<String>,
    pub(super) feeds: Vec<Tensor>,
    pub(super) fetches: Vec<String>,
    pub(super) targets: Vec<String>,
}

impl Spec {
    /// Reads the case's `spec.json` and the files it names.
    pub(super) fn read(folder: &Path) -> Result<Spec> {
        let path = folder.join("spec.json");
        Self::read_file(folder, &path).with_context(|| path.display().to_string())
    }

    fn read_file(folder: &Path, path: &Path) -> Result<Spec> {
        let spec: Value = serde_json::from_slice(&fs::read(path)?)?;
        let kind = match &spec["kind"] {
            Value::String(kind) if kind == "run" => Kind::Run,
            Value::String(kind) if kind == "import" => Kind::Import,
            other => bail!("unknown kind {other}"),
        };
        let optimize = spec["optimize"]
            .as_bool()
            .with_context(|| format!("optimize is {}", spec["optimize"]))?;
        let setup = list(&spec["setup"]).context("setup")?;
        let setup: Result<Vec<Step>> = setup.iter().map(|step| Step::read(folder, step)).collect();
        Ok(Spec {
            kind,
            optimize,
            setup: setup.context("setup")?,
            step: Step::read(folder, &spec["step"]).context("step")?,
        })
    }
}

impl Step {
    fn read(folder: &Path, step: &Value) -> Result<Step> {
        if !step.is_object() {
            bail!("not an object: {step}");
        }
        let mut read = Step {
            feed_names: Vec::new(),
            feeds: Vec::new(),
            fetches: strings(&step["fetches"]).context("fetches")?,
            targets: strings(&step["targets"]).context("targets")?,
        };
        let feeds = match &step["feeds"] {
            Value::Null => return Ok(read),
            Value::Object(feeds) => feeds,
            other => bail!("feeds: not an object: {other}"),
        };
        for (name, file) in feeds {
            let file = file
                .as_str()
                .with_context(|| format!("no file to feed {name}"))?;
            let tensor = read_tensor(&folder.join(file)).with_context(|| file.to_owned())?;
            read.feed_names.push(name.clone());
            read.feeds.push(tensor);
        }
        Ok(read)
    }
}

fn read_tensor(path: &Path) -> Result<Tensor> {
    let proto = TensorProto::decode(fs::read(path)?.as_slice())?;
    Ok(Tensor::from_proto(&proto)?)
}

/// The items of a list; none if it is left out.
fn list(value: &Value) -> Result<&[Value]> {
    match value {
        Value::Null => Ok(&[]),
        Value::Array(items) => Ok(items),
        other => bail!("not a list: {other}"),
    }
}

fn strings(value: &Value) -> Result<Vec<String>> {
    let text = |item: &Value| {
        let text = item.as_str().map(str::to_owned);
        text.with_context(|| format!("not a string: {item}"))
    };
    list(value)?.iter().map(text).collect()
}
