//! [`Near`]: nodes beside a variable.

use tensorfleet_tensor::DType;

use crate::operation::Operation;
use crate::output::{Operand, Output};

/// Nodes beside a variable, on its device.
pub(super) struct Near<'a> {
    pub(super) handle: &'a Output,
    pub(super) resource: bool,
    pub(super) dtype: DType,
    pub(super) dims: &'a [i64],
}

impl Near<'_> {
    #[track_caller]
    pub(super) fn read(&self) -> Output {
        let g = self.handle.graph();
        let _near = g.colocate_with(&self.handle.op());
        let value = if self.resource {
            let read = g.op("ReadVariableOp").name("Read/ReadVariableOp");
            read.input(self.handle).attr("dtype", self.dtype).output()
        } else {
            g.op("Identity").name("read").input(self.handle).output()
        };
        value.set_shape(self.dims);
        value
    }

    #[track_caller]
    pub(super) fn update(&self, resource_op: &str, ref_op: &str, value: impl Operand) -> Operation {
        let g = self.handle.graph();
        let _near = g.colocate_with(&self.handle.op());
        let op = if self.resource { resource_op } else { ref_op };
        g.op(op)
            .name(ref_op)
            .input(self.handle)
            .input(value)
            .build()
    }
}
