//! [`Variable`]: state that outlives a step, and [`VariableBuilder`], which makes one.

use std::sync::Arc;

use tensorfleet_kernel::AttrValue;
use tensorfleet_tensor::{DType, PartialShape};

use crate::collection::keys;
use crate::graph::Graph;
use crate::init::{self, Initializer, Request};
use crate::operation::Operation;
use crate::output::{Operand, Output};
use crate::regularizers::Regularizer;

/// State on some device that steps read and change.
///
/// Wherever a tensor is wanted, a variable stands for its value, read at that place: after the
/// control dependencies that hold there.
///
/// ```
/// use tensorfleet_client::{Graph, Session};
///
/// let g = Graph::new();
/// let counter = g.variable("counter", &[]).build();
/// let increment = counter.assign_add(&g.constant(1.0f32));
/// let session = Session::new(&g)?;
/// session.run(&g.global_variables_initializer())?;
/// session.run(&increment)?;
/// session.run(&increment)?;
/// assert_eq!(session.run(&counter)?.to_scalar::<f32>()?, 2.0);
/// # Ok::<(), tensorfleet_client::Status>(())
/// ```
#[derive(Clone)]
pub struct Variable {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) name: String,
    pub(crate) dtype: DType,
    pub(crate) dims: Vec<i64>,
    /// The resource, or the reference.
    pub(crate) handle: Output,
    pub(crate) resource: bool,
    pub(crate) initial_value: Output,
    pub(crate) initializer: Operation,
    /// A read made with the variable: what is fetched for it.
    pub(crate) snapshot: Output,
    pub(crate) trainable: bool,
    pub(crate) part: Option<Part>,
}

/// Which part of a partitioned variable this is.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// The name of the whole, under which checkpoints have it.
    pub whole_name: String,
    /// The shape of the whole.
    pub whole_dims: Vec<i64>,
    /// Where the part begins in the whole.
    pub offset: Vec<i64>,
}

impl Part {
    /// The same part of a slot of this full name.
    fn of_slot(&self, slot: &str) -> Part {
        let last = slot.rsplit('/').next().unwrap_or(slot);
        Part {
            whole_name: format!("{}/{last}", self.whole_name),
            ..self.clone()
        }
    }
}

impl Variable {
    /// The name, without a port.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// The graph.
    pub fn graph(&self) -> &Graph {
        self.inner.handle.graph()
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.inner.dtype
    }

    /// The shape.
    pub fn dims(&self) -> &[i64] {
        &self.inner.dims
    }

    /// The resource, or the reference: what update ops take.
    pub fn handle(&self) -> &Output {
        &self.inner.handle
    }

    /// Whether it is a resource, and not a reference as in early TensorFlow.
    pub fn is_resource(&self) -> bool {
        self.inner.resource
    }

    /// Whether optimizers change it.
    pub fn is_trainable(&self) -> bool {
        self.inner.trainable
    }

    /// The node that holds it.
    pub fn op(&self) -> Operation {
        self.inner.handle.op()
    }

    /// The device it is on.
    pub fn device(&self) -> String {
        self.op().device()
    }

    /// What the initializer assigns.
    pub fn initial_value(&self) -> &Output {
        &self.inner.initial_value
    }

    /// Assigns the initial value.
    pub fn initializer(&self) -> &Operation {
        &self.inner.initializer
    }

    /// A read that was made together with the variable.
    pub fn snapshot(&self) -> &Output {
        &self.inner.snapshot
    }

    /// Which part of a partitioned variable it is.
    pub fn part(&self) -> Option<&Part> {
        self.inner.part.as_ref()
    }

    /// Whether two handles mean the same variable.
    pub fn is(&self, other: &Variable) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    fn near(&self) -> Near<'_> {
        Near {
            handle: &self.inner.handle,
            resource: self.inner.resource,
            dtype: self.inner.dtype,
            dims: &self.inner.dims,
        }
    }

    /// The value, read here.
    #[track_caller]
    pub fn read(&self) -> Output {
        self.near().read()
    }

    /// Whether it has a value.
    #[track_caller]
    pub fn is_initialized(&self) -> Output {
        let g = self.graph();
        let _near = g.colocate_with(&self.op());
        if self.inner.resource {
            g.op("VarIsInitializedOp").input(self.handle()).output()
        } else {
            let node = g.op("IsVariableInitialized").input(self.handle());
            node.attr("dtype", self.dtype()).output()
        }
    }

    /// Replaces the value.
    #[track_caller]
    pub fn assign(&self, value: impl Operand) -> Operation {
        self.near().update("AssignVariableOp", "Assign", value)
    }

    /// Adds to the value.
    #[track_caller]
    pub fn assign_add(&self, value: impl Operand) -> Operation {
        self.near()
            .update("AssignAddVariableOp", "AssignAdd", value)
    }

    /// Subtracts from the value.
    #[track_caller]
    pub fn assign_sub(&self, value: impl Operand) -> Operation {
        self.near()
            .update("AssignSubVariableOp", "AssignSub", value)
    }

    /// Rows by index, read without reading the rest.
    #[track_caller]
    pub fn gather(&self, indices: impl Operand) -> Output {
        let g = self.graph();
        let _near = g.colocate_with(&self.op());
        let indices = indices.to_output();
        if !self.inner.resource {
            return self.read().gather(&indices);
        }
        let node = g.op("ResourceGather").input(self.handle()).input(&indices);
        let rows = node.attr("dtype", self.dtype()).output();
        if let (Some(which), Some((_, row))) = (indices.shape().dims(), self.dims().split_first()) {
            rows.set_shape(&[which, row].concat());
        }
        rows
    }
}

/// Nodes beside a variable, on its device.
struct Near<'a> {
    handle: &'a Output,
    resource: bool,
    dtype: DType,
    dims: &'a [i64],
}

impl Near<'_> {
    #[track_caller]
    fn read(&self) -> Output {
        let g = self.handle.graph();
        let _near = g.colocate_with(&self.handle.op());
        let value = if self.resource {
            let read = g.op("ReadVariableOp").name("Read/ReadVariableOp");
            read.input(self.handle).attr("dtype", self.dtype).output()
        } else {
            g.op("Identity").name("read").input(self.handle).output()
        };
        value.set_shape(self.dims);
        value
    }

    #[track_caller]
    fn update(&self, resource_op: &str, ref_op: &str, value: impl Operand) -> Operation {
        let g = self.handle.graph();
        let _near = g.colocate_with(&self.handle.op());
        let op = if self.resource { resource_op } else { ref_op };
        g.op(op)
            .name(ref_op)
            .input(self.handle)
            .input(value)
            .build()
    }
}

impl Operand for Variable {
    fn to_output(&self) -> Output {
        self.read()
    }
}

impl std::fmt::Debug for Variable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shape = PartialShape::new(self.dims());
        write!(f, "{}: {} {shape}", self.name(), self.dtype().name())
    }
}

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
    graph: Graph,
    name: String,
    dims: Vec<i64>,
    dtype: DType,
    initializer: Option<Arc<dyn Initializer>>,
    trainable: bool,
    resource: bool,
    collections: Option<Vec<String>>,
    shared_name: Option<String>,
    container: String,
    part: Option<Part>,
    regularizer: Option<Arc<dyn Regularizer>>,
    /// The variable this one is a slot of.
    primary: Option<Variable>,
    near: Option<Operation>,
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

    pub(crate) fn target(&self) -> (&Graph, &str, &[i64], DType) {
        (&self.graph, &self.name, &self.dims, self.dtype)
    }

    pub(crate) fn default_initializer(
        &mut self,
        initializer: impl FnOnce() -> Option<Arc<dyn Initializer>>,
    ) {
        if self.initializer.is_none() {
            self.initializer = initializer();
        }
    }

    /// Adds the variable, or finds it in the graph's variable store if it is shared by name.
    #[track_caller]
    pub fn build(self) -> Variable {
        let mut builder = self;
        if builder.shared {
            return builder.get();
        }
        let regularizer = builder.take_regularizer();
        let variable = builder.make(None);
        if let Some(regularizer) = regularizer {
            variable.regularize(&*regularizer);
        }
        variable
    }

    /// Adds the variable, under exactly this name if one is given.
    #[track_caller]
    pub(crate) fn make(mut self, exact: Option<&str>) -> Variable {
        let g = self.graph.clone();
        let _outside = g.outside_of_bodies();
        // Initial values must be computable before anything else has run.
        let _free = g.no_control_dependencies();
        let _anywhere = g.no_colocation();
        let name = match (exact, &self.primary) {
            (Some(name), _) => format!("{name}/"),
            (None, Some(primary)) => {
                let full = g.lock().slot_name(primary.name(), &self.name);
                // A scalar beside a part is a part of nothing.
                let part = primary.part().filter(|_| !self.dims.is_empty());
                self.part = part.map(|part| part.of_slot(&full));
                format!("{full}/")
            }
            (None, None) => {
                let mut state = g.lock();
                let full = state.full_name(&self.name);
                format!("{full}/")
            }
        };
        let variable = self.add_nodes(&g, &name);
        let collections = self
            .collections
            .unwrap_or_else(|| vec![keys::GLOBAL_VARIABLES.to_owned()]);
        for key in &collections {
            g.add_to_collection(key, &variable);
        }
        if self.trainable
            && !collections
                .iter()
                .any(|key| key == keys::TRAINABLE_VARIABLES)
        {
            g.add_to_collection(keys::TRAINABLE_VARIABLES, &variable);
        }
        variable
    }

    /// `scope` is the variable's name with a slash: the scope of its neighbours.
    fn add_nodes(&self, g: &Graph, scope: &str) -> Variable {
        let name = scope.trim_end_matches('/');
        let shape = PartialShape::new(&self.dims);
        let op = if self.resource {
            "VarHandleOp"
        } else {
            "VariableV2"
        };
        let shared_name =
            self.shared_name
                .as_deref()
                .unwrap_or(if self.resource { name } else { "" });
        let mut handle = g
            .op(op)
            .name(scope)
            .attr("dtype", self.dtype)
            .attr("shape", shape.clone())
            .attr("container", self.container.as_str())
            .attr("shared_name", AttrValue::from(shared_name));
        if let Some(near) = &self.near {
            handle = handle.colocate_with(near);
        }
        let handle = handle.output();
        let _scope = g.name_scope(scope);
        let initial_value = {
            let _scope = g.name_scope("Initializer");
            let _near = g.colocate_with(&handle.op());
            let request = Request {
                dims: &self.dims,
                whole: self
                    .part
                    .as_ref()
                    .map_or(&self.dims, |part| &part.whole_dims),
                offset: self.part.as_ref().map_or(&[], |part| &part.offset),
                dtype: self.dtype,
            };
            match &self.initializer {
                Some(initializer) => initializer.initial_value(g, request),
                None => init::zeros().initial_value(g, request),
            }
        };
        let near = Near {
            handle: &handle,
            resource: self.resource,
            dtype: self.dtype,
            dims: &self.dims,
        };
        let initializer = near.update("AssignVariableOp", "Assign", &initial_value);
        let snapshot = near.read();
        Variable {
            inner: Arc::new(Inner {
                name: name.to_owned(),
                dtype: self.dtype,
                dims: self.dims.clone(),
                snapshot,
                initializer,
                resource: self.resource,
                initial_value,
                trainable: self.trainable,
                part: self.part.clone(),
                handle,
            }),
        }
    }
}
