//! [`Words`]: a random stream word by word, as kernels read it that draw now and then.

use tensorfleet_math::random::Philox;

/// Words of a stream, one after the other.
pub(crate) struct Words {
    philox: Philox,
    at: u64,
}

impl Words {
    pub(crate) fn new(philox: Philox) -> Words {
        Words { philox, at: 0 }
    }

    pub(crate) fn next(&mut self) -> u32 {
        let word = self.philox.sample_at(self.at / 4)[(self.at % 4) as usize];
        self.at += 1;
        word
    }

    /// A number from 0 to 1.
    pub(crate) fn float(&mut self) -> f32 {
        f32::from_bits(127 << 23 | self.next() & 0x7f_ffff) - 1.0
    }

    /// A number below `limit`, each as likely as the others.
    pub(crate) fn below(&mut self, limit: u32) -> u32 {
        if limit.is_power_of_two() {
            return self.next() & (limit - 1);
        }
        let rest = u32::MAX % limit.max(1) + 1;
        loop {
            let word = self.next();
            if word >= rest {
                return word % limit.max(1);
            }
        }
    }

    /// The same of two words at a time.
    pub(crate) fn below_long(&mut self, limit: u64) -> u64 {
        let mut word = || u64::from(self.next()) | u64::from(self.next()) << 32;
        if limit.is_power_of_two() {
            return word() & (limit - 1);
        }
        let rest = u64::MAX % limit.max(1) + 1;
        loop {
            let word = word();
            if word >= rest {
                return word % limit.max(1);
            }
        }
    }
}
