use tensorfleet_status::Code;

use super::*;

const CLUSTER: &str = r#""cluster": {"ps": ["a:1"], "worker": ["b:1", "c:1"]}"#;

/// `job:index` with a mark for the chief, or the error's text.
fn placed(arguments: &[&str], tf_config: Option<&str>) -> Result<String, String> {
    ClusterFlags::parse_known(arguments.iter().copied())
        .and_then(|(flags, _)| flags.find_with(tf_config))
        .map(|task| task.map_or("nowhere".to_owned(), |task| task.role.to_string()))
        .map_err(|status| {
            assert_eq!(status.code(), Code::InvalidArgument, "{status}");
            status.message().to_owned()
        })
}

fn task(arguments: &[&str]) -> Task {
    let (flags, rest) = ClusterFlags::parse_known(arguments.iter().copied()).unwrap();
    assert_eq!(rest, [""; 0]);
    flags.task().unwrap()
}

#[test]
fn takes_every_spelling() {
    let spellings: &[&[&str]] = &[
        &[
            "--ps_hosts=a:1",
            "--worker_hosts=b:1,c:1",
            "--job_name=worker",
            "--task_index=1",
        ],
        &[
            "--ps-hosts",
            "a:1",
            "--worker-hosts",
            "b:1, c:1",
            "--job-name",
            "worker",
            "--task-index",
            "1",
        ],
        &[
            "--ps=a:1",
            "--worker=b:1",
            "--worker=c:1",
            "--job_name=worker",
            "--task_index=1",
            "--chief_hosts=",
        ],
        &[
            "--cluster",
            r#"{"ps": ["a:1"], "worker": ["b:1", "c:1"]}"#,
            "--job_name=worker",
            "--task_index=1",
        ],
    ];
    for arguments in spellings {
        let task = task(arguments);
        assert_eq!(task.role.to_string(), "/job:worker/task:1");
        assert_eq!(task.cluster.iter().count(), 3);
        assert_eq!(task.target().unwrap(), "grpc://c:1");
    }
}

#[test]
fn leaves_the_arguments_of_others_alone() {
    let arguments = [
        "train",
        "--steps",
        "5",
        "--ps",
        "a:1",
        "-v",
        "--",
        "--job_name=x",
    ];
    let (flags, rest) = ClusterFlags::parse_known(arguments).unwrap();
    assert_eq!(rest, ["train", "--steps", "5", "-v", "--", "--job_name=x"]);
    assert_eq!(flags.task().unwrap().role.to_string(), "/job:ps/task:0");
}

#[test]
fn knows_the_chief() {
    let chief = |cluster: &str, job: &str, index: u32| {
        let cluster = ClusterSpec::parse_json(cluster).unwrap();
        Role::new(&cluster, job, index).is_chief
    };
    let without = r#"{"ps": ["a:1"], "worker": ["b:1", "c:1"]}"#;
    assert!(chief(without, "worker", 0));
    assert!(!chief(without, "worker", 1));
    assert!(!chief(without, "ps", 0));
    for job in ["chief", "master"] {
        let with = format!(r#"{{"{job}": ["d:1"], "worker": ["b:1"]}}"#);
        assert!(chief(&with, job, 0));
        assert!(!chief(&with, "worker", 0));
    }
    let roles = Role::new(&ClusterSpec::default(), "ps", 0);
    assert!(roles.is_ps && !roles.is_evaluator);
}

#[test]
fn flags_win_over_tf_config() {
    let config = format!(r#"{{{CLUSTER}, "task": {{"type": "worker", "index": 1}}}}"#);
    let config = Some(config.as_str());
    assert_eq!(placed(&[], config).unwrap(), "/job:worker/task:1");
    assert_eq!(
        placed(&["--task_index=0"], config).unwrap(),
        "/job:worker/task:0 (chief)"
    );
    assert_eq!(
        placed(&["--job_name=ps"], config).unwrap(),
        "/job:ps/task:0"
    );
    assert_eq!(
        placed(&["--chief_hosts=d:1"], config).unwrap(),
        "/job:chief/task:0 (chief)"
    );
}

#[test]
fn evaluators_are_outside() {
    let config = format!(r#"{{{CLUSTER}, "task": {{"type": "evaluator", "index": 0}}}}"#);
    let (flags, _) = ClusterFlags::parse_known(["--job_name=evaluator", "--ps=a:1"]).unwrap();
    for (flags, config) in [
        (ClusterFlags::default(), Some(config.as_str())),
        (flags, None),
    ] {
        let task = flags.find_with(config).unwrap().unwrap();
        assert!(task.role.is_evaluator && !task.role.is_chief);
        let error = task.start_server().err().unwrap();
        assert_eq!(error.code(), Code::FailedPrecondition);
        assert!(error.message().contains("no server"), "{error}");
        assert!(task.target().is_err());
    }
}

#[test]
fn nothing_is_a_cluster_of_its_own_if_wanted() {
    let alone = r#"{"task": {"type": "worker", "index": 0}}"#;
    let leading_nobody = r#"{"task": {"type": "chief", "index": 0}}"#;
    for nothing in [
        None,
        Some("{}"),
        Some(r#"{"cluster": {}}"#),
        Some(r#"{"environment": "cloud"}"#),
        Some(alone),
        Some(leading_nobody),
    ] {
        assert_eq!(placed(&[], nothing).unwrap(), "nowhere");
    }
    let evaluator = r#"{"task": {"type": "evaluator", "index": 0}}"#;
    assert_eq!(
        placed(&[], Some(evaluator)).unwrap(),
        "/job:evaluator/task:0"
    );
    let error = ClusterFlags::default().task().unwrap_err();
    assert!(error.message().contains("--ps_hosts"), "{error}");
    let task = ClusterFlags::default().task_or_local().unwrap();
    assert_eq!(task.role.to_string(), "/job:worker/task:0 (chief)");
    let error = task.target().unwrap_err();
    assert!(error.message().contains("ask the server"), "{error}");
    let server = task.start_server().unwrap();
    assert!(server.target().starts_with("grpc://localhost:"));
    server.stop();
}

#[test]
fn session_masters_are_the_target() {
    let config = format!(
        r#"{{{CLUSTER}, "session_master": "grpc://m:1", "task": {{"type": "worker", "index": 0}}}}"#
    );
    let task = ClusterFlags::default().find_with(Some(&config)).unwrap();
    assert_eq!(task.unwrap().target().unwrap(), "grpc://m:1");
}

#[test]
fn says_what_is_wrong() {
    let hosts = ["--ps_hosts=a:1", "--worker_hosts=b:1,c:1"];
    let cases: &[(&[&str], &[&str])] = &[
        (&[], &["job_name", "ps, worker"]),
        (&["--job_name=worker"], &["task_index", "[0, 1]"]),
        (
            &["--job_name=wroker", "--task_index=0"],
            &["--job_name=wroker", "the jobs are 'ps', 'worker'"],
        ),
        (
            &["--job_name=worker", "--task_index=7"],
            &["--task_index=7", "indices are [0, 1]"],
        ),
        (&["--task_index=x"], &["--task_index", "'x'"]),
        (&["--task_index=-1"], &["--task_index"]),
        (&["--job_name"], &["--job_name"]),
        (&["--cluster={"], &["--cluster", "not JSON"]),
        (&["--cluster=nowhere.json"], &["nowhere.json", "neither"]),
    ];
    for (arguments, words) in cases {
        let error = placed(&[&hosts[..], arguments].concat(), None).unwrap_err();
        for word in *words {
            assert!(error.contains(word), "{arguments:?}: {error}");
        }
        assert!(!error.contains("Usage"), "{error}");
    }
    let error = placed(&["--ps=a:1,b:1", "--task_index=2"], None).unwrap_err();
    assert!(error.contains("indices are [0, 1]"), "{error}");
    let error = placed(&[], Some("{")).unwrap_err();
    assert!(error.contains("TF_CONFIG is not JSON"), "{error}");
    let verbs = format!(r#"{{{CLUSTER}, "rpc_layer": "verbs", "task": {{"type": "ps"}}}}"#);
    let error = ClusterFlags::default().find_with(Some(&verbs)).unwrap_err();
    assert!(error.message().contains("only \"grpc\""), "{error}");
    for (job, index) in [("worker", 1), ("ps", 0)] {
        let homeless = format!(r#"{{"task": {{"type": "{job}", "index": {index}}}}}"#);
        let error = placed(&[], Some(&homeless)).unwrap_err();
        let task = format!("/job:{job}/task:{index}");
        assert!(
            error.contains("has no \"cluster\"") && error.contains(&task),
            "{error}"
        );
    }
}
