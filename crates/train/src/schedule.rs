//! Learning rates that change with the step. What they give equals TensorFlow's `tf.compat.v1.train.*_decay`.
//!
//! ```
//! use tensorfleet_client::{Graph, Session};
//! use tensorfleet_train::schedule::Exponential;
//! use tensorfleet_train::{GradientDescent, get_or_create_global_step};
//!
//! let g = Graph::new();
//! let step = get_or_create_global_step(&g)?;
//! let decay = Exponential { initial: 0.1, steps: 100.0, rate: 0.5, staircase: true };
//! let learning_rate = decay.at(&step);
//! let optimizer = GradientDescent::new(&learning_rate);
//!
//! let session = Session::new(&g)?;
//! session.run(step.initializer())?;
//! assert_eq!(session.run(&learning_rate)?.to_scalar::<f32>()?, 0.1);
//! session.run(&step.assign(&g.constant(250i64)))?;
//! assert_eq!(session.run(&learning_rate)?.to_scalar::<f32>()?, 0.025);
//! # Ok::<(), tensorfleet_client::Status>(())
//! ```

use std::f64::consts::PI;

use tensorfleet_client::{DType, Graph, Operand, Output};
use tensorfleet_status::{Result, invalid_argument};

/// initial · rate^(step / steps).
#[derive(Clone, Copy, Debug)]
pub struct Exponential {
    /// The rate of step 0.
    pub initial: f64,
    /// After so many steps it has fallen by `rate`.
    pub steps: f64,
    /// The factor.
    pub rate: f64,
    /// Whether it falls at once every `steps` steps, and not steadily.
    pub staircase: bool,
}

impl Exponential {
    /// The rate at this step.
    pub fn at(&self, step: impl Operand) -> Output {
        let (g, _scope, step) = open(&step, "ExponentialDecay");
        let rate = g.named_constant("decay_rate", self.rate as f32);
        rate.pow(periods(&step, self.steps, self.staircase)) * self.initial
    }
}

/// initial · e^(-rate · step / steps).
#[derive(Clone, Copy, Debug)]
pub struct NaturalExp {
    /// The rate of step 0.
    pub initial: f64,
    /// The unit of time.
    pub steps: f64,
    /// How fast it falls.
    pub rate: f64,
    /// Whether it falls at once every `steps` steps, and not steadily.
    pub staircase: bool,
}

impl NaturalExp {
    /// The rate at this step.
    pub fn at(&self, step: impl Operand) -> Output {
        let (_, _scope, step) = open(&step, "NaturalExpDecay");
        let exponent = periods(&step, self.steps, self.staircase) * -self.rate;
        exponent.exp() * self.initial
    }
}

/// initial / (1 + rate · step / steps).
#[derive(Clone, Copy, Debug)]
pub struct InverseTime {
    /// The rate of step 0.
    pub initial: f64,
    /// The unit of time.
    pub steps: f64,
    /// How fast it falls.
    pub rate: f64,
    /// Whether it falls at once every `steps` steps, and not steadily.
    pub staircase: bool,
}

impl InverseTime {
    /// The rate at this step.
    pub fn at(&self, step: impl Operand) -> Output {
        let (_, _scope, step) = open(&step, "InverseTimeDecay");
        let periods = periods(&step, self.steps, self.staircase);
        self.initial / (periods * self.rate + 1.0)
    }
}

/// From `initial` to `end` in `steps` steps, by (1 - step / steps)^power.
#[derive(Clone, Copy, Debug)]
pub struct Polynomial {
    /// The rate of step 0.
    pub initial: f64,
    /// How long it falls.
    pub steps: f64,
    /// The rate from then on.
    pub end: f64,
    /// 1 for a straight line.
    pub power: f64,
    /// Whether it begins anew when it has ended, over twice, three times, … the time.
    pub cycle: bool,
}

impl Polynomial {
    /// The rate at this step.
    pub fn at(&self, step: impl Operand) -> Output {
        let (g, _scope, step) = open(&step, "PolynomialDecay");
        let steps = g.named_constant("decay_steps", self.steps as f32);
        let done = if self.cycle {
            let cycles = g.op("Ceil").input(&step / &steps).output();
            // Step 0 belongs to the first cycle.
            let cycles = cycles.maximum(g.constant(1.0f32));
            &step / (steps * cycles)
        } else {
            step.minimum(&steps) / steps
        };
        let power = g.named_constant("power", self.power as f32);
        (1.0 - done).pow(power) * (self.initial - self.end) + self.end
    }
}

/// From `initial` to `alpha · initial` along half a cosine.
#[derive(Clone, Copy, Debug)]
pub struct Cosine {
    /// The rate of step 0.
    pub initial: f64,
    /// How long it falls.
    pub steps: f64,
    /// What is left at the end, as a fraction.
    pub alpha: f64,
}

impl Cosine {
    /// The rate at this step.
    pub fn at(&self, step: impl Operand) -> Output {
        let (g, _scope, step) = open(&step, "CosineDecay");
        let steps = g.named_constant("decay_steps", self.steps as f32);
        let done = step.minimum(&steps) / steps;
        (half_cosine(&done) * (1.0 - self.alpha) + self.alpha) * self.initial
    }
}

/// A cosine that begins anew, each time `longer` times as long and `lower` times as high.
#[derive(Clone, Copy, Debug)]
pub struct CosineRestarts {
    /// The rate of step 0.
    pub initial: f64,
    /// How long the first period is.
    pub first_steps: f64,
    /// How much longer each period is than the one before; 2 in most papers.
    pub longer: f64,
    /// How much lower each period begins; 1 for as high as the first.
    pub lower: f64,
    /// What is left at the end of a period, as a fraction of `initial`.
    pub alpha: f64,
}

impl CosineRestarts {
    /// The rate at this step.
    pub fn at(&self, step: impl Operand) -> Output {
        let (g, _scope, step) = open(&step, "SGDRDecay");
        let floor = |x: Output| g.op("Floor").input(x).output();
        let done = &step / self.first_steps;
        let (restarts, done) = if self.longer == 1.0 {
            let restarts = floor(done.clone());
            (restarts.clone(), done - restarts)
        } else {
            let longer = g.named_constant("t_mul", self.longer as f32);
            let restarts = (1.0 - &done * (1.0 - self.longer)).log() / longer.log();
            let restarts = floor(restarts);
            let length = longer.pow(&restarts);
            let before = (1.0 - &length) / (1.0 - longer);
            (restarts, (done - before) / length)
        };
        let height = g.named_constant("m_mul", self.lower as f32).pow(restarts);
        (half_cosine(&done) * height * (1.0 - self.alpha) + self.alpha) * self.initial
    }
}

/// `values[i]` up to and including step `boundaries[i]`, the last one from then on.
#[derive(Clone, Debug)]
pub struct PiecewiseConstant {
    /// Where the rate changes, in ascending order.
    pub boundaries: Vec<i64>,
    /// The rates: one more than boundaries.
    pub values: Vec<f64>,
}

impl PiecewiseConstant {
    /// The rate at this step; an error if there is not one value more than boundaries.
    pub fn at(&self, step: impl Operand) -> Result<Output> {
        let Some((last, values)) = self.values.split_last() else {
            return Err(invalid_argument!("a piecewise constant needs values"));
        };
        let ascending = self.boundaries.is_sorted_by(|a, b| a < b);
        if values.len() != self.boundaries.len() || !ascending {
            return Err(invalid_argument!(
                "{} boundaries and {} values: boundaries must ascend and be one fewer than values",
                self.boundaries.len(),
                self.values.len()
            ));
        }
        let step = step.to_output().cast(DType::I64);
        let g = step.graph();
        let _scope = g.name_scope("PiecewiseConstant");
        let mut rate = g.constant(*last as f32);
        for (boundary, value) in self.boundaries.iter().zip(values).rev() {
            let until = step.less_equal(g.constant(*boundary));
            let node = g.op("SelectV2").input(until);
            rate = node.input(g.constant(*value as f32)).input(rate).output();
        }
        Ok(rate)
    }
}

/// In a straight line from `from · rate` to the rate itself during the first `steps` steps.
#[derive(Clone, Copy, Debug)]
pub struct LinearWarmup {
    /// How long it rises.
    pub steps: f64,
    /// Where it begins, as a fraction.
    pub from: f64,
}

impl LinearWarmup {
    /// `rate`, any schedule's or a constant, with a warm-up before.
    pub fn at(&self, step: impl Operand, rate: &Output) -> Output {
        let (g, _scope, step) = open(&step, "LinearWarmup");
        let done = (step / self.steps).minimum(g.constant(1.0f32));
        rate * (done * (1.0 - self.from) + self.from)
    }
}

/// The graph, a name scope, and the step as a float.
fn open(step: &impl Operand, name: &str) -> (Graph, tensorfleet_client::Scope, Output) {
    let step = step.to_output();
    let g = step.graph().clone();
    let scope = g.name_scope(name);
    let step = step.cast(DType::F32);
    (g, scope, step)
}

/// How many periods have passed; whole ones with `staircase`.
fn periods(step: &Output, steps: f64, staircase: bool) -> Output {
    let periods = step / steps;
    if staircase {
        return step.graph().op("Floor").input(periods).output();
    }
    periods
}

/// From 1 to 0 as `done` goes from 0 to 1.
fn half_cosine(done: &Output) -> Output {
    let cosine = done.graph().op("Cos").input(done * PI).output();
    (cosine + 1.0) * 0.5
}
