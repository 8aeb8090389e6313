//! [`Registry`]: all ops by name, their signatures parsed once.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use tensorfleet_kernel::{AnyKernel, AttrValue, Attrs, DeviceType, NodeInfo};
use tensorfleet_status::{Result, internal, not_found, unimplemented};

use crate::def::{KernelDef, OpDef};
use crate::function::Function;
use crate::signature::Signature;

/// An op or a function, with its signature.
#[derive(Clone)]
pub struct OpEntry {
    /// The op type or function name.
    pub name: Arc<str>,
    /// Inputs, outputs, attributes.
    pub signature: Signature,
    /// The definition; `None` for functions.
    pub def: Option<&'static OpDef>,
    /// The function; `None` for ops.
    pub function: Option<Arc<Function>>,
}

impl OpEntry {
    /// Whether runs may not be left out, repeated or merged.
    pub fn is_stateful(&self) -> bool {
        match (&self.def, &self.function) {
            (Some(def), _) => def.stateful,
            (_, Some(function)) => function.is_stateful(),
            _ => true,
        }
    }

    /// The kernel for a node with these attributes on a kind of device.
    pub fn find_kernel(&self, attrs: &Attrs, device: DeviceType) -> Option<&'static KernelDef> {
        let kernels = self.def.map_or(&[][..], |def| def.kernels);
        kernels.iter().find(|kernel| {
            kernel.device == device
                && kernel
                    .types
                    .iter()
                    .all(|(attr, allowed)| match attrs.get(attr) {
                        Some(AttrValue::Type(port)) => allowed.contains(&port.dtype),
                        _ => true,
                    })
        })
    }
}

/// All ops by name.
#[derive(Default)]
pub struct Registry {
    ops: FxHashMap<&'static str, Arc<OpEntry>>,
}

impl Registry {
    /// Parses the signatures of these ops; a duplicate or malformed one is an error.
    pub fn new(defs: impl IntoIterator<Item = &'static OpDef>) -> Result<Registry> {
        let mut ops = FxHashMap::default();
        for def in defs {
            let entry = Arc::new(OpEntry {
                name: def.name.into(),
                signature: Signature::of(def)?,
                def: Some(def),
                function: None,
            });
            if ops.insert(def.name, entry).is_some() {
                return Err(internal!("op {} is registered twice", def.name));
            }
        }
        Ok(Registry { ops })
    }

    /// The op with this name.
    pub fn get(&self, name: &str) -> Option<&Arc<OpEntry>> {
        self.ops.get(name)
    }

    /// The op with this name; NOT_FOUND in TensorFlow's words if there is none.
    pub fn find(&self, name: &str) -> Result<&Arc<OpEntry>> {
        self.get(name).ok_or_else(|| {
            not_found!(
                "Op type not registered '{name}' in binary running on {}. Make sure the Op and Kernel are registered in the binary running in this process.",
                host_name()
            )
        })
    }

    /// All ops in order of their names.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<OpEntry>> {
        let mut all: Vec<_> = self.ops.values().collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all.into_iter()
    }

    /// The kernel definition for a node on a device; UNIMPLEMENTED naming op, dtypes and device if there is none.
    pub fn find_kernel(&self, node: &NodeInfo, device: DeviceType) -> Result<&'static KernelDef> {
        let entry = self.find(&node.op)?;
        entry.find_kernel(&node.attrs, device).ok_or_else(|| {
            let types: Vec<String> = entry
                .signature
                .attrs
                .iter()
                .filter_map(|attr| {
                    node.attrs
                        .dtype(&attr.name)
                        .ok()
                        .map(|dtype| format!("{}={dtype}", attr.name))
                })
                .collect();
            unimplemented!(
                "no kernel for op {} with [{}] on {device}",
                node.op,
                types.join(", ")
            )
        })
    }

    /// Builds the kernel of a node on a device.
    pub fn build_kernel(&self, node: &NodeInfo, device: DeviceType) -> Result<AnyKernel> {
        (self.find_kernel(node, device)?.build)(node)
    }
}

fn host_name() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname")
        .map_or_else(|_| "this host".to_owned(), |name| name.trim().to_owned())
}
