//! Variants that hold a number, as TensorFlow's graphs bring them: added, zeroed, written as text.

use tensorfleet_proto::{GraphDef, text};
use tensorfleet_session::{Session, SessionOptions};
use tensorfleet_status::{Code, Status};
use tensorfleet_tensor::TString;

/// A constant variant of this type with these bytes, escaped as in C.
fn constant(name: &str, type_name: &str, metadata: &str) -> String {
    format!(
        r#"node {{ name: "{name}" op: "Const" attr {{ key: "dtype" value {{ type: DT_VARIANT }} }} attr {{ key: "value" value {{ tensor {{ dtype: DT_VARIANT tensor_shape {{ }} variant_val {{ type_name: "{type_name}" metadata: "{metadata}" }} }} }} }} }}"#
    )
}

/// The text of what a node makes of the constants.
fn text_of(constants: &[String], node: &str) -> Result<String, Status> {
    let source = format!(
        r#"{} {node} node {{ name: "text" op: "AsString" input: "out" attr {{ key: "T" value {{ type: DT_VARIANT }} }} }}"#,
        constants.concat()
    );
    let def: GraphDef = text::parse(&source).unwrap_or_else(|error| panic!("{error}: {source}"));
    let session = Session::new(SessionOptions {
        threads: 1,
        ..SessionOptions::default()
    })?;
    session.extend(&def)?;
    let texts = session.run(&[], &["text:0"], &[])?;
    let bytes = texts[0].to_scalar::<TString>()?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

const SUM: &str = r#"node { name: "out" op: "AddN" input: "a" input: "b" attr { key: "N" value { i: 2 } } attr { key: "T" value { type: DT_VARIANT } } }"#;
const ZEROS: &str = r#"node { name: "out" op: "ZerosLike" input: "a" attr { key: "T" value { type: DT_VARIANT } } }"#;

#[test]
fn numbers_of_one_type_are_added() {
    let int = [
        constant("a", "int", "\\003\\000\\000\\000"),
        constant("b", "int", "\\376\\377\\377\\377"),
    ];
    assert_eq!(text_of(&int, SUM).unwrap(), "Variant<type: int value: 1>");
    let float = [
        constant("a", "float", "\\000\\000\\300\\077"),
        constant("b", "float", "\\000\\000\\000\\100"),
    ];
    assert_eq!(
        text_of(&float, SUM).unwrap(),
        "Variant<type: float value: 3.5>"
    );
}

#[test]
fn zeros_are_of_the_same_type() {
    let number = [constant("a", "bool", "\\001")];
    assert_eq!(
        text_of(&number, ZEROS).unwrap(),
        "Variant<type: bool value: 0>"
    );
}

#[test]
fn numbers_of_two_types_and_of_none_are_refused() {
    let mixed = [
        constant("a", "int", "\\003\\000\\000\\000"),
        constant("b", "bool", "\\001"),
    ];
    assert_eq!(text_of(&mixed, SUM).unwrap_err().code(), Code::Internal);
    let unknown = [constant("a", "other", "\\001")];
    assert_eq!(
        text_of(&unknown, ZEROS).unwrap_err().code(),
        Code::InvalidArgument
    );
}
