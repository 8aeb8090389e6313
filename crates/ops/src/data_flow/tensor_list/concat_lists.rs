//! `TensorListConcatLists`: the elements of one list behind those of another, for tensors of lists alike.
//!
//! TensorFlow: TensorListConcatLists(input_a: variant, input_b: variant) -> output: variant, with attr element_dtype: type.

use std::sync::Arc;

use tensorfleet_graph::example::script;
use tensorfleet_graph::{Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Result, ensure, invalid_argument};
use tensorfleet_tensor::{DType, TensorList, Variant};

use super::{LIST, check_size};

pub(crate) static OP: OpDef = OpDef {
    name: "TensorListConcatLists",
    inputs: &["input_a: variant", "input_b: variant"],
    outputs: &["output: variant"],
    attrs: &["element_dtype: type"],
    infer: infer::same_as_first,
    gradient: Gradient::Stop("TensorFlow lets nothing through"),
    kernels: &[cpu(&[], build)],
    scripts: &[
        script(
            "two lists",
            "shape = int32[0]{}
             x = float[2]{1, 2}
             y = float[1]{3}
             a = TensorListFromTensor(x, shape)
             b = TensorListFromTensor(y, shape)
             c = TensorListConcatLists(a, b) {element_dtype=DT_FLOAT}
             all = TensorListStack(c, shape) {element_dtype=DT_FLOAT}
             first = TensorListStack(a, shape) {element_dtype=DT_FLOAT}
             twice = TensorListConcatLists(a, a) {element_dtype=DT_FLOAT}
             doubled = TensorListStack(twice, shape) {element_dtype=DT_FLOAT}",
            &[
                "fetch all, first => float[3]{1, 2, 3}; float[2]{1, 2}",
                "fetch doubled => float[4]{1, 2, 1, 2}",
            ],
        ),
        script(
            "tensors of lists",
            "shape = int32[0]{}
             x = float[2]{1, 2}
             y = float[1]{3}
             a = TensorListFromTensor(x, shape)
             b = TensorListFromTensor(y, shape)
             ab = Pack([a, b])
             ba = Pack([b, a])
             c = TensorListConcatLists(ab, ba) {element_dtype=DT_FLOAT}
             parts = Unpack(c) {num=2}
             first = TensorListStack(parts:0, shape) {element_dtype=DT_FLOAT}
             second = TensorListStack(parts:1, shape) {element_dtype=DT_FLOAT}",
            &["fetch first, second => float[3]{1, 2, 3}; float[3]{3, 1, 2}"],
        ),
        script(
            "lists that do not go together",
            "shape = int32[0]{}
             wide = int32[1]{2}
             x = float[2]{1, 2}
             y = float[1,2]{3, 4}
             a = TensorListFromTensor(x, shape)
             b = TensorListFromTensor(y, wide)
             i = TensorListFromTensor(wide, shape)
             pair = Pack([a, a])
             differ = TensorListConcatLists(a, b) {element_dtype=DT_FLOAT}
             dtype = TensorListConcatLists(a, i) {element_dtype=DT_FLOAT}
             rank = TensorListConcatLists(a, pair) {element_dtype=DT_FLOAT}",
            &[
                "run differ fails INVALID_ARGUMENT input_a and input_b TensorList element shapes are not identical at index 0.  Saw [] vs. [2]",
                "run dtype fails INVALID_ARGUMENT input_b[0].dtype != element_dtype.  Saw: int32 vs. float",
                "run rank fails INVALID_ARGUMENT",
            ],
        ),
    ],
    ..LIST
};

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let dtype = node.attrs.dtype("element_dtype")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let (mut a, b) = (ctx.take(0)?, ctx.take(1)?);
        ensure!(
            a.shape() == b.shape(),
            invalid_argument,
            "input_a and input_b must have the same shape.  Saw: {} vs. {}",
            a.shape(),
            b.shape()
        );
        let (left, right) = (a.slice_mut::<Variant>()?, b.slice::<Variant>()?);
        for (index, (a, b)) in left.iter_mut().zip(right).enumerate() {
            append(index, dtype, a, b)?;
        }
        ctx.set(0, a);
        Ok(())
    })
}

fn append(index: usize, dtype: DType, a: &mut Variant, b: &Variant) -> Result<()> {
    let (Variant::List(a), Variant::List(b)) = (a, b) else {
        return Err(invalid_argument!(
            "input_a[{index}] and input_b[{index}] must both be lists"
        ));
    };
    for (side, list) in [("a", &**a), ("b", &**b)] {
        check(index, dtype, side, list)?;
    }
    ensure!(
        a.element_shape == b.element_shape,
        invalid_argument,
        "input_a and input_b TensorList element shapes are not identical at index {index}.  Saw {} vs. {}",
        a.element_shape,
        b.element_shape
    );
    check_size(a.items.len() + b.items.len())?;
    Arc::make_mut(a).items.extend_from_slice(&b.items);
    Ok(())
}

fn check(index: usize, dtype: DType, side: &str, list: &TensorList) -> Result<()> {
    ensure!(
        list.element_dtype == dtype,
        invalid_argument,
        "input_{side}[{index}].dtype != element_dtype.  Saw: {} vs. {dtype}",
        list.element_dtype
    );
    Ok(())
}
