//! `RangeDataset`: numbers at equal distances.
//!
//! TensorFlow: RangeDataset(start: int64, stop: int64, step: int64) -> handle: variant. The numbers have the type that
//! output_types says.

use std::task::{Poll, Waker};

use tensorfleet_graph::example::script;
use tensorfleet_graph::{OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, NodeInfo};
use tensorfleet_status::{Result, ensure, unimplemented};
use tensorfleet_tensor::{DType, Tensor, bf16, f16};

use crate::dataset::home::Place;
use crate::dataset::kernel::{self, DATASET};
use crate::dataset::value::{Iterate, Next, Stage};

pub(crate) static OP: OpDef = OpDef {
    name: "RangeDataset",
    inputs: &["start: int64", "stop: int64", "step: int64"],
    attrs: &[
        "output_types: list(type) >= 1",
        "output_shapes: list(shape) >= 1",
        "metadata: string = ''",
        "replicate_on_split: bool = false",
    ],
    stateful: true,
    kernels: &[cpu(&[], build)],
    scripts: &[
        script(
            "up and down",
            "zero = int64[]{0}
             three = int64[]{3}
             up_by = int64[]{2}
             down_by = int64[]{-2}
             up = RangeDataset(zero, three, up_by) {output_types=[DT_INT64], output_shapes=[[]]}
             down = RangeDataset(three, zero, down_by) {output_types=[DT_INT32], output_shapes=[[]]}
             none = RangeDataset(three, zero, up_by) {output_types=[DT_INT64], output_shapes=[[]]}
             i = IteratorV2() {output_types=[DT_INT64], output_shapes=[[]], shared_name='', container=''}
             j = IteratorV2() {output_types=[DT_INT32], output_shapes=[[]], shared_name='', container=''}
             make_up = MakeIterator(up, i)
             make_down = MakeIterator(down, j)
             make_none = MakeIterator(none, i)
             next = IteratorGetNext(i) {output_types=[DT_INT64], output_shapes=[[]]}
             next_down = IteratorGetNext(j) {output_types=[DT_INT32], output_shapes=[[]]}
             count_up = DatasetCardinality(up)
             count_down = DatasetCardinality(down)
             count_none = DatasetCardinality(none)",
            &[
                "run make_up, make_down",
                "fetch next, next_down => int64[]{0}; int32[]{3}",
                "fetch next, next_down => int64[]{2}; int32[]{1}",
                "fetch next fails OUT_OF_RANGE End of sequence",
                "fetch next_down fails OUT_OF_RANGE End of sequence",
                "run make_none",
                "fetch next fails OUT_OF_RANGE End of sequence",
                "fetch count_up, count_down, count_none => int64[]{2}; int64[]{2}; int64[]{0}",
            ],
        ),
        script(
            "nowhere",
            "zero = int64[]{0}
             three = int64[]{3}
             d = RangeDataset(zero, three, zero) {output_types=[DT_INT64], output_shapes=[[]]}
             n = DatasetCardinality(d)",
            &["fetch n fails INVALID_ARGUMENT step must be a non-zero integer."],
        ),
    ],
    ..DATASET
};

#[derive(Clone)]
struct Range {
    /// Also where an iterator is.
    start: i64,
    stop: i64,
    step: i64,
    dtype: DType,
}

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let dtype = node.attrs.dtypes("output_types")?.first().copied();
    let dtype = dtype.unwrap_or(DType::I64);
    kernel::build(node, move |ctx| {
        let start = kernel::scalar(ctx, 0, "start")?;
        let stop = kernel::scalar(ctx, 1, "stop")?;
        let step: i64 = kernel::scalar(ctx, 2, "step")?;
        ensure!(
            step != 0,
            invalid_argument,
            "step must be a non-zero integer."
        );
        Ok(Range {
            start,
            stop,
            step,
            dtype,
        })
    })
}

impl Range {
    fn left(&self) -> u128 {
        let (from, to, by) = match self.step > 0 {
            true => (self.start, self.stop, self.step),
            false => (self.stop, self.start, self.step),
        };
        let distance = i128::from(to) - i128::from(from);
        let distance = u128::try_from(distance).unwrap_or(0);
        distance.div_ceil(u128::from(by.unsigned_abs()))
    }
}

impl Stage for Range {
    fn iterate(&self, _: &Place) -> Result<Box<dyn Iterate>> {
        Ok(Box::new(self.clone()))
    }

    fn cardinality(&self) -> i64 {
        i64::try_from(self.left()).unwrap_or(i64::MAX)
    }
}

impl Iterate for Range {
    fn next(&mut self, _: &Waker) -> Next {
        if self.left() == 0 {
            return Poll::Ready(Ok(None));
        }
        let tensor = number(self.start, self.dtype)?;
        match self.start.checked_add(self.step) {
            Some(next) => self.start = next,
            None => self.stop = self.start,
        }
        Poll::Ready(Ok(Some(vec![tensor])))
    }
}

/// An integer as another type has it.
fn number(value: i64, dtype: DType) -> Result<Tensor> {
    Ok(match dtype {
        DType::I64 => Tensor::scalar(value),
        DType::I32 => Tensor::scalar(value as i32),
        DType::I16 => Tensor::scalar(value as i16),
        DType::I8 => Tensor::scalar(value as i8),
        DType::U64 => Tensor::scalar(value as u64),
        DType::U32 => Tensor::scalar(value as u32),
        DType::U16 => Tensor::scalar(value as u16),
        DType::U8 => Tensor::scalar(value as u8),
        DType::F64 => Tensor::scalar(value as f64),
        DType::F32 => Tensor::scalar(value as f32),
        DType::F16 => Tensor::scalar(f16::from_f32(value as f32)),
        DType::BF16 => Tensor::scalar(bf16::from_f32(value as f32)),
        other => return Err(unimplemented!("a range of {other}")),
    })
}
