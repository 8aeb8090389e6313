//! `DatasetToSingleElement`, `ReduceDataset`, `DatasetCardinality`: what a dataset is as a whole.
//!
//! TensorFlow: DatasetToSingleElement(dataset: variant) -> components: output_types, the only element; ReduceDataset(
//! input_dataset: variant, initial_state: Tstate, other_arguments: Targuments) -> components: output_types, with f: func, what
//! the function makes of one element after the other; DatasetCardinality(input_dataset: variant) -> cardinality: int64, -1 for
//! no end and -2 if it is not known.

use std::sync::Arc;
use std::task::{Poll, Waker, ready};

use tensorfleet_graph::example::{Script, script};
use tensorfleet_graph::{Cost, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, AsyncCtx, KernelCtx, NodeInfo, Outputs, Value};
use tensorfleet_status::{Result, ensure, invalid_argument};
use tensorfleet_tensor::Tensor;

use super::ITERATOR;
use crate::dataset::call::{Call, Function, FunctionOf};
use crate::dataset::home::{Home, Place};
use crate::dataset::kernel::infer_output_shapes;
use crate::dataset::once;
use crate::dataset::value::{Dataset, Element, Iterate, Spec};

const SCRIPT: Script = script(
    "sum, only and count",
    "fn sum(state: int64, x: int64, by: int64) -> s {
         p = Mul(x, by)
         s = AddV2(state, p)
     }
     fn two(state: int64, x: int64) -> state, x {
     }
     zero = int64[]{0}
     one = int64[]{1}
     two = int64[]{2}
     three = int64[]{3}
     ten = int64[]{10}
     numbers = RangeDataset(zero, three, one) {output_types=[DT_INT64], output_shapes=[[]]}
     r = ReduceDataset(numbers, [ten], [two]) {f=sum, output_types=[DT_INT64], output_shapes=[[]]}
     r_two = ReduceDataset(numbers, [ten], []) {f=two, output_types=[DT_INT64], output_shapes=[[]]}
     r_float = ReduceDataset(numbers, [ten], [two]) {f=sum, output_types=[DT_FLOAT], output_shapes=[[]]}
     single = TakeDataset(numbers, one) {output_types=[DT_INT64], output_shapes=[[]]}
     none = TakeDataset(numbers, zero) {output_types=[DT_INT64], output_shapes=[[]]}
     s = DatasetToSingleElement(single) {output_types=[DT_INT64], output_shapes=[[]]}
     s_none = DatasetToSingleElement(none) {output_types=[DT_INT64], output_shapes=[[]]}
     s_many = DatasetToSingleElement(numbers) {output_types=[DT_INT64], output_shapes=[[]]}
     n = DatasetCardinality(numbers)
     no = DatasetCardinality(none)",
    &[
        "fetch r, s => int64[]{16}; int64[]{0}",
        "fetch r_two fails INVALID_ARGUMENT The number of components of the initial state and the reduce function output does not match. (initial_state=1, output=2).",
        "fetch r_float fails INVALID_ARGUMENT",
        "fetch s_none fails INVALID_ARGUMENT Dataset was empty.",
        "fetch s_many fails INVALID_ARGUMENT Dataset had more than one element.",
        "fetch n, no => int64[]{3}; int64[]{0}",
    ],
);

pub(crate) static OPS: [OpDef; 3] = [
    OpDef {
        name: "DatasetCardinality",
        inputs: &["input_dataset: variant"],
        outputs: &["cardinality: int64"],
        attrs: &["cardinality_options: string = ''"],
        stateful: false,
        infer: infer::scalar,
        kernels: &[cpu(&[], build_cardinality)],
        scripts: &[SCRIPT],
        cost: Cost::Cheap,
        ..ITERATOR
    },
    OpDef {
        name: "DatasetToSingleElement",
        inputs: &["dataset: variant"],
        outputs: &["components: output_types"],
        attrs: &[
            "output_types: list(type) >= 1",
            "output_shapes: list(shape) >= 1",
            "metadata: string = ''",
        ],
        infer: infer_output_shapes,
        kernels: &[cpu(&[], build_single)],
        scripts: &[SCRIPT],
        ..ITERATOR
    },
    OpDef {
        name: "ReduceDataset",
        inputs: &[
            "input_dataset: variant",
            "initial_state: Tstate",
            "other_arguments: Targuments",
        ],
        outputs: &["components: output_types"],
        attrs: &[
            "f: func",
            "Tstate: list(type) >= 1",
            "Targuments: list(type) >= 0",
            "output_types: list(type) >= 1",
            "output_shapes: list(shape) >= 1",
            "use_inter_op_parallelism: bool = true",
            "metadata: string = ''",
        ],
        infer: infer_output_shapes,
        kernels: &[cpu(&[], build_reduce)],
        scripts: &[SCRIPT],
        ..ITERATOR
    },
];

fn build_cardinality(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let count = Dataset::input(ctx, 0)?.cardinality();
        ctx.set(0, Tensor::scalar(count));
        Ok(())
    })
}

fn outputs(element: Element) -> Outputs {
    element.into_iter().map(Value::Tensor).collect()
}

fn build_single(node: &NodeInfo) -> Result<AnyKernel> {
    let spec = Arc::new(Spec::of(node)?);
    AnyKernel::later(move |mut ctx: AsyncCtx| {
        let home = Home::within(ctx.env());
        let place = Place::at(home.clone());
        let iterator = ctx.view(|view| Dataset::input(view, 0)?.iterate(&place));
        let mut iterator = match iterator {
            Ok(iterator) => iterator,
            Err(status) => return ctx.fail(status),
        };
        let spec = spec.clone();
        let mut first: Option<Element> = None;
        let job = move |waker: &Waker| -> Poll<Result<Outputs>> {
            loop {
                match ready!(iterator.next(waker))? {
                    Some(_) if first.is_some() => {
                        return Poll::Ready(Err(invalid_argument!(
                            "Dataset had more than one element."
                        )));
                    }
                    Some(element) => {
                        spec.check_element(&element)?;
                        first = Some(element);
                    }
                    None => {
                        let only = first.take();
                        let only = only.ok_or_else(|| invalid_argument!("Dataset was empty."));
                        return Poll::Ready(only.map(outputs));
                    }
                }
            }
        };
        once::run(ctx, home, Box::new(job));
    })
}

fn build_reduce(node: &NodeInfo) -> Result<AnyKernel> {
    let spec = Arc::new(Spec::of(node)?);
    let function = FunctionOf::attrs(node, "f", "Targuments")?;
    let states = node.attrs.port_types("Tstate")?.len();
    AnyKernel::later(move |mut ctx: AsyncCtx| {
        let home = Home::within(ctx.env());
        let place = Place::at(home.clone());
        let reducing = ctx.view(|view| {
            let iterator = Dataset::input(view, 0)?.iterate(&place)?;
            let state = (1..1 + states).map(|index| view.take(index));
            Ok(Reducing {
                iterator,
                state: state.collect::<Result<_>>()?,
                function: function.read(view, 1 + states)?,
                home: place.home.clone(),
                call: None,
            })
        });
        let mut reducing = match reducing {
            Ok(reducing) => reducing,
            Err(status) => return ctx.fail(status),
        };
        let spec = spec.clone();
        let job = move |waker: &Waker| -> Poll<Result<Outputs>> {
            let state = ready!(reducing.poll(waker))?;
            spec.check_element(&state)?;
            Poll::Ready(Ok(outputs(state)))
        };
        once::run(ctx, home, Box::new(job));
    })
}

struct Reducing {
    iterator: Box<dyn Iterate>,
    state: Element,
    function: Function,
    home: Arc<Home>,
    call: Option<Call>,
}

impl Reducing {
    fn poll(&mut self, waker: &Waker) -> Poll<Result<Element>> {
        loop {
            if let Some(call) = &mut self.call {
                let results = ready!(call.poll(waker));
                self.call = None;
                self.state = checked(results?, self.state.len())?;
            }
            let Some(element) = ready!(self.iterator.next(waker))? else {
                return Poll::Ready(Ok(std::mem::take(&mut self.state)));
            };
            // The state is moved out so that the function may write over it, but its length is kept for the check.
            let count = self.state.len();
            let mut args = std::mem::replace(&mut self.state, vec![Tensor::scalar(0i32); count]);
            args.extend(element);
            self.call = Some(self.function.call(&self.home, args));
        }
    }
}

fn checked(results: Element, count: usize) -> Result<Element> {
    ensure!(
        results.len() == count,
        invalid_argument,
        "The number of components of the initial state and the reduce function output does not match. (initial_state={count}, \
         output={}).",
        results.len()
    );
    Ok(results)
}
