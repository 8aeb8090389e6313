use super::*;
use tensorfleet_kernel::{AttrList, Attrs};
use tensorfleet_tensor::{PartialShape, PortType};

static OP: OpDef = OpDef {
    name: "Demo",
    inputs: &["x: T", "rest: N * T", "more: Tmore", "ref: Ref(string)"],
    outputs: &["y: int32"],
    attrs: &[
        "T: {half, float} = DT_FLOAT",
        "N: int >= 1",
        "Tmore: list(type) >= 0 = []",
        "padding: {'SAME', 'VALID'}",
        "shape: shape = {dim { size: 2 } dim { size: -1 }}",
        "name: string = 'a\\'b'",
        "scale: float = -0.5",
        "sizes: list(int) = [1, -2]",
    ],
    ..OpDef::BLANK
};

#[test]
fn parses_the_attr_language() {
    let signature = Signature::of(&OP).unwrap();
    assert_eq!(
        signature.inputs[0].kind,
        ArgKind::Single(TypeOf::Attr("T".into()))
    );
    assert!(
        matches!(&signature.inputs[1].kind, ArgKind::Repeated { number, .. } if &**number == "N")
    );
    assert_eq!(signature.inputs[2].kind, ArgKind::TypeList("Tmore".into()));
    assert!(signature.inputs[3].is_ref);
    assert_eq!(
        signature.outputs[0].kind,
        ArgKind::Single(TypeOf::Fixed(DType::I32))
    );
    let attr = |name: &str| signature.attr(name).unwrap();
    assert_eq!(
        attr("T").allowed,
        Allowed::Types(vec![DType::F16, DType::F32])
    );
    assert_eq!(attr("N").minimum, Some(1));
    assert!(attr("N").default.is_none());
    assert_eq!(
        attr("padding").allowed,
        Allowed::Strings(vec!["SAME".into(), "VALID".into()])
    );
    assert!(
        matches!(&attr("shape").default, Some(AttrValue::Shape(s)) if *s == PartialShape::new(&[2, -1]))
    );
    assert!(matches!(&attr("name").default, Some(AttrValue::S(s)) if &s[..] == b"a'b"));
    assert!(matches!(&attr("scale").default, Some(AttrValue::F(f)) if *f == -0.5));
    assert!(
        matches!(&attr("sizes").default, Some(AttrValue::List(AttrList::I(v))) if v == &[1, -2])
    );
}

#[test]
fn resolves_port_types() {
    let signature = Signature::of(&OP).unwrap();
    let mut attrs = Attrs::new();
    attrs.set("T", AttrValue::Type(DType::F16.into()));
    attrs.set("N", AttrValue::I(2));
    attrs.set(
        "Tmore",
        AttrValue::List(AttrList::Type(vec![DType::Bool.into()])),
    );
    let types = port_types(&signature.inputs, &attrs).unwrap();
    let half = PortType::from(DType::F16);
    assert_eq!(
        types.as_slice(),
        &[
            half,
            half,
            half,
            DType::Bool.into(),
            PortType::reference(DType::String)
        ]
    );
    attrs.set("N", AttrValue::I(i64::MAX));
    assert!(port_types(&signature.inputs, &attrs).is_err());
}

#[test]
fn refuses_what_is_no_signature() {
    for text in [
        "N",
        "N: nothing",
        "N: int >= x",
        "N: int = ",
        "T: {float",
        "N: int 3",
    ] {
        assert!(Signature::parse_attr(text).is_err(), "{text}");
    }
}
