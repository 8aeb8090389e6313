//! How single classes are drawn, and how likely each is.

use std::collections::HashMap;

use tensorfleet_math::random::Words;

/// A distribution over `0..range`.
pub(super) enum Sampler {
    /// All classes, each once.
    All,
    /// Each as likely as the others.
    Uniform,
    /// The probability of class `k` is proportional to ln((k + 2) / (k + 1)).
    LogUniform,
    /// By how often a class was seen.
    Seen(Seen),
    /// By weights that do not change.
    Fixed(Fixed),
}

impl Sampler {
    pub(super) fn draw(&self, words: &mut Words, range: i64) -> i64 {
        match self {
            Sampler::All => 0,
            Sampler::Uniform => words.below_u64(range as u64) as i64,
            Sampler::LogUniform => {
                let log_range = (range as f64).ln_1p();
                let value = (words.unit_f64() * log_range).exp() as i64 - 1;
                value % range.max(1)
            }
            Sampler::Seen(seen) => seen.class_at(words.below_u32(seen.total)),
            Sampler::Fixed(fixed) => fixed.draw(words),
        }
    }

    pub(super) fn probability(&self, class: i64, range: i64) -> f32 {
        match self {
            Sampler::All => 1.0,
            Sampler::Uniform => (1.0 / range as f64) as f32,
            Sampler::LogUniform => {
                let class = class as f64;
                let log = ((class + 2.0) / (class + 1.0)).ln();
                (log / (range as f64).ln_1p()) as f32
            }
            Sampler::Seen(seen) => seen.weight(class) as f32 / seen.total as f32,
            Sampler::Fixed(fixed) => fixed.probability(class),
        }
    }
}

/// Classes with a weight of one and one more for each time they were seen.
///
/// A binary tree of sums, of which only the nodes are kept that something was added to.
pub(super) struct Seen {
    /// The first power of two that is not below the number of classes.
    size: u64,
    range: u64,
    total: u32,
    /// What was added to the `width` classes from `begin` on.
    added: HashMap<(u64, u64), u32>,
}

impl Seen {
    pub(super) fn new(range: u32) -> Seen {
        Seen {
            size: u64::from(range).next_power_of_two(),
            range: u64::from(range),
            total: range,
            added: HashMap::new(),
        }
    }

    /// Adds one to each class, as long as the sum is an int32.
    pub(super) fn see(&mut self, classes: &[i64]) {
        for class in classes {
            if self.total >= i32::MAX as u32 {
                return;
            }
            self.total += 1;
            let mut width = 1;
            while width <= self.size {
                let begin = *class as u64 / width * width;
                *self.added.entry((begin, width)).or_insert(0) += 1;
                width *= 2;
            }
        }
    }

    fn weight(&self, class: i64) -> u32 {
        1 + self.added.get(&(class as u64, 1)).copied().unwrap_or(0)
    }

    /// The class that the `point`-th part of the whole weight belongs to.
    fn class_at(&self, point: u32) -> i64 {
        let (mut begin, mut width, mut point) = (0, self.size, u64::from(point));
        while width > 1 {
            width /= 2;
            let classes = self.range.saturating_sub(begin).min(width);
            let added = self.added.get(&(begin, width)).copied().unwrap_or(0);
            let weight = classes + u64::from(added);
            if point >= weight {
                point -= weight;
                begin += width;
            }
        }
        begin as i64
    }
}

/// Weights as a table in which each class shares its place with at most one other (Walker's aliases).
pub(super) struct Fixed {
    weights: Vec<f32>,
    total: f32,
    table: Vec<(f32, usize)>,
}

impl Fixed {
    /// `total` is the sum of the weights in the order in which they were read, which TensorFlow keeps in single precision.
    pub(super) fn new(weights: Vec<f32>, total: f32) -> Fixed {
        let count = weights.len();
        let sum: f64 = weights.iter().map(|weight| f64::from(*weight)).sum();
        let mut shares = Vec::with_capacity(count);
        let (mut high, mut low) = (Vec::new(), Vec::new());
        for (class, weight) in weights.iter().enumerate() {
            let share = f64::from(*weight * count as f32) / sum;
            shares.push(share);
            if share < 1.0 { &mut low } else { &mut high }.push(class);
        }
        let mut aliases: Vec<usize> = (0..count).collect();
        while let (Some(few), Some(many)) = (low.last().copied(), high.last().copied()) {
            low.pop();
            high.pop();
            aliases[few] = many;
            shares[many] -= 1.0 - shares[few];
            if shares[many] < 1.0 {
                &mut low
            } else {
                &mut high
            }
            .push(many);
        }
        // What is left over has a share of one but for rounding.
        for class in high.into_iter().chain(low) {
            (shares[class], aliases[class]) = (1.0, class);
        }
        let shares = shares.into_iter().map(|share| share as f32);
        Fixed {
            weights,
            total,
            table: shares.zip(aliases).collect(),
        }
    }

    fn draw(&self, words: &mut Words) -> i64 {
        let point = words.unit_f32();
        let class = words.below_u32(self.table.len() as u32) as usize;
        match self.table.get(class) {
            Some((share, alias)) if point >= *share => *alias as i64,
            _ => class as i64,
        }
    }

    fn probability(&self, class: i64) -> f32 {
        let weight = usize::try_from(class)
            .ok()
            .and_then(|class| self.weights.get(class));
        weight.map_or(0.0, |weight| weight / self.total)
    }

    /// How many classes can be drawn.
    pub(super) fn possible(&self) -> usize {
        self.weights.iter().filter(|weight| **weight > 0.0).count()
    }
}
