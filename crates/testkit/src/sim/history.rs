//! [`History`]: what every counter must show.
//!
//! A counter is a vector on a parameter server. Its first element is the number of the task's life; every step that adds
//! has an element of its own and adds 1 to it. So one look at a counter tells which steps happened, how often, and in
//! which life.

use std::collections::BTreeMap;

use super::graphs::SLOTS;
use super::process::Life;

/// The steps so far and what was seen of them.
pub(super) struct History {
    /// The counters a step may add to, by its element.
    steps: Vec<Vec<usize>>,
    /// When a step was known to have happened to a counter in a life: everybody who looks later must see it.
    happened: BTreeMap<(usize, i32, usize), u64>,
    /// The life in which a session sees a counter.
    sessions: BTreeMap<(String, usize), i32>,
    /// The life in which a worker runs parts for a session or a step.
    parts: BTreeMap<(String, usize), u32>,
    now: u64,
    ps: usize,
    pub(super) added: usize,
}

impl History {
    pub(super) fn new(ps: usize) -> History {
        History {
            // The first element is no step.
            steps: vec![Vec::new()],
            happened: BTreeMap::new(),
            sessions: BTreeMap::new(),
            parts: BTreeMap::new(),
            now: 0,
            ps,
            added: 0,
        }
    }

    /// A moment: later ones are greater.
    pub(super) fn moment(&mut self) -> u64 {
        self.now += 1;
        self.now
    }

    /// The element of a new step that may add to some counters; `None` if there is none left.
    pub(super) fn begin(&mut self, counters: Vec<usize>) -> Option<usize> {
        if self.steps.len() == SLOTS {
            return None;
        }
        self.steps.push(counters);
        Some(self.steps.len() - 1)
    }

    /// A session looked at a counter with a call that began at a moment.
    pub(super) fn see(
        &mut self,
        session: &str,
        counter: usize,
        values: &[i32],
        began: u64,
    ) -> Result<(), String> {
        let now = self.moment();
        let [life, ..] = *values else {
            return Err(format!("counter {counter} is empty"));
        };
        if values.len() != SLOTS || counter >= self.ps {
            return Err(format!("counter {counter} has {} elements", values.len()));
        }
        let key = (session.to_owned(), counter);
        let known = *self.sessions.entry(key).or_insert(life);
        if known != life {
            return Err(format!(
                "session {session} sees counter {counter} in life {known} and in life {life} of its task"
            ));
        }
        for (step, &times) in values.iter().enumerate().skip(1) {
            let allowed = self.steps.get(step).is_some_and(|to| to.contains(&counter));
            if times < 0 || times > i32::from(allowed) {
                return Err(format!(
                    "step {step} happened {times} times to counter {counter} (allowed: {allowed})"
                ));
            }
            let key = (counter, life, step);
            if times == 1 {
                self.happened.entry(key).or_insert(now);
            } else if self.happened.get(&key).is_some_and(|then| *then < began) {
                return Err(format!(
                    "step {step} happened to counter {counter} in life {life} and then did not"
                ));
            }
        }
        Ok(())
    }

    /// As [`see`](Self::see), by a step that answered OK and has added itself.
    pub(super) fn see_own(
        &mut self,
        session: &str,
        counter: usize,
        values: &[i32],
        began: u64,
        step: usize,
    ) -> Result<(), String> {
        if values.get(step) != Some(&1) {
            return Err(format!(
                "step {step} answered OK but did not happen to counter {counter}: {:?}",
                values.get(step)
            ));
        }
        self.added += 1;
        self.see(session, counter, values, began)
    }

    /// A worker answered OK for a part of a step.
    pub(super) fn took_part(
        &mut self,
        life: &Life,
        session: &str,
        step: i64,
    ) -> Result<(), String> {
        let names = [session.to_owned(), format!("step {step}")];
        for name in names.into_iter().filter(|name| !name.is_empty()) {
            let key = (name, life.task);
            let known = *self.parts.entry(key.clone()).or_insert(life.number);
            if known != life.number {
                return Err(format!(
                    "{}: lives {known} and {} of {} took part",
                    key.0, life.number, life.name
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counter(life: i32, ones: &[usize]) -> Vec<i32> {
        let mut values = vec![0; SLOTS];
        values[0] = life;
        ones.iter().for_each(|step| values[*step] += 1);
        values
    }

    #[test]
    fn notices_what_happened_twice_or_not_or_elsewhere() {
        let mut history = History::new(2);
        let step = history.begin(vec![0]).unwrap();
        let see = |history: &mut History, session, to, values: &[i32]| {
            let began = history.moment();
            history.see(session, to, values, began)
        };
        assert!(see(&mut history, "a", 0, &counter(1, &[])).is_ok());
        assert!(see(&mut history, "a", 0, &counter(1, &[step])).is_ok());
        assert!(see(&mut history, "a", 0, &counter(1, &[])).is_err());
        assert!(see(&mut history, "a", 0, &counter(1, &[step, step])).is_err());
        assert!(see(&mut history, "a", 1, &counter(1, &[step])).is_err());
        assert!(see(&mut history, "a", 0, &counter(2, &[])).is_err());
        assert!(see(&mut history, "b", 0, &counter(2, &[])).is_ok());
        let own = history.see_own("b", 0, &counter(2, &[]), 9, step);
        assert!(own.unwrap_err().contains("did not happen"));
    }
}
