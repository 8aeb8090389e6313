//! Our signatures are TensorFlow's, as recorded in `tests/reference/tensorflow_ops.txt`.

use std::collections::BTreeMap;
use std::path::Path;

use tensorfleet_graph::{Allowed, ArgKind, AttrDef, OpDef, Scalar, Signature, TypeOf};
use tensorfleet_tensor::DType;

/// One op as TensorFlow declares it.
#[derive(Default)]
struct Recorded {
    inputs: Vec<String>,
    outputs: Vec<String>,
    attrs: Vec<String>,
    flags: Vec<String>,
}

fn recorded() -> BTreeMap<String, Recorded> {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/reference/tensorflow_ops.txt");
    let text = std::fs::read_to_string(path).unwrap();
    let mut ops: BTreeMap<String, Recorded> = BTreeMap::new();
    let mut current = String::new();
    for line in text.lines() {
        let Some((word, rest)) = line.split_once(' ') else {
            continue;
        };
        if word == "op" {
            current = rest.to_owned();
            ops.insert(current.clone(), Recorded::default());
            continue;
        }
        let Some(op) = ops.get_mut(&current) else {
            continue;
        };
        match word {
            "in" => op.inputs.push(rest.to_owned()),
            "out" => op.outputs.push(rest.to_owned()),
            "attr" => op.attrs.push(rest.to_owned()),
            "flags" => op.flags = rest.split(' ').map(str::to_owned).collect(),
            _ => {}
        }
    }
    ops
}

/// Defaults that are tensors are written in another language there: the rest of the attribute is compared.
fn parse(recorded: &Recorded) -> Signature {
    let attrs: Vec<String> = recorded
        .attrs
        .iter()
        .map(|text| match text.split_once("tensor = {") {
            Some((start, _)) => format!("{start}tensor"),
            None => text.clone(),
        })
        .collect();
    Signature::parse(&recorded.inputs, &recorded.outputs, &attrs).unwrap()
}

fn differences(def: &OpDef, ours: &Signature, recorded: &Recorded) -> Vec<String> {
    let theirs = parse(recorded);
    let mut wrong = Vec::new();
    for (what, ours, theirs) in [
        ("inputs", &ours.inputs, &theirs.inputs),
        ("outputs", &ours.outputs, &theirs.outputs),
    ] {
        if ours != theirs {
            wrong.push(format!(
                "{}: {what} are {ours:?}, TensorFlow's {theirs:?}",
                def.name
            ));
        }
    }
    let names = |attrs: &[AttrDef]| {
        attrs
            .iter()
            .map(|attr| attr.name.to_string())
            .collect::<Vec<_>>()
    };
    if names(&ours.attrs) != names(&theirs.attrs) {
        wrong.push(format!(
            "{}: attrs are {:?}, TensorFlow's {:?}",
            def.name,
            names(&ours.attrs),
            names(&theirs.attrs)
        ));
        return wrong;
    }
    for (ours, theirs) in ours.attrs.iter().zip(&theirs.attrs) {
        let same_default = ours.kind.scalar == Scalar::Tensor
            || format!("{:?}", ours.default) == format!("{:?}", theirs.default);
        if ours.kind != theirs.kind
            || !same_allowed(&ours.allowed, &theirs.allowed)
            || !same_default
            || ours.minimum != theirs.minimum
        {
            wrong.push(format!(
                "{}: attr {ours:?}, TensorFlow's {theirs:?}",
                def.name
            ));
        }
    }
    let flags = [
        ("stateful", def.stateful),
        ("commutative", def.commutative),
        ("aggregate", def.aggregate),
        ("distributed", def.distributed),
        ("uninitialized", def.allows_uninitialized_input),
    ];
    for (flag, ours) in flags {
        if ours != recorded.flags.iter().any(|theirs| theirs == flag) {
            wrong.push(format!("{}: {flag} is {ours}", def.name));
        }
    }
    wrong
}

fn same_allowed(ours: &Allowed, theirs: &Allowed) -> bool {
    match (ours, theirs) {
        (Allowed::Types(ours), Allowed::Types(theirs)) => {
            let sorted = |types: &[DType]| {
                let mut types = types.to_vec();
                types.sort();
                types
            };
            sorted(ours) == sorted(theirs)
        }
        _ => ours == theirs,
    }
}

#[test]
fn signatures_are_tensorflows() {
    let recorded = recorded();
    assert!(recorded.len() > 1000);
    let registry = tensorfleet_ops::registry().unwrap();
    let mut wrong = Vec::new();
    for def in tensorfleet_ops::all().chain(tensorfleet_ops::refused()) {
        match recorded.get(def.name) {
            Some(theirs) => wrong.extend(differences(
                def,
                &registry.get(def.name).unwrap().signature,
                theirs,
            )),
            None => wrong.push(format!("{}: TensorFlow has no such op", def.name)),
        }
    }
    assert!(
        wrong.is_empty(),
        "{} differences:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    // Both kinds of argument occur, or the comparison would compare nothing.
    let uses_attr = |signature: &Signature| {
        signature
            .inputs
            .iter()
            .any(|arg| matches!(&arg.kind, ArgKind::Single(TypeOf::Attr(_))))
    };
    assert!(registry.iter().any(|entry| uses_attr(&entry.signature)));
}
