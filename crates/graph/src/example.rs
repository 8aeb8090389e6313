//! [`Example`] and [`Script`]: how an op behaves, as data. Test harnesses turn them into graphs.

use tensorfleet_status::Code;
use tensorfleet_tensor::DType;

/// One op applied to literal inputs.
///
/// A literal without a dtype stands for every dtype the kernel takes for that argument and in which
/// all of the example's values can be written exactly: one example covers them all.
pub struct Example {
    /// What it shows, unique within the op.
    pub name: &'static str,
    /// Attributes in the attr language: `("transpose_a", "true")`.
    pub attrs: &'static [(&'static str, &'static str)],
    /// The inputs. A list input takes as many literals as `N` says (by default all that are left).
    pub inputs: &'static [Lit],
    /// What comes out.
    pub expect: Expect,
}

/// What an example promises.
pub enum Expect {
    /// These outputs.
    Values(&'static [Lit]),
    /// Whatever TensorFlow computes: only checked where it is at hand.
    Reference,
    /// This code, with a text that contains this.
    Error(Code, &'static str),
}

/// A literal tensor.
#[derive(Clone, Copy)]
pub struct Lit {
    /// The dtype; `None` for the dtypes of the argument.
    pub dtype: Option<DType>,
    /// The shape.
    pub dims: &'static [i64],
    /// The elements in row-major order; one element may stand for all.
    pub data: Data,
}

/// The elements of a literal.
#[derive(Clone, Copy)]
#[allow(missing_docs)]
pub enum Data {
    F(&'static [f64]),
    I(&'static [i64]),
    B(&'static [bool]),
    S(&'static [&'static str]),
    C(&'static [(f64, f64)]),
    /// `start, start + step, …`: as many as the shape has.
    Ramp(f64, f64),
}

/// An example with outputs.
pub const fn ex(name: &'static str, inputs: &'static [Lit], outputs: &'static [Lit]) -> Example {
    Example {
        name,
        attrs: &[],
        inputs,
        expect: Expect::Values(outputs),
    }
}

/// An example with attributes and outputs.
pub const fn ex_attrs(
    name: &'static str,
    attrs: &'static [(&'static str, &'static str)],
    inputs: &'static [Lit],
    outputs: &'static [Lit],
) -> Example {
    Example {
        name,
        attrs,
        inputs,
        expect: Expect::Values(outputs),
    }
}

/// An example whose outputs TensorFlow knows.
pub const fn ex_ref(
    name: &'static str,
    attrs: &'static [(&'static str, &'static str)],
    inputs: &'static [Lit],
) -> Example {
    Example {
        name,
        attrs,
        inputs,
        expect: Expect::Reference,
    }
}

/// An example that fails.
pub const fn ex_err(
    name: &'static str,
    attrs: &'static [(&'static str, &'static str)],
    inputs: &'static [Lit],
    code: Code,
    text: &'static str,
) -> Example {
    Example {
        name,
        attrs,
        inputs,
        expect: Expect::Error(code, text),
    }
}

/// Numbers of every dtype the argument takes.
pub const fn x(dims: &'static [i64], values: &'static [f64]) -> Lit {
    Lit {
        dtype: None,
        dims,
        data: Data::F(values),
    }
}

/// `start, start + step, …` of every dtype the argument takes.
pub const fn ramp(dims: &'static [i64], start: f64, step: f64) -> Lit {
    Lit {
        dtype: None,
        dims,
        data: Data::Ramp(start, step),
    }
}

/// Numbers of one dtype.
pub const fn of(dtype: DType, dims: &'static [i64], values: &'static [f64]) -> Lit {
    Lit {
        dtype: Some(dtype),
        dims,
        data: Data::F(values),
    }
}

/// float.
pub const fn f32s(dims: &'static [i64], values: &'static [f64]) -> Lit {
    of(DType::F32, dims, values)
}

/// double.
pub const fn f64s(dims: &'static [i64], values: &'static [f64]) -> Lit {
    of(DType::F64, dims, values)
}

/// int32.
pub const fn i32s(dims: &'static [i64], values: &'static [i64]) -> Lit {
    Lit {
        dtype: Some(DType::I32),
        dims,
        data: Data::I(values),
    }
}

/// int64.
pub const fn i64s(dims: &'static [i64], values: &'static [i64]) -> Lit {
    Lit {
        dtype: Some(DType::I64),
        dims,
        data: Data::I(values),
    }
}

/// bool.
pub const fn bools(dims: &'static [i64], values: &'static [bool]) -> Lit {
    Lit {
        dtype: Some(DType::Bool),
        dims,
        data: Data::B(values),
    }
}

/// string.
pub const fn strs(dims: &'static [i64], values: &'static [&'static str]) -> Lit {
    Lit {
        dtype: Some(DType::String),
        dims,
        data: Data::S(values),
    }
}

/// complex64.
pub const fn c64s(dims: &'static [i64], values: &'static [(f64, f64)]) -> Lit {
    Lit {
        dtype: Some(DType::C64),
        dims,
        data: Data::C(values),
    }
}

/// A small graph and the steps to run on it, in one session.
///
/// The graph is one node per line: `name = Op(input, other:1, [list, of, inputs], ^control) {attr=value, …} @device`,
/// or a constant: `name = float[2,2]{1, 2, 3, 4}`, `name = string[]{hello}`. Type attributes are
/// inferred from the inputs. Functions come first: `fn name(x: int64) -> y {`, nodes, `}`. Steps are texts:
///
/// * `run init, other`: run targets;
/// * `fetch a, b:1 => float[2]{1, 2}; int32[]{3}`: fetch and compare (in that order);
/// * `fetch a => ?`: fetch and compare with TensorFlow only;
/// * `fetch a fails NOT_FOUND some text`: fails with this code and a message containing the text.
pub struct Script {
    /// What it shows, unique within the op.
    pub name: &'static str,
    /// The nodes, one per line.
    pub graph: &'static str,
    /// What to run.
    pub steps: &'static [&'static str],
}

/// A script.
pub const fn script(
    name: &'static str,
    graph: &'static str,
    steps: &'static [&'static str],
) -> Script {
    Script { name, graph, steps }
}
