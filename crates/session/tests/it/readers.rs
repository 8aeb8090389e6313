//! Readers of files, and readers that wait for work.

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::thread::{JoinHandle, sleep, spawn};
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use tensorfleet_session::{RunOptions, Session};
use tensorfleet_status::{Code, Result};
use tensorfleet_tensor::{TString, Tensor};

use crate::graphs::{graph, session};

/// A reader made by `make`, its queue, and everything one can do with both.
fn reader(make: &str) -> Reader {
    let text = format!(
        "r = {make}
         q = FIFOQueueV2() {{component_types=[DT_STRING], shapes=[[]]}}
         x = Placeholder() {{dtype=DT_STRING, shape=[?]}}
         n = Placeholder() {{dtype=DT_INT64, shape=[]}}
         put = QueueEnqueueManyV2(q, [x])
         close = QueueCloseV2(q)
         size = QueueSizeV2(q)
         read = ReaderReadV2(r, q)
         up_to = ReaderReadUpToV2(r, q, n)
         produced = ReaderNumRecordsProducedV2(r)
         completed = ReaderNumWorkUnitsCompletedV2(r)
         reset = ReaderResetV2(r)"
    );
    Reader(Arc::new(session(&graph(&text))))
}

#[derive(Clone)]
struct Reader(Arc<Session>);

type Record = (String, String);

impl Reader {
    fn put(&self, work: &[&str]) {
        let work: Vec<TString> = work
            .iter()
            .map(|work| TString::from(work.to_string()))
            .collect();
        let feeds = [("x:0", Tensor::vector(&work))];
        self.0.run(&feeds, &[], &["put"]).unwrap();
    }

    fn read(&self) -> Result<Record> {
        let got = self.0.run(&[], &["read:0", "read:1"], &[])?;
        Ok((text(&got[0]).remove(0), text(&got[1]).remove(0)))
    }

    fn up_to(&self, n: i64) -> Result<Vec<String>> {
        let feeds = [("n:0", Tensor::scalar(n))];
        let got = self.0.run(&feeds, &["up_to:0", "up_to:1"], &[])?;
        assert_eq!(got[0].shape(), got[1].shape());
        Ok(text(&got[1]))
    }

    fn count(&self, name: &str) -> i64 {
        let got = self.0.run(&[], &[name], &[]).unwrap();
        got[0].to_scalar().unwrap()
    }

    fn run(&self, target: &str) {
        self.0.run(&[], &[], &[target]).unwrap();
    }

    /// All records until the queue, which is closed, is empty.
    fn rest(&self) -> Vec<Record> {
        self.run("close");
        let mut records = Vec::new();
        loop {
            match self.read() {
                Ok(record) => records.push(record),
                Err(status) => {
                    assert_eq!(status.code(), Code::OutOfRange, "{status}");
                    return records;
                }
            }
        }
    }

    fn later(&self) -> JoinHandle<Result<Record>> {
        let reader = self.clone();
        spawn(move || reader.read())
    }
}

fn text(tensor: &Tensor) -> Vec<String> {
    let texts = tensor.slice::<TString>().unwrap().iter();
    texts
        .map(|text| String::from_utf8(text.to_vec()).unwrap())
        .collect()
}

/// Writes a file; its path.
fn file(dir: &Path, name: &str, contents: &[u8]) -> String {
    let path = dir.join(name);
    std::fs::write(&path, contents).unwrap();
    path.display().to_string()
}

fn gzip(contents: &[u8]) -> Vec<u8> {
    let mut out = GzEncoder::new(Vec::new(), Compression::fast());
    out.write_all(contents).unwrap();
    out.finish().unwrap()
}

fn zlib(contents: &[u8]) -> Vec<u8> {
    let mut out = ZlibEncoder::new(Vec::new(), Compression::fast());
    out.write_all(contents).unwrap();
    out.finish().unwrap()
}

fn keyed(path: &str, records: &[(u64, &str)]) -> Vec<Record> {
    let records = records.iter();
    records
        .map(|(key, value)| (format!("{path}:{key}"), value.to_string()))
        .collect()
}

#[test]
fn whole_files_are_records() {
    let dir = tempfile::tempdir().unwrap();
    let paths = [file(dir.path(), "a", b"one\n"), file(dir.path(), "b", b"")];
    let reader = reader("WholeFileReaderV2()");
    reader.put(&[&paths[0], &paths[1]]);
    let expected = [
        (paths[0].clone(), "one\n".to_owned()),
        (paths[1].clone(), String::new()),
    ];
    assert_eq!(reader.rest(), expected);
    assert_eq!(reader.count("produced"), 2);
    assert_eq!(reader.count("completed"), 2);
}

#[test]
fn lines_are_numbered_from_one_behind_the_header() {
    let dir = tempfile::tempdir().unwrap();
    let a = file(dir.path(), "a", b"name\nx\r\n\ny");
    let b = file(dir.path(), "b", b"name");
    let c = file(dir.path(), "c", b"");
    let reader = reader("TextLineReaderV2() {skip_header_lines=1}");
    reader.put(&[&a, &b, &c, &a]);
    assert_eq!(reader.up_to(2).unwrap(), ["x", ""]);
    assert_eq!(reader.count("completed"), 0);
    // The rest of a file, not the beginning of another.
    assert_eq!(reader.up_to(2).unwrap(), ["y"]);
    assert_eq!(reader.rest(), keyed(&a, &[(2, "x"), (3, ""), (4, "y")]));
    assert_eq!(reader.count("completed"), 4);
}

#[test]
fn records_of_a_fixed_length_may_overlap() {
    let dir = tempfile::tempdir().unwrap();
    let contents = b"H01234567F";
    let cases = [
        (
            "record_bytes=3, header_bytes=1, footer_bytes=1",
            vec![(0, "012"), (1, "345")],
        ),
        (
            "record_bytes=3, header_bytes=1, footer_bytes=1, hop_bytes=2",
            vec![(0, "012"), (1, "234"), (2, "456")],
        ),
        (
            "record_bytes=2, header_bytes=1, hop_bytes=5",
            vec![(0, "01"), (1, "56")],
        ),
    ];
    for (attrs, expected) in cases {
        for (encoding, packed) in [
            ("", contents.to_vec()),
            ("GZIP", gzip(contents)),
            ("ZLIB", zlib(contents)),
        ] {
            let path = file(dir.path(), "a", &packed);
            let reader = reader(&format!(
                "FixedLengthRecordReaderV2() {{{attrs}, encoding='{encoding}'}}"
            ));
            reader.put(&[&path]);
            assert_eq!(reader.rest(), keyed(&path, &expected), "{attrs} {encoding}");
        }
    }
}

#[test]
fn tf_records_are_read_packed_or_not() {
    let dir = tempfile::tempdir().unwrap();
    let mut contents = Vec::new();
    for record in ["one", "", "three"] {
        tensorfleet_checkpoint::record::put_record(&mut contents, record.as_bytes());
    }
    for (packing, packed) in [
        ("", contents.clone()),
        ("GZIP", gzip(&contents)),
        ("ZLIB", zlib(&contents)),
    ] {
        let path = file(dir.path(), "a", &packed);
        let reader = reader(&format!(
            "TFRecordReaderV2() {{compression_type='{packing}'}}"
        ));
        reader.put(&[&path]);
        let expected = keyed(&path, &[(0, "one"), (19, ""), (35, "three")]);
        assert_eq!(reader.rest(), expected, "{packing}");
    }
}

#[test]
fn damage_is_an_error_and_reset_a_way_out() {
    let dir = tempfile::tempdir().unwrap();
    let mut contents = Vec::new();
    tensorfleet_checkpoint::record::put_record(&mut contents, b"one");
    contents.extend_from_slice(b"this is no record at all");
    let path = file(dir.path(), "a", &contents);
    let reader = reader("TFRecordReaderV2()");
    reader.put(&[&path, &path]);
    assert_eq!(reader.read().unwrap().1, "one");
    assert_eq!(reader.read().err().unwrap().code(), Code::DataLoss);
    reader.run("reset");
    assert_eq!(reader.read().unwrap().1, "one");
    assert_eq!(reader.count("produced"), 1);
}

#[test]
fn reads_that_wait_hold_no_thread() {
    let reader = reader("IdentityReaderV2()");
    // More than there are threads.
    let waiting: Vec<_> = (0..40).map(|_| reader.later()).collect();
    sleep(Duration::from_millis(50));
    assert_eq!(
        reader.0.run(&[], &["size:0"], &[]).unwrap()[0]
            .to_scalar::<i32>()
            .unwrap(),
        0
    );
    let work: Vec<String> = (0..40).map(|number| number.to_string()).collect();
    reader.put(&work.iter().map(String::as_str).collect::<Vec<_>>());
    let mut got: Vec<String> = waiting
        .into_iter()
        .map(|thread| thread.join().unwrap().unwrap().1)
        .collect();
    got.sort_by_key(|text| text.parse::<i32>().unwrap());
    assert_eq!(got, work);
    assert_eq!(reader.count("produced"), 40);
}

#[test]
fn a_read_that_is_no_longer_wanted_leaves_the_line() {
    let reader = reader("IdentityReaderV2()");
    let options = RunOptions {
        timeout: Some(Duration::from_millis(50)),
        ..RunOptions::default()
    };
    let first = reader.later();
    sleep(Duration::from_millis(20));
    // Behind the first, which waits for the queue.
    let begin = Instant::now();
    for fetch in ["read:0", "produced:0"] {
        let status = reader.0.run_with(&options, &[], &[fetch], &[]);
        assert_eq!(status.err().unwrap().code(), Code::DeadlineExceeded);
    }
    assert!(begin.elapsed() < Duration::from_secs(30));
    reader.put(&["a"]);
    assert_eq!(first.join().unwrap().unwrap().1, "a");
    // As first in line, and the reader goes on afterwards.
    let status = reader.0.run_with(&options, &[], &["read:0"], &[]);
    assert_eq!(status.err().unwrap().code(), Code::DeadlineExceeded);
    reader.put(&["b"]);
    assert_eq!(reader.read().unwrap().1, "b");
}

#[cfg(target_os = "linux")]
#[test]
fn files_that_never_end_are_refused() {
    for make in [
        "TextLineReaderV2() {skip_header_lines=0}",
        "WholeFileReaderV2()",
    ] {
        let reader = reader(make);
        reader.put(&["/dev/zero"]);
        let status = reader.read().unwrap_err();
        assert_eq!(status.code(), Code::ResourceExhausted, "{status}");
        assert!(status.message().contains("/dev/zero"), "{status}");
    }
    let whole = session(&graph(
        "zeros = string[]{'/dev/zero'}
         folder = string[]{'/dev'}
         endless = ReadFile(zeros)
         none = ReadFile(folder)",
    ));
    for (fetch, code) in [
        ("endless:0", Code::ResourceExhausted),
        ("none:0", Code::FailedPrecondition),
    ] {
        let status = whole.run(&[], &[fetch], &[]).unwrap_err();
        assert_eq!(status.code(), code, "{status}");
    }
}
