//! [`VariableBuilder`]: what a new variable shall be.

use std::sync::Arc;

use tensorfleet_tensor::DType;

use super::{Part, Variable};
use crate::collection::keys;
use crate::graph::Graph;
use crate::init::Initializer;
use crate::operation::Operation;
use crate::regularizers::Regularizer;

/// A variable in the making.
///
/// ```
/// use tensorfleet_client::{DType, Graph, init, keys};
///
/// let g = Graph::new();
/// let w = g.variable("w", &[784, 10]).initializer(init::glorot_uniform().seed(1)).build();
/// let count = g.variable("count", &[]).dtype(DType::I64).local().build();
/// assert!(w.is_trainable() && !count.is_trainable());
/// assert_eq!(g.variables_in(keys::LOCAL_VARIABLES).len(), 1);
/// # Ok::<(), tensorfleet_client::Status>(())
/// ```
#[derive(Clone)]
#[must_use = "nothing is added to the graph before `build`"]
pub struct VariableBuilder {
    pub(super) graph: Graph,
    pub(super) name: String,
    pub(super) dims: Vec<i64>,
    pub(super) dtype: DType,
    pub(super) initializer: Option<Arc<dyn Initializer>>,
    pub(super) trainable: bool,
    pub(super) resource: bool,
    pub(super) collections: Option<Vec<String>>,
    pub(super) shared_name: Option<String>,
    pub(super) container: String,
    pub(super) part: Option<Part>,
    pub(super) regularizer: Option<Arc<dyn Regularizer>>,
    /// The variable this one is a slot of.
    pub(super) primary: Option<Variable>,
    pub(super) near: Option<Operation>,
    /// Found or made through the graph's variable store, which may have it already.
    pub(crate) shared: bool,
}

impl Graph {
    /// A new variable of floats, all zero unless told otherwise; a taken name gets a suffix.
    pub fn variable(&self, name: &str, dims: &[i64]) -> VariableBuilder {
        VariableBuilder {
            graph: self.root(),
            name: name.to_owned(),
            dims: dims.to_vec(),
            dtype: DType::F32,
            initializer: None,
            trainable: true,
            resource: true,
            collections: None,
            shared_name: None,
            container: String::new(),
            part: None,
            regularizer: None,
            primary: None,
            near: None,
            shared: false,
        }
    }
}

impl VariableBuilder {
    /// The element type.
    pub fn dtype(mut self, dtype: DType) -> Self {
        self.dtype = dtype;
        self
    }

    /// The initial value; zeros by default, Glorot's for floats of a variable scope.
    pub fn initializer(mut self, initializer: impl Initializer + 'static) -> Self {
        self.initializer = Some(Arc::new(initializer));
        self
    }

    /// Whether optimizers change it; they do by default.
    pub fn trainable(mut self, trainable: bool) -> Self {
        self.trainable = trainable;
        self
    }

    /// A reference variable as in early TensorFlow, instead of a resource.
    pub fn as_ref_variable(mut self) -> Self {
        self.resource = false;
        self
    }

    /// Of this process alone: in the local variables, not trained, not saved.
    pub fn local(mut self) -> Self {
        self.trainable = false;
        self.collections = Some(vec![keys::LOCAL_VARIABLES.to_owned()]);
        self
    }

    /// Into these collections instead of the global variables.
    pub fn collections(mut self, keys: &[&str]) -> Self {
        self.collections = Some(keys.iter().map(|key| (*key).to_owned()).collect());
        self
    }

    /// The name under which sessions share it; its own by default.
    pub fn shared_name(mut self, name: &str) -> Self {
        self.shared_name = Some(name.to_owned());
        self
    }

    /// The container it lives in, which can be reset alone.
    pub fn container(mut self, container: &str) -> Self {
        container.clone_into(&mut self.container);
        self
    }

    /// Says that it is a part of a partitioned variable.
    pub fn part(mut self, part: Part) -> Self {
        self.part = Some(part);
        self
    }

    /// A penalty on its value, made together with the variable and kept in the regularization losses.
    pub fn regularizer(mut self, regularizer: impl Regularizer + 'static) -> Self {
        self.regularizer = Some(Arc::new(regularizer));
        self
    }

    pub(crate) fn take_regularizer(&mut self) -> Option<Arc<dyn Regularizer>> {
        self.regularizer.take()
    }

    /// The same under another name and with other dimensions.
    pub(crate) fn resized(&self, name: &str, dims: &[i64]) -> VariableBuilder {
        VariableBuilder {
            name: name.to_owned(),
            dims: dims.to_vec(),
            ..self.clone()
        }
    }

    /// Makes it a slot: what an optimizer keeps beside `primary`. It is called `primary/name`, is on the
    /// same device, of the same kind, not trained, and in checkpoints a part where `primary` is one.
    pub fn slot_of(mut self, primary: &Variable) -> Self {
        self.resource = primary.is_resource();
        self.trainable = false;
        self.primary = Some(primary.clone());
        self.near(&primary.op())
    }

    /// Puts it on the device of this node.
    pub fn near(mut self, op: &Operation) -> Self {
        self.near = Some(op.clone());
        self
    }
}
