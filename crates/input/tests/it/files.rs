//! Workers that share files.

use tensorfleet_input::{Csv, Dataset, Element, ExampleSpec, write_examples};
use tensorfleet_tensor::{DType, TString, Tensor};

use crate::{sorted, values};

/// Five files of 10 Examples each, numbered through.
fn write_files(dir: &std::path::Path) {
    for file in 0..5i64 {
        let path = dir
            .join(format!("train-{file}.tfrecord"))
            .display()
            .to_string();
        let examples =
            (file * 10..file * 10 + 10).map(|i| Ok(Element::named([("i", Tensor::scalar(i))])));
        assert_eq!(write_examples(&path, examples).unwrap(), 10);
    }
}

fn spec() -> ExampleSpec {
    ExampleSpec::new().fixed("i", DType::I64, &[])
}

#[test]
fn workers_divide_files_and_read_them_in_turns() {
    let dir = tempfile::tempdir().unwrap();
    write_files(dir.path());
    let pattern = format!("{}/train-*.tfrecord", dir.path().display());
    let mut seen = Vec::new();
    for worker in 0..2 {
        let data = Dataset::from_files(&pattern).unwrap().shard(2, worker);
        let data = data.interleave(2, 3, |file| {
            let path = file.at(0)?.to_scalar::<TString>()?;
            Dataset::from_examples(String::from_utf8_lossy(&path).as_ref(), spec())
        });
        let mine = values(&data);
        assert_eq!(
            mine[..9],
            if worker == 0 {
                [0, 1, 2, 20, 21, 22, 3, 4, 5]
            } else {
                [10, 11, 12, 30, 31, 32, 13, 14, 15]
            }
        );
        seen.extend(mine);
    }
    assert_eq!(sorted(seen), (0..50).collect::<Vec<i64>>());
}

#[test]
fn batches_of_records_parse_as_single_ones() {
    let dir = tempfile::tempdir().unwrap();
    write_files(dir.path());
    let pattern = format!("{}/train-*", dir.path().display());
    let single = Dataset::from_examples(&pattern, spec()).unwrap();
    let batched = Dataset::from_records(&pattern).unwrap().batch(7, false);
    let batched = batched.parse_examples(spec()).unwrap();
    assert_eq!(values(&batched), values(&single));
    let unparsed = Dataset::from_records(&pattern)
        .unwrap()
        .map(|_| Ok(Tensor::scalar(1i64).into()));
    let error = unparsed
        .parse_examples(spec())
        .unwrap()
        .iter()
        .next()
        .unwrap()
        .unwrap_err();
    assert!(
        error
            .message()
            .contains("element 0: its first component is int64"),
        "{error}"
    );
}

#[test]
fn a_damaged_record_is_named_through_the_whole_pipeline() {
    let dir = tempfile::tempdir().unwrap();
    write_files(dir.path());
    let third = dir.path().join("train-2.tfrecord");
    let mut bytes = std::fs::read(&third).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 4;
    std::fs::write(&third, bytes).unwrap();
    let pattern = format!("{}/train-*", dir.path().display());
    let data = Dataset::from_examples(&pattern, spec()).unwrap();
    let data = data
        .shuffle(8, 1)
        .repeat_forever()
        .batch(4, true)
        .prefetch(2);
    let error = data.iter().find_map(Result::err).unwrap();
    assert!(
        error.message().contains("train-2.tfrecord: record "),
        "{error}"
    );
}

#[test]
fn csv_files_follow_one_another() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a.csv"), "x,y\n1,2\n3,4\n").unwrap();
    std::fs::write(dir.path().join("b.csv"), "y,x\n6,5\n").unwrap();
    let pattern = format!("{}/*.csv", dir.path().display());
    let data = Dataset::from_csv(&pattern, Csv::new().column("x", DType::I64)).unwrap();
    assert_eq!(values(&data.batch(2, false)), [1, 3, 5]);
    std::fs::remove_file(dir.path().join("b.csv")).unwrap();
    let data = Dataset::from_csv(&pattern, Csv::new().column("y", DType::I64)).unwrap();
    std::fs::remove_file(dir.path().join("a.csv")).unwrap();
    let error = data.iter().next().unwrap().unwrap_err();
    assert!(error.message().contains("a.csv; No such file"), "{error}");
}
