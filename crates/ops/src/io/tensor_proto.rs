//! `ParseTensor`, `SerializeTensor`: tensors as serialized `TensorProto`s.
//!
//! TensorFlow: ParseTensor(serialized: string) -> output: out_type; SerializeTensor(tensor: T) -> serialized: string.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use prost::Message as _;
use tensorfleet_graph::example::script;
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_proto::TensorProto;
use tensorfleet_status::{Result, ensure, invalid_argument};
use tensorfleet_tensor::{Bytes, DType, TString, Tensor};

const PROTO: OpDef = OpDef {
    gradient: Gradient::None("TensorFlow has none"),
    exactness: Exactness::Bits,
    scripts: &[script(
        "there and back",
        "x = float[2,2]{1, 2, 3, 4}
         s = SerializeTensor(x)
         y = ParseTensor(s) {out_type=float}
         wrong = ParseTensor(s) {out_type=int32}
         text = string[]{bogus}
         none = ParseTensor(text) {out_type=int32}
         words = string[3]{a, bc, bc}
         w = SerializeTensor(words)
         z = DecodeRaw(w) {out_type=uint8}
         many = string[1]{bogus}
         vector = ParseTensor(many) {out_type=int32}",
        &[
            "fetch y => float[2,2]{1, 2, 3, 4}",
            "fetch z => uint8[19]{8, 7, 18, 4, 18, 2, 8, 3, 66, 1, 97, 66, 2, 98, 99, 66, 2, 98, 99}",
            "fetch wrong fails INVALID_ARGUMENT Type mismatch between parsed tensor (float) and dtype (int32)",
            "fetch none fails INVALID_ARGUMENT Could not parse `serialized` as TensorProto, base64: Ym9ndXM=",
            "fetch vector fails INVALID_ARGUMENT Expected `serialized` to be a scalar, got shape: [1]",
        ],
    )],
    ..OpDef::BLANK
};

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "ParseTensor",
        inputs: &["serialized: string"],
        outputs: &["output: out_type"],
        attrs: &["out_type: type"],
        kernels: &[cpu(&[], build_parse)],
        ..PROTO
    },
    OpDef {
        name: "SerializeTensor",
        inputs: &["tensor: T"],
        outputs: &["serialized: string"],
        attrs: &["T: type"],
        infer: infer::scalar,
        kernels: &[cpu(&[], build_serialize)],
        ..PROTO
    },
];

fn build_serialize(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let text = proto(ctx.input(0)?)?.encode_to_vec();
        ctx.set(0, Tensor::string(text));
        Ok(())
    })
}

/// Strings one by one, as TensorFlow writes them: its Python does not read them as content.
pub(crate) fn proto(tensor: &Tensor) -> Result<TensorProto> {
    if tensor.dtype() != DType::String {
        return tensor.to_proto();
    }
    Ok(TensorProto {
        dtype: tensor.dtype().number(),
        tensor_shape: Some(tensor.shape().to_proto()),
        string_val: tensor.slice::<TString>()?.iter().map(Bytes::from).collect(),
        ..TensorProto::default()
    })
}

fn build_parse(node: &NodeInfo) -> Result<AnyKernel> {
    let dtype = node.attrs.dtype("out_type")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let serialized = ctx.input(0)?;
        ensure!(
            serialized.rank() == 0,
            invalid_argument,
            "Expected `serialized` to be a scalar, got shape: {}",
            serialized.shape()
        );
        let text = serialized.to_scalar::<TString>()?;
        let proto = TensorProto::decode(Bytes::from(&text)).map_err(|_| {
            invalid_argument!(
                "Could not parse `serialized` as TensorProto, base64: {}",
                STANDARD.encode(&text)
            )
        })?;
        let tensor = Tensor::from_proto(&proto)?;
        ensure!(
            tensor.dtype() == dtype,
            invalid_argument,
            "Type mismatch between parsed tensor ({}) and dtype ({dtype})",
            tensor.dtype()
        );
        ctx.set(0, tensor);
        Ok(())
    })
}
