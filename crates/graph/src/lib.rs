//! Graph IR, op definitions and registry, GraphDef import and export, builder, shape rules, autodiff driver.
//!
//! A [`Graph`] is always consistent: every input exists and has the type its consumer wants, every
//! attribute has a legal value. Whatever comes from outside passes through [`import`](Graph::import),
//! which answers malformed input with TensorFlow's status codes. Nothing here runs anything.

mod assemble;
mod attr_proto;
mod builder;
mod calls;
mod check;
mod def;
pub mod example;
mod export;
mod flow_gradient;
mod function;
mod function_def;
mod function_gradient;
pub mod gradient;
mod graph;
mod import;
pub mod infer;
mod reach;
mod registry;
mod signature;
pub mod text;

pub use builder::{GraphBuilder, OpBuilder};
pub use def::{Cost, Exactness, Gradient, KernelDef, OpDef, cpu};
pub use function::{Function, FunctionBody, Library};
pub use function_def::FunctionWriter;
pub use graph::{Consumers, Graph, Node, NodeId, Output, Versions};
pub use registry::{OpEntry, Registry};
pub use signature::{
    Allowed, ArgDef, ArgKind, AttrDef, AttrKind, Scalar, Signature, TypeOf, parse_attr_value,
    port_types,
};
