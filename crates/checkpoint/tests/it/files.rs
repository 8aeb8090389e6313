//! Golden records, events and state files.

use tensorfleet_checkpoint::events::EventsReader;
use tensorfleet_checkpoint::fs::LocalFileSystem;
use tensorfleet_checkpoint::record::{RecordReader, put_record};
use tensorfleet_checkpoint::state::{state_of, write_state};
use tensorfleet_proto::{CheckpointState, event, session_log, summary};

use crate::golden;

#[test]
fn records_are_read_and_rewritten() {
    let path = golden("plain.tfrecord");
    let mut reader = RecordReader::open(&LocalFileSystem, &path).unwrap();
    let mut copy = Vec::new();
    let mut lengths = Vec::new();
    while let Some(record) = reader.next_record().unwrap() {
        put_record(&mut copy, record);
        lengths.push(record.len());
    }
    assert_eq!(lengths, [5, 0, 1024]);
    assert_eq!(copy, std::fs::read(path).unwrap());
}

#[test]
fn events_are_read() {
    let mut reader = EventsReader::open(&LocalFileSystem, &golden("events.out.tfevents")).unwrap();
    let first = reader.next_event().unwrap().unwrap();
    assert_eq!(
        first.what,
        Some(event::What::FileVersion("brain.Event:2".into()))
    );
    assert_eq!(
        first.source_metadata.unwrap().writer,
        "tensorflow.core.util.events_writer"
    );
    let second = reader.next_event().unwrap().unwrap();
    let Some(event::What::SessionLog(log)) = second.what else {
        panic!("{second:?}")
    };
    assert_eq!(
        (second.step, log.status()),
        (3, session_log::SessionStatus::Start)
    );
    let third = reader.next_event().unwrap().unwrap();
    let Some(event::What::Summary(loss)) = third.what else {
        panic!("{third:?}")
    };
    assert_eq!((third.step, loss.value[0].tag.as_str()), (4, "loss"));
    assert_eq!(
        loss.value[0].value,
        Some(summary::value::Value::SimpleValue(0.5))
    );
    assert_eq!(reader.next_event().unwrap(), None);
}

#[test]
fn state_files_are_written_as_tensorflow_writes_them() {
    let check = |name: &str, state: &CheckpointState| {
        let temp = tempfile::tempdir().unwrap();
        write_state(&temp.path().display().to_string(), "checkpoint", state).unwrap();
        let written = std::fs::read_to_string(temp.path().join("checkpoint")).unwrap();
        assert_eq!(written, std::fs::read_to_string(golden(name)).unwrap());
    };
    let (one, five) = ("/models/a/model.ckpt-1", "/models/a/model.ckpt-5");
    let absolute = state_of("/models/a", five, &[one, five]);
    check("state_absolute.txt", &absolute);
    let others = ["models/a/model.ckpt-1", "models/b/model.ckpt-2"];
    check(
        "state_relative.txt",
        &state_of("models/a", "models/a/model.ckpt-5", &others),
    );
    check(
        "state_quoted.txt",
        &state_of("/models/a", "/models/a/mo\"d\\el\n\u{e9}.ckpt-5", &[]),
    );
    let times = CheckpointState {
        all_model_checkpoint_timestamps: vec![1.5, 1_794_772_682.525_976],
        last_preserved_timestamp: 7.25,
        ..absolute
    };
    check("state_times.txt", &times);
}
