//! Datasets out of object stores: one in memory, one that answers as S3 and Google Cloud Storage do, and a web server.

mod server;

use std::io::Write as _;
use std::process::Command;
use std::sync::Arc;

use flate2::write::GzEncoder;
use tensorfleet_checkpoint::record::put_record;
use tensorfleet_input::object_store::memory::InMemory;
use tensorfleet_input::object_store::path::Path;
use tensorfleet_input::object_store::{ObjectStoreExt, PutPayload};
use tensorfleet_input::{Csv, Dataset, Paths, register_object_store};
use tensorfleet_status::{Code, Status};
use tensorfleet_tensor::{DType, TString};

use server::Server;

/// Set in the process that reads as its environment tells.
const CHILD: &str = "TENSORFLEET_TEST_READS_A_STORE";

const LARGE: usize = 1 << 20;

fn records(records: &[&[u8]]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for record in records {
        put_record(&mut bytes, record);
    }
    bytes
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}

/// What lies in each of the stores.
fn objects() -> Vec<(&'static str, Vec<u8>)> {
    let large = vec![b'x'; LARGE];
    vec![
        ("train/a-0.tfrecord", records(&[b"one", b"two"])),
        ("train/a-1.tfrecord.gz", gzip(&records(&[b"three"]))),
        ("train/a-2.tfrecord", records(&[b"four"])),
        ("train/deeper/a-3.tfrecord", records(&[b"not matched"])),
        ("points.csv", b"x,y\n1,2\n3,4\n".to_vec()),
        ("large.tfrecord", records(&[large.as_slice(); 9])),
        ("cut.tfrecord", records(&[b"whole", b"cut"])[..30].to_vec()),
    ]
}

fn strings(paths: impl Into<Paths>) -> Vec<TString> {
    let dataset = Dataset::from_records(paths).unwrap();
    let records = dataset.iter().map(|element| element.unwrap());
    records
        .map(|element| element.at(0).unwrap().to_scalar::<TString>().unwrap())
        .collect()
}

fn error(paths: impl Into<Paths>) -> Status {
    let dataset = match Dataset::from_records(paths) {
        Ok(dataset) => dataset,
        Err(status) => return status,
    };
    dataset.iter().find_map(Result::err).unwrap()
}

fn assert_says(error: &Status, code: Code, words: &[&str]) {
    assert_eq!(error.code(), code, "{error}");
    for word in words {
        assert!(error.message().contains(word), "{word}: {error}");
    }
}

/// What every store can do.
fn check_files(base: &str) {
    let at = |name: &str| format!("{base}/{name}");
    let several = [at("train/a-0.tfrecord"), at("train/a-1.tfrecord.gz")];
    assert_eq!(strings(several), [&b"one"[..], b"two", b"three"]);
    let csv = Csv::new().column("x", DType::F32).column("y", DType::F32);
    let points = Dataset::from_csv(at("points.csv"), csv).unwrap();
    let y = points.iter().map(|point| {
        let point = point.unwrap();
        point.get("y").unwrap().to_scalar::<f32>().unwrap()
    });
    assert_eq!(y.collect::<Vec<_>>(), [2.0, 4.0]);
    let lengths: Vec<usize> = strings(at("large.tfrecord"))
        .iter()
        .map(TString::len)
        .collect();
    assert_eq!(lengths, [LARGE; 9]);
    let missing = at("missing.tfrecord");
    assert_says(
        &error(missing.as_str()),
        Code::NotFound,
        &[&missing, "exist"],
    );
    let words = ["cut.tfrecord", "record 1: truncated"];
    assert_says(&error(at("cut.tfrecord")), Code::DataLoss, &words);
}

/// What stores can do that list their objects.
fn check_patterns(base: &str) {
    let at = |name: &str| format!("{base}/{name}");
    let matched = strings(at("train/a-*"));
    assert_eq!(matched, [&b"one"[..], b"two", b"three", b"four"]);
    let files = Dataset::from_files(at("*/a-[02].tfrecord")).unwrap();
    assert_eq!(files.shard(2, 1).iter().count(), 1);
    let pattern = at("train/b-*");
    let words = [pattern.as_str(), "no object matches"];
    assert_says(&error(pattern.as_str()), Code::NotFound, &words);
    let words = [&at("train/*"), "is a directory"];
    assert_says(
        &error(at("train")),
        Code::FailedPrecondition,
        &words.map(|word| word as &str),
    );
}

#[test]
fn a_registered_store_is_read() {
    let store = Arc::new(InMemory::new());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    for (name, bytes) in objects() {
        let (name, bytes) = (Path::from(name), PutPayload::from(bytes));
        runtime.block_on(store.put(&name, bytes)).unwrap();
    }
    register_object_store("memory://data", store.clone()).unwrap();
    check_files("memory://data");
    check_patterns("memory://data");
    let words = ["memory://other", "register_object_store"];
    assert_says(&error("memory://other/x"), Code::NotFound, &words);
    let wrong = register_object_store("data", store).unwrap_err();
    assert_says(&wrong, Code::InvalidArgument, &["'data'", "scheme://name"]);
}

#[test]
fn a_web_server_is_read() {
    let server = Server::start(objects());
    server.fail_next(2);
    check_files(&format!("{}/bucket", server.url()));
    let pattern = format!("{}/bucket/train/a-*", server.url());
    let words = [pattern.as_str(), "without *"];
    assert_says(&error(pattern.as_str()), Code::Unimplemented, &words);
}

#[test]
fn a_file_is_asked_for_in_blocks_of_bounded_size_once_each() {
    let server = Server::start(objects());
    let url = format!("{}/bucket/large.tfrecord", server.url());
    assert_eq!(strings(url).len(), 9);
    let len = 9 * (LARGE as u64 + 16);
    let mut ranges = server.ranges();
    ranges.sort_unstable();
    assert!(ranges.len() > 1 && ranges[0].0 == 0, "{ranges:?}");
    assert_eq!(ranges.last().unwrap().1, len);
    for pair in ranges.windows(2) {
        assert_eq!(pair[0].1, pair[1].0, "{ranges:?}");
    }
    assert!(ranges.iter().all(|(from, to)| to - from <= 4 << 20));
}

/// Reads a store of which the environment says where it is and who reads. That is why a process of its own reads it:
/// the same test, called again. Whom the server saw reading is returned.
fn check_by_environment(
    test: &str,
    scheme: &str,
    remedy: &str,
    environment: impl FnOnce(&Server) -> Vec<(&'static str, String)>,
) -> Vec<String> {
    if std::env::var_os(CHILD).is_some() {
        let base = format!("{scheme}://bucket");
        check_files(&base);
        check_patterns(&base);
        let private = format!("{scheme}://private/x");
        let words = [private.as_str(), remedy];
        assert_says(&error(private.as_str()), Code::PermissionDenied, &words);
        std::process::exit(0);
    }
    let server = Server::start(objects());
    server.fail_next(2);
    let test = format!("object_store::{test}");
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &test, "--nocapture"])
        .env(CHILD, "1")
        .envs(environment(&server))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stderr);
    assert!(child.status.success(), "{said}");
    let readers = server.signatures();
    assert!(!server.ranges().is_empty());
    readers
}

#[test]
fn s3_is_read_as_the_environment_tells() {
    let test = "s3_is_read_as_the_environment_tells";
    let readers = check_by_environment(test, "s3", "AWS_ACCESS_KEY_ID", |server| {
        vec![
            ("AWS_ENDPOINT_URL", server.url()),
            ("AWS_ALLOW_HTTP", "true".to_owned()),
            ("AWS_ACCESS_KEY_ID", "reader".to_owned()),
            ("AWS_SECRET_ACCESS_KEY", "secret".to_owned()),
            ("AWS_REGION", "here-1".to_owned()),
        ]
    });
    let by_reader = |reader: &String| reader.contains("Credential=reader/");
    assert!(!readers.is_empty() && readers.iter().all(by_reader));
}

#[test]
fn google_cloud_storage_is_read_as_the_environment_tells() {
    let test = "google_cloud_storage_is_read_as_the_environment_tells";
    let remedy = "GOOGLE_APPLICATION_CREDENTIALS";
    let readers = check_by_environment(test, "gs", remedy, |server| {
        vec![
            ("GOOGLE_BASE_URL", server.url()),
            ("GOOGLE_BEARER_TOKEN", "reader".to_owned()),
        ]
    });
    assert!(!readers.is_empty() && readers.iter().all(|reader| reader == "Bearer reader"));
}

#[test]
fn public_data_of_google_cloud_storage_is_read_without_credentials() {
    let test = "public_data_of_google_cloud_storage_is_read_without_credentials";
    let remedy = "GOOGLE_SKIP_SIGNATURE";
    let readers = check_by_environment(test, "gs", remedy, |server| {
        vec![
            ("GOOGLE_BASE_URL", server.url()),
            ("GOOGLE_SKIP_SIGNATURE", "true".to_owned()),
        ]
    });
    assert!(readers.is_empty(), "{readers:?}");
}

#[test]
fn a_server_that_is_not_there_is_said() {
    let url = "http://127.0.0.1:1/x.csv";
    assert_says(&error(url), Code::Unavailable, &[url, "reachable"]);
}
