//! [`SyncReplicas`]: workers that step together.
//!
//! ```text
//! worker   gradients ─► accumulators (one per variable, on its device) ─► waits for a token ─► local step
//! chief    takes the mean of N gradients ─► updates variables, counts up the global step ─► hands out tokens
//! ```
//!
//! A gradient carries the step that its worker believed in; accumulators that are further on drop it. With more
//! workers than gradients wanted (backup workers) a step does not wait for the slowest.
//!
//! Gradients and tokens lie on the parameter servers and outlive a chief that is lost: what it took or owed, its
//! successor makes good ([`leftovers`]).

mod accumulator;
mod ending;
mod hook;
mod leftovers;
mod watch;

use std::sync::OnceLock;

use tensorfleet_client::{
    AttrValue, DType, Graph, Operation, Output, PartialShape, Scope, Variable, init,
};
use tensorfleet_kernel::AttrList;
use tensorfleet_status::{Result, failed_precondition, invalid_argument};

use crate::moving_average::ExponentialMovingAverage;
use crate::optimizer::{GradAndVar, Minimize, Optimizer};
use crate::queue_runner::QueueRunner;
use crate::scaffold::report_uninitialized;
use accumulator::Accumulator;

pub use hook::SyncReplicasHook;

/// The name scope of its nodes.
const NAME: &str = "sync_replicas";

/// Makes any optimizer synchronous.
///
/// ```
/// use tensorfleet_client::{Graph, init};
/// use tensorfleet_train::{
///     GradientDescent, Minimize, Optimizer, SyncReplicas, get_or_create_global_step,
/// };
///
/// let g = Graph::new();
/// let step = get_or_create_global_step(&g)?;
/// let w = g.variable("w", &[]).initializer(init::ones()).build();
/// // Four workers, of which the three fastest count.
/// let sync = SyncReplicas::new(GradientDescent::new(0.1), 3).total_num_replicas(4);
/// let train = sync.minimize_with(&w.read().square(), &Minimize::step(&step))?;
/// let runner = sync.chief_queue_runner()?;
/// # Ok::<(), tensorfleet_client::Status>(())
/// ```
pub struct SyncReplicas {
    optimizer: Box<dyn Optimizer>,
    replicas_to_aggregate: u32,
    total_num_replicas: u32,
    averages: Option<(ExponentialMovingAverage, Vec<Variable>)>,
    built: OnceLock<Built>,
}

/// What [`Optimizer::apply_gradients`] leaves in the graph.
struct Built {
    global_step: Variable,
    local_step: Variable,
    token_queue: Output,
    accumulators: Vec<Accumulator>,
    local_step_init_op: Operation,
    chief_init_op: Operation,
    ready_for_local_init_op: Output,
    chief: QueueRunner,
}

impl SyncReplicas {
    /// Updates by the mean of so many gradients, from as many workers.
    pub fn new(optimizer: impl Optimizer + 'static, replicas_to_aggregate: u32) -> SyncReplicas {
        SyncReplicas {
            optimizer: Box::new(optimizer),
            replicas_to_aggregate,
            total_num_replicas: replicas_to_aggregate,
            averages: None,
            built: OnceLock::new(),
        }
    }

    /// From so many workers: more than gradients wanted makes the others backups; fewer lets each give
    /// several gradients to a step.
    #[must_use]
    pub fn total_num_replicas(mut self, replicas: u32) -> Self {
        self.total_num_replicas = replicas;
        self
    }

    /// Moves averages of these variables on after each update, once for all workers.
    #[must_use]
    pub fn variable_averages(
        mut self,
        averages: ExponentialMovingAverage,
        variables: &[Variable],
    ) -> Self {
        self.averages = Some((averages, variables.to_vec()));
        self
    }

    fn built(&self) -> Result<&Built> {
        self.built.get().ok_or_else(|| {
            failed_precondition!(
                "synchronous replicas have no nodes yet: call minimize or apply_gradients first"
            )
        })
    }

    /// What the chief must run in a thread.
    pub fn chief_queue_runner(&self) -> Result<QueueRunner> {
        Ok(self.built()?.chief.clone())
    }

    /// Readies the chief: its local step and all accumulators stand at the global step.
    pub fn chief_init_op(&self) -> Result<Operation> {
        Ok(self.built()?.chief_init_op.clone())
    }

    /// Readies any other worker: its local step stands at the global step.
    pub fn local_step_init_op(&self) -> Result<Operation> {
        Ok(self.built()?.local_step_init_op.clone())
    }

    /// The names of variables that must have values before either of these.
    pub fn ready_for_local_init_op(&self) -> Result<Output> {
        Ok(self.built()?.ready_for_local_init_op.clone())
    }

    /// Hands out the first tokens: as many as gradients wanted unless `num_tokens` says otherwise. With fewer
    /// workers than gradients wanted, at least the difference is needed for the first step.
    pub fn init_tokens_op(&self, num_tokens: Option<u32>) -> Result<Operation> {
        let built = self.built()?;
        let g = built.global_step.graph();
        let needed = self
            .replicas_to_aggregate
            .saturating_sub(self.total_num_replicas);
        let tokens = num_tokens.unwrap_or(self.replicas_to_aggregate);
        if tokens < needed {
            return Err(invalid_argument!(
                "too few tokens to finish the first step: {tokens} given, {needed} needed"
            ));
        }
        let _root = g.name_scope("");
        if tokens == 0 {
            return Ok(g.op("NoOp").name("no_init_tokens").build());
        }
        let filled = enqueue_tokens(&built.token_queue, tokens, &built.global_step);
        g.check()?;
        Ok(filled)
    }

    fn tokens_per_step(&self) -> u32 {
        self.total_num_replicas.max(self.replicas_to_aggregate)
    }

    fn build(
        &self,
        gradients: &[GradAndVar],
        options: &Minimize,
        step: &Variable,
    ) -> Result<(Operation, Built)> {
        let g = step.graph();
        let local_step = local_step(g, step);
        let local_step_init_op = local_step.assign(step.read());
        let ready_for_local_init_op =
            report_uninitialized(g, "report_uninitialized_variables", &g.global_variables());
        let scope = g.name_scope(NAME);
        let mut applied = Vec::new();
        let mut accumulators = Vec::new();
        let mut aggregated = Vec::new();
        for (gradient, variable) in gradients {
            let Some(gradient) = gradient else {
                aggregated.push((None, variable.clone()));
                continue;
            };
            let accumulator = Accumulator::of(gradient, variable);
            applied.push(accumulator.apply(gradient, &local_step));
            let mean = accumulator.take(self.replicas_to_aggregate);
            aggregated.push((Some(mean), variable.clone()));
            accumulators.push(accumulator);
        }
        let whole = g.name_scope("");
        let near_step = on(g, &step.device());
        let update = self
            .optimizer
            .apply_gradients(&aggregated, &Minimize::step(step))?;
        let token_queue = shared_queue(g, "sync_token_q", step.dtype());
        let token = {
            let _after = g.control_dependencies(&applied);
            dequeue(&token_queue, step.dtype())
        };
        let train = local_step.assign(token);
        let enqueue = {
            let _after = g.control_dependencies([&update]);
            enqueue_tokens(&token_queue, self.tokens_per_step(), step)
        };
        let enqueue = match &self.averages {
            Some((averages, variables)) => {
                let _after = g.control_dependencies([&enqueue]);
                averages.apply(variables)?
            }
            None => enqueue,
        };
        drop(near_step);
        drop(whole);
        let mut init = vec![local_step_init_op.clone()];
        init.extend(accumulators.iter().map(|one| one.set_global_step(step)));
        let chief_init_op = g.group("chief_init", &init);
        drop(scope);
        let train = match &options.name {
            Some(name) => g.group(name, [&train]),
            None => train,
        };
        let built = Built {
            global_step: step.clone(),
            local_step,
            chief: QueueRunner::new(&token_queue, vec![enqueue]),
            token_queue,
            accumulators,
            local_step_init_op,
            chief_init_op,
            ready_for_local_init_op,
        };
        Ok((train, built))
    }
}

impl Optimizer for SyncReplicas {
    fn apply_gradients(&self, gradients: &[GradAndVar], options: &Minimize) -> Result<Operation> {
        if self.replicas_to_aggregate == 0 {
            return Err(invalid_argument!(
                "synchronous replicas must wait for one gradient at least"
            ));
        }
        if gradients.is_empty() {
            return Err(invalid_argument!("there are no variables to update"));
        }
        let Some(step) = &options.global_step else {
            return Err(invalid_argument!(
                "synchronous replicas need a global step, by which stale gradients are known"
            ));
        };
        if step.dtype() != DType::I64 {
            return Err(invalid_argument!(
                "global step '{}' has dtype {}; synchronous replicas count in int64",
                step.name(),
                step.dtype().name()
            ));
        }
        if self.built.get().is_some() {
            return Err(failed_precondition!(
                "these synchronous replicas have their nodes already; make others for another graph"
            ));
        }
        let (train, built) = self.build(gradients, options, step)?;
        step.graph().check()?;
        // Nobody else can have set it: two threads that build one graph at once get one of both.
        let _ = self.built.set(built);
        Ok(train)
    }

    fn slot(&self, variable: &Variable, slot: &str) -> Option<Variable> {
        self.optimizer.slot(variable, slot)
    }

    fn slot_names(&self) -> Vec<&'static str> {
        self.optimizer.slot_names()
    }

    fn variables(&self) -> Vec<Variable> {
        self.optimizer.variables()
    }

    fn compute_gradients(&self, loss: &Output, options: &Minimize) -> Result<Vec<GradAndVar>> {
        self.optimizer.compute_gradients(loss, options)
    }
}

/// Nodes made inside go to this device; wherever they would anyway if it is empty.
fn on(g: &Graph, device: &str) -> Option<Scope> {
    (!device.is_empty()).then(|| g.device(device))
}

/// The step this worker believes in. On the worker itself, whatever device scopes say of variables.
fn local_step(g: &Graph, step: &Variable) -> Variable {
    let here = g.op("NoOp").name("local_anchor").build();
    g.variable("sync_rep_local_step", &[])
        .dtype(step.dtype())
        .initializer(init::zeros())
        .near(&here)
        .local()
        .build()
}

/// A queue of scalars that all tasks know by its name.
fn shared_queue(g: &Graph, name: &str, dtype: DType) -> Output {
    g.op("FIFOQueueV2")
        .name(name)
        .attr("capacity", -1i64)
        .attr(
            "component_types",
            AttrValue::List(AttrList::Type(vec![dtype.into()])),
        )
        .attr(
            "shapes",
            AttrValue::List(AttrList::Shape(vec![PartialShape::scalar()])),
        )
        .attr("shared_name", name)
        .output()
}

/// The next one of a queue of scalars.
fn dequeue(queue: &Output, dtype: DType) -> Output {
    let name = format!("{}_Dequeue", queue.op().name());
    let node = queue.graph().op("QueueDequeueV2").name(&name);
    let types = AttrValue::List(AttrList::Type(vec![dtype.into()]));
    let node = node.input(queue).attr("component_types", types);
    node.colocate_with(&queue.op()).output()
}

/// So many tokens that say at which step the global step stands now.
fn enqueue_tokens(queue: &Output, count: u32, step: &Variable) -> Operation {
    let g = queue.graph();
    let dims = g.constant([i32::try_from(count).unwrap_or(i32::MAX)]);
    let tokens = g.op("Fill").input(dims).input(step.read()).output();
    let node = g.op("QueueEnqueueManyV2").name("sync_token_q_EnqueueMany");
    node.input(queue)
        .list(&[tokens])
        .colocate_with(&queue.op())
        .build()
}
