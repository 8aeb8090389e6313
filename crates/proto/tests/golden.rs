//! Messages made by TensorFlow survive our decoding, encoding, printing and parsing.
//!
//! For every `tests/golden/TYPE-WHAT.pb`, serialised by TensorFlow with sorted maps:
//! decoding and encoding gives the same bytes; printing gives TensorFlow's text to the byte, which
//! parses to the same message. What we wrote is left in `target/tmp/proto-golden` for
//! `make.py --check`, which lets TensorFlow compare.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use prost::{Message, Name};
use tensorfleet_proto as tf;
use tensorfleet_proto::text;

/// Cases that we encode to other bytes with the same meaning: we put a oneof where its first member
/// would be, leave default keys out of map entries, and sort "config" before "config_proto", which
/// Python's library does not.
const OTHER_BYTES: &[&str] = &[
    "GraphDef-training",
    "MetaGraphDef-filled",
    "MetaGraphDef-training",
    "RegisterGraphRequest-wire",
    "Summary-filled",
];

/// Cases with a map key 0, which we print as TensorFlow's C++ does, while its Python leaves it out.
const OTHER_TEXT: &[&str] = &["GraphDef-training", "MetaGraphDef-training"];

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn check<M: Message + Name + Default + PartialEq>(case: &str, problems: &mut Vec<String>) {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("proto-golden");
    fs::create_dir_all(&out).unwrap();
    let mut require = |holds: bool, what: &str| {
        if !holds {
            problems.push(format!("{case}: {what}"));
        }
    };

    let wire = fs::read(golden().join(format!("{case}.pb"))).unwrap();
    let message = M::decode(wire.as_slice()).unwrap();
    let encoded = message.encode_to_vec();
    fs::write(out.join(format!("{case}.pb")), &encoded).unwrap();
    if OTHER_BYTES.contains(&case) {
        require(encoded != wire, "need not be listed in OTHER_BYTES");
        require(
            M::decode(encoded.as_slice()).unwrap() == message,
            "decodes to another message",
        );
    } else {
        require(encoded == wire, "encodes to other bytes");
    }

    let Ok(wanted) = fs::read_to_string(golden().join(format!("{case}.pbtxt"))) else {
        return;
    };
    let text = text::print(&message);
    fs::write(out.join(format!("{case}.pbtxt")), &text).unwrap();
    if OTHER_TEXT.contains(&case) {
        let shown: Vec<_> = text
            .lines()
            .filter(|line| line.trim() != "key: 0")
            .collect();
        require(
            shown.iter().copied().eq(wanted.lines()),
            "prints another text",
        );
    } else {
        require(text == wanted, "prints another text");
    }
    match text::parse::<M>(&wanted) {
        Ok(parsed) => require(
            parsed.encode_to_vec() == encoded,
            "parses to another message",
        ),
        Err(error) => require(false, &error.to_string()),
    }
}

/// Checks a case by the type that its name starts with.
macro_rules! check_case {
    ($case:expr, $problems:expr; $($($part:ident)::+,)+) => {{
        let kind = format!("tensorflow.{}", $case.split('-').next().unwrap());
        match kind.as_str() {
            $(kind if kind == <tf::$($part)::+>::full_name() => check::<tf::$($part)::+>($case, $problems),)+
            other => $problems.push(format!("{other} is not in this test's list")),
        }
    }};
}

#[test]
fn survives_decoding_encoding_printing_and_parsing() {
    let cases: BTreeSet<String> = fs::read_dir(golden())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "pb"))
        .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    assert!(cases.len() > 80, "only {} golden files", cases.len());
    let mut problems = Vec::new();
    for case in &cases {
        check_one(case, &mut problems);
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[rustfmt::skip]
fn check_one(case: &str, problems: &mut Vec<String>) {
    check_case! { case, problems;
        BundleEntryProto,
        BundleHeaderProto,
        CallableOptions,
        CheckpointState,
        CleanupGraphRequest,
        CloseSessionRequest,
        ClusterDef,
        CollectionDef,
        CondContextDef,
        ConfigProto,
        ControlFlowContextDef,
        CreateSessionRequest,
        CreateSessionResponse,
        CreateWorkerSessionRequest,
        DeleteWorkerSessionRequest,
        DeviceAttributes,
        Event,
        Example,
        ExtendSessionRequest,
        ExtendSessionResponse,
        GetStatusResponse,
        GraphDef,
        ListDevicesRequest,
        ListDevicesResponse,
        LoggingRequest,
        LoggingResponse,
        MakeCallableRequest,
        MetaGraphDef,
        OpList,
        PartialRunSetupRequest,
        PartialRunSetupResponse,
        QueueRunnerDef,
        RecvBufRequest,
        RecvBufResponse,
        RecvTensorRequest,
        RecvTensorResponse,
        RegisterGraphRequest,
        RegisterGraphResponse,
        RunGraphRequest,
        RunGraphResponse,
        RunMetadata,
        RunOptions,
        RunStepRequest,
        RunStepResponse,
        SaverDef,
        SequenceExample,
        ServerDef,
        StatusProto,
        Summary,
        TensorProto,
        TrackableObjectGraph,
        VariableDef,
        WhileContextDef,
        distributed_runtime::GrpcPayloadContainer,
        eager::CreateContextRequest,
        eager::EnqueueRequest,
        eager::EnqueueResponse,
    }
}
