//! `UniqueDataset`: each element the first time it comes.
//!
//! TensorFlow: UniqueDataset(input_dataset: variant) -> handle: variant, of one component.

use std::collections::HashSet;
use std::task::{Poll, Waker, ready};

use tensorfleet_graph::example::{Script, script};
use tensorfleet_graph::{OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, NodeInfo};
use tensorfleet_status::{Result, ensure, invalid_argument};
use tensorfleet_tensor::{DType, TString, Tensor};

use crate::dataset::home::Place;
use crate::dataset::kernel::{self, UNARY};
use crate::dataset::value::{Dataset, Iterate, Next, Stage};

const SCRIPT: Script = script(
    "first times",
    "x = int64[5]{3, 1, 3, 2, 1}
     rows = TensorSliceDataset([x]) {output_shapes=[[]]}
     s = string[4]{a, b, a, c}
     words = TensorSliceDataset([s]) {output_shapes=[[]]}
     a = UniqueDataset(rows) {output_types=[DT_INT64], output_shapes=[[]]}
     b = UniqueDataset(words) {output_types=[DT_STRING], output_shapes=[[]]}
     i = IteratorV2() {output_types=[DT_INT64], output_shapes=[[]], shared_name='', container=''}
     make_i = MakeIterator(a, i)
     next_i = IteratorGetNext(i) {output_types=[DT_INT64], output_shapes=[[]]}
     j = IteratorV2() {output_types=[DT_STRING], output_shapes=[[]], shared_name='', container=''}
     make_j = MakeIterator(b, j)
     next_j = IteratorGetNext(j) {output_types=[DT_STRING], output_shapes=[[]]}",
    &[
        "run make_i, make_j",
        "fetch next_i => int64[]{3}",
        "fetch next_i => int64[]{1}",
        "fetch next_i => int64[]{2}",
        "fetch next_i fails OUT_OF_RANGE End of sequence",
        "fetch next_j => string[]{a}",
        "fetch next_j => string[]{b}",
        "fetch next_j => string[]{c}",
        "fetch next_j fails OUT_OF_RANGE End of sequence",
    ],
);

pub(crate) static OP: OpDef = OpDef {
    name: "UniqueDataset",
    kernels: &[cpu(&[], build)],
    scripts: &[SCRIPT],
    ..UNARY
};

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    kernel::build(node, |ctx| {
        let input = Dataset::input(ctx, 0)?;
        ensure!(
            input.spec().types.len() == 1,
            invalid_argument,
            "UniqueDataset only supports inputs with a single component."
        );
        Ok(Unique([input]))
    })
}

struct Unique([Dataset; 1]);

impl Stage for Unique {
    fn iterate(&self, place: &Place) -> Result<Box<dyn Iterate>> {
        Ok(Box::new(Telling {
            input: self.0[0].iterate(place)?,
            seen: HashSet::new(),
        }))
    }

    fn inputs(&self) -> &[Dataset] {
        &self.0
    }
}

struct Telling {
    input: Box<dyn Iterate>,
    seen: HashSet<Vec<u8>>,
}

/// Bytes that are alike for tensors of the same shape and the same elements.
fn bytes(tensor: &Tensor) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    bytes.extend((tensor.rank() as u64).to_le_bytes());
    for dim in tensor.shape().iter() {
        bytes.extend(dim.to_le_bytes());
    }
    if tensor.dtype() == DType::String {
        for text in tensor.slice::<TString>()? {
            bytes.extend((text.len() as u64).to_le_bytes());
            bytes.extend_from_slice(text);
        }
        return Ok(bytes);
    }
    let plain = tensor.bytes().ok_or_else(|| {
        invalid_argument!("elements of type {} cannot be told apart", tensor.dtype())
    })?;
    bytes.extend_from_slice(plain);
    Ok(bytes)
}

impl Iterate for Telling {
    fn next(&mut self, waker: &Waker) -> Next {
        loop {
            let next = ready!(self.input.next(waker))?;
            let Some(first) = next.as_ref().and_then(|element| element.first()) else {
                return Poll::Ready(Ok(next));
            };
            if self.seen.insert(bytes(first)?) {
                return Poll::Ready(Ok(next));
            }
        }
    }
}
