//! What the text format accepts, rejects and writes, beyond the golden files.

use super::*;
use crate::{
    AttrValue, FullTypeDef, GraphDef, JobDef, NodeDef, OptimizerOptions, TensorProto,
    TensorShapeProto, VersionDef, attr_value, meta_graph_def,
};

/// The text that `parse` and `print` make of `text`.
fn reprint<M: Message + Name + Default>(text: &str) -> String {
    print(&parse::<M>(text).unwrap())
}

fn error<M: Message + Name + Default + fmt::Debug>(text: &str) -> String {
    parse::<M>(text).unwrap_err().to_string()
}

#[test]
fn reads_every_block_and_list_style() {
    let plain = "dim {\n  size: 2\n}\ndim {\n  size: -1\n  name: \"n\"\n}\n";
    for text in [
        "dim { size: 2 } dim { size: -1 name: 'n' }",
        "dim: < size: 2 >, dim <size:-1;name:\"n\">;",
        "dim: [{size: 2}, <size: - 1, name: 'n'>]",
        "dim [{size: 0x2}, {size: -01 name: 'n'}] # end",
        "# start\ndim{size:2}dim{size:-1 name:'' 'n' \"\"}",
    ] {
        assert_eq!(reprint::<TensorShapeProto>(text), plain, "{text}");
    }
    assert_eq!(reprint::<TensorShapeProto>("dim: []"), "");
    assert_eq!(
        reprint::<TensorProto>("float_val: [1, 2.5f, .5, 1e-3, -inf, nan] float_val: 7."),
        "float_val: 1.0\nfloat_val: 2.5\nfloat_val: 0.5\nfloat_val: 0.001\nfloat_val: -inf\n\
         float_val: nan\nfloat_val: 7.0\n"
    );
}

#[test]
fn reads_every_escape() {
    let text = r#"s: '\a\b\f\n\r\t\v\\\'\"\?\101\x41\x7\0\377\u00e9\U0001F600é'"#;
    let attr: AttrValue = parse(text).unwrap();
    let mut wanted = b"\x07\x08\x0c\n\r\t\x0b\\'\"?AA\x07\0\xff".to_vec();
    wanted.extend_from_slice("é😀é".as_bytes());
    assert_eq!(attr.value, Some(attr_value::Value::S(wanted.into())));
    assert_eq!(parse(&print(&attr)), Ok(attr));
}

#[test]
fn reads_enums_and_booleans_in_all_spellings() {
    assert_eq!(reprint::<AttrValue>("type: 3"), "type: DT_INT32\n");
    assert_eq!(reprint::<AttrValue>("type: DT_INT32"), "type: DT_INT32\n");
    assert_eq!(reprint::<AttrValue>("type: 999"), "type: 999\n");
    assert_eq!(
        reprint::<OptimizerOptions>("opt_level: L0"),
        "opt_level: L0\n"
    );
    for (text, value) in [
        ("t", true),
        ("1", true),
        ("True", true),
        ("f", false),
        ("0", false),
    ] {
        assert_eq!(
            reprint::<AttrValue>(&format!("b: {text}")),
            format!("b: {value}\n")
        );
    }
}

#[test]
fn shows_default_keys_and_values_of_maps() {
    let text = "tasks {\n  key: 0\n  value: \"a:1\"\n}\ntasks {\n  key: 1\n  value: \"\"\n}\n";
    assert_eq!(reprint::<JobDef>(text), text);
    let text = "attr {\n  key: \"\"\n  value {\n  }\n}\n";
    assert_eq!(reprint::<NodeDef>(text), text);
}

#[test]
fn keeps_the_presence_of_oneof_members_and_blocks() {
    for text in ["list {\n}\n", "i: 0\n", "s: \"\"\n", "f: -0.0\n"] {
        assert_eq!(reprint::<AttrValue>(text), text);
    }
}

#[test]
fn reads_an_expanded_any() {
    let text = "any_info { [type.googleapis.com/tensorflow.VersionDef] { producer: 7 } }";
    let info: meta_graph_def::MetaInfoDef = parse(text).unwrap();
    let any = info.any_info.unwrap();
    assert_eq!(any.type_url, "type.googleapis.com/tensorflow.VersionDef");
    assert_eq!(VersionDef::decode(any.value).unwrap().producer, 7);
}

#[test]
fn says_what_is_wrong_and_where() {
    let check = |text, wanted| assert_eq!(error::<NodeDef>(text), wanted, "{text:?}");
    check(
        "name: 'a'\n  nam: 1",
        "2:3: tensorflow.NodeDef has no field \"nam\"",
    );
    check(
        "name: 'é' x: 1",
        "1:11: tensorflow.NodeDef has no field \"x\"",
    );
    check("name 'a'", "1:6: expected ':', found a string");
    check("name: a", "1:7: expected a string, found \"a\"");
    check("name: 'a", "1:7: the string has no closing quote");
    check("name: 'a\n'", "1:7: the string has no closing quote");
    check("name: 'a\\q'", "1:9: unknown escape \\q");
    check("name: '\\xg'", "1:8: \\x needs a hexadecimal digit");
    check("name: '\\u12'", "1:8: \\u needs 4 digits of a character");
    check("name: '\\400'", "1:8: octal escape \\400 is no byte");
    check("name: '\\377'", "1:7: \"name\" is not UTF-8");
    check(
        "name: 'a' name: 'b'",
        "1:11: tensorflow.NodeDef has one \"name\" only",
    );
    check(
        "attr { key: 'a'",
        "1:16: expected a field name or '}', found the end of the text",
    );
    check("attr: 3", "1:7: expected '{', found \"3\"");
    check(
        "attr { key: 'a' >",
        "1:17: expected a field name or '}', found '>'",
    );
    check("input: ['a' 'b', ]", "1:18: expected a string, found ']'");
    check("name: ['a']", "1:7: expected a string, found '['");
    check("}", "1:1: expected a field name, found '}'");
    check(
        "[tensorflow.ext] { }",
        "1:1: tensorflow.NodeDef has no field [tensorflow.ext]",
    );
    let check = |text, wanted| assert_eq!(error::<AttrValue>(text), wanted, "{text:?}");
    check(
        "i: 1 f: 2",
        "1:6: tensorflow.AttrValue cannot have both \"i\" and \"f\"",
    );
    check("i: 1.5", "1:4: \"1.5\" is no integer");
    check(
        "i: 9223372036854775808",
        "1:4: 9223372036854775808 is not in the range -9223372036854775808 to 9223372036854775807",
    );
    check("f: x", "1:4: expected a number, found \"x\"");
    check("b: 2", "1:4: expected true or false, found \"2\"");
    check(
        "type: DT_NONE",
        "1:7: tensorflow.DataType has no value \"DT_NONE\"",
    );
    check("placeholder: 1", "1:14: expected a string, found \"1\"");
}

#[test]
fn rejects_negative_unsigned_and_words_for_numbers() {
    let range = "1:14: -1 is not in the range 0 to 4294967295";
    assert_eq!(error::<TensorProto>("uint32_val: [-1]"), range);
    let word = "1:10: expected a number, found \"one\"";
    assert_eq!(error::<TensorProto>("int_val: one"), word);
}

#[test]
fn limits_the_depth_of_blocks() {
    let nested = |depth| "args {".repeat(depth) + &"}".repeat(depth);
    assert!(parse::<FullTypeDef>(&nested(90)).is_ok());
    assert!(error::<FullTypeDef>(&nested(100_000)).contains("blocks are nested deeper than 100"));
}

#[test]
fn never_panics_on_broken_text() {
    let text =
        "node { name: 'a\\x41' attr { key: \"k\" value { list { i: [1, -2] f: 1e+5 } } } } # é";
    for cut in 0..=text.len() {
        let Some(head) = text.get(..cut) else {
            continue;
        };
        let _ = parse::<GraphDef>(head);
        for symbol in ["{", "]", "'", "\\", "-", ".", "0x", "é", "\0"] {
            let tail = text.get(cut..).unwrap();
            let _ = parse::<GraphDef>(&format!("{head}{symbol}{tail}"));
        }
    }
}
