//! Collections: named lists of things that a graph carries along, such as all its variables.

use std::collections::BTreeMap;

use tensorfleet_tensor::Bytes;

use crate::graph::Graph;
use crate::operation::Operation;
use crate::output::Output;
use crate::variable::Variable;

/// The names of TensorFlow's own collections.
pub mod keys {
    /// Variables shared by all tasks: what savers save and init ops initialise.
    pub const GLOBAL_VARIABLES: &str = "variables";
    /// Variables of one process, never saved.
    pub const LOCAL_VARIABLES: &str = "local_variables";
    /// Variables that optimizers change.
    pub const TRAINABLE_VARIABLES: &str = "trainable_variables";
    /// Variables with a moving average.
    pub const MOVING_AVERAGE_VARIABLES: &str = "moving_average_variables";
    /// Variables of metrics.
    pub const METRIC_VARIABLES: &str = "metric_variables";
    /// The step counter.
    pub const GLOBAL_STEP: &str = "global_step";
    /// The read of the step counter.
    pub const GLOBAL_STEP_READ: &str = "global_step_read_op_cache";
    /// Summaries to be written.
    pub const SUMMARIES: &str = "summaries";
    /// The op that merges all summaries.
    pub const SUMMARY_OP: &str = "summary_op";
    /// Ops to run beside each training step, such as updates of moving averages.
    pub const UPDATE_OPS: &str = "update_ops";
    /// Losses.
    pub const LOSSES: &str = "losses";
    /// Penalties on weights.
    pub const REGULARIZATION_LOSSES: &str = "regularization_losses";
    /// Queue runners.
    pub const QUEUE_RUNNERS: &str = "queue_runners";
    /// Table initialisers.
    pub const TABLE_INITIALIZERS: &str = "table_initializer";
    /// Savers.
    pub const SAVERS: &str = "savers";
    /// The op that initialises everything.
    pub const INIT_OP: &str = "init_op";
    /// The op that initialises what is local to a process.
    pub const LOCAL_INIT_OP: &str = "local_init_op";
    /// The op that tells what is not initialised.
    pub const READY_OP: &str = "ready_op";
    /// The op that tells what must be initialised before what is local.
    pub const READY_FOR_LOCAL_INIT_OP: &str = "ready_for_local_init_op";
    /// The op to train with.
    pub const TRAIN_OP: &str = "train_op";
}

/// One thing in a collection.
#[derive(Clone, Debug)]
pub enum Item {
    /// A tensor.
    Output(Output),
    /// A node.
    Operation(Operation),
    /// A variable.
    Variable(Variable),
    /// A message or text.
    Bytes(Bytes),
    /// A number.
    Int(i64),
}

macro_rules! items {
    ($($type:ident),*) => {$(
        impl From<$type> for Item {
            fn from(value: $type) -> Item {
                Item::$type(value)
            }
        }

        impl From<&$type> for Item {
            fn from(value: &$type) -> Item {
                Item::$type(value.clone())
            }
        }
    )*};
}

items!(Output, Operation, Variable, Bytes);

/// The collections of a graph.
pub(crate) type Collections = BTreeMap<String, Vec<Item>>;

impl Graph {
    /// Adds to a collection.
    pub fn add_to_collection(&self, key: &str, item: impl Into<Item>) {
        let item = item.into();
        let mut state = self.lock();
        state
            .collections
            .entry(key.to_owned())
            .or_default()
            .push(item);
    }

    /// What is in a collection, in order.
    pub fn collection(&self, key: &str) -> Vec<Item> {
        self.lock()
            .collections
            .get(key)
            .cloned()
            .unwrap_or_default()
    }

    /// The names of all collections.
    pub fn collection_keys(&self) -> Vec<String> {
        self.lock().collections.keys().cloned().collect()
    }

    /// Empties a collection.
    pub fn clear_collection(&self, key: &str) {
        self.lock().collections.remove(key);
    }

    /// The variables in a collection.
    pub fn variables_in(&self, key: &str) -> Vec<Variable> {
        let items = self.collection(key).into_iter();
        items
            .filter_map(|item| match item {
                Item::Variable(variable) => Some(variable),
                _ => None,
            })
            .collect()
    }

    /// The tensors in a collection.
    pub fn outputs_in(&self, key: &str) -> Vec<Output> {
        let items = self.collection(key).into_iter();
        items
            .filter_map(|item| match item {
                Item::Output(output) => Some(output),
                _ => None,
            })
            .collect()
    }

    /// The nodes in a collection.
    pub fn operations_in(&self, key: &str) -> Vec<Operation> {
        let items = self.collection(key).into_iter();
        items
            .filter_map(|item| match item {
                Item::Operation(op) => Some(op),
                Item::Output(output) => Some(output.op()),
                _ => None,
            })
            .collect()
    }

    /// All variables that savers save.
    pub fn global_variables(&self) -> Vec<Variable> {
        self.variables_in(keys::GLOBAL_VARIABLES)
    }

    /// All variables that optimizers change.
    pub fn trainable_variables(&self) -> Vec<Variable> {
        self.variables_in(keys::TRAINABLE_VARIABLES)
    }

    /// All variables of this process.
    pub fn local_variables(&self) -> Vec<Variable> {
        self.variables_in(keys::LOCAL_VARIABLES)
    }

    /// One node that initialises all global variables.
    pub fn global_variables_initializer(&self) -> Operation {
        self.initializer_of("init", &self.global_variables())
    }

    /// One node that initialises all local variables.
    pub fn local_variables_initializer(&self) -> Operation {
        self.initializer_of("init_local", &self.local_variables())
    }

    /// One node that initialises these variables.
    pub fn initializer_of(&self, name: &str, variables: &[Variable]) -> Operation {
        self.group(name, variables.iter().map(Variable::initializer))
    }
}
