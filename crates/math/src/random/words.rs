//! A stream taken word by word, as TensorFlow's samplers of single numbers do.

use super::philox::Philox;
use super::uniform::{unit_f32, unit_f64};

/// Numbers one at a time from the words of a stream, in order.
pub struct Words {
    philox: Philox,
    sample: [u32; 4],
    used: usize,
}

impl Words {
    /// From the next sample on.
    pub fn new(philox: Philox) -> Words {
        Words {
            philox,
            sample: [0; 4],
            used: 4,
        }
    }

    fn word(&mut self) -> u32 {
        if self.used == 4 {
            self.sample = self.philox.next_sample();
            self.used = 0;
        }
        self.used += 1;
        self.sample[self.used - 1]
    }

    fn two_words(&mut self) -> u64 {
        let (low, high) = (self.word(), self.word());
        u64::from(low) | u64::from(high) << 32
    }

    /// A float in [0, 1).
    pub fn unit_f32(&mut self) -> f32 {
        unit_f32(self.word())
    }

    /// A double in [0, 1).
    pub fn unit_f64(&mut self) -> f64 {
        let (high, low) = (self.word(), self.word());
        unit_f64(high, low)
    }

    /// An integer below `n`, each as likely as the others; zero for zero.
    pub fn below_u32(&mut self, n: u32) -> u32 {
        if n.is_power_of_two() || n == 0 {
            return self.word() & n.wrapping_sub(1).min(n);
        }
        // The first numbers would make some remainders more likely.
        let skewed = u32::MAX % n + 1;
        loop {
            let word = self.word();
            if word >= skewed {
                return word % n;
            }
        }
    }

    /// As [`Words::below_u32`] for wide numbers.
    pub fn below_u64(&mut self, n: u64) -> u64 {
        if n.is_power_of_two() || n == 0 {
            return self.two_words() & n.wrapping_sub(1).min(n);
        }
        let skewed = u64::MAX % n + 1;
        loop {
            let words = self.two_words();
            if words >= skewed {
                return words % n;
            }
        }
    }
}
