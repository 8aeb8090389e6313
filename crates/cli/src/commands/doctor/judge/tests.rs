use super::super::examine::Examined;
use super::*;
use tensorfleet_rpc::admin::StatusResponse;

fn patient(address: &str, resolved: &[&str]) -> Patient {
    let resolved = resolved.iter().map(|text| text.parse().unwrap()).collect();
    let examined = Examined {
        resolved,
        ..Examined::default()
    };
    Patient::new(None, address.to_owned(), examined)
}

fn texts(findings: &[Finding]) -> String {
    let lines = findings
        .iter()
        .map(|finding| format!("{}: {}\n", finding.serious, finding.what));
    lines.collect()
}

#[test]
fn addresses_that_only_one_machine_understands() {
    let several =
        ClusterSpec::from_jobs([("ps", ["localhost:1", "a:1"]), ("w", ["b:1", "c:1"])]).unwrap();
    assert!(has_several_hosts(&several));
    let local = ClusterSpec::from_jobs([("ps", ["localhost:1", "127.0.0.1:2"])]).unwrap();
    assert!(!has_several_hosts(&local));
    let found = |address_text: &str, resolved: &[&str], several: bool| {
        texts(&address(&patient(address_text, resolved), several))
    };
    assert_eq!(found("localhost:1", &["127.0.0.1:1"], false), "");
    assert!(found("localhost:1", &["127.0.0.1:1"], true).contains("several hosts"));
    assert!(found("[::1]:1", &["[::1]:1"], true).contains("several hosts"));
    assert!(found("me:1", &["127.0.1.1:1"], true).contains("loopback"));
    assert_eq!(found("me:1", &["10.0.0.1:1"], true), "");
    assert!(found("0.0.0.0:1", &[], false).contains("where to listen"));
    assert!(found("[::]:1", &[], false).contains("where to listen"));
    assert!(found(":1", &[], false).contains("where to listen"));
    assert!(found("a:0", &[], false).starts_with("true: port 0"));
}

#[tokio::test]
async fn clusters_that_differ() {
    let limit = Duration::from_secs(20);
    let cluster = |json: &str| ClusterSpec::parse_json(json).unwrap();
    let asked = cluster(r#"{"ps": ["localhost:1"], "worker": ["localhost:2", "localhost:3"]}"#);
    assert_eq!(other_cluster(&asked, &asked, limit).await, []);
    let spelt = cluster(r#"{"ps": ["127.0.0.1:1"], "worker": ["localhost:2", "localhost:3"]}"#);
    assert_eq!(other_cluster(&asked, &spelt, limit).await, []);
    let other = cluster(r#"{"ps": ["localhost:9"], "worker": {"0": "localhost:2", "7": "x:1"}}"#);
    let found = texts(&other_cluster(&asked, &other, limit).await);
    assert_eq!(
        found,
        "true: its own cluster has /job:ps/task:0 at localhost:9, not at localhost:1\n\
         false: its own cluster does not have /job:worker/replica:0/task:1\n\
         false: its own cluster also has /job:worker/replica:0/task:7\n"
    );
}

#[test]
fn twins_clocks_and_versions() {
    let (mut a, mut b) = (
        patient("localhost:1", &["127.0.0.1:1"]),
        patient("127.0.0.1:1", &["127.0.0.1:1"]),
    );
    assert!(twin(&a, std::slice::from_ref(&a)).is_none());
    let with = |patient: &mut Patient, version: &str, skew: f64| {
        patient.examined.skew = Some(skew);
        patient.examined.status = Some(StatusResponse {
            version: version.to_owned(),
            ..StatusResponse::default()
        });
    };
    with(&mut a, "0.1.0", 0.2);
    with(&mut b, "0.1.0", -0.3);
    assert_eq!(together(&[]), []);
    let all = [a, b];
    assert_eq!(together(&all), []);
    let found = twin(&all[0], &all).unwrap();
    assert!(found.what.contains("127.0.0.1:1"), "{}", found.what);
    let [mut a, b] = all;
    with(&mut a, "0.2.0", 4.0);
    let found = texts(&together(&[a, b]));
    assert!(
        found.contains("different versions: 0.1.0, 0.2.0"),
        "{found}"
    );
    assert!(found.contains("localhost:1 is 4.3 s ahead"), "{found}");
}

#[test]
fn every_failure_has_a_remedy() {
    let cluster = ClusterSpec::from_jobs([("ps", ["a:1"])]).unwrap();
    let mut sick = patient("a:1", &[]);
    sick.expected = Some(TaskName::new("ps", 0));
    let failures = [
        Failure::NoSuchName("unknown".to_owned()),
        Failure::Refused,
        Failure::Unreachable("no route".to_owned()),
        Failure::Silent,
        Failure::Foreign("speaks HTTP/1"),
        Failure::NoAnswer(Status::new(Code::Unimplemented, "")),
        Failure::NoAnswer(Status::new(Code::DeadlineExceeded, "")),
        Failure::NoAnswer(Status::new(Code::Internal, "")),
    ];
    let findings = failures.map(|failure| failed(&sick, &failure, Some(&cluster)));
    let different: BTreeSet<&str> = findings.iter().map(|found| found.what.as_str()).collect();
    assert_eq!(different.len(), findings.len());
    for finding in &findings {
        assert!(finding.serious && !finding.remedy.is_empty(), "{finding:?}");
    }
    assert!(findings[1].remedy.contains("--job_name=ps --task_index=0"));
}

#[test]
fn servers_that_do_not_tell_their_cluster() {
    assert_eq!(secretive(&BTreeSet::new()), None);
    let others = BTreeSet::from([TaskName::new("ps", 0), TaskName::new("ps", 1)]);
    let found = secretive(&others).unwrap();
    assert!(!found.serious);
    let both = "/job:ps/replica:0/task:0, /job:ps/replica:0/task:1";
    assert!(found.what.contains(both), "{found:?}");
    assert!(found.remedy.contains("--cluster"), "{found:?}");
    let late = Status::new(Code::DeadlineExceeded, "");
    let remedy = |tells| blind(&late, Duration::from_secs(1), tells).remedy;
    assert!(remedy(false).contains("--cluster"));
    assert!(!remedy(true).contains("--cluster"));
}
