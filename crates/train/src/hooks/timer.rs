//! [`SecondOrStepTimer`]: every so many steps, or every so many seconds.

use std::time::{Duration, Instant};

use tensorfleet_status::{Result, invalid_argument};

/// Says when it is time again. The first time is at once; never twice at the same step.
///
/// ```
/// use tensorfleet_train::SecondOrStepTimer;
///
/// let mut timer = SecondOrStepTimer::every_steps(10)?;
/// let due: Vec<i64> = (0..25).filter(|step| {
///     let due = timer.should_trigger(*step);
///     if due {
///         timer.triggered(*step);
///     }
///     due
/// }).collect();
/// assert_eq!(due, [0, 10, 20]);
/// # Ok::<(), tensorfleet_client::Status>(())
/// ```
#[derive(Clone, Debug)]
pub struct SecondOrStepTimer {
    every: Every,
    last: Option<(i64, Instant)>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Every {
    Time(Duration),
    Steps(i64),
}

impl SecondOrStepTimer {
    /// Every so much time.
    pub fn every(time: Duration) -> SecondOrStepTimer {
        SecondOrStepTimer {
            every: Every::Time(time),
            last: None,
        }
    }

    /// Every so many steps.
    pub fn every_steps(steps: i64) -> Result<SecondOrStepTimer> {
        if steps < 1 {
            return Err(invalid_argument!(
                "every {steps} steps is never; give 1 or more"
            ));
        }
        Ok(SecondOrStepTimer {
            every: Every::Steps(steps),
            last: None,
        })
    }

    /// Whether it is time at this step.
    pub fn should_trigger(&self, step: i64) -> bool {
        match (self.last, self.every) {
            (None, _) => true,
            (Some((last, _)), _) if last == step => false,
            (Some((_, at)), Every::Time(time)) => at.elapsed() >= time,
            (Some((last, _)), Every::Steps(steps)) => step >= last + steps,
        }
    }

    /// Notes that it was done at this step; time and steps since the last time.
    pub fn triggered(&mut self, step: i64) -> Option<(Duration, i64)> {
        let now = Instant::now();
        let since = self.last.map(|(last, at)| (now - at, step - last));
        self.last = Some((step, now));
        since
    }

    /// The step of the last time.
    pub fn last_step(&self) -> Option<i64> {
        self.last.map(|(step, _)| step)
    }

    /// Forgets the last time.
    pub fn reset(&mut self) {
        self.last = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn triggers_first_then_every_so_many_steps() {
        let mut timer = SecondOrStepTimer::every_steps(10).unwrap();
        let mut seen = Vec::new();
        for step in [1, 1, 5, 11, 12, 20, 21, 22, 40] {
            if timer.should_trigger(step) {
                timer.triggered(step);
                seen.push(step);
            }
        }
        assert_eq!(seen, [1, 11, 21, 40]);
        assert!(SecondOrStepTimer::every_steps(0).is_err());
    }
}
