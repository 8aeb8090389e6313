//! Small graphs that ask for endless work or endless memory: they end in time, with a status, and the next step runs.

use std::time::{Duration, Instant};

use tensorfleet_graph::{GraphBuilder, text};
use tensorfleet_proto::{GraphDef, text as proto_text};
use tensorfleet_session::{RunOptions, Session, SessionOptions};
use tensorfleet_status::{Code, Result, Status};
use tensorfleet_tensor::{DType, Shape, TString, Tensor};

/// Longer than anything here takes that has an end, on a machine that is busy with other things.
const PATIENCE: Duration = Duration::from_secs(20);

fn session(def: &GraphDef) -> Session {
    let session = Session::new(SessionOptions {
        threads: 1,
        ..SessionOptions::default()
    })
    .unwrap();
    session.extend(def).unwrap();
    session
}

fn graph(source: &str) -> GraphDef {
    let mut builder = GraphBuilder::new(tensorfleet_ops::registry().unwrap());
    text::parse_graph(&mut builder, source).unwrap();
    builder.finish().export().unwrap()
}

fn run_within(session: &Session, time: Duration, feeds: &[(&str, Tensor)]) -> Result<Vec<Tensor>> {
    let options = RunOptions {
        timeout: Some(time),
        trace: false,
    };
    session
        .run_with(&options, feeds, &["x:0"], &[])
        .map(|(tensors, _)| tensors)
}

/// Runs `x` for a moment, then something else on the one thread that there is.
fn gives_its_thread_back(def: &GraphDef, feeds: &[(&str, Tensor)]) -> Status {
    let session = session(def);
    let began = Instant::now();
    let status = run_within(&session, Duration::from_millis(300), feeds).unwrap_err();
    let free = RunOptions {
        timeout: Some(PATIENCE),
        trace: false,
    };
    session.run_with(&free, &[], &["other:0"], &[]).unwrap();
    assert!(began.elapsed() < PATIENCE, "{:?}", began.elapsed());
    status
}

fn ints(values: &[i64]) -> Tensor {
    Tensor::vector(values)
}

/// Values of no elements, in any number.
fn nothing(dtype: DType, dims: &[i64]) -> Tensor {
    Tensor::new(dtype, Shape::new(dims).unwrap()).unwrap()
}

const NGRAMS: &str = "{separator='', ngram_widths=[536870912], left_pad='', right_pad='', pad_width=-1, preserve_short_sequences=false}";

#[test]
fn a_kernel_without_end_ends_at_its_deadline() {
    let one_text = Tensor::from_vec(Shape::vector(1), vec![TString::from(&b"a"[..])]).unwrap();
    let cases: [(String, Vec<(&str, Tensor)>); 4] = [
        (
            format!(
                "data = Placeholder() {{dtype=DT_STRING}}
                 splits = Placeholder() {{dtype=DT_INT64}}
                 x = StringNGrams(data, splits) {NGRAMS}"
            ),
            vec![("data:0", one_text), ("splits:0", ints(&[0, 1]))],
        ),
        (
            "shape = Placeholder() {dtype=DT_INT64}
             seed = int64[2]{1, 2}
             random = StatelessRandomUniform(shape, seed)
             x = Svd(random)"
                .to_owned(),
            vec![("shape:0", ints(&[800, 800]))],
        ),
        (
            "boxes = Placeholder() {dtype=DT_FLOAT}
             scores = Placeholder() {dtype=DT_FLOAT}
             most = int32[]{1000000}
             overlap = float[]{1}
             x = NonMaxSuppressionV2(boxes, scores, most, overlap)"
                .to_owned(),
            vec![
                ("boxes:0", nothing(DType::F32, &[400_000, 4])),
                (
                    "scores:0",
                    Tensor::from_vec(Shape::vector(400_000), vec![1f32; 400_000]).unwrap(),
                ),
            ],
        ),
        (
            "x0 = Placeholder() {dtype=DT_FLOAT}
             x = MatMul(x0, x0)"
                .to_owned(),
            vec![("x0:0", nothing(DType::F32, &[4000, 4000]))],
        ),
    ];
    for (source, feeds) in cases {
        let def = graph(&format!("{source}\n other = float[]{{1}}"));
        let status = gives_its_thread_back(&def, &feeds);
        assert_eq!(status.code(), Code::DeadlineExceeded, "{source}: {status}");
    }
}

/// What is computed from constants is computed before the step begins, but not for ever.
#[test]
fn constants_without_end_are_left_to_the_step() {
    let def = graph(&format!(
        "data = string[1]{{'a'}}
         splits = int64[2]{{0, 1}}
         x = StringNGrams(data, splits) {NGRAMS}
         other = float[]{{1}}"
    ));
    let status = gives_its_thread_back(&def, &[]);
    assert_eq!(status.code(), Code::DeadlineExceeded, "{status}");
}

/// Functions that call the next one twice, or themselves: as nodes they would be millions.
#[test]
fn calls_that_multiply_are_not_all_inlined() {
    let function = |name: &str, callee: &str| {
        let call = |call: &str, input: &str| {
            format!(
                r#"node_def {{ name: "{call}" op: "PartitionedCall" input: "{input}"
                     attr {{ key: "Tin" value {{ list {{ type: DT_FLOAT }} }} }} attr {{ key: "Tout" value {{ list {{ type: DT_FLOAT }} }} }}
                     attr {{ key: "f" value {{ func {{ name: "{callee}" }} }} }} }}"#
            )
        };
        format!(
            r#"function {{
                 signature {{ name: "{name}" input_arg {{ name: "a" type: DT_FLOAT }} output_arg {{ name: "o" type: DT_FLOAT }} }}
                 {} {} ret {{ key: "o" value: "second:output:0" }} }}"#,
            call("first", "a"),
            call("second", "first:output:0"),
        )
    };
    let leaf = r#"function {
        signature { name: "f23" input_arg { name: "a" type: DT_FLOAT } output_arg { name: "o" type: DT_FLOAT } }
        node_def { name: "s" op: "Square" input: "a" attr { key: "T" value { type: DT_FLOAT } } }
        ret { key: "o" value: "s:y:0" } }"#;
    let doubled: String = (0..23)
        .map(|level| function(&format!("f{level}"), &format!("f{}", level + 1)))
        .collect();
    let def = proto_text::parse(&format!(
        r#"node {{ name: "p" op: "Placeholder" attr {{ key: "dtype" value {{ type: DT_FLOAT }} }} }}
           node {{ name: "x" op: "PartitionedCall" input: "p"
             attr {{ key: "Tin" value {{ list {{ type: DT_FLOAT }} }} }} attr {{ key: "Tout" value {{ list {{ type: DT_FLOAT }} }} }}
             attr {{ key: "f" value {{ func {{ name: "f0" }} }} }} }}
           node {{ name: "other" op: "NoOp" }}
           library {{ {doubled} {leaf} }}"#
    ))
    .unwrap();
    let session = session(&def);
    let feeds = [("p:0", Tensor::scalar(1f32))];
    let status = run_within(&session, Duration::from_millis(300), &feeds).unwrap_err();
    assert_eq!(status.code(), Code::DeadlineExceeded, "{status}");
    session.run(&[], &[], &["other"]).unwrap();
}

/// Tensors without elements may have more rows than memory has room for lists of them.
#[test]
fn rows_without_elements_are_refused_before_memory_is() {
    const ROWS: i64 = 1 << 44;
    let cases: [(&str, Vec<(&str, Tensor)>); 15] = [
        (
            "v = Placeholder() {dtype=DT_FLOAT}
             x = MatrixInverse(v)",
            vec![("v:0", nothing(DType::F32, &[ROWS, 0, 0]))],
        ),
        (
            "v = Placeholder() {dtype=DT_FLOAT}
             method = string[]{'farmhash64'}
             x = Fingerprint(v, method)",
            vec![("v:0", nothing(DType::F32, &[ROWS, 0]))],
        ),
        (
            "splits = Placeholder() {dtype=DT_INT64}
             v = Placeholder() {dtype=DT_FLOAT}
             i = int64[1]{0}
             x = RaggedGather(splits, v, i) {Tvalues=DT_FLOAT, Tindices=DT_INT64, PARAMS_RAGGED_RANK=1, OUTPUT_RAGGED_RANK=1}",
            vec![
                ("splits:0", ints(&[0, ROWS])),
                ("v:0", nothing(DType::F32, &[ROWS, 0])),
            ],
        ),
        (
            "v = Placeholder() {dtype=DT_INT64}
             old = Placeholder() {dtype=DT_INT64}
             new = int64[2]{1, 1}
             x = SparseReshape(v, old, new)",
            vec![
                ("v:0", nothing(DType::I64, &[ROWS, 0])),
                ("old:0", nothing(DType::I64, &[0])),
            ],
        ),
        (
            "v = Placeholder() {dtype=DT_FLOAT}
             tag = string[]{'t'}
             rate = float[]{1}
             x = AudioSummaryV2(tag, v, rate) {max_outputs=2147483647}",
            vec![("v:0", nothing(DType::F32, &[ROWS, 0]))],
        ),
        (
            "v = Placeholder() {dtype=DT_STRING}
             ids = int64[1]{0}
             n = Placeholder() {dtype=DT_INT64}
             x = UnsortedSegmentJoin(v, ids, n)",
            vec![
                (
                    "v:0",
                    Tensor::from_vec(Shape::vector(1), vec![TString::default()]).unwrap(),
                ),
                ("n:0", Tensor::scalar(ROWS)),
            ],
        ),
        (
            "v = Placeholder() {dtype=DT_FLOAT}
             i = int32[1]{0}
             s = int32[1]{0}
             n = int32[]{1}
             x = SparseSegmentMeanGrad(v, i, s, n)",
            vec![("v:0", nothing(DType::F32, &[ROWS, 0]))],
        ),
        (
            "v = Placeholder() {dtype=DT_INT32}
             params = float[3]{1, 2, 3}
             x = GatherNd(params, v)",
            vec![("v:0", nothing(DType::I32, &[ROWS, 0]))],
        ),
        (
            "v = Placeholder() {dtype=DT_COMPLEX64}
             x = FFT(v)",
            vec![("v:0", nothing(DType::C64, &[0, ROWS]))],
        ),
        (
            "v = Placeholder() {dtype=DT_FLOAT}
             x = Svd(v)",
            vec![("v:0", nothing(DType::F32, &[0, ROWS]))],
        ),
        (
            "v = Placeholder() {dtype=DT_FLOAT}
             x = MatrixSquareRoot(v)",
            vec![("v:0", nothing(DType::F32, &[ROWS, 0, 0]))],
        ),
        (
            "v = Placeholder() {dtype=DT_FLOAT}
             x = BandedTriangularSolve(v, v)",
            vec![("v:0", nothing(DType::F32, &[ROWS, 0, 0]))],
        ),
        (
            "v = Placeholder() {dtype=DT_UINT8}
             x = EncodePng(v)",
            vec![("v:0", nothing(DType::U8, &[ROWS, 0, 1, 1]))],
        ),
        (
            "v = Placeholder() {dtype=DT_FLOAT}
             scale = Placeholder() {dtype=DT_FLOAT}
             x = _MklLayerNorm(v, scale, scale)",
            vec![
                ("v:0", nothing(DType::F32, &[0, ROWS])),
                ("scale:0", nothing(DType::F32, &[0, ROWS])),
            ],
        ),
        (
            "v = Placeholder() {dtype=DT_FLOAT}
             x = StringFormat(v)",
            vec![("v:0", nothing(DType::F32, &[ROWS, 0]))],
        ),
    ];
    for (source, feeds) in cases {
        let session = session(&graph(source));
        if let Err(status) = run_within(&session, PATIENCE, &feeds) {
            let codes = [Code::ResourceExhausted, Code::InvalidArgument];
            assert!(codes.contains(&status.code()), "{source}: {status}");
        }
    }
}
