//! The gradient of a function as a function: what `SymbolicGradient` calls.

use std::sync::Arc;

use smallvec::SmallVec;
use tensorfleet_kernel::FuncRef;
use tensorfleet_proto::attr_value::Value;
use tensorfleet_status::Result;

use crate::builder::GraphBuilder;
use crate::function::{Function, FunctionBody, Library};
use crate::gradient::{densify, gradients};
use crate::graph::Output;
use crate::registry::Registry;

impl Library {
    /// The function that was given as the gradient of another.
    pub fn gradient_of(&self, name: &str) -> Option<&str> {
        let given = self
            .gradients
            .iter()
            .find(|gradient| gradient.function_name == name)?;
        Some(given.gradient_func.as_str()).filter(|name| !name.is_empty())
    }
}

impl Function {
    /// The ops and functions that its nodes name, and the functions named in their attributes.
    pub fn calls(&self) -> impl Iterator<Item = &str> {
        self.def().node_def.iter().flat_map(|node| {
            let named = node.attr.values().filter_map(|attr| match &attr.value {
                Some(Value::Func(func)) => Some(func.name.as_str()),
                _ => None,
            });
            named.chain([node.op.as_str()])
        })
    }
}

impl FunctionBody {
    /// The gradient of a function: from its arguments and the gradients of its results to the gradients of its
    /// arguments, zeros where none flows. It is the one given in the library if there is one.
    pub fn gradient(
        func: &FuncRef,
        registry: &Arc<Registry>,
        library: &Arc<Library>,
    ) -> Result<FunctionBody> {
        if let Some(given) = library.gradient_of(&func.name) {
            let given = library.find(given)?;
            return FunctionBody::instantiate(given, &func.attrs, registry, library);
        }
        let function = library.find(&func.name)?;
        let body = FunctionBody::instantiate(function, &func.attrs, registry, library)?;
        differentiate(body).map_err(|status| status.context(format!("gradient of '{}'", func.name)))
    }
}

fn differentiate(mut body: FunctionBody) -> Result<FunctionBody> {
    let xs: Vec<Output> = body.args.iter().map(|arg| Output::from(*arg)).collect();
    let mut ys = Vec::with_capacity(body.rets.len());
    for ret in &body.rets {
        ys.extend(body.graph.node(*ret).inputs.first().copied());
        body.graph.become_no_op(*ret, SmallVec::new())?;
    }
    let mut builder = GraphBuilder::extend(body.graph);
    builder.set_scope("gradient");
    let mut args = body.args;
    let mut starts = Vec::with_capacity(ys.len());
    for port in &body.ret_types {
        let arg = builder
            .op("_Arg")
            .attr("T", port.dtype)
            .attr("index", args.len() as i64)
            .build()?;
        starts.push(Some(Output::from(arg)));
        args.push(arg);
    }
    let grads = gradients(&mut builder, &ys, &xs, &starts)?;
    let mut rets = Vec::with_capacity(xs.len());
    for (index, (x, grad)) in xs.iter().zip(grads).enumerate() {
        let value = match grad {
            Some(grad) => densify(&mut builder, grad)?,
            None => builder.apply("ZerosLike", &[*x])?,
        };
        let ret = builder.op("_Retval").input(value);
        rets.push(ret.attr("index", index as i64).build()?);
    }
    let arg_types = [body.arg_types.as_slice(), &body.ret_types].concat();
    Ok(FunctionBody {
        graph: builder.finish(),
        args,
        rets,
        control_rets: Vec::new(),
        ret_types: body.arg_types,
        arg_types,
    })
}
