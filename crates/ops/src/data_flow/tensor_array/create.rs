//! `TensorArrayV3`: makes an array.
//!
//! TensorFlow: TensorArrayV3(size: int32) -> (handle: resource, flow: float), with attrs dtype: type,
//! element_shape: shape = unknown, dynamic_size: bool = false, clear_after_read: bool = true,
//! identical_element_shapes: bool = false, tensor_array_name: string = "".

use std::sync::Arc;

use tensorfleet_graph::example::script;
use tensorfleet_graph::{Cost, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Result, ensure};
use tensorfleet_tensor::Tensor;

use super::array::{Options, TensorArray};
use super::{STATEFUL, handle_to};

pub(crate) static OPS: [OpDef; 1] = [OpDef {
    name: "TensorArrayV3",
    inputs: &["size: int32"],
    outputs: &["handle: resource", "flow: float"],
    attrs: &[
        "dtype: type",
        "element_shape: shape = {unknown_rank: true}",
        "dynamic_size: bool = false",
        "clear_after_read: bool = true",
        "identical_element_shapes: bool = false",
        "tensor_array_name: string = ''",
    ],
    infer: infer::scalar,
    gradient: Gradient::Stop("a size is no number to differentiate by"),
    kernels: &[cpu(&[], build)],
    cost: Cost::Cheap,
    scripts: &[
        script(
            "grows when told to",
            "two = int32[]{2}
             five = int32[]{5}
             x = float[]{7}
             fixed = TensorArrayV3(two) {dtype=DT_FLOAT}
             outside = TensorArrayWriteV3(fixed, two, x, fixed:1)
             grows = TensorArrayV3(two) {dtype=DT_FLOAT, dynamic_size=true}
             inside = TensorArrayWriteV3(grows, five, x, grows:1)
             size = TensorArraySizeV3(grows, inside)
             read = TensorArrayReadV3(grows, five, inside) {dtype=DT_FLOAT}",
            &[
                "fetch fixed:1 => float[]{0}",
                "fetch outside fails INVALID_ARGUMENT Tried to write to index 2 but array is not resizeable and size is: 2",
                "fetch size, read => int32[]{6}; float[]{7}",
                "fetch size, read => int32[]{6}; float[]{7}",
            ],
        ),
        script(
            "sizes that are none",
            "minus = int32[]{-1}
             many = int32[2]{1, 2}
             a = TensorArrayV3(minus) {dtype=DT_FLOAT}
             b = TensorArrayV3(many) {dtype=DT_FLOAT}",
            &[
                "run a fails INVALID_ARGUMENT Size should be >= 0.",
                "run b fails INVALID_ARGUMENT",
            ],
        ),
        script(
            "the first element fixes the shape",
            "two = int32[]{2}
             zero = int32[]{0}
             one = int32[]{1}
             x = float[2]{1, 2}
             y = float[3]{1, 2, 3}
             ta = TensorArrayV3(two) {dtype=DT_FLOAT, identical_element_shapes=true}
             first = TensorArrayWriteV3(ta, zero, x, ta:1)
             second = TensorArrayWriteV3(ta, one, y, first)
             unwritten = TensorArrayReadV3(ta, one, first) {dtype=DT_FLOAT}
             other = TensorArrayV3(two) {dtype=DT_FLOAT, element_shape=[?,2]}
             wrong = TensorArrayWriteV3(other, zero, x, other:1)",
            &[
                "fetch second fails INVALID_ARGUMENT because the value shape is [3] which is incompatible with the TensorArray's inferred element shape: [2] (consider setting infer_shape=False).",
                "fetch unwritten => float[2]{0, 0}",
                "fetch wrong fails INVALID_ARGUMENT because the value shape is [2] which is incompatible with the TensorArray's inferred element shape: [?,2] (consider setting infer_shape=False).",
            ],
        ),
    ],
    ..STATEFUL
}];

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let attrs = node.attrs.clone();
    let dtype = attrs.dtype("dtype")?;
    let dynamic_size = attrs.bool("dynamic_size")?;
    let clear_after_read = attrs.bool("clear_after_read")?;
    let identical_element_shapes = attrs.bool("identical_element_shapes")?;
    let element_shape = attrs.shape("element_shape")?.clone();
    let name = match attrs.str("tensor_array_name")? {
        "" => node.name.clone(),
        name => name.to_owned(),
    };
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let size = ctx.input(0)?;
        ensure!(
            size.rank() == 0,
            invalid_argument,
            "TensorArray size must be scalar, but had shape: {}",
            size.shape()
        );
        let size = ctx.scalar::<i32>(0)?;
        ensure!(size >= 0, invalid_argument, "Size should be >= 0.");
        let options = Options {
            name: format!("{name}_{}", ctx.env().step_resources.unique_id()),
            dtype,
            identical_element_shapes,
            clear_after_read,
            is_grad: false,
        };
        let array = TensorArray::new(options, size as usize, element_shape.clone(), dynamic_size)?;
        let handle = handle_to(ctx, &Arc::new(array));
        ctx.set(0, handle);
        ctx.set(1, Tensor::scalar(0f32));
        Ok(())
    })
}
