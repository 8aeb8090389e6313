//! [`OpDef`]: everything that is to say about one op, as a `static` in the op's own file.

use tensorfleet_kernel::{AnyKernel, DeviceType, NodeInfo};
use tensorfleet_status::Result;
use tensorfleet_tensor::DType;

use crate::example::{Example, Script};
use crate::gradient::GradCtx;
use crate::gradient::InputGrads;
use crate::infer::InferCtx;

/// One op: signature, behaviour and examples. Signatures are texts in TensorFlow's attr language.
///
/// ```
/// use tensorfleet_graph::{OpDef, infer};
///
/// static OP: OpDef = OpDef {
///     name: "Softplus",
///     inputs: &["features: T"],
///     outputs: &["activations: T"],
///     attrs: &["T: {half, bfloat16, float, double} = DT_FLOAT"],
///     infer: infer::same_as_first,
///     ..OpDef::BLANK
/// };
/// assert_eq!(OP.name, "Softplus");
/// ```
pub struct OpDef {
    /// The op type.
    pub name: &'static str,
    /// Inputs such as `x: T`, `values: N * T`, `handle: resource`, `ref: Ref(T)`.
    pub inputs: &'static [&'static str],
    /// Outputs, written like inputs.
    pub outputs: &'static [&'static str],
    /// Attributes such as `T: {float, double} = DT_FLOAT`, `N: int >= 1`.
    pub attrs: &'static [&'static str],
    /// Keeps state or has effects: never folded, merged or dropped for lack of consumers' interest.
    pub stateful: bool,
    /// `f(x, y) == f(y, x)`.
    pub commutative: bool,
    /// All inputs are alike and may be combined in any order.
    pub aggregate: bool,
    /// Meets other runs of itself: never merged with a node like it.
    pub distributed: bool,
    /// Ref inputs may be uninitialised.
    pub allows_uninitialized_input: bool,
    /// The graph version since which the op is deprecated; 0 for never.
    pub deprecated: i32,
    /// The shape rule.
    pub infer: fn(&mut InferCtx<'_>) -> Result<()>,
    /// The gradient rule.
    pub gradient: Gradient,
    /// Kernels by device and dtype.
    pub kernels: &'static [KernelDef],
    /// How long a kernel run takes, before it was measured.
    pub cost: Cost,
    /// Input → output examples that drive the tests.
    pub examples: &'static [Example],
    /// Small graphs with steps, for ops that need neighbours or state to show what they do.
    pub scripts: &'static [Script],
    /// How near the result must be to TensorFlow's.
    pub exactness: Exactness,
}

impl OpDef {
    /// An op without anything: the base for `..OpDef::BLANK`.
    pub const BLANK: OpDef = OpDef {
        name: "",
        inputs: &[],
        outputs: &[],
        attrs: &[],
        stateful: false,
        commutative: false,
        aggregate: false,
        distributed: false,
        allows_uninitialized_input: false,
        deprecated: 0,
        infer: crate::infer::unknown,
        gradient: Gradient::None("TensorFlow has none"),
        kernels: &[],
        cost: Cost::Measured,
        examples: &[],
        scripts: &[],
        exactness: Exactness::Rounding,
    };
}

/// A kernel for a device and some dtypes.
pub struct KernelDef {
    /// The device it runs on.
    pub device: DeviceType,
    /// For each type attribute named here, the dtypes the kernel takes; others are unconstrained.
    pub types: &'static [(&'static str, &'static [DType])],
    /// Builds the kernel of a node.
    pub build: fn(&NodeInfo) -> Result<AnyKernel>,
}

/// A CPU kernel: `cpu(&[("T", FLOATS)], build)`.
pub const fn cpu(
    types: &'static [(&'static str, &'static [DType])],
    build: fn(&NodeInfo) -> Result<AnyKernel>,
) -> KernelDef {
    KernelDef {
        device: DeviceType::Cpu,
        types,
        build,
    }
}

/// How gradients flow through an op.
#[derive(Clone, Copy)]
pub enum Gradient {
    /// By this rule.
    Rule(fn(&mut GradCtx<'_>) -> Result<InputGrads>),
    /// Not at all, for this reason: nothing flows to any input (TensorFlow's `NotDifferentiable`).
    Stop(&'static str),
    /// No rule: asking for a gradient through the op is an error, for this reason.
    None(&'static str),
}

impl Gradient {
    /// Whether there is a rule.
    pub fn is_rule(&self) -> bool {
        matches!(self, Gradient::Rule(_))
    }
}

/// Where a kernel runs until its time is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cost {
    /// Always on the thread that made the node ready: never worth a hand-over.
    Cheap,
    /// Decided by measured time.
    Measured,
    /// Worth another thread from the start.
    Expensive,
}

/// How near to TensorFlow's a result must be.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Exactness {
    /// The same bits.
    Bits,
    /// A few units in the last place of the dtype.
    Rounding,
    /// Within this relative error (of the largest value in the output).
    Relative(f64),
    /// Any value of the right type and shape: random without a seed, time stamps.
    Shape,
}
