//! `While`, `StatelessWhile`: call a body while a condition holds.
//!
//! TensorFlow: While(input: T) -> output: T, with cond and body. One iteration at a time; loops that want
//! parallel iterations are lowered to frames.

use std::sync::{Arc, Mutex, PoisonError};

use tensorfleet_graph::{Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, AsyncCtx, FuncRef, NodeInfo};
use tensorfleet_status::{Result, invalid_argument};
use tensorfleet_tensor::Tensor;

use super::{take_args, truth};

const WHILE: OpDef = OpDef {
    inputs: &["input: T"],
    outputs: &["output: T"],
    attrs: &[
        "T: list(type) >= 0",
        "cond: func",
        "body: func",
        "output_shapes: list(shape) = []",
        "parallel_iterations: int = 10",
    ],
    gradient: Gradient::None("the loop's gradient function is made with the graph"),
    kernels: &[cpu(&[], build)],
    ..OpDef::BLANK
};

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "While",
        stateful: true,
        ..WHILE
    },
    OpDef {
        name: "StatelessWhile",
        ..WHILE
    },
];

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let functions = Arc::new(Functions {
        cond: node.attrs.func("cond")?.clone(),
        body: node.attrs.func("body")?.clone(),
    });
    AnyKernel::later(move |mut ctx: AsyncCtx| match take_args(&mut ctx, 0) {
        Ok(values) => {
            let running = Arc::new(Loop {
                functions: functions.clone(),
                ctx: Mutex::new(Some(ctx)),
                answer: Mutex::new(Answer::None),
            });
            running.go_on(Stage::Test(values));
        }
        Err(status) => ctx.fail(status),
    })
}

struct Functions {
    cond: FuncRef,
    body: FuncRef,
}

/// What comes next.
enum Stage {
    /// Ask the condition about these values.
    Test(Vec<Tensor>),
    /// The condition answered about these values.
    Tested(Vec<Tensor>, Vec<Tensor>),
}

/// A call's answer on its way to the loop: calls may answer before they return.
enum Answer {
    None,
    /// The loop has left; whoever answers goes on.
    Left,
    Here(Result<Stage>),
}

struct Loop {
    functions: Arc<Functions>,
    ctx: Mutex<Option<AsyncCtx>>,
    answer: Mutex<Answer>,
}

impl Loop {
    /// Goes on until a call does not answer at once. Iterating instead of recursing keeps the stack flat.
    fn go_on(self: &Arc<Loop>, mut stage: Stage) {
        loop {
            match self.advance(stage) {
                Some(Ok(next)) => stage = next,
                Some(Err(status)) => {
                    if let Some(ctx) = self.take_ctx() {
                        ctx.fail(status);
                    }
                    return;
                }
                None => return,
            }
        }
    }

    /// One call; `None` if the loop ended or somebody else goes on.
    fn advance(self: &Arc<Loop>, stage: Stage) -> Option<Result<Stage>> {
        match stage {
            Stage::Test(values) => {
                let args = values.clone();
                self.call(
                    |functions| &functions.cond,
                    args,
                    move |answer| Ok(Stage::Tested(values, answer)),
                )
            }
            Stage::Tested(values, answer) => {
                let goes_on = match answer.as_slice() {
                    [predicate] => truth(predicate),
                    other => Err(invalid_argument!(
                        "Expected a single scalar return value from WhileOp cond, got {} tensors.",
                        other.len()
                    )),
                };
                match goes_on {
                    Ok(true) => {
                        let expected = values.len();
                        self.call(
                            |functions| &functions.body,
                            values,
                            move |answer| {
                                if answer.len() != expected {
                                    return Err(invalid_argument!(
                                        "While loop body returned {} arguments. Expected: {expected}",
                                        answer.len()
                                    ));
                                }
                                Ok(Stage::Test(answer))
                            },
                        )
                    }
                    Ok(false) => {
                        self.take_ctx()?.finish_with(values);
                        None
                    }
                    Err(status) => Some(Err(status)),
                }
            }
        }
    }

    /// Calls a function; its stage if it answered before this returns.
    fn call(
        self: &Arc<Loop>,
        func: impl FnOnce(&Functions) -> &FuncRef,
        args: Vec<Tensor>,
        next: impl FnOnce(Vec<Tensor>) -> Result<Stage> + Send + 'static,
    ) -> Option<Result<Stage>> {
        let env = match &*self.ctx.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(ctx) => ctx.env().clone(),
            None => return None,
        };
        if let Err(status) = env.cancel.check() {
            return Some(Err(status));
        }
        let running = self.clone();
        let done = Box::new(move |result: Result<Vec<Tensor>>| {
            let stage = result.and_then(next);
            let mut answer = running
                .answer
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            if matches!(*answer, Answer::Left) {
                *answer = Answer::None;
                drop(answer);
                running.resume(stage);
            } else {
                *answer = Answer::Here(stage);
            }
        });
        env.functions.call(func(&self.functions), args, &env, done);
        let mut answer = self.answer.lock().unwrap_or_else(PoisonError::into_inner);
        match std::mem::replace(&mut *answer, Answer::None) {
            Answer::Here(stage) => Some(stage),
            _ => {
                *answer = Answer::Left;
                None
            }
        }
    }

    fn resume(self: &Arc<Loop>, stage: Result<Stage>) {
        match stage {
            Ok(stage) => self.go_on(stage),
            Err(status) => {
                if let Some(ctx) = self.take_ctx() {
                    ctx.fail(status);
                }
            }
        }
    }

    fn take_ctx(&self) -> Option<AsyncCtx> {
        self.ctx
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }
}
