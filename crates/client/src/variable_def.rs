//! Variables as the messages that collections of a MetaGraph carry.

use std::sync::Arc;

use tensorfleet_proto as pb;
use tensorfleet_status::{Result, invalid_argument};
use tensorfleet_tensor::PartialShape;

use crate::graph::Graph;
use crate::output::Output;
use crate::variable::{Inner, Part, Variable};

impl Variable {
    /// The message that describes the variable and the nodes around it.
    pub fn to_proto(&self) -> pb::VariableDef {
        pb::VariableDef {
            variable_name: self.handle().name(),
            initializer_name: self.initializer().name(),
            snapshot_name: self.snapshot().name(),
            initial_value_name: self.initial_value().name(),
            is_resource: self.is_resource(),
            trainable: self.is_trainable(),
            save_slice_info_def: self.part().map(|part| pb::SaveSliceInfoDef {
                full_name: part.whole_name.clone(),
                full_shape: part.whole_dims.clone(),
                var_offset: part.offset.clone(),
                var_shape: self.dims().to_vec(),
            }),
            ..pb::VariableDef::default()
        }
    }

    /// The variable that a message describes; its nodes must be in the graph, under these names behind `scope`.
    pub(crate) fn from_proto(g: &Graph, def: &pb::VariableDef, scope: &str) -> Result<Variable> {
        let named = |name: &str| format!("{scope}{name}");
        let handle = g.tensor(&named(&def.variable_name))?;
        let op = handle.op();
        let initial_value = match def.initial_value_name.as_str() {
            "" => Output::new(g, None),
            name => g.tensor(&named(name))?,
        };
        let held = op.attr("dtype");
        let dtype = match held {
            Some(tensorfleet_kernel::AttrValue::Type(port)) => port.dtype,
            _ => {
                return Err(invalid_argument!(
                    "'{}' is named as a variable but its node does not tell a dtype",
                    op.name()
                ));
            }
        };
        let told = match op.attr("shape") {
            Some(tensorfleet_kernel::AttrValue::Shape(shape)) => shape,
            _ => PartialShape::unknown(),
        };
        let shape = told.merge(&initial_value.shape()).unwrap_or(told);
        let Some(dims) = shape.dims() else {
            return Err(invalid_argument!(
                "the shape of variable '{}' is not known",
                op.name()
            ));
        };
        Ok(Variable::from_inner(Inner {
            name: op.name(),
            dtype,
            dims: dims.to_vec(),
            resource: def.is_resource,
            initializer: g.operation(&named(&def.initializer_name))?,
            snapshot: g.tensor(&named(&def.snapshot_name))?,
            initial_value,
            trainable: def.trainable,
            part: def.save_slice_info_def.as_ref().map(|slice| Part {
                whole_name: slice.full_name.clone(),
                whole_dims: slice.full_shape.clone(),
                offset: slice.var_offset.clone(),
            }),
            handle,
        }))
    }

    pub(crate) fn from_inner(inner: Inner) -> Variable {
        Variable {
            inner: Arc::new(inner),
        }
    }
}
