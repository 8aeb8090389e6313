//! The global step: the counter of all updates that all workers made.

use tensorfleet_client::{DType, Graph, Output, Variable, init, keys};
use tensorfleet_status::{Result, failed_precondition, invalid_argument};

/// The name under which the step counter is found in checkpoints.
const NAME: &str = "global_step";

/// Makes the step counter. A graph has one at most.
pub fn create_global_step(g: &Graph) -> Result<Variable> {
    if find(g).is_some() {
        return Err(invalid_argument!(
            "the graph already has a global step; use get_or_create_global_step to share it"
        ));
    }
    let _root = g.name_scope("");
    let step = g
        .variable(NAME, &[])
        .dtype(DType::I64)
        .initializer(init::zeros())
        .trainable(false)
        .collections(&[keys::GLOBAL_VARIABLES, keys::GLOBAL_STEP])
        .build();
    g.check()?;
    Ok(step)
}

/// The step counter.
pub fn get_global_step(g: &Graph) -> Result<Variable> {
    find(g).ok_or_else(|| {
        failed_precondition!(
            "the graph has no global step; make one with get_or_create_global_step before it is needed"
        )
    })
}

/// The step counter, made if there is none yet.
///
/// ```
/// use tensorfleet_client::Graph;
/// use tensorfleet_train::get_or_create_global_step;
///
/// let g = Graph::new();
/// let step = get_or_create_global_step(&g)?;
/// assert_eq!(step.name(), "global_step");
/// assert!(step.is(&get_or_create_global_step(&g)?));
/// # Ok::<(), tensorfleet_client::Status>(())
/// ```
pub fn get_or_create_global_step(g: &Graph) -> Result<Variable> {
    match find(g) {
        Some(step) => Ok(step),
        None => create_global_step(g),
    }
}

fn find(g: &Graph) -> Option<Variable> {
    g.variables_in(keys::GLOBAL_STEP).into_iter().next()
}

/// The value of the step counter, one node for all who want it.
pub(crate) fn global_step_read(g: &Graph) -> Result<Output> {
    if let Some(read) = g.outputs_in(keys::GLOBAL_STEP_READ).into_iter().next() {
        return Ok(read);
    }
    let step = get_global_step(g)?;
    let _root = g.name_scope("");
    let _free = g.no_control_dependencies();
    let _near = g.colocate_with(&step.op());
    let _scope = g.name_scope("global_step");
    // Not the variable's own read: what is fetched may not share its memory with later updates.
    let read = step.read() + 0;
    g.check()?;
    g.add_to_collection(keys::GLOBAL_STEP_READ, &read);
    Ok(read)
}
