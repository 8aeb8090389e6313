//! The builder of one op: a function, and what it returns.

use anyhow::{Result, bail};
use tensorfleet_graph::{ArgDef, ArgKind, AttrDef, AttrKind, OpDef, Scalar, Signature, TypeOf};

use super::names::snake;

/// Methods that every builder has.
const COMMON: &[&str] = &[
    "name",
    "control",
    "device",
    "colocate_with",
    "build",
    "output",
    "outputs",
];

/// The Rust code of an op's builder.
pub(super) fn write(def: &OpDef) -> Result<String> {
    let signature = Signature::of(def)?;
    let asked: Vec<&AttrDef> = signature
        .attrs
        .iter()
        .filter(|attr| !is_inferred(&signature, attr))
        .collect();
    let (options, required): (Vec<&AttrDef>, Vec<&AttrDef>) =
        asked.into_iter().partition(|attr| attr.default.is_some());
    let mut text = docs(def, &signature, &required);
    text.push_str(&function(def, &signature, &required)?);
    text.push_str(&builder(def, &signature, &options)?);
    Ok(text)
}

/// Whether an attribute follows from the inputs.
fn is_inferred(signature: &Signature, attr: &AttrDef) -> bool {
    let given_by = |of: &TypeOf| matches!(of, TypeOf::Attr(name) if *name == attr.name);
    signature.inputs.iter().any(|input| match &input.kind {
        ArgKind::Single(of) => given_by(of),
        ArgKind::Repeated { number, of } => *number == attr.name || given_by(of),
        ArgKind::TypeList(types) => *types == attr.name,
    })
}

/// Whether an input always stands for at least one tensor.
fn is_there(signature: &Signature, input: &ArgDef) -> bool {
    let at_least = |attr: &str| signature.attr(attr).and_then(|attr| attr.minimum);
    match &input.kind {
        ArgKind::Single(_) => true,
        ArgKind::Repeated { number: attr, .. } | ArgKind::TypeList(attr) => {
            at_least(attr).is_some_and(|least| least > 0)
        }
    }
}

fn docs(def: &OpDef, signature: &Signature, required: &[&AttrDef]) -> String {
    let list = |texts: &[&str]| -> String {
        let texts: Vec<String> = texts.iter().map(|text| format!("`{text}`")).collect();
        texts.join(", ")
    };
    let raw = |wanted: &dyn Fn(&AttrDef) -> bool| -> Vec<&str> {
        let pairs = def.attrs.iter().zip(&signature.attrs);
        pairs
            .filter(|(_, attr)| wanted(attr))
            .map(|(text, _)| *text)
            .collect()
    };
    let flow = match (def.inputs, def.outputs) {
        ([], []) => String::new(),
        ([], outputs) => format!(": {}", list(outputs)),
        (inputs, []) => format!(": of {}", list(inputs)),
        (inputs, outputs) => format!(": {} of {}", list(outputs), list(inputs)),
    };
    let mut text = format!("/// `{}`{flow}.\n", def.name);
    let params = raw(&|attr| required.iter().any(|other| other.name == attr.name));
    if !params.is_empty() {
        text.push_str(&format!("///\n/// Attributes: {}.\n", list(&params)));
    }
    let types = raw(&|attr| is_inferred(signature, attr) && attr.kind.scalar == Scalar::Type);
    if !types.is_empty() {
        text.push_str(&format!("///\n/// By the inputs: {}.\n", list(&types)));
    }
    if def.deprecated > 0 {
        let since = def.deprecated;
        text.push_str(&format!(
            "///\n/// Not in graphs of version {since} and later.\n"
        ));
    }
    text
}

fn function(def: &OpDef, signature: &Signature, required: &[&AttrDef]) -> Result<String> {
    let mut params: Vec<String> = Vec::new();
    let mut calls = String::new();
    let needs_graph = !signature
        .inputs
        .iter()
        .any(|input| is_there(signature, input));
    let mut begin = String::new();
    let first_there = signature
        .inputs
        .iter()
        .position(|input| is_there(signature, input));
    if needs_graph {
        params.push("graph: &Graph".to_owned());
        begin = format!("graph.op(\"{}\")", def.name);
    }
    for (index, input) in signature.inputs.iter().enumerate() {
        let name = snake(&input.name);
        let single = matches!(input.kind, ArgKind::Single(_));
        let kind = if single {
            "impl Operand"
        } else {
            "&[impl Operand]"
        };
        params.push(format!("{name}: {kind}"));
        let is_first = first_there == Some(0) && index == 0;
        match (is_first, single) {
            (true, true) => begin = format!("node_with(\"{}\", {name})", def.name),
            (true, false) => begin = format!("node_with_list(\"{}\", {name})", def.name),
            (false, true) => calls.push_str(&format!(".input({name})")),
            (false, false) => calls.push_str(&format!(".list({name})")),
        }
    }
    let mut prelude = String::new();
    if let (false, Some(position @ 1..)) = (needs_graph, first_there) {
        // The graph is that of a later input: the ones before it may be empty lists.
        let input = &signature.inputs[position];
        if !matches!(input.kind, ArgKind::Single(_)) {
            bail!("no input tells the graph");
        }
        let name = snake(&input.name);
        prelude = format!("let {name} = {name}.to_output();\n");
        begin = format!("{name}.graph().op(\"{}\")", def.name);
        calls = calls.replace(&format!(".input({name})"), &format!(".input(&{name})"));
    }
    for attr in required {
        let name = snake(&attr.name);
        params.push(format!("{name}: {}", rust_type(attr.kind)));
        calls.push_str(&format!(".attr(\"{}\", {name}.to_attr())", attr.name));
    }
    let names: Vec<&str> = params
        .iter()
        .filter_map(|param| param.split(':').next())
        .collect();
    if let Some(name) = names
        .iter()
        .find(|name| names.iter().filter(|n| n == name).count() > 1)
    {
        bail!("two parameters are called {name}");
    }
    let many = if params.len() > 7 {
        "#[allow(clippy::too_many_arguments)]\n"
    } else {
        ""
    };
    Ok(format!(
        "{many}pub fn {}({}) -> {} {{\n{prelude}{}({begin}{calls})\n}}\n\n",
        snake(def.name),
        params.join(", "),
        def.name,
        def.name,
    ))
}

fn builder(def: &OpDef, signature: &Signature, options: &[&AttrDef]) -> Result<String> {
    let mut text = format!(
        "builder! {{\n    /// [`{}()`] in the making.\n    {} {{",
        snake(def.name),
        def.name
    );
    for attr in options {
        let mut name = snake(&attr.name);
        if COMMON.contains(&name.as_str()) {
            name.push_str("_attr");
        }
        let raw = def
            .attrs
            .iter()
            .zip(&signature.attrs)
            .find(|(_, other)| other.name == attr.name);
        let raw = raw.map_or("", |(raw, _)| *raw);
        text.push_str(&format!(
            "\n        /// `{raw}`.\n        {name} = \"{}\": {};",
            attr.name,
            rust_type(attr.kind)
        ));
    }
    if !options.is_empty() {
        text.push_str("\n    ");
    }
    text.push_str("} -> ");
    text.push_str(&results(def, signature));
    text.push_str("\n}\n");
    Ok(text)
}

fn results(def: &OpDef, signature: &Signature) -> String {
    let number = |output: &ArgDef| match &output.kind {
        ArgKind::Single(_) => None,
        ArgKind::Repeated { number, .. } => Some(number.to_string()),
        ArgKind::TypeList(types) => Some(types.to_string()),
    };
    match signature.outputs.as_slice() {
        [] => "none".to_owned(),
        [only] => match number(only) {
            None => "one".to_owned(),
            Some(number) => format!("list \"{number}\""),
        },
        many => {
            let mut text = format!("{}Outputs {{ ", def.name);
            for output in many {
                text.push_str(&snake(&output.name));
                if let Some(number) = number(output) {
                    text.push_str(&format!(": \"{number}\""));
                }
                text.push_str(", ");
            }
            text + "}"
        }
    }
}

fn rust_type(kind: AttrKind) -> &'static str {
    match (kind.scalar, kind.is_list) {
        (Scalar::String, false) => "&str",
        (Scalar::Int, false) => "i64",
        (Scalar::Float, false) => "f32",
        (Scalar::Bool, false) => "bool",
        (Scalar::Type, false) => "DType",
        (Scalar::Shape, false) => "PartialShape",
        (Scalar::Tensor, false) => "Tensor",
        (Scalar::Func, false) => "FuncRef",
        (Scalar::String, true) => "&[&str]",
        (Scalar::Int, true) => "&[i64]",
        (Scalar::Float, true) => "&[f32]",
        (Scalar::Bool, true) => "&[bool]",
        (Scalar::Type, true) => "&[DType]",
        (Scalar::Shape, true) => "&[PartialShape]",
        (Scalar::Tensor, true) => "&[Tensor]",
        (Scalar::Func, true) => "&[FuncRef]",
    }
}
