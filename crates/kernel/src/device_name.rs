//! [`DeviceName`]: `/job:ps/replica:0/task:0/device:CPU:0`, whole or in part, in every spelling TensorFlow takes.
//!
//! A field that is not given, or given as `*`, is open and agrees with anything. Names are compared
//! field by field, never as texts: `/cpu:0/job:ps` and `/job:ps/device:CPU:0` are the same name.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use tensorfleet_status::{Result, Status, invalid_argument};

/// The name of a device or of a set of devices: open fields stand for any value.
#[derive(Clone, PartialEq, Eq, Hash, Default, PartialOrd, Ord, Debug)]
pub struct DeviceName {
    /// The job: a letter, then letters, digits and underscores.
    pub job: Option<Arc<str>>,
    /// The replica; 0 unless a server definition says otherwise.
    pub replica: Option<u32>,
    /// The task's index in its job.
    pub task: Option<u32>,
    /// The kind: `CPU`, `GPU`. Upper and lower case differ.
    pub device_type: Option<Arc<str>>,
    /// The position among the task's devices of this kind.
    pub index: Option<u32>,
}

/// What happens to type and index when two names contradict each other there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Conflict {
    Refuse,
    Open,
}

impl DeviceName {
    /// The name with every field open: agrees with any device.
    pub const ANY: DeviceName = DeviceName {
        job: None,
        replica: None,
        task: None,
        device_type: None,
        index: None,
    };

    /// The name of one device of a task.
    pub fn full(job: &str, replica: u32, task: u32, device_type: &str, index: u32) -> DeviceName {
        DeviceName {
            device_type: Some(device_type.into()),
            index: Some(index),
            ..DeviceName::of_task(job, replica, task)
        }
    }

    /// All devices of a task.
    pub fn of_task(job: &str, replica: u32, task: u32) -> DeviceName {
        DeviceName {
            job: Some(job.into()),
            replica: Some(replica),
            task: Some(task),
            ..DeviceName::ANY
        }
    }

    /// Reads a name in any spelling; INVALID_ARGUMENT if it is none. A later field replaces an earlier one.
    pub fn parse(text: &str) -> Result<DeviceName> {
        Parser { rest: text }.name().ok_or_else(|| {
            invalid_argument!(
                "malformed device specification '{text}': expected a name such as '/job:ps/task:0/device:CPU:0' or a part of one"
            )
        })
    }

    /// Reads a name inside a task: `CPU:0`, `cpu:0` or `/device:CPU:0`.
    pub fn parse_local(text: &str) -> Result<DeviceName> {
        let malformed = || {
            invalid_argument!(
                "malformed local device name '{text}': expected a name such as 'CPU:0'"
            )
        };
        let (kind, index) = text
            .strip_prefix("/device:")
            .unwrap_or(text)
            .split_once(':')
            .ok_or_else(malformed)?;
        let kind = match kind {
            "cpu" => "CPU",
            "gpu" => "GPU",
            kind => kind,
        };
        // Parsed on their own, so that nothing can follow the index.
        let device_type = whole(kind, Parser::word).ok_or_else(malformed)?;
        let index = whole(index, Parser::number).ok_or_else(malformed)?;
        Ok(DeviceName {
            device_type: Some(device_type),
            index: Some(index),
            ..DeviceName::ANY
        })
    }

    /// Whether every field is open.
    pub fn is_any(&self) -> bool {
        *self == DeviceName::ANY
    }

    /// Whether every field is given: the name is of one device.
    pub fn is_full(&self) -> bool {
        self.has_task() && self.device_type.is_some() && self.index.is_some()
    }

    /// Whether job, replica and task are given.
    pub fn has_task(&self) -> bool {
        self.job.is_some() && self.replica.is_some() && self.task.is_some()
    }

    /// Whether `other` gives every field that this name gives, with the same value.
    pub fn matches(&self, other: &DeviceName) -> bool {
        fn covers<T: PartialEq>(pattern: &Option<T>, value: &Option<T>) -> bool {
            pattern.is_none() || pattern == value
        }
        covers(&self.index, &other.index)
            && covers(&self.task, &other.task)
            && covers(&self.job, &other.job)
            && covers(&self.replica, &other.replica)
            && covers(&self.device_type, &other.device_type)
    }

    /// Whether no field that both names give differs.
    pub fn is_compatible(&self, other: &DeviceName) -> bool {
        agree(&self.job, &other.job)
            && agree(&self.replica, &other.replica)
            && agree(&self.task, &other.task)
            && agree(&self.device_type, &other.device_type)
            && agree(&self.index, &other.index)
    }

    /// Whether job, replica and task are given in both names and the same.
    pub fn is_same_task(&self, other: &DeviceName) -> bool {
        self.has_task()
            && self.job == other.job
            && self.replica == other.replica
            && self.task == other.task
    }

    /// Whether job, replica or task are given in both names and differ.
    pub fn is_other_task(&self, other: &DeviceName) -> bool {
        !(agree(&self.job, &other.job)
            && agree(&self.replica, &other.replica)
            && agree(&self.task, &other.task))
    }

    /// Takes over what `other` gives; INVALID_ARGUMENT in TensorFlow's words if both give different values.
    pub fn merge(&mut self, other: &DeviceName) -> Result<()> {
        *self = self.merged(other, Conflict::Refuse)?;
        Ok(())
    }

    /// Like [`merge`](DeviceName::merge), but types that differ leave type and index open, and indices that
    /// differ leave the index open. Job, replica and task must still agree.
    pub fn merge_soft(&mut self, other: &DeviceName) -> Result<()> {
        *self = self.merged(other, Conflict::Open)?;
        Ok(())
    }

    /// Takes over what `other` gives, whatever was there.
    pub fn override_with(&mut self, other: &DeviceName) {
        fn take<T: Clone>(mine: &mut Option<T>, theirs: &Option<T>) {
            if theirs.is_some() {
                mine.clone_from(theirs);
            }
        }
        take(&mut self.job, &other.job);
        take(&mut self.replica, &other.replica);
        take(&mut self.task, &other.task);
        take(&mut self.device_type, &other.device_type);
        take(&mut self.index, &other.index);
    }

    /// The name of the task alone, `/job:ps/replica:0/task:0`; `None` unless all three are given.
    pub fn task_name(&self) -> Option<String> {
        match (&self.job, self.replica, self.task) {
            (Some(job), Some(replica), Some(task)) => {
                Some(format!("/job:{job}/replica:{replica}/task:{task}"))
            }
            _ => None,
        }
    }

    /// The same name with type and index open.
    #[must_use]
    pub fn to_task(&self) -> DeviceName {
        DeviceName {
            device_type: None,
            index: None,
            ..self.clone()
        }
    }

    /// The name inside its task, `CPU:0`; `None` unless type and index are given.
    pub fn local_name(&self) -> Option<String> {
        match (&self.device_type, self.index) {
            (Some(device_type), Some(index)) => Some(format!("{device_type}:{index}")),
            _ => None,
        }
    }

    fn merged(&self, other: &DeviceName, conflict: Conflict) -> Result<DeviceName> {
        let mut merged = self.clone();
        // The text shows what was merged up to the conflict, as TensorFlow's does.
        let refuse = |merged: &DeviceName, what: &str| -> Status {
            invalid_argument!(
                "Cannot merge devices with incompatible {what}: '{merged}' and '{other}'"
            )
        };
        merged.job = join(&self.job, &other.job).ok_or_else(|| refuse(&merged, "jobs"))?;
        merged.replica =
            join(&self.replica, &other.replica).ok_or_else(|| refuse(&merged, "replicas"))?;
        merged.task = join(&self.task, &other.task).ok_or_else(|| refuse(&merged, "tasks"))?;
        match join(&self.device_type, &other.device_type) {
            Some(device_type) => merged.device_type = device_type,
            None if conflict == Conflict::Open => return Ok(merged.to_task()),
            None => return Err(refuse(&merged, "types")),
        }
        match join(&self.index, &other.index) {
            Some(index) => merged.index = index,
            None if conflict == Conflict::Open => merged.index = None,
            None => return Err(refuse(&merged, "ids")),
        }
        Ok(merged)
    }
}

/// The value that a whole text stands for; `None` for wildcards and anything left over.
fn whole<'a, T>(text: &'a str, read: fn(&mut Parser<'a>) -> Option<Option<T>>) -> Option<T> {
    let mut parser = Parser { rest: text };
    let value = read(&mut parser)??;
    parser.rest.is_empty().then_some(value)
}

fn agree<T: PartialEq>(one: &Option<T>, other: &Option<T>) -> bool {
    one.is_none() || other.is_none() || one == other
}

/// The value of a field given by one or by both; `None` if they differ.
fn join<T: PartialEq + Clone>(one: &Option<T>, other: &Option<T>) -> Option<Option<T>> {
    agree(one, other).then(|| one.clone().or_else(|| other.clone()))
}

impl FromStr for DeviceName {
    type Err = Status;

    fn from_str(text: &str) -> Result<DeviceName> {
        DeviceName::parse(text)
    }
}

/// Canonical: job, replica, task, device; fields that are open are left out.
impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(job) = &self.job {
            write!(f, "/job:{job}")?;
        }
        if let Some(replica) = self.replica {
            write!(f, "/replica:{replica}")?;
        }
        if let Some(task) = self.task {
            write!(f, "/task:{task}")?;
        }
        match (&self.device_type, self.index) {
            (None, None) => Ok(()),
            (Some(device_type), None) => write!(f, "/device:{device_type}:*"),
            (Some(device_type), Some(index)) => write!(f, "/device:{device_type}:{index}"),
            (None, Some(index)) => write!(f, "/device:*:{index}"),
        }
    }
}

/// Eats a name from the front.
struct Parser<'a> {
    rest: &'a str,
}

impl<'a> Parser<'a> {
    fn name(&mut self) -> Option<DeviceName> {
        let mut name = DeviceName::default();
        if self.rest == "/" {
            return Some(name);
        }
        while !self.rest.is_empty() {
            if self.eat("/job:") {
                name.job = self.word()?;
            } else if self.eat("/replica:") {
                name.replica = self.number()?;
            } else if self.eat("/task:") {
                name.task = self.number()?;
            } else if self.eat("/device:") {
                name.device_type = self.word()?;
                name.index = if self.eat(":") { self.number()? } else { None };
            } else if self.eat("/cpu:") || self.eat("/CPU:") {
                name.device_type = Some("CPU".into());
                name.index = self.number()?;
            } else if self.eat("/gpu:") || self.eat("/GPU:") {
                name.device_type = Some("GPU".into());
                name.index = self.number()?;
            } else {
                return None;
            }
        }
        Some(name)
    }

    fn eat(&mut self, prefix: &str) -> bool {
        match self.rest.strip_prefix(prefix) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// `*`, or a letter and then letters, digits and underscores.
    fn word(&mut self) -> Option<Option<Arc<str>>> {
        if self.eat("*") {
            return Some(None);
        }
        let word = self.take_while(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let starts_well = word.starts_with(|first: char| first.is_ascii_alphabetic());
        starts_well.then(|| Some(word.into()))
    }

    /// `*`, or a number that fits the wire's int32.
    fn number(&mut self) -> Option<Option<u32>> {
        if self.eat("*") {
            return Some(None);
        }
        let digits = self.take_while(|byte| byte.is_ascii_digit());
        let number: i32 = digits.parse().ok()?;
        Some(Some(number.unsigned_abs()))
    }

    fn take_while(&mut self, keep: impl Fn(u8) -> bool) -> &'a str {
        let end = self.rest.bytes().take_while(|byte| keep(*byte)).count();
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn name(text: &str) -> DeviceName {
        DeviceName::parse(text).unwrap()
    }

    #[test]
    fn reads_every_spelling() {
        for (text, canonical) in [
            ("", ""),
            ("/", ""),
            ("/job:ps", "/job:ps"),
            (
                "/job:ps/replica:0/task:0/device:CPU:0",
                "/job:ps/replica:0/task:0/device:CPU:0",
            ),
            ("/device:CPU:0/task:1/job:ps", "/job:ps/task:1/device:CPU:0"),
            ("/job:ps/task:0/cpu:0", "/job:ps/task:0/device:CPU:0"),
            ("/gpu:1", "/device:GPU:1"),
            ("/GPU:1", "/device:GPU:1"),
            ("/CPU:*", "/device:CPU:*"),
            ("/device:GPU", "/device:GPU:*"),
            ("/device:cpu:0", "/device:cpu:0"),
            ("/device:XLA_CPU:0", "/device:XLA_CPU:0"),
            ("/device:*", ""),
            ("/device:*:2", "/device:*:2"),
            ("/job:*/replica:*/task:*/device:*:*", ""),
            ("/task:01", "/task:1"),
            ("/job:a/job:b", "/job:b"),
            ("/job:a/job:*", ""),
            ("/cpu:1/device:CPU", "/device:CPU:*"),
            ("/cpu:1/device:*", ""),
        ] {
            assert_eq!(name(text).to_string(), canonical, "{text:?}");
        }
    }

    #[test]
    fn refuses_what_tensorflow_refuses() {
        for text in [
            "rubbish",
            "/JOB:ps",
            "/job:ps/",
            "job:ps",
            "/job:",
            "/job:1a",
            "/job:p-s",
            "/job:_a",
            "/replica:",
            "/replica:x",
            "/device:CPU:",
            "/device:1x:0",
            "/device:_x:0",
            "/cpu",
            "/CPU",
            "/cpu:",
            "/Cpu:0",
            "/gpu",
            "//",
            " /cpu:0",
            "/cpu:0 ",
            "CPU:0",
            "/tpu:0",
            "/device:X-Y:0",
            "/task:18446744073709551617",
            "/task:-1",
            "/job:é",
        ] {
            let error = DeviceName::parse(text).unwrap_err();
            assert!(error.message().contains(&format!("'{text}'")), "{error}");
        }
    }

    #[test]
    fn matches_patterns_and_partial_names() {
        let cpu = name("/job:ps/replica:0/task:1/cpu:0");
        for pattern in ["", "/job:ps", "/task:1/cpu:*", "/device:CPU:0"] {
            assert!(name(pattern).matches(&cpu), "{pattern}");
            assert!(name(pattern).is_compatible(&cpu), "{pattern}");
        }
        for pattern in ["/job:worker", "/task:0", "/gpu:0", "/cpu:1", "/replica:1"] {
            assert!(!name(pattern).matches(&cpu), "{pattern}");
            assert!(!name(pattern).is_compatible(&cpu), "{pattern}");
        }
        assert!(!name("/job:ps/task:1").matches(&name("/job:ps")));
        assert!(name("/job:ps/task:1").is_compatible(&name("/job:ps")));
    }

    #[test]
    fn merges_with_tensorflows_words() {
        let mut merged = name("/job:ps/cpu:0");
        merged.merge(&name("/task:1/device:CPU")).unwrap();
        assert_eq!(merged.to_string(), "/job:ps/task:1/device:CPU:0");
        for (one, shown, other, what) in [
            ("/job:a", "/job:a", "/job:b", "jobs"),
            ("/replica:0", "/replica:0", "/replica:1", "replicas"),
            ("/task:0", "/job:a/task:0", "/job:a/task:1", "tasks"),
            ("/cpu:0", "/device:CPU:0", "/gpu:0", "types"),
            ("/cpu:0", "/job:a/device:CPU:0", "/job:a/cpu:1", "ids"),
        ] {
            let mut merged = name(one);
            let error = merged.merge(&name(other)).unwrap_err();
            assert_eq!(
                error.message(),
                format!(
                    "Cannot merge devices with incompatible {what}: '{shown}' and '{}'",
                    name(other)
                )
            );
            assert_eq!(merged, name(one), "a failed merge changes nothing");
        }
    }

    #[test]
    fn soft_merge_opens_type_and_index_only() {
        let soft = |one: &str, other: &str| {
            let mut merged = name(one);
            merged.merge_soft(&name(other)).map(|()| merged.to_string())
        };
        assert_eq!(
            soft("/job:ps/cpu:0", "/task:1/gpu:0").unwrap(),
            "/job:ps/task:1"
        );
        assert_eq!(soft("/cpu:0", "/cpu:1").unwrap(), "/device:CPU:*");
        assert!(soft("/task:0/cpu:0", "/task:1/gpu:0").is_err());
    }

    #[test]
    fn takes_names_apart() {
        let cpu = DeviceName::full("ps", 0, 1, "CPU", 2);
        assert_eq!(cpu.task_name().unwrap(), "/job:ps/replica:0/task:1");
        assert_eq!(cpu.local_name().unwrap(), "CPU:2");
        assert!(cpu.is_full() && !cpu.to_task().is_full());
        assert!(name("/job:ps/task:1").task_name().is_none());
        assert!(cpu.is_same_task(&DeviceName::of_task("ps", 0, 1)));
        assert!(cpu.is_other_task(&name("/job:worker")));
        assert!(!cpu.is_other_task(&name("/job:ps")));
        for text in ["CPU:2", "cpu:2", "/device:CPU:2"] {
            let local = DeviceName::parse_local(text).unwrap();
            assert_eq!(local, name("/device:CPU:2"));
        }
        for text in ["CPU", "", "CPU:*", "*:0", "CPU:0/job:a", "/job:a"] {
            assert!(DeviceName::parse_local(text).is_err(), "{text}");
        }
    }

    fn any_name() -> impl Strategy<Value = DeviceName> {
        let job = proptest::option::of("[a-c]".prop_map(Into::into));
        let kind = proptest::option::of("(CPU|GPU|X_1)".prop_map(Into::into));
        let number = || proptest::option::of(0..3u32);
        (job, number(), number(), kind, number()).prop_map(
            |(job, replica, task, device_type, index)| DeviceName {
                job,
                replica,
                task,
                device_type,
                index,
            },
        )
    }

    proptest! {
        #[test]
        fn parsing_never_panics(text in "(/|:|\\*|job|task|replica|device|cpu|[a-zA-Z0-9_é ]){0,12}") {
            if let Ok(name) = DeviceName::parse(&text) {
                prop_assert_eq!(DeviceName::parse(&name.to_string()).unwrap(), name);
            }
            let _ = DeviceName::parse_local(&text);
        }

        #[test]
        fn canonical_text_reads_back(name in any_name()) {
            prop_assert_eq!(DeviceName::parse(&name.to_string()).unwrap(), name);
        }

        #[test]
        fn merge_succeeds_exactly_for_compatible_names(one in any_name(), other in any_name()) {
            let mut merged = one.clone();
            prop_assert_eq!(merged.merge(&other).is_ok(), one.is_compatible(&other));
            if one.is_compatible(&other) {
                prop_assert!(one.matches(&merged) && other.matches(&merged));
            }
            let mut soft = one.clone();
            prop_assert_eq!(soft.merge_soft(&other).is_ok(), !one.is_other_task(&other));
            let mut forced = one.clone();
            forced.override_with(&other);
            prop_assert!(other.matches(&forced));
        }
    }
}
