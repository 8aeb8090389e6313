use proptest::prelude::*;
use tensorfleet_status::Code;

use super::*;
use crate::example::encode_example;

fn example(components: &[(&str, Tensor)]) -> TString {
    let components = components.iter().cloned();
    encode_example(&Element::named(components)).unwrap().into()
}

fn parser(spec: ExampleSpec) -> Parser {
    Parser::new(spec).unwrap()
}

fn place(row: usize) -> String {
    format!("record {row}")
}

#[test]
fn one_example_of_every_layout() {
    let spec = ExampleSpec::new()
        .fixed("x", DType::F32, &[2, 1])
        .fixed_or("w", Tensor::scalar(1.5f32))
        .padded("words", DType::String)
        .padded("none", DType::I64)
        .sparse("ids", DType::I64);
    let bytes = example(&[
        ("x", Tensor::vector(&[1.0f32, 2.0])),
        ("words", Tensor::vector(&["a", "b", "c"].map(TString::from))),
        ("ids", Tensor::vector(&[7i64, 9])),
        ("not asked for", Tensor::scalar(1i64)),
    ]);
    let element = parser(spec).parse_one(&bytes, &place).unwrap();
    let names = [
        "x",
        "w",
        "words",
        "none",
        "ids/indices",
        "ids/values",
        "ids/shape",
    ];
    assert_eq!(element.names().unwrap(), names);
    assert_eq!(element.get("x").unwrap().shape().dims(), [2, 1]);
    assert_eq!(element.get("w").unwrap().to_scalar::<f32>().unwrap(), 1.5);
    assert_eq!(
        element.get("words").unwrap().slice::<TString>().unwrap(),
        ["a", "b", "c"]
    );
    assert_eq!(element.get("none").unwrap().shape().dims(), [0]);
    assert_eq!(element.get("ids/indices").unwrap().shape().dims(), [2, 1]);
    assert_eq!(
        element.get("ids/values").unwrap().slice::<i64>().unwrap(),
        [7, 9]
    );
    assert_eq!(
        element.get("ids/shape").unwrap().slice::<i64>().unwrap(),
        [2]
    );
}

#[test]
fn batch_of_every_layout() {
    let spec = ExampleSpec::new()
        .fixed_or("x", Tensor::vector(&[-1.0f32, -2.0]))
        .padded("words", DType::String)
        .sparse("ids", DType::I64);
    let rows = [
        example(&[
            ("x", Tensor::vector(&[1.0f32, 2.0])),
            ("ids", Tensor::vector(&[7i64, 9])),
        ]),
        example(&[("words", Tensor::vector(&["a", "b"].map(TString::from)))]),
        example(&[
            ("words", Tensor::string("c")),
            ("ids", Tensor::scalar(5i64)),
        ]),
    ];
    let batch = parser(spec).parse_batch(&rows, &place).unwrap();
    let x = batch.get("x").unwrap();
    assert_eq!(x.shape().dims(), [3, 2]);
    assert_eq!(
        x.slice::<f32>().unwrap(),
        [1.0, 2.0, -1.0, -2.0, -1.0, -2.0]
    );
    let words = batch.get("words").unwrap();
    assert_eq!(
        words.slice::<TString>().unwrap(),
        ["", "", "a", "b", "c", ""]
    );
    let indices = batch.get("ids/indices").unwrap();
    assert_eq!(indices.slice::<i64>().unwrap(), [0, 0, 0, 1, 2, 0]);
    assert_eq!(
        batch.get("ids/values").unwrap().slice::<i64>().unwrap(),
        [7, 9, 5]
    );
    assert_eq!(
        batch.get("ids/shape").unwrap().slice::<i64>().unwrap(),
        [3, 2]
    );
}

#[test]
fn errors_name_record_feature_and_remedy() {
    let good = example(&[("x", Tensor::vector(&[1.0f32, 2.0]))]);
    let check = |bytes: TString, words: &[&str]| {
        let spec = ExampleSpec::new().fixed("x", DType::F32, &[2]);
        let error = parser(spec)
            .parse_batch(&[good.clone(), bytes], &place)
            .unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
        for word in words.iter().chain(&["record 1"]) {
            assert!(error.message().contains(word), "{error}");
        }
    };
    let other = example(&[("y", Tensor::scalar(1i64))]);
    check(other, &["feature \"x\"", "[y]", "fixed_or"]);
    let three = example(&[("x", Tensor::vector(&[1.0f32, 2.0, 3.0]))]);
    check(three, &["feature \"x\"", "3 values", "[2]", "padded"]);
    let integers = example(&[("x", Tensor::vector(&[1i64, 2]))]);
    check(integers, &["feature \"x\"", "it is int64", "float"]);
    check(
        TString::from_static(b"\xff\xff\xff"),
        &["no tf.train.Example"],
    );
    // A list that says it has 2^40 bytes.
    let huge = b"\x0a\x80\x80\x80\x80\x80\x20\x0a";
    check(TString::from_static(huge), &["no tf.train.Example"]);
    check(TString::new(), &["feature \"x\"", "[]"]);
}

#[test]
fn specs_are_checked() {
    let check = |spec: ExampleSpec, word: &str| {
        let error = Parser::new(spec).err().unwrap();
        assert!(error.message().contains(word), "{error}");
    };
    check(ExampleSpec::new(), "no features");
    check(
        ExampleSpec::new().fixed("x", DType::F64, &[]),
        "\"x\" is asked for as double",
    );
    check(
        ExampleSpec::new().fixed("x", DType::F32, &[-1]),
        "all its dimensions",
    );
    let twice = ExampleSpec::new()
        .padded("x", DType::F32)
        .fixed("x", DType::F32, &[]);
    check(twice, "\"x\" is named twice");
    let huge = ExampleSpec::new().fixed("x", DType::F32, &[1 << 40]);
    let bytes = example(&[("x", Tensor::scalar(1.0f32))]);
    let error = parser(huge).parse_one(&bytes, &place).unwrap_err();
    assert!(error.message().contains("it has 1 values"), "{error}");
}

proptest! {
    #[test]
    fn mutated_examples_never_panic(at in 0usize..100, value in any::<u8>(), cut in 0usize..100) {
        let x = Tensor::vector(&[1.0f32, 2.0]);
        let bytes = example(&[("x", x), ("ids", Tensor::vector(&[7i64, 900]))]);
        let mut bytes = bytes.to_vec();
        let at = at % bytes.len();
        bytes[at] = value;
        bytes.truncate(cut.max(1));
        let spec = ExampleSpec::new().fixed("x", DType::F32, &[2]).sparse("ids", DType::I64);
        let _ = parser(spec).parse_one(&bytes.into(), &place);
    }

    #[test]
    fn what_is_written_is_read(floats in prop::collection::vec(any::<f32>(), 0..9), ints in prop::collection::vec(any::<i64>(), 0..9)) {
        let bytes = example(&[("f", Tensor::vector(&floats)), ("i", Tensor::vector(&ints))]);
        let spec = ExampleSpec::new().padded("f", DType::F32).padded("i", DType::I64);
        let element = parser(spec).parse_one(&bytes, &place).unwrap();
        let bits = |values: &[f32]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
        prop_assert_eq!(bits(element.get("f").unwrap().slice().unwrap()), bits(&floats));
        prop_assert_eq!(element.get("i").unwrap().slice::<i64>().unwrap(), &ints[..]);
    }
}
