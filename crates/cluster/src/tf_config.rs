//! [`TfConfig`]: the cluster and the own task as the environment variable `TF_CONFIG` gives them.

use serde_json::{Map, Value};
use tensorfleet_status::{Result, Status, invalid_argument, not_found};

use crate::spec::ClusterSpec;

/// The job whose tasks look on from outside: never part of the cluster.
const EVALUATOR: &str = "evaluator";

/// What `TF_CONFIG` says. Keys that TensorFlow ignores are ignored.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TfConfig {
    /// The cluster; empty if not given.
    pub cluster: ClusterSpec,
    /// Who this process is, if given.
    pub task: Option<TaskId>,
    /// How tasks talk: `grpc`.
    pub rpc_layer: Option<String>,
    /// The target sessions shall use, if it is not the own server.
    pub session_master: Option<String>,
}

/// A task by job and index.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TaskId {
    /// The job.
    pub job: String,
    /// The index in the job.
    pub index: u32,
}

impl TfConfig {
    /// Reads the variable's text; an empty text says nothing.
    pub fn parse(text: &str) -> Result<TfConfig> {
        if text.trim().is_empty() {
            return Ok(TfConfig::default());
        }
        let json: Value = serde_json::from_str(text)
            .map_err(|error| invalid_argument!("TF_CONFIG is not JSON: {error}: {text}"))?;
        let Value::Object(json) = json else {
            return Err(invalid_argument!(
                "TF_CONFIG must be an object such as {{\"cluster\": {{\"worker\": [\"host:2222\"]}}, \"task\": {{\"type\": \"worker\", \"index\": 0}}}}, not {json}"
            ));
        };
        let config = TfConfig {
            cluster: match given(&json, "cluster") {
                Some(cluster) => ClusterSpec::from_json(cluster).map_err(in_tf_config)?,
                None => ClusterSpec::default(),
            },
            task: given(&json, "task").map(parse_task).transpose()?.flatten(),
            rpc_layer: string(&json, "rpc_layer")?,
            session_master: string(&json, "session_master")?,
        };
        config.check_task()?;
        Ok(config)
    }

    /// Whether this process evaluates from outside the cluster and thus has no server.
    pub fn is_evaluator(&self) -> bool {
        self.task.as_ref().is_some_and(|task| task.job == EVALUATOR)
    }

    /// Fails unless tasks shall talk as ours do.
    pub fn check_rpc_layer(&self) -> Result<()> {
        match self.rpc_layer.as_deref() {
            None | Some("grpc") => Ok(()),
            Some(layer) => Err(not_found!(
                "TF_CONFIG asks for rpc_layer \"{layer}\": only \"grpc\" is known"
            )),
        }
    }

    fn check_task(&self) -> Result<()> {
        match &self.task {
            Some(task) if task.job != EVALUATOR && !self.cluster.is_empty() => self
                .cluster
                .task_address(&task.job, task.index)
                .map(|_| ())
                .map_err(|status| {
                    in_tf_config(invalid_argument!(
                        "the task is not in the cluster: {}",
                        status.message()
                    ))
                }),
            _ => Ok(()),
        }
    }
}

fn in_tf_config(status: Status) -> Status {
    status.context("TF_CONFIG")
}

fn given<'a>(object: &'a Map<String, Value>, key: &str) -> Option<&'a Value> {
    object.get(key).filter(|value| !value.is_null())
}

fn string(object: &Map<String, Value>, key: &str) -> Result<Option<String>> {
    match given(object, key) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(other) => Err(invalid_argument!(
            "TF_CONFIG: \"{key}\" must be a string, not {other}"
        )),
    }
}

/// `{}` is no task; an index may be a number or, as Python's `int()` takes it, a text.
fn parse_task(json: &Value) -> Result<Option<TaskId>> {
    let Value::Object(task) = json else {
        return Err(invalid_argument!(
            "TF_CONFIG: \"task\" must be an object such as {{\"type\": \"worker\", \"index\": 0}}, not {json}"
        ));
    };
    let Some(job) = string(task, "type")? else {
        return match given(task, "index") {
            None => Ok(None),
            Some(_) => Err(invalid_argument!(
                "TF_CONFIG: \"task\" has an index but no \"type\" (the job's name)"
            )),
        };
    };
    let index = match given(task, "index") {
        None => Some(0),
        Some(Value::String(text)) => text.trim().parse().ok(),
        Some(number) => number.as_u64().and_then(|index| u32::try_from(index).ok()),
    };
    match index {
        Some(index) => Ok(Some(TaskId { job, index })),
        None => Err(invalid_argument!(
            "TF_CONFIG: the task's \"index\" must be a number from 0, not {}",
            given(task, "index").unwrap_or(&Value::Null)
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tensorfleet_status::Code;

    #[test]
    fn reads_cluster_task_and_layer() {
        let config = TfConfig::parse(
            r#"{"cluster": {"worker": ["a:1", "b:1"], "ps": {"2": "c:1"}},
                "task": {"type": "worker", "index": "1"}, "rpc_layer": "grpc", "environment": "cloud"}"#,
        )
        .unwrap();
        assert_eq!(config.cluster.task_address("ps", 2).unwrap(), "c:1");
        let task = config.task.clone().unwrap();
        assert_eq!((task.job.as_str(), task.index), ("worker", 1));
        assert_eq!(config.rpc_layer.as_deref(), Some("grpc"));
        assert!(!config.is_evaluator());
    }

    #[test]
    fn nothing_and_evaluators_are_fine() {
        for text in ["", " ", "{}", r#"{"task": {}, "cluster": null}"#] {
            assert_eq!(TfConfig::parse(text).unwrap(), TfConfig::default());
        }
        let config = TfConfig::parse(
            r#"{"cluster": {"chief": ["a:1"]}, "task": {"type": "evaluator", "index": 0}}"#,
        );
        assert!(config.unwrap().is_evaluator());
    }

    #[test]
    fn says_what_is_wrong() {
        for (text, needle) in [
            ("{", "TF_CONFIG is not JSON"),
            ("[]", "must be an object such as"),
            (
                r#"{"cluster": []}"#,
                "TF_CONFIG: a cluster must be an object",
            ),
            (
                r#"{"cluster": {"ps": ["h"]}}"#,
                "TF_CONFIG: task 0 of job \"ps\"",
            ),
            (r#"{"task": 3}"#, "\"task\" must be an object"),
            (r#"{"task": {"index": 1}}"#, "no \"type\""),
            (r#"{"task": {"type": "ps", "index": -1}}"#, "not -1"),
            (r#"{"task": {"type": "ps", "index": "x"}}"#, "not \"x\""),
            (
                r#"{"task": {"type": 1}}"#,
                "\"type\" must be a string, not 1",
            ),
            (r#"{"rpc_layer": 1}"#, "\"rpc_layer\" must be a string"),
            (
                r#"{"cluster": {"ps": ["h:1"]}, "task": {"type": "worker", "index": 0}}"#,
                "not in the cluster: No such job in cluster: 'worker'; the jobs are 'ps'",
            ),
            (
                r#"{"cluster": {"ps": ["h:1"]}, "task": {"type": "ps", "index": 1}}"#,
                "No task with index 1 in job 'ps'; its task indices are [0]",
            ),
        ] {
            let error = TfConfig::parse(text).unwrap_err();
            assert_eq!(error.code(), Code::InvalidArgument, "{text}");
            assert!(error.message().contains(needle), "{text}: {error}");
        }
    }
}
