//! [`DeviceSet`]: the devices of a session, in order of preference.

use std::cmp::Reverse;
use std::sync::Arc;

use tensorfleet_kernel::{DeviceName, DeviceType};
use tensorfleet_status::{Result, ensure};

/// A device to place nodes on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlaceDevice {
    /// The full name.
    pub name: DeviceName,
    /// The kind that kernels are registered for; the name's own type unless a peer says otherwise.
    pub device_type: Arc<str>,
}

impl PlaceDevice {
    /// A device of the kind in its name.
    pub fn new(name: DeviceName) -> PlaceDevice {
        let device_type = name.device_type.clone().unwrap_or_else(|| "".into());
        PlaceDevice { name, device_type }
    }
}

/// A kind of device that the set has.
#[derive(Debug)]
pub(super) struct Kind {
    pub(super) name: Arc<str>,
    /// The kind in our registry; `None` for kinds that only peers have kernels for.
    pub(super) device_type: Option<DeviceType>,
}

/// All devices of a session. Built once, shared by all its placements.
#[derive(Debug)]
pub struct DeviceSet {
    devices: Vec<PlaceDevice>,
    names: Vec<Arc<str>>,
    kinds: Vec<Kind>,
    kind_of: Vec<u8>,
    preferred: Vec<u32>,
    client: u32,
}

/// Sets of kinds are bits of a `u32`.
const MAX_KINDS: usize = 32;

impl DeviceSet {
    /// The devices, and which of them is the client's: the master's first own device. Its task is *local*.
    pub fn new(devices: Vec<PlaceDevice>, client: usize) -> Result<DeviceSet> {
        ensure!(!devices.is_empty(), internal, "No devices are registered");
        ensure!(
            client < devices.len(),
            internal,
            "the client device is number {client} of {} devices",
            devices.len()
        );
        for device in &devices {
            ensure!(
                device.name.is_full(),
                invalid_argument,
                "device '{}' has no full name",
                device.name
            );
        }
        let mut type_names: Vec<&Arc<str>> = devices.iter().map(|d| &d.device_type).collect();
        type_names.sort_by_key(|name| (Reverse(type_priority(name)), Arc::clone(name)));
        type_names.dedup();
        ensure!(
            type_names.len() <= MAX_KINDS,
            invalid_argument,
            "a session cannot have devices of {} kinds",
            type_names.len()
        );
        let kind_of = devices.iter().map(|device| {
            let kind = type_names
                .iter()
                .position(|name| **name == device.device_type);
            kind.unwrap_or(0) as u8
        });
        let kind_of: Vec<u8> = kind_of.collect();
        let kinds = type_names.iter().map(|name| Kind {
            name: Arc::clone(name),
            device_type: (name.as_ref() == DeviceType::Cpu.name()).then_some(DeviceType::Cpu),
        });
        let names: Vec<Arc<str>> = devices.iter().map(|d| d.name.to_string().into()).collect();
        let mut preferred: Vec<u32> = (0..devices.len() as u32).collect();
        let home = &devices[client].name;
        preferred.sort_by_key(|index| {
            let device = &devices[*index as usize];
            (
                Reverse(type_priority(&device.device_type)),
                !device.name.is_same_task(home),
                &names[*index as usize],
            )
        });
        Ok(DeviceSet {
            kinds: kinds.collect(),
            names,
            kind_of,
            preferred,
            client: client as u32,
            devices,
        })
    }

    /// The number of devices.
    pub fn len(&self) -> usize {
        self.devices.len()
    }

    /// Never: a set has at least one device.
    pub fn is_empty(&self) -> bool {
        self.devices.is_empty()
    }

    /// The device at a position.
    pub fn device(&self, index: u32) -> &PlaceDevice {
        &self.devices[index as usize]
    }

    /// The canonical full name of the device at a position.
    pub fn name(&self, index: u32) -> &Arc<str> {
        &self.names[index as usize]
    }

    /// The canonical full names by position.
    pub fn names(&self) -> &[Arc<str>] {
        &self.names
    }

    /// The position of the client's device.
    pub fn client(&self) -> u32 {
        self.client
    }

    /// The position of the device with this name, in any spelling.
    pub fn find(&self, name: &str) -> Option<u32> {
        let name = DeviceName::parse(name).ok()?;
        let index = self.devices.iter().position(|device| device.name == name)?;
        Some(index as u32)
    }

    pub(super) fn kinds(&self) -> &[Kind] {
        &self.kinds
    }

    /// The set of all kinds.
    pub(super) fn kinds_mask(&self) -> u32 {
        u32::MAX >> (MAX_KINDS - self.kinds.len())
    }

    /// Whether a device is one of these kinds.
    pub(super) fn is_of_kind(&self, index: u32, kinds: u32) -> bool {
        kinds & (1 << self.kind_of[index as usize]) != 0
    }

    /// The best device of these kinds that matches a name.
    pub(super) fn best(&self, wanted: &DeviceName, kinds: u32) -> Option<u32> {
        self.preferred
            .iter()
            .copied()
            .find(|index| self.is_candidate(*index, wanted, kinds))
    }

    /// Whether a device is of these kinds and matches a name.
    pub(super) fn is_candidate(&self, index: u32, wanted: &DeviceName, kinds: u32) -> bool {
        self.is_of_kind(index, kinds) && wanted.matches(&self.device(index).name)
    }
}

/// Faster kinds first.
fn type_priority(device_type: &str) -> u32 {
    match device_type {
        "GPU" => 210,
        "CPU" => 70,
        _ => 50,
    }
}
