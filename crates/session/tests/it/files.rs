//! Ops on files that scripts cannot show, for want of a place to write.

use std::collections::BTreeSet;
use std::path::Path;

use tensorfleet_checkpoint::record::put_record;
use tensorfleet_session::Session;
use tensorfleet_status::Code;
use tensorfleet_tensor::{TString, Tensor};

use crate::graphs::{graph, session, values};

/// A session with this graph, in which `{dir}` stands for the directory.
fn in_dir(dir: &Path, text: &str) -> Session {
    session(&graph(&text.replace("{dir}", &dir.display().to_string())))
}

fn fetch(session: &Session, name: &str) -> Tensor {
    session.run(&[], &[name], &[]).unwrap().remove(0)
}

fn code(session: &Session, name: &str) -> Code {
    session.run(&[], &[name], &[]).err().unwrap().code()
}

#[test]
fn files_are_found_by_patterns() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["b.txt", "a.txt", "c.csv"] {
        std::fs::write(dir.path().join(name), name).unwrap();
    }
    let session = in_dir(
        dir.path(),
        "p = string[2]{{dir}/*.csv, {dir}/?.txt}
         found = MatchingFiles(p)",
    );
    let found: Vec<TString> = values(&fetch(&session, "found:0"));
    let names: Vec<&str> = found
        .iter()
        .map(|path| {
            std::str::from_utf8(path)
                .unwrap()
                .rsplit('/')
                .next()
                .unwrap()
        })
        .collect();
    assert_eq!(names, ["a.txt", "b.txt", "c.csv"]);
}

#[test]
fn new_words_are_looked_up_among_the_old() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("old"), "a\nb\nc\n").unwrap();
    std::fs::write(dir.path().join("new"), "c\nx\na\nb").unwrap();
    std::fs::write(dir.path().join("twice"), "a\na\n").unwrap();
    let session = in_dir(
        dir.path(),
        "n = string[]{{dir}/new}
         o = string[]{{dir}/old}
         t = string[]{{dir}/twice}
         all = GenerateVocabRemapping(n, o) {new_vocab_offset=0, num_new_vocab=4}
         some = GenerateVocabRemapping(n, o) {new_vocab_offset=2, num_new_vocab=2, old_vocab_size=1}
         past = GenerateVocabRemapping(n, o) {new_vocab_offset=2, num_new_vocab=3}
         more = GenerateVocabRemapping(n, o) {new_vocab_offset=0, num_new_vocab=1, old_vocab_size=4}
         twice = GenerateVocabRemapping(n, t) {new_vocab_offset=0, num_new_vocab=1}",
    );
    assert_eq!(values::<i64>(&fetch(&session, "all:0")), [2, -1, 0, 1]);
    assert_eq!(values::<i32>(&fetch(&session, "all:1")), [3]);
    assert_eq!(values::<i64>(&fetch(&session, "some:0")), [0, -1]);
    assert_eq!(code(&session, "past:0"), Code::InvalidArgument);
    assert_eq!(code(&session, "more:0"), Code::InvalidArgument);
    assert_eq!(code(&session, "twice:0"), Code::FailedPrecondition);
}

#[test]
fn a_matrix_is_loaded_for_other_rows_and_columns() {
    let dir = tempfile::tempdir().unwrap();
    let session = in_dir(
        dir.path(),
        "p = string[]{{dir}/ckpt}
         n = string[1]{w}
         s = string[1]{''}
         w = float[3,2]{1, 2, 3, 4, 5, 6}
         save = SaveV2(p, n, s, [w])
         name = string[]{w}
         rows = int64[3]{2, -1, 0}
         columns = int64[2]{1, -1}
         none = int64[0]{}
         four = float[4]{10, 20, 30, 40}
         two = float[2]{10, 20}
         both = LoadAndRemapMatrix(p, name, rows, columns, four) {num_rows=3, num_cols=2, max_rows_in_memory=1}
         rows_only = LoadAndRemapMatrix(p, name, rows, none, two) {num_rows=3, num_cols=2}
         few = LoadAndRemapMatrix(p, name, rows, columns, two) {num_rows=3, num_cols=2}
         many = LoadAndRemapMatrix(p, name, rows, none, four) {num_rows=3, num_cols=2}
         twice = int64[3]{0, 0, 1}
         repeated = LoadAndRemapMatrix(p, name, twice, none, two) {num_rows=3, num_cols=2}
         outside = int64[3]{0, 3, 1}
         beyond = LoadAndRemapMatrix(p, name, outside, none, two) {num_rows=3, num_cols=2}",
    );
    session.run(&[], &[], &["save"]).unwrap();
    let both = fetch(&session, "both:0");
    assert_eq!(values::<f32>(&both), [6.0, 10.0, 20.0, 30.0, 2.0, 40.0]);
    let rows_only = fetch(&session, "rows_only:0");
    assert_eq!(values::<f32>(&rows_only), [5.0, 6.0, 10.0, 20.0, 1.0, 2.0]);
    assert_eq!(code(&session, "few:0"), Code::InvalidArgument);
    assert_eq!(code(&session, "many:0"), Code::InvalidArgument);
    assert_eq!(code(&session, "repeated:0"), Code::Unimplemented);
    assert_eq!(code(&session, "beyond:0"), Code::InvalidArgument);
}

#[test]
fn checkpoints_of_the_first_format_are_written_and_read() {
    let dir = tempfile::tempdir().unwrap();
    let session = in_dir(
        dir.path(),
        "f = string[]{{dir}/old}
         n = string[2]{w, s}
         w = float[2,2]{1, 2, 3, 4}
         s = string[2]{x, y}
         save = Save(f, n, [w, s])
         wn = string[]{w}
         sn = string[]{s}
         wr = Restore(f, wn) {dt=float}
         sr = Restore(f, sn) {dt=string}
         spec = string[]{'2 2 -:1,1'}
         column = RestoreSlice(f, wn, spec) {dt=float}
         wrong = Restore(f, wn) {dt=int32}
         no = string[]{q}
         missing = Restore(f, no) {dt=float}
         specs = string[2]{'', ''}
         newer = RestoreV2(f, n, specs) {dtypes=[float, string]}
         one = string[1]{w}
         part = string[1]{'4 2 2,2:-'}
         slices = SaveSlices(f, one, part, [w])
         lower = string[]{'4 2 3,1:-'}
         row = RestoreSlice(f, wn, lower) {dt=float}",
    );
    session.run(&[], &[], &["save"]).unwrap();
    assert_eq!(
        values::<f32>(&fetch(&session, "wr:0")),
        [1.0, 2.0, 3.0, 4.0]
    );
    assert_eq!(values::<TString>(&fetch(&session, "sr:0")), ["x", "y"]);
    assert_eq!(values::<f32>(&fetch(&session, "column:0")), [2.0, 4.0]);
    assert_eq!(code(&session, "wrong:0"), Code::InvalidArgument);
    assert_eq!(code(&session, "missing:0"), Code::NotFound);
    // The newer op reads the older format, too.
    assert_eq!(
        values::<f32>(&fetch(&session, "newer:0")),
        [1.0, 2.0, 3.0, 4.0]
    );
    assert_eq!(values::<TString>(&fetch(&session, "newer:1")), ["x", "y"]);
    session.run(&[], &[], &["slices"]).unwrap();
    assert_eq!(values::<f32>(&fetch(&session, "row:0")), [3.0, 4.0]);
}

#[test]
fn every_epoch_has_each_record_once() {
    let dir = tempfile::tempdir().unwrap();
    for file in 0..3 {
        let mut contents = Vec::new();
        for record in 0..4 {
            put_record(&mut contents, format!("{}", file * 4 + record).as_bytes());
        }
        std::fs::write(dir.path().join(format!("part-{file}")), contents).unwrap();
    }
    std::fs::write(dir.path().join("empty"), "").unwrap();
    let session = in_dir(
        dir.path(),
        "r = RecordInput() {file_pattern='{dir}/part-*', batch_size=4, file_buffer_size=5, file_parallelism=2}
         e = RecordInput() {file_pattern='{dir}/empty', batch_size=1}",
    );
    for _ in 0..3 {
        let mut seen = BTreeSet::new();
        for _ in 0..3 {
            seen.extend(values::<TString>(&fetch(&session, "r:0")));
        }
        assert_eq!(seen.len(), 12);
    }
    assert_eq!(code(&session, "e:0"), Code::NotFound);
}
