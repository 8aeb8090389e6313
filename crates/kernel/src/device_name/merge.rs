//! How two device names relate: one covers the other, they agree, or they become one.

use tensorfleet_status::{Result, Status, invalid_argument};

use super::DeviceName;

/// What happens to type and index when two names contradict each other there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Conflict {
    Refuse,
    Open,
}

impl DeviceName {
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

fn agree<T: PartialEq>(one: &Option<T>, other: &Option<T>) -> bool {
    one.is_none() || other.is_none() || one == other
}

/// The value of a field given by one or by both; `None` if they differ.
fn join<T: PartialEq + Clone>(one: &Option<T>, other: &Option<T>) -> Option<Option<T>> {
    agree(one, other).then(|| one.clone().or_else(|| other.clone()))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{any_name, name};
    use proptest::prelude::*;

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

    proptest! {
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
