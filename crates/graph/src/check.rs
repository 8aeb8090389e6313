//! What makes a node legal: names, attributes, inputs. Errors carry TensorFlow's codes.

use std::fmt::Write as _;

use tensorfleet_kernel::{AttrList, AttrValue, Attrs};
use tensorfleet_status::{Result, Status, invalid_argument, not_found};

use crate::graph::{Graph, Node, Output};
use crate::registry::OpEntry;
use crate::signature::{Allowed, AttrDef, AttrKind, Scalar};

/// Adds where it happened, once, the way TensorFlow's Python client finds it.
pub(crate) fn at_node(status: Status, name: &str) -> Status {
    if status.message().contains("{{node ") {
        return status;
    }
    status.append(format_args!("\n\t [[{{{{node {name}}}}}]]"))
}

/// Node names: a letter, digit, dot (or underscore for nodes made by rewrites), then the same plus `_ - / \ >`.
pub(crate) fn name(name: &str) -> Result<()> {
    let legal =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '/' | '\\' | '>');
    let first = name.chars().next();
    if first.is_none_or(|c| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '>')))
        || !name.chars().all(legal)
    {
        return Err(at_node(invalid_argument!("Illegal op name '{name}'"), name));
    }
    Ok(())
}

/// Checks the attributes of a node against its op and fills in defaults. Attributes the op does not know are kept:
/// clients newer than this runtime send them.
pub(crate) fn attrs(name: &str, op: &OpEntry, mut attrs: Attrs) -> Result<Attrs> {
    for def in &op.signature.attrs {
        match attrs.get(&def.name) {
            Some(value) => attr(def, value)
                .map_err(|status| at_node(status.append(format_args!("; op {}", op.name)), name))?,
            None => match &def.default {
                Some(default) => attrs.set(def.name.clone(), default.clone()),
                None => {
                    let status = not_found!("No attr named '{}' in NodeDef:", def.name);
                    return Err(at_node(status, name));
                }
            },
        }
    }
    Ok(attrs)
}

/// Checks one value against its definition.
fn attr(def: &AttrDef, value: &AttrValue) -> Result<()> {
    let wrong = || {
        invalid_argument!(
            "AttrValue {value:?} of attr '{}' had the wrong type, expected '{}'",
            def.name,
            def.kind.name()
        )
    };
    if matches!(value, AttrValue::Placeholder(_)) {
        return Ok(());
    }
    if !is_of_kind(value, def.kind) {
        return Err(wrong());
    }
    match (def.minimum, value) {
        (Some(minimum), AttrValue::I(value)) if *value < minimum => {
            return Err(invalid_argument!(
                "Value for attr '{}' of {value} must be at least minimum {minimum}",
                def.name
            ));
        }
        (Some(minimum), AttrValue::List(list)) if (list.len() as i64) < minimum => {
            return Err(invalid_argument!(
                "Length for attr '{}' of {} must be at least minimum {minimum}",
                def.name,
                list.len()
            ));
        }
        _ => {}
    }
    match &def.allowed {
        Allowed::Any => Ok(()),
        Allowed::Types(allowed) => {
            let given: &[_] = match value {
                AttrValue::Type(port) => std::slice::from_ref(port),
                AttrValue::List(AttrList::Type(ports)) => ports,
                _ => &[],
            };
            match given.iter().find(|port| !allowed.contains(&port.dtype)) {
                None => Ok(()),
                Some(port) => {
                    let list: Vec<&str> = allowed.iter().map(|dtype| dtype.name()).collect();
                    Err(invalid_argument!(
                        "Value for attr '{}' of {port} is not in the list of allowed values: {}",
                        def.name,
                        list.join(", ")
                    ))
                }
            }
        }
        Allowed::Strings(allowed) => {
            let given: &[_] = match value {
                AttrValue::S(text) => std::slice::from_ref(text),
                AttrValue::List(AttrList::S(texts)) => texts,
                _ => &[],
            };
            match given
                .iter()
                .find(|text| !allowed.iter().any(|a| a.as_bytes() == &text[..]))
            {
                None => Ok(()),
                Some(text) => {
                    let mut list = String::new();
                    for (index, value) in allowed.iter().enumerate() {
                        let comma = if index == 0 { "" } else { ", " };
                        let _ = write!(list, "{comma}\"{value}\"");
                    }
                    let text = String::from_utf8_lossy(text);
                    Err(invalid_argument!(
                        "Value for attr '{}' of \"{text}\" is not in the list of allowed values: {list}",
                        def.name
                    ))
                }
            }
        }
    }
}

fn is_of_kind(value: &AttrValue, kind: AttrKind) -> bool {
    match (value, kind.is_list) {
        (AttrValue::S(_), false) => kind.scalar == Scalar::String,
        (AttrValue::I(_), false) => kind.scalar == Scalar::Int,
        (AttrValue::F(_), false) => kind.scalar == Scalar::Float,
        (AttrValue::B(_), false) => kind.scalar == Scalar::Bool,
        (AttrValue::Type(_), false) => kind.scalar == Scalar::Type,
        (AttrValue::Shape(_), false) => kind.scalar == Scalar::Shape,
        (AttrValue::Tensor(_), false) => kind.scalar == Scalar::Tensor,
        (AttrValue::Func(_), false) => kind.scalar == Scalar::Func,
        (AttrValue::List(list), true) => match list {
            AttrList::Empty => true,
            AttrList::S(_) => kind.scalar == Scalar::String,
            AttrList::I(_) => kind.scalar == Scalar::Int,
            AttrList::F(_) => kind.scalar == Scalar::Float,
            AttrList::B(_) => kind.scalar == Scalar::Bool,
            AttrList::Type(_) => kind.scalar == Scalar::Type,
            AttrList::Shape(_) => kind.scalar == Scalar::Shape,
            AttrList::Tensor(_) => kind.scalar == Scalar::Tensor,
            AttrList::Func(_) => kind.scalar == Scalar::Func,
        },
        _ => false,
    }
}

/// Checks that the inputs of a node exist and have the types it wants.
pub(crate) fn inputs(graph: &Graph, node: &Node) -> Result<()> {
    if node.inputs.len() != node.input_types.len() {
        let expected: Vec<String> = node.input_types.iter().map(ToString::to_string).collect();
        let status = invalid_argument!(
            "NodeDef expected inputs '{}' do not match {} inputs specified; Op<name={}>",
            expected.join(", "),
            node.inputs.len(),
            node.op.name
        );
        return Err(at_node(status, &node.name));
    }
    for (index, (input, wanted)) in node.inputs.iter().zip(&node.input_types).enumerate() {
        input_type(graph, node, index, *input, *wanted)?;
    }
    Ok(())
}

/// Branches and loops get outputs when somebody needs what happened inside; a session that has the node already does not hear of
/// it. That is what TensorFlow's hint is for.
const GROWING: [&str; 4] = ["If", "StatelessIf", "While", "StatelessWhile"];

/// What is said about a node that reads an output its source has not.
fn no_output(graph: &Graph, node: &Node, input: Output) -> Status {
    let Some((_, source)) = graph.nodes().nth(input.node.index()) else {
        return invalid_argument!(
            "Node '{}': Connecting to a node that does not exist",
            node.name
        );
    };
    let hint = if GROWING.contains(&&*source.op.name) {
        " Try using tf.compat.v1.experimental.output_all_intermediates(True)."
    } else {
        ""
    };
    invalid_argument!(
        "Node '{}': Connecting to invalid output {} of source node {} which has {} outputs.{hint}",
        node.name,
        input.port,
        source.name,
        source.output_types.len()
    )
}

/// Checks one input.
pub(crate) fn input_type(
    graph: &Graph,
    node: &Node,
    index: usize,
    input: Output,
    wanted: tensorfleet_tensor::PortType,
) -> Result<()> {
    let Some(found) = graph.output_type(input) else {
        return Err(at_node(no_output(graph, node, input), &node.name));
    };
    if !found.feeds(wanted) {
        let status = invalid_argument!(
            "Input {index} of node {} was passed {found} from {}:{} incompatible with expected {wanted}.",
            node.name,
            graph.node(input.node).name,
            input.port
        );
        return Err(at_node(status, &node.name));
    }
    Ok(())
}
