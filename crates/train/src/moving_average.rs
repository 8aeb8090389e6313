//! [`ExponentialMovingAverage`]: shadows of variables that follow them slowly. Models often do better with
//! the shadows than with the last values.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tensorfleet_client::init::Request;
use tensorfleet_client::{DType, Graph, Operand, Operation, Output, Variable, cond, init, keys};
use tensorfleet_status::{Result, invalid_argument};

use crate::optimizer::Hyper;

/// Keeps averages: average -= (1 - decay) · (average - value).
///
/// ```
/// use tensorfleet_client::{Graph, Session, init};
/// use tensorfleet_train::ExponentialMovingAverage;
///
/// let g = Graph::new();
/// let w = g.variable("w", &[]).initializer(init::ones()).build();
/// let averages = ExponentialMovingAverage::new(0.9);
/// let update = averages.apply(&[w.clone()])?;
/// assert_eq!(averages.average_name(&w), "w/ExponentialMovingAverage");
///
/// let session = Session::new(&g)?;
/// session.run(&g.global_variables_initializer())?;
/// session.run(&w.assign(&g.constant(2.0f32)))?;
/// session.run(&update)?;
/// let average = averages.average(&w).map(|average| session.run(&average)).transpose()?;
/// assert!((average.unwrap().to_scalar::<f32>()? - 1.1).abs() < 1e-6);
/// # Ok::<(), tensorfleet_client::Status>(())
/// ```
pub struct ExponentialMovingAverage {
    decay: Hyper,
    num_updates: Option<Output>,
    zero_debias: bool,
    name: String,
    averages: Mutex<BTreeMap<String, Variable>>,
}

impl ExponentialMovingAverage {
    /// With this decay, near 1: 0.999 remembers about a thousand steps.
    pub fn new(decay: impl Into<Hyper>) -> ExponentialMovingAverage {
        ExponentialMovingAverage {
            decay: decay.into(),
            num_updates: None,
            zero_debias: false,
            name: "ExponentialMovingAverage".to_owned(),
            averages: Mutex::default(),
        }
    }

    /// Lets early averages follow faster: the decay is (1 + n) / (10 + n) if that is less, `n` being this
    /// counter, mostly the global step.
    #[must_use]
    pub fn num_updates(mut self, counter: impl Operand) -> Self {
        self.num_updates = Some(counter.to_output());
        self
    }

    /// Corrects averages of tensors, which begin with zero, for that beginning.
    #[must_use]
    pub fn zero_debias(mut self) -> Self {
        self.zero_debias = true;
        self
    }

    /// Another name: `w/name`.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    fn averages(&self) -> MutexGuard<'_, BTreeMap<String, Variable>> {
        self.averages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds shadows of these variables, on their devices, beginning with the values that those have when the
    /// shadows are initialised; the result moves them on.
    pub fn apply(&self, variables: &[Variable]) -> Result<Operation> {
        for variable in variables {
            check_floating(variable.name(), variable.dtype())?;
            if self.average(variable).is_some() {
                continue;
            }
            let primary = variable.clone();
            let shadow = variable
                .graph()
                .variable(&self.name, variable.dims())
                .dtype(variable.dtype())
                .initializer(move |_: &Graph, _: Request<'_>| beginning(&primary))
                .slot_of(variable)
                .build();
            let g = variable.graph();
            g.add_to_collection(keys::MOVING_AVERAGE_VARIABLES, variable);
            self.averages().insert(variable.name().to_owned(), shadow);
        }
        self.updates(variables.iter().map(|variable| {
            let shadow = self.average(variable);
            (shadow, variable.read(), false)
        }))
    }

    /// Adds averages of tensors such as losses, beginning with zero; the result moves them on.
    pub fn apply_outputs(&self, outputs: &[Output]) -> Result<Operation> {
        for output in outputs {
            check_floating(&output.name(), output.dtype())?;
            if self.average_of(output).is_some() {
                continue;
            }
            let shape = output.shape();
            let Some(shape) = shape.to_shape() else {
                return Err(invalid_argument!(
                    "'{}' has shape {shape}; averages are kept of tensors of known shape",
                    output.name()
                ));
            };
            let g = output.graph();
            let _root = g.name_scope("");
            let name = format!("{}/{}", output.op().name(), self.name);
            let average = g
                .variable(&name, shape.dims())
                .dtype(output.dtype())
                .initializer(init::zeros())
                .trainable(false)
                .build();
            self.averages().insert(output.name(), average);
        }
        self.updates(outputs.iter().map(|output| {
            let average = self.average_of(output);
            (average, output.clone(), self.zero_debias)
        }))
    }

    fn updates(
        &self,
        averaged: impl Iterator<Item = (Option<Variable>, Output, bool)>,
    ) -> Result<Operation> {
        let averaged: Vec<_> = averaged.collect();
        let Some((_, first, _)) = averaged.first() else {
            return Err(invalid_argument!("there is nothing to average"));
        };
        let g = first.graph();
        let _scope = g.name_scope(&self.name);
        let whole = format!("{}/", g.current_name_scope());
        let mut decay = self.decay.tensor(g, "decay");
        if let Some(counter) = &self.num_updates {
            let counter = counter.cast(decay.dtype());
            decay = decay.minimum((&counter + 1.0) / (counter + 10.0));
        }
        let rate = 1.0 - decay;
        let updates: Vec<Operation> = averaged
            .iter()
            .filter_map(|(average, value, debias)| {
                Some(move_on(average.as_ref()?, value, &rate, *debias))
            })
            .collect();
        let update = g.group(&whole, &updates);
        g.check()?;
        Ok(update)
    }

    /// The average of a variable, once [`apply`](Self::apply) has added it.
    pub fn average(&self, variable: &Variable) -> Option<Variable> {
        let averages = self.averages();
        let found = averages.get(variable.name());
        found
            .filter(|average| average.graph().is(variable.graph()))
            .cloned()
    }

    /// The average of a tensor, once [`apply_outputs`](Self::apply_outputs) has added it.
    pub fn average_of(&self, output: &Output) -> Option<Variable> {
        let averages = self.averages();
        let found = averages.get(&output.name());
        found
            .filter(|average| average.graph().is(output.graph()))
            .cloned()
    }

    /// The name that the average of a variable has in checkpoints, whether it was added here or not.
    pub fn average_name(&self, variable: &Variable) -> String {
        match self.average(variable) {
            Some(average) => average.name().to_owned(),
            None => format!("{}/{}", variable.name(), self.name),
        }
    }

    /// What a saver restores to go on with the averages in place of the variables: names in the checkpoint
    /// and the variables that take them. Variables that are not trained keep their own names.
    pub fn variables_to_restore(&self, g: &Graph) -> BTreeMap<String, Variable> {
        let mut averaged = g.trainable_variables();
        averaged.extend(g.variables_in(keys::MOVING_AVERAGE_VARIABLES));
        let mut map: BTreeMap<String, Variable> = averaged
            .iter()
            .map(|variable| (self.average_name(variable), variable.clone()))
            .collect();
        for variable in g.global_variables() {
            let known = averaged.iter().any(|known| known.is(&variable));
            if !known && !map.contains_key(variable.name()) {
                map.insert(variable.name().to_owned(), variable);
            }
        }
        map
    }
}

/// What the shadow of a variable begins with: its value, its initial value if it has none yet.
fn beginning(variable: &Variable) -> Output {
    let initial = variable.initial_value().clone();
    if !variable.is_resource() {
        // A reference cannot be handed to a branch without being read.
        return initial.identity();
    }
    cond(
        &variable.is_initialized(),
        || variable.read(),
        || initial.identity(),
    )
}

/// One update of one average. `rate` is 1 - decay.
fn move_on(average: &Variable, value: &Output, rate: &Output, debias: bool) -> Operation {
    let g = average.graph();
    let _scope = g.name_scope("AssignMovingAvg");
    let _near = g.colocate_with(&average.op());
    let rate = rate.cast(average.dtype());
    if !debias {
        return average.assign_sub((average.read() - value) * rate);
    }
    // The biased average, and how often it was moved: 1 - decay^n is what it lacks.
    let beside = |name: &str, dims: &[i64]| {
        let builder = g.variable(name, dims).dtype(average.dtype());
        builder.slot_of(average).build()
    };
    let (biased, count) = (beside("biased", average.dims()), beside("local_step", &[]));
    let moved = biased.assign_sub((biased.read() - value) * &rate);
    let counted = count.assign_add(count.snapshot().ones_like());
    let _after = g.control_dependencies([&moved, &counted]);
    let lacking = 1.0 - (1.0 - rate).pow(count.read());
    average.assign(biased.read() / lacking)
}

fn check_floating(name: &str, dtype: DType) -> Result<()> {
    if dtype.is_floating() {
        return Ok(());
    }
    Err(invalid_argument!(
        "'{name}' has dtype {}; averages are kept of floating-point values only",
        dtype.name()
    ))
}
