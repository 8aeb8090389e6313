//! What is often done with a tensor, as methods. Everything else is in [`ops`](crate::ops).

use tensorfleet_tensor::DType;

use crate::output::{Operand, Output};

macro_rules! unary {
    ($($(#[$doc:meta])* $method:ident => $op:literal;)*) => {
        impl Output {
            $(
                $(#[$doc])*
                #[track_caller]
                pub fn $method(&self) -> Output {
                    self.graph().op($op).input(self).output()
                }
            )*
        }
    };
}

unary! {
    /// The same value as a node of its own.
    identity => "Identity";
    /// The same value; no gradient flows through it.
    stop_gradient => "StopGradient";
    /// max(x, 0).
    relu => "Relu";
    /// 1 / (1 + e⁻ˣ).
    sigmoid => "Sigmoid";
    /// Hyperbolic tangent.
    tanh => "Tanh";
    /// log(1 + eˣ).
    softplus => "Softplus";
    /// eˣ.
    exp => "Exp";
    /// Natural logarithm.
    log => "Log";
    /// x².
    square => "Square";
    /// √x.
    sqrt => "Sqrt";
    /// 1/√x.
    rsqrt => "Rsqrt";
    /// |x|.
    abs => "Abs";
    /// -1, 0 or 1.
    sign => "Sign";
    /// Probabilities along the last axis.
    softmax => "Softmax";
    /// Logarithms of probabilities along the last axis.
    log_softmax => "LogSoftmax";
    /// The shape as an int32 vector.
    shape_tensor => "Shape";
    /// The number of elements.
    size => "Size";
    /// Zeros of the same shape and dtype.
    zeros_like => "ZerosLike";
    /// Ones of the same shape and dtype.
    ones_like => "OnesLike";
    /// Not, for bools.
    logical_not => "LogicalNot";
}

macro_rules! binary {
    ($($(#[$doc:meta])* $method:ident => $op:literal;)*) => {
        impl Output {
            $(
                $(#[$doc])*
                #[track_caller]
                pub fn $method(&self, other: impl Operand) -> Output {
                    self.graph().op($op).input(self).input(other).output()
                }
            )*
        }
    };
}

binary! {
    /// The matrix product.
    matmul => "MatMul";
    /// Adds a vector along the last axis.
    bias_add => "BiasAdd";
    /// The larger of both.
    maximum => "Maximum";
    /// The smaller of both.
    minimum => "Minimum";
    /// xʸ.
    pow => "Pow";
    /// (x - y)².
    squared_difference => "SquaredDifference";
    /// x = y.
    equal => "Equal";
    /// x ≠ y.
    not_equal => "NotEqual";
    /// x < y.
    less => "Less";
    /// x ≤ y.
    less_equal => "LessEqual";
    /// x > y.
    greater => "Greater";
    /// x ≥ y.
    greater_equal => "GreaterEqual";
    /// x and y.
    logical_and => "LogicalAnd";
    /// x or y.
    logical_or => "LogicalOr";
}

macro_rules! reductions {
    ($($(#[$doc:meta])* $method:ident => $op:literal;)*) => {
        impl Output {
            $(
                $(#[$doc])*
                ///
                /// Along these axes, which disappear; all of them if none is named.
                #[track_caller]
                pub fn $method(&self, axes: &[i32]) -> Output {
                    self.reduce($op, axes, false)
                }
            )*
        }
    };
}

reductions! {
    /// The sum.
    sum => "Sum";
    /// The arithmetic mean.
    mean => "Mean";
    /// The product.
    prod => "Prod";
    /// The largest.
    max => "Max";
    /// The smallest.
    min => "Min";
    /// Whether all are true.
    all => "All";
    /// Whether any is true.
    any => "Any";
}

impl Output {
    /// Any reduction op along these axes, all of them if none is named; `keep` leaves them with size 1.
    #[track_caller]
    pub fn reduce(&self, op: &str, axes: &[i32], keep: bool) -> Output {
        let graph = self.graph();
        let axes = match (axes, self.shape().rank()) {
            ([], Some(rank)) => graph.constant((0..rank as i32).collect::<Vec<_>>()),
            ([], None) => {
                let rank = graph.op("Rank").input(self).output();
                let (zero, one) = (graph.constant(0i32), graph.constant(1i32));
                graph
                    .op("Range")
                    .input(zero)
                    .input(rank)
                    .input(one)
                    .output()
            }
            (axes, _) => graph.constant(axes),
        };
        let node = graph.op(op).input(self).input(axes);
        node.attr("keep_dims", keep).output()
    }

    /// The matrix product with either side transposed.
    #[track_caller]
    pub fn matmul_with(&self, other: impl Operand, transpose_a: bool, transpose_b: bool) -> Output {
        let node = self.graph().op("MatMul").input(self).input(other);
        node.attr("transpose_a", transpose_a)
            .attr("transpose_b", transpose_b)
            .output()
    }

    /// The same elements in another shape; one dimension may be -1.
    #[track_caller]
    pub fn reshape(&self, dims: &[i64]) -> Output {
        // TensorFlow's programs use int32 here; dimensions beyond need int64.
        let graph = self.graph();
        let small: Result<Vec<i32>, _> = dims.iter().map(|dim| i32::try_from(*dim)).collect();
        let shape = match small {
            Ok(dims) => graph.constant(dims),
            Err(_) => graph.constant(dims),
        };
        graph.op("Reshape").input(self).input(shape).output()
    }

    /// Axes in another order.
    #[track_caller]
    pub fn transpose(&self, order: &[i32]) -> Output {
        let order = self.graph().constant(order);
        self.graph()
            .op("Transpose")
            .input(self)
            .input(order)
            .output()
    }

    /// A new axis of size 1.
    #[track_caller]
    pub fn expand_dims(&self, axis: i32) -> Output {
        let axis = self.graph().constant(axis);
        self.graph()
            .op("ExpandDims")
            .input(self)
            .input(axis)
            .output()
    }

    /// Without these axes, which must have size 1; without all such axes if none is named.
    #[track_caller]
    pub fn squeeze(&self, axes: &[i64]) -> Output {
        let node = self.graph().op("Squeeze").input(self);
        node.attr("squeeze_dims", axes.to_vec()).output()
    }

    /// Elements of another type; the tensor itself if it has it.
    #[track_caller]
    pub fn cast(&self, dtype: DType) -> Output {
        if self.is_void() || self.dtype() == dtype {
            return self.clone();
        }
        self.graph()
            .op("Cast")
            .input(self)
            .attr("DstT", dtype)
            .output()
    }

    /// Where along the axis the largest is, as int64.
    #[track_caller]
    pub fn argmax(&self, axis: i32) -> Output {
        let axis = self.graph().constant(axis);
        self.graph().op("ArgMax").input(self).input(axis).output()
    }

    /// Rows by index.
    #[track_caller]
    pub fn gather(&self, indices: impl Operand) -> Output {
        let axis = self.graph().constant(0i32);
        let node = self.graph().op("GatherV2").input(self).input(indices);
        node.input(axis).output()
    }

    /// `count` elements from `begin` in every axis; -1 for all that are left.
    #[track_caller]
    pub fn slice(&self, begin: &[i32], count: &[i32]) -> Output {
        let graph = self.graph();
        let (begin, count) = (graph.constant(begin), graph.constant(count));
        graph
            .op("Slice")
            .input(self)
            .input(begin)
            .input(count)
            .output()
    }

    /// The values between two bounds.
    #[track_caller]
    pub fn clip_by_value(&self, low: f64, high: f64) -> Output {
        let low = crate::operators::number_like(self, low);
        let high = crate::operators::number_like(self, high);
        let node = self.graph().op("ClipByValue").input(self);
        node.input(low).input(high).output()
    }
}
