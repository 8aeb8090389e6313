//! Partial device names as small numbers: a graph has many nodes but asks for few devices.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use tensorfleet_kernel::DeviceName;
use tensorfleet_status::Result;

/// A partial device name of a [`Specs`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct SpecId(u32);

impl SpecId {
    /// Nothing asked for.
    pub(super) const ANY: SpecId = SpecId(0);
}

/// All partial device names that occur.
pub(super) struct Specs {
    names: Vec<DeviceName>,
    ids: FxHashMap<DeviceName, SpecId>,
    texts: FxHashMap<Arc<str>, SpecId>,
}

impl Specs {
    pub(super) fn new() -> Specs {
        Specs {
            names: vec![DeviceName::ANY],
            ids: [(DeviceName::ANY, SpecId::ANY)].into_iter().collect(),
            texts: FxHashMap::default(),
        }
    }

    pub(super) fn parse(&mut self, text: &Arc<str>) -> Result<SpecId> {
        if text.is_empty() {
            return Ok(SpecId::ANY);
        }
        if let Some(id) = self.texts.get(text) {
            return Ok(*id);
        }
        let id = self.intern(DeviceName::parse(text)?);
        self.texts.insert(text.clone(), id);
        Ok(id)
    }

    pub(super) fn intern(&mut self, name: DeviceName) -> SpecId {
        if let Some(id) = self.ids.get(&name) {
            return *id;
        }
        let id = SpecId(self.names.len() as u32);
        self.ids.insert(name.clone(), id);
        self.names.push(name);
        id
    }

    pub(super) fn name(&self, id: SpecId) -> &DeviceName {
        &self.names[id.0 as usize]
    }

    pub(super) fn are_compatible(&self, one: SpecId, other: SpecId) -> bool {
        one == other || self.name(one).is_compatible(self.name(other))
    }

    /// Both together; type and index may only differ if `soft`, and are open then.
    pub(super) fn merge(&mut self, one: SpecId, other: SpecId, soft: bool) -> Result<SpecId> {
        if one == other || other == SpecId::ANY {
            return Ok(one);
        }
        if one == SpecId::ANY {
            return Ok(other);
        }
        let mut merged = self.name(one).clone();
        match soft {
            true => merged.merge_soft(self.name(other))?,
            false => merged.merge(self.name(other))?,
        }
        Ok(self.intern(merged))
    }

    /// The first, with everything that the second gives.
    pub(super) fn override_with(&mut self, one: SpecId, other: SpecId) -> SpecId {
        if one == other || other == SpecId::ANY {
            return one;
        }
        let mut merged = self.name(one).clone();
        merged.override_with(self.name(other));
        self.intern(merged)
    }
}
