//! `RandomShuffle`: the order in which rows of the input appear in the output.

use super::philox::Philox;

/// How many samples a shuffle of `rows` rows takes from a stateful stream (see [`Philox::reserve_samples`]).
///
/// TensorFlow takes none when there is nothing to shuffle: one row, or rows without elements.
pub fn shuffle_samples(rows: usize) -> u64 {
    (rows as u64).saturating_sub(1).div_ceil(4)
}

/// The shuffled order of `rows` rows: output row `i` is input row `order[i]`.
pub fn shuffle_order(philox: Philox, rows: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..rows).collect();
    let mut words = [0; 256];
    let mut philox = philox;
    for first in (0..rows.saturating_sub(1)).step_by(words.len()) {
        philox.fill_words(&mut words);
        philox.skip(words.len() as u64 / 4);
        for (i, word) in (first..rows - 1).zip(words) {
            // TensorFlow's swap distance has 32 bits too.
            let left = ((rows - i) as u32).max(1);
            order.swap(i, i + (word % left) as usize);
        }
    }
    order
}
