//! Datasets and their iterators: waiting, cancelling, stopping, files, depth.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::thread::spawn;
use std::time::{Duration, Instant};

use tensorfleet_checkpoint::record::put_record;
use tensorfleet_session::{RunOptions, Session};
use tensorfleet_status::{Code, Result};
use tensorfleet_tensor::{TString, Tensor};

use crate::graphs::{graph, session, values};

/// An iterator over the dataset `of`, what puts it there and what asks it.
fn iterator(name: &str, of: &str, dtype: &str) -> String {
    format!(
        "{name} = IteratorV2() {{output_types=[{dtype}], output_shapes=[?], shared_name='', container=''}}
         make_{name} = MakeIterator({of}, {name})
         next_{name} = IteratorGetNext({name}) {{output_types=[{dtype}], output_shapes=[?]}}\n"
    )
}

const NUMBERS: &str = "
    zero = int64[]{0}
    one = int64[]{1}
    minus = int64[]{-1}
    ten = int64[]{10}
    numbers = RangeDataset(zero, ten, one) {output_types=[DT_INT64], output_shapes=[[]]}\n";

/// A queue, and a dataset whose function waits for it.
fn waiting() -> String {
    let fns = "fn wait(x: int64, q: resource) -> y {
            got = QueueDequeueV2(q) {component_types=[DT_INT64]}
            y = AddV2(x, got)
        }\n";
    let nodes = "
        q = FIFOQueueV2() {component_types=[DT_INT64], shapes=[[]], capacity=5}
        put = QueueEnqueueV2(q, [ten])
        size = QueueSizeV2(q)
        waits = MapDataset(numbers, [q]) {f=wait, output_types=[DT_INT64], output_shapes=[[]]}
        ahead = PrefetchDataset(waits, one) {output_types=[DT_INT64], output_shapes=[[]]}
        sum = ReduceDataset(waits, [zero], []) {f=add, output_types=[DT_INT64], output_shapes=[[]]}\n";
    let add = "fn add(s: int64, x: int64) -> y {
            y = AddV2(s, x)
        }\n";
    [fns, add, NUMBERS, nodes].concat()
        + &iterator("i", "waits", "DT_INT64")
        + &iterator("j", "ahead", "DT_INT64")
}

fn run(session: &Session, target: &str) {
    session.run(&[], &[], &[target]).unwrap();
}

fn number(session: &Session, fetch: &str) -> Result<i64> {
    session.run(&[], &[fetch], &[])?[0].to_scalar()
}

fn within(session: &Session, fetch: &str, millis: u64) -> Result<Vec<Tensor>> {
    let options = RunOptions {
        timeout: Some(Duration::from_millis(millis)),
        ..RunOptions::default()
    };
    session
        .run_with(&options, &[], &[fetch], &[])
        .map(|(tensors, _)| tensors)
}

#[test]
fn a_step_that_leaves_loses_no_element() {
    for name in ["i", "j"] {
        let session = session(&graph(&waiting()));
        run(&session, &format!("make_{name}"));
        let next = format!("next_{name}:0");
        run(&session, "put");
        assert_eq!(number(&session, &next).unwrap(), 10);
        let status = within(&session, &next, 50).err().unwrap();
        assert_eq!(status.code(), Code::DeadlineExceeded, "{name}");
        run(&session, "put");
        assert_eq!(number(&session, &next).unwrap(), 11, "{name}");
    }
}

#[test]
fn who_waits_goes_on_when_the_function_does() {
    for name in ["i", "j"] {
        let session = Arc::new(session(&graph(&waiting())));
        run(&session, &format!("make_{name}"));
        let other = session.clone();
        let next = format!("next_{name}:0");
        let waiting = spawn(move || number(&other, &next));
        std::thread::sleep(Duration::from_millis(50));
        assert!(!waiting.is_finished());
        run(&session, "put");
        assert_eq!(waiting.join().unwrap().unwrap(), 10, "{name}");
    }
}

#[test]
fn what_waits_ends_with_its_session() {
    for fetch in ["next_i:0", "next_j:0", "sum:0"] {
        let session = Arc::new(session(&graph(&waiting())));
        let resources = session.device().resources.clone();
        run(&session, "make_i");
        run(&session, "make_j");
        let other = session.clone();
        let waiting = spawn(move || number(&other, fetch));
        std::thread::sleep(Duration::from_millis(50));
        session.close();
        let status = waiting.join().unwrap().err().unwrap();
        // The second if the thread had not begun by then.
        let codes = [Code::Cancelled, Code::FailedPrecondition];
        assert!(codes.contains(&status.code()), "{fetch}: {status}");
        drop(session);
        let begin = Instant::now();
        while resources
            .list()
            .iter()
            .any(|(_, kind, _)| kind.contains("Iterator"))
        {
            assert!(begin.elapsed() < Duration::from_secs(60), "{fetch}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// A shared iterator refers to the device that keeps it, by the functions it calls.
#[test]
fn shared_iterators_go_with_the_session_that_made_their_device() {
    let pipeline = NUMBERS.to_owned() + &iterator("i", "numbers", "DT_INT64");
    let session = session(&graph(
        &pipeline.replace("shared_name=''", "shared_name='kept'"),
    ));
    let device = Arc::downgrade(session.device());
    run(&session, "make_i");
    assert_eq!(number(&session, "next_i:0").unwrap(), 0);
    drop(session);
    assert!(device.upgrade().is_none(), "the device is still there");
}

#[test]
fn what_never_finds_an_element_can_be_stopped() {
    let text = "fn never(x: int64) -> y {
            y = Less(x, x)
        }\n"
    .to_owned()
        + NUMBERS
        + "endless = RepeatDataset(numbers, minus) {output_types=[DT_INT64], output_shapes=[[]]}
           many = int64[]{1000000000000}
           skipped = SkipDataset(endless, many) {output_types=[DT_INT64], output_shapes=[[]]}
           filtered = FilterDataset(endless, []) {predicate=never, output_types=[DT_INT64], output_shapes=[[]]}
           single = DatasetToSingleElement(skipped) {output_types=[DT_INT64], output_shapes=[[]]}\n"
        + &iterator("i", "skipped", "DT_INT64")
        + &iterator("j", "filtered", "DT_INT64");
    let session = session(&graph(&text));
    run(&session, "make_i");
    run(&session, "make_j");
    for fetch in ["next_i:0", "next_j:0", "single:0"] {
        let status = within(&session, fetch, 50).err().unwrap();
        assert_eq!(status.code(), Code::DeadlineExceeded, "{fetch}");
    }
}

#[test]
fn many_who_ask_share_the_elements() {
    let text = "fn same(x: int64) -> y {
            y = Identity(x)
        }
        fn pair(x: int64) -> d {
            t = TensorDataset([x]) {output_shapes=[[]]}
            two = int64[]{2}
            d = RepeatDataset(t, two) {output_types=[DT_INT64], output_shapes=[[]]}
        }\n"
        .to_owned()
        + NUMBERS
        + "limit = int64[]{500}
           four = int64[]{4}
           more = RangeDataset(zero, limit, one) {output_types=[DT_INT64], output_shapes=[[]]}
           mapped = ParallelMapDatasetV2(more, [], four) {f=same, output_types=[DT_INT64], output_shapes=[[]]}
           pairs = ParallelInterleaveDatasetV3(mapped, [], four, one, four) {f=pair, output_types=[DT_INT64], output_shapes=[[]]}
           shuffled = ShuffleDataset(pairs, ten, zero, zero) {output_types=[DT_INT64], output_shapes=[[]]}
           ahead = PrefetchDataset(shuffled, four) {output_types=[DT_INT64], output_shapes=[[]]}\n"
        + &iterator("i", "ahead", "DT_INT64");
    let session = Arc::new(session(&graph(&text)));
    for _ in 0..3 {
        run(&session, "make_i");
        let ask = |session: Arc<Session>| {
            move || {
                let mut got = Vec::new();
                loop {
                    match number(&session, "next_i:0") {
                        Ok(number) => got.push(number),
                        Err(status) => {
                            assert_eq!(status.code(), Code::OutOfRange, "{status}");
                            return got;
                        }
                    }
                }
            }
        };
        let threads: Vec<_> = (0..4).map(|_| spawn(ask(session.clone()))).collect();
        let got = threads.into_iter().map(|thread| thread.join().unwrap());
        let mut all: Vec<i64> = got.flatten().collect();
        all.sort_unstable();
        let wanted: Vec<i64> = (0..500).flat_map(|number| [number, number]).collect();
        assert_eq!(all, wanted);
    }
    // Begun anew in the middle, over and over: what was under way is dropped.
    for _ in 0..50 {
        run(&session, "make_i");
        number(&session, "next_i:0").unwrap();
    }
}

#[test]
fn stages_are_as_deep_as_a_stack_allows() {
    let nested = |depth: usize| {
        let mut text = NUMBERS.to_owned();
        let mut last = "numbers".to_owned();
        for at in 0..depth {
            let name = format!("d{at}");
            writeln!(
                text,
                "{name} = SkipDataset({last}, zero) {{output_types=[DT_INT64], output_shapes=[[]]}}
                 t{name} = TakeDataset({name}, ten) {{output_types=[DT_INT64], output_shapes=[[]]}}"
            )
            .unwrap();
            last = format!("t{name}");
        }
        let session = session(&graph(&(text + &iterator("i", &last, "DT_INT64"))));
        session.run(&[], &[], &["make_i"])?;
        number(&session, "next_i:0")
    };
    assert_eq!(nested(450).unwrap(), 0);
    assert_eq!(nested(600).err().unwrap().code(), Code::ResourceExhausted);
}

#[test]
fn pipelines_that_make_themselves_have_an_end() {
    let text = "fn again(x: int64) -> d {
            t = TensorDataset([x]) {output_shapes=[[]]}
            d = FlatMapDataset(t, []) {f=again, output_types=[DT_INT64], output_shapes=[[]]}
        }
        fn deeper(s: int64, x: int64) -> y {
            t = TensorDataset([x]) {output_shapes=[[]]}
            y = ReduceDataset(t, [s], []) {f=deeper, output_types=[DT_INT64], output_shapes=[[]]}
        }\n";
    let text = text.to_owned()
        + NUMBERS
        + "endless = FlatMapDataset(numbers, []) {f=again, output_types=[DT_INT64], output_shapes=[[]]}
           sum = ReduceDataset(numbers, [zero], []) {f=deeper, output_types=[DT_INT64], output_shapes=[[]]}\n"
        + &iterator("i", "endless", "DT_INT64");
    let session = session(&graph(&text));
    run(&session, "make_i");
    for fetch in ["next_i:0", "sum:0"] {
        let code = number(&session, fetch).err().unwrap().code();
        assert_eq!(code, Code::ResourceExhausted, "{fetch}");
    }
}

#[test]
fn files_are_read_one_after_the_other() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a.txt"), "a\r\nb\n\nc").unwrap();
    std::fs::write(dir.path().join("b.txt"), "d\n").unwrap();
    std::fs::write(dir.path().join("f.bin"), b"headaabbccfoot").unwrap();
    let mut records = Vec::new();
    for record in [&b"one"[..], b"", b"three"] {
        put_record(&mut records, record);
    }
    std::fs::write(dir.path().join("r"), &records).unwrap();
    records.truncate(records.len() - 1);
    std::fs::write(dir.path().join("broken"), &records).unwrap();
    let text = "
        zero = int64[]{0}
        two = int64[]{2}
        four = int64[]{4}
        three = int64[]{3}
        plain = string[]{}
        texts = string[2]{{dir}/a.txt, {dir}/b.txt}
        bins = string[1]{{dir}/f.bin}
        recs = string[2]{{dir}/broken, {dir}/r}
        offsets = int64[2]{0, 19}
        lines = TextLineDataset(texts, plain, zero)
        fixed = FixedLengthRecordDataset(bins, four, two, four, zero)
        uneven = FixedLengthRecordDataset(bins, four, four, four, zero)
        records = TFRecordDatasetV2(recs, plain, zero, offsets)\n"
        .to_owned()
        + &iterator("i", "lines", "DT_STRING")
        + &iterator("j", "fixed", "DT_STRING")
        + &iterator("k", "uneven", "DT_STRING")
        + &iterator("l", "records", "DT_STRING");
    let path: &Path = dir.path();
    let session = session(&graph(&text.replace("{dir}", &path.display().to_string())));
    let next = |name: &str| -> Result<TString> {
        let fetched = session.run(&[], &[&format!("next_{name}:0")], &[])?;
        Ok(values::<TString>(&fetched[0]).remove(0))
    };
    let all = |name: &str| {
        run(&session, &format!("make_{name}"));
        let mut all = Vec::new();
        loop {
            match next(name) {
                Ok(record) => all.push(String::from_utf8(record.to_vec()).unwrap()),
                Err(status) => return (all, status.code()),
            }
        }
    };
    let texts = |texts: &[&str]| {
        texts
            .iter()
            .map(|text| (*text).to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        all("i"),
        (texts(&["a", "b", "", "c", "d"]), Code::OutOfRange)
    );
    assert_eq!(all("j"), (texts(&["aa", "bb", "cc"]), Code::OutOfRange));
    assert_eq!(all("k"), (Vec::new(), Code::InvalidArgument));
    // The broken one is an error once, then the other's turn comes, from its second record on.
    assert_eq!(all("l"), (texts(&["one", ""]), Code::DataLoss));
    assert_eq!(&*next("l").unwrap(), b"");
    assert_eq!(&*next("l").unwrap(), b"three");
    assert_eq!(next("l").err().unwrap().code(), Code::OutOfRange);
}
