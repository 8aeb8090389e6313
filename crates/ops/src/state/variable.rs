//! [`Variable`], the resource behind a `VarHandleOp`, and how nodes find it.
//!
//! A handle carries its variable, so that finding it costs one atomic read and no map look-up. When a
//! variable leaves the resource manager (`DestroyResourceOp`, a container that is reset), it is marked;
//! handles that still carry it then fall back to its name.
//!
//! A named variable enters the manager with its first handle, so that all handles of that name carry the
//! same object. TensorFlow makes it with the first assignment: until then ours counts as not there.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use tensorfleet_kernel::{KernelCtx, Resource, ResourceManager};
use tensorfleet_status::{Code, Result, Status, ensure, invalid_argument, not_found};
use tensorfleet_tensor::{DType, HandleData, PartialShape, ResourceHandle, Tensor};

/// The type of variables in handles and error texts: what C++ peers call it.
pub(crate) const TYPE_NAME: &str = "N10tensorflow3VarE";
/// The hash of that type in handles, as C++ peers compute it.
const TYPE_HASH: u64 = 0xf23c_5122_fe09_79e5;
/// How [`ResourceManager::list`] shows a variable that was never assigned.
const UNASSIGNED: &str = "unassigned variable";

/// A variable that is found by handle.
pub(crate) struct Variable {
    container: String,
    name: String,
    removed: AtomicBool,
    value: RwLock<Option<Tensor>>,
}

/// The `shared_name` that stands for no name at all.
const ANONYMOUS: &str = "cd2c89b7-88b7-44c8-ad83-06c2a9158347";

/// Whether this is the name of variables that belong to their handles alone.
pub(crate) fn is_anonymous(name: &str) -> bool {
    name == ANONYMOUS
}

impl Resource for Variable {
    fn type_name(&self) -> &'static str {
        // Not `read`: listing must not wait for an update.
        match self.value.try_read() {
            Ok(value) if value.is_none() => UNASSIGNED,
            _ => TYPE_NAME,
        }
    }

    fn on_removed(&self) {
        self.removed.store(true, Ordering::Release);
    }
}

impl Variable {
    fn new(container: &str, name: &str) -> Variable {
        Variable {
            container: container.to_owned(),
            name: name.to_owned(),
            removed: AtomicBool::new(false),
            value: RwLock::new(None),
        }
    }

    /// The variable of this name, new and unassigned if there was none.
    ///
    /// TensorFlow's name for anonymous variables always makes a new one, which belongs to its handles alone.
    pub(crate) fn named(
        resources: &ResourceManager,
        container: &str,
        name: &str,
    ) -> Result<Arc<Variable>> {
        if is_anonymous(name) {
            return Ok(Arc::new(Variable::new(container, name)));
        }
        resources.lookup_or_create(container, name, || Ok(Variable::new(container, name)))
    }

    /// Whether handles may go on using it.
    pub(crate) fn is_live(&self) -> bool {
        !self.removed.load(Ordering::Acquire)
    }

    /// Shared access to the value.
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, Option<Tensor>> {
        self.value.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Exclusive access to the value.
    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, Option<Tensor>> {
        self.value.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// A handle to it as a tensor.
    pub(crate) fn handle(
        self: &Arc<Self>,
        device: &str,
        dtype: DType,
        shape: PartialShape,
    ) -> Tensor {
        Tensor::scalar(ResourceHandle::new(HandleData {
            device: device.to_owned(),
            container: self.container.clone(),
            name: self.name.clone(),
            hash_code: TYPE_HASH,
            type_name: TYPE_NAME.to_owned(),
            dtypes_and_shapes: vec![(dtype, shape)],
            object: Some(self.clone()),
        }))
    }

    /// What operations on it say while it has no value.
    #[cold]
    pub(crate) fn missing(&self, resources: &ResourceManager) -> Status {
        missing(resources, &self.container, &self.name)
    }
}

/// The variable that the handle in input `index` names; it may be unassigned. NOT_FOUND if there is none.
pub(crate) fn find(ctx: &KernelCtx<'_>, index: usize) -> Result<Arc<Variable>> {
    let handle = ctx.handle(index)?;
    if let Some(variable) = carried(handle)? {
        return Ok(variable);
    }
    let resources = &ctx.env().resources;
    let found = resources.lookup::<Variable>(&handle.container, &handle.name);
    found.map_err(|status| match status.code() {
        Code::NotFound => missing(resources, &handle.container, &handle.name),
        _ => status,
    })
}

/// As [`find`], to assign: makes the variable if there is none.
pub(crate) fn find_to_assign(ctx: &KernelCtx<'_>, index: usize) -> Result<Arc<Variable>> {
    let handle = ctx.handle(index)?;
    let resources = &ctx.env().resources;
    match carried(handle)? {
        Some(variable) => Ok(variable),
        None => Variable::named(resources, &handle.container, &handle.name),
    }
}

/// The variable a handle carries, if it is still in use; an error if it carries something else.
fn carried(handle: &ResourceHandle) -> Result<Option<Arc<Variable>>> {
    let Some(object) = &handle.object else {
        return Ok(None);
    };
    match object.clone().downcast::<Variable>() {
        Ok(variable) => Ok(Some(variable).filter(|variable| variable.is_live())),
        Err(_) => Err(invalid_argument!(
            "trying to access a handle's resource using the wrong type: the handle points to a resource \
             (name '{}') of type '{}' but a variable was expected",
            handle.name,
            handle.type_name
        )),
    }
}

/// Removes what a handle names from the resource manager; NOT_FOUND if it is not there.
pub(crate) fn remove(ctx: &KernelCtx<'_>, handle: &ResourceHandle) -> Result<()> {
    let resources = &ctx.env().resources;
    if let Ok(Some(variable)) = carried(handle) {
        if is_anonymous(&variable.name) {
            return Ok(());
        }
        let unassigned = variable.read().is_none();
        if unassigned {
            return Err(variable.missing(resources));
        }
    }
    resources.remove(&handle.container, &handle.name)
}

/// A value of the wanted dtype; an error in TensorFlow's words otherwise.
pub(crate) fn check_dtype(value: &Tensor, wanted: DType) -> Result<()> {
    ensure!(
        value.dtype() == wanted,
        invalid_argument,
        "Trying to read variable with wrong dtype. Expected {wanted} got {}",
        value.dtype()
    );
    Ok(())
}

/// Resource managers of TensorFlow have a container only while something is in it.
#[cold]
fn missing(resources: &ResourceManager, container: &str, name: &str) -> Status {
    let exists = resources
        .list()
        .iter()
        .any(|(other, kind, _)| other == container && *kind != UNASSIGNED);
    if exists {
        not_found!("Resource {container}/{name}/{TYPE_NAME} does not exist.")
    } else {
        not_found!(
            "Container {container} does not exist. (Could not find resource: {container}/{name})"
        )
    }
}
