//! [`Task`]: the rows that one step brings to a batch, and who hears what became of them.

use std::sync::{Arc, Mutex, PoisonError};

use tensorfleet_kernel::{AsyncCtx, FuncRef, StepEnv};
use tensorfleet_status::{Result, ensure, invalid_argument};
use tensorfleet_tensor::{DType, Shape, Tensor};

use super::join;

/// Called once with the outputs of the node.
pub(super) type Done = Box<dyn FnOnce(Result<Vec<Tensor>>) + Send>;

/// What is done with a batch.
#[derive(Clone)]
pub(super) enum Work {
    /// Its last step gets it all.
    Emit,
    /// This function is called with it.
    Call(Arc<FuncRef>),
}

/// Rows of one step.
pub(super) struct Task {
    /// Tells the batcher which tasks are of one step's run of a node.
    pub(super) id: u64,
    /// Who the rows belong to, as `Unbatch` knows it.
    pub(super) key: i64,
    pub(super) env: Arc<StepEnv>,
    pub(super) work: Work,
    pub(super) rows: usize,
    pub(super) inputs: Vec<Tensor>,
    pub(super) captured: Vec<Tensor>,
    pub(super) done: Done,
}

/// The number of rows that all inputs have.
pub(super) fn rows_of(inputs: &[Tensor]) -> Result<usize> {
    let list = || {
        let lines = inputs.iter().enumerate();
        let lines =
            lines.map(|(place, tensor)| format!(" - input {place} has shape {}\n", tensor.shape()));
        lines.collect::<String>()
    };
    ensure!(
        inputs.iter().all(|input| input.rank() > 0),
        invalid_argument,
        "Batching input tensors must have at least one dimension.\nBelow are the input tensors: \n{}",
        list()
    );
    let mut rows = inputs.iter().map(|input| input.shape().dim(0));
    let first = rows
        .next()
        .ok_or_else(|| invalid_argument!("there are no tensors to batch"))?;
    ensure!(
        rows.all(|rows| rows == first),
        invalid_argument,
        "Batching input tensors supplied in a given op invocation must have equal 0th-dimension size.\nBelow are the \
         input tensors: \n{}",
        list()
    );
    Ok(first)
}

/// Answers a node that brought no rows: vectors without elements, whatever their shapes would have been.
pub(super) fn finish_without_rows(ctx: AsyncCtx) {
    let types: Vec<DType> = ctx
        .node()
        .output_types
        .iter()
        .map(|port| port.dtype)
        .collect();
    let empty = types
        .into_iter()
        .map(|dtype| Tensor::new(dtype, Shape::vector(0)));
    match empty.collect::<Result<Vec<Tensor>>>() {
        Ok(tensors) => ctx.finish_with(tensors),
        Err(status) => ctx.fail(status),
    }
}

impl Task {
    /// Tasks of these numbers of rows, which are answered as one. All of its rows must be told.
    pub(super) fn split(self, sizes: &[usize]) -> Result<Vec<Task>> {
        ensure!(
            sizes.iter().sum::<usize>() == self.rows,
            internal,
            "{} rows are not split into {sizes:?}",
            self.rows
        );
        let mut inputs = Vec::with_capacity(sizes.len());
        let mut start = 0;
        for rows in sizes {
            let part = self.inputs.iter().map(|input| input.rows(start, *rows));
            inputs.push(part.collect::<Result<Vec<Tensor>>>()?);
            start += rows;
        }
        let whole = Arc::new(Whole {
            env: self.env.clone(),
            state: Mutex::new(State {
                parts: vec![None; sizes.len()],
                done: Some(self.done),
            }),
        });
        let parts = inputs.into_iter().zip(sizes).enumerate();
        let task = |(part, (inputs, rows)): (usize, (Vec<Tensor>, &usize))| {
            let whole = whole.clone();
            Task {
                id: self.id,
                key: self.key,
                env: self.env.clone(),
                work: self.work.clone(),
                rows: *rows,
                inputs,
                captured: self.captured.clone(),
                done: Box::new(move |result| whole.put(part, result)),
            }
        };
        Ok(parts.map(task).collect())
    }
}

/// A task that was split.
struct Whole {
    env: Arc<StepEnv>,
    state: Mutex<State>,
}

struct State {
    parts: Vec<Option<Vec<Tensor>>>,
    /// Gone once it was called: with all parts, or the first error.
    done: Option<Done>,
}

impl Whole {
    fn put(&self, part: usize, result: Result<Vec<Tensor>>) {
        let (done, result) = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            let result = match result {
                Ok(tensors) => {
                    if let Some(slot) = state.parts.get_mut(part) {
                        *slot = Some(tensors);
                    }
                    if state.parts.iter().any(Option::is_none) {
                        return;
                    }
                    Ok(std::mem::take(&mut state.parts))
                }
                Err(status) => Err(status),
            };
            (state.done.take(), result)
        };
        if let Some(done) = done {
            done(result.and_then(|parts| self.outputs(&parts)));
        }
    }

    fn outputs(&self, parts: &[Option<Vec<Tensor>>]) -> Result<Vec<Tensor>> {
        let parts: Vec<&Vec<Tensor>> = parts.iter().flatten().collect();
        let count = parts.iter().map(|part| part.len()).min().unwrap_or(0);
        let output = |output: usize| {
            let parts: Vec<&Tensor> = parts.iter().filter_map(|part| part.get(output)).collect();
            join(&*self.env.pool, &parts)
        };
        (0..count).map(output).collect()
    }
}
