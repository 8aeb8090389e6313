//! [`Kernel`] and [`AsyncKernel`]: what runs when a node is ready.

use std::sync::Arc;

use tensorfleet_status::Result;
use tensorfleet_tensor::{DType, PortType};

use crate::attr::Attrs;
use crate::context::{AsyncCtx, KernelCtx};

/// What a kernel may know of its node: all that is fixed before the first step.
#[derive(Clone, Debug, Default)]
pub struct NodeInfo {
    /// The node's name.
    pub name: String,
    /// The op type.
    pub op: String,
    /// The requested or assigned device.
    pub device: String,
    /// The attributes, defaults filled in.
    pub attrs: Attrs,
    /// The types of the data inputs.
    pub input_types: Vec<PortType>,
    /// The types of the outputs.
    pub output_types: Vec<PortType>,
    /// Which outputs nobody reads; without entries, as far as is known, all are read.
    pub unread: Vec<bool>,
}

impl NodeInfo {
    /// Whether somebody may read an output. A kernel need not set the others.
    #[inline]
    pub fn is_read(&self, output: usize) -> bool {
        !self.unread.get(output).is_some_and(|unread| *unread)
    }
}

impl NodeInfo {
    /// Whether its kernel may change what others see: variables and other resources.
    pub fn has_effects(&self) -> bool {
        let is_shared = |port: &PortType| port.is_ref || port.dtype == DType::Resource;
        self.input_types.iter().any(is_shared)
    }
}

/// A kernel that computes on the calling thread. Closures are kernels.
pub trait Kernel: Send + Sync {
    /// Reads the inputs, sets the outputs.
    fn compute(&self, ctx: &mut KernelCtx<'_>) -> Result<()>;
}

impl<F: Fn(&mut KernelCtx<'_>) -> Result<()> + Send + Sync> Kernel for F {
    fn compute(&self, ctx: &mut KernelCtx<'_>) -> Result<()> {
        self(ctx)
    }
}

/// A kernel that may answer later. It holds no thread while it waits.
pub trait AsyncKernel: Send + Sync {
    /// Starts; the context carries inputs, environment and the duty to finish.
    fn start(&self, ctx: AsyncCtx);
}

impl<F: Fn(AsyncCtx) + Send + Sync> AsyncKernel for F {
    fn start(&self, ctx: AsyncCtx) {
        self(ctx);
    }
}

/// A kernel of either kind. Clones share it, so that a plan can point at the kernel itself.
#[derive(Clone)]
pub enum AnyKernel {
    /// Computes on the calling thread.
    Sync(Arc<dyn Kernel>),
    /// May answer later.
    Async(Arc<dyn AsyncKernel>),
}

impl AnyKernel {
    /// A synchronous kernel; `AnyKernel::sync(|ctx: &mut KernelCtx<'_>| …)`.
    pub fn sync<K: Kernel + 'static>(kernel: K) -> Result<AnyKernel> {
        Ok(AnyKernel::Sync(Arc::new(kernel)))
    }

    /// An asynchronous kernel; `AnyKernel::later(|ctx: AsyncCtx| …)`.
    pub fn later<K: AsyncKernel + 'static>(kernel: K) -> Result<AnyKernel> {
        Ok(AnyKernel::Async(Arc::new(kernel)))
    }
}
