//! Transformations lose nothing and double nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;
use tensorfleet_input::{Dataset, Element};
use tensorfleet_tensor::Tensor;

use crate::{numbers, sorted, values};

fn all(count: usize) -> Vec<i64> {
    (0..count as i64).collect()
}

proptest! {
    #[test]
    fn shuffling_keeps_every_element(count in 0usize..200, buffer in 1usize..50, seed in any::<u64>()) {
        let data = numbers(count).shuffle(buffer, seed);
        for pass in [0, 1] {
            prop_assert_eq!(sorted(values(data.pass(pass))), all(count));
        }
        prop_assert_eq!(values(data.pass(3)), values(data.pass(3)));
    }

    #[test]
    fn shards_divide_the_elements(count in 0usize..100, tasks in 1usize..9) {
        let shards = (0..tasks).map(|task| values(&numbers(count).shard(tasks, task)));
        let shards: Vec<Vec<i64>> = shards.collect();
        for shard in &shards {
            prop_assert!(shard.len() >= count / tasks && shard.len() <= count.div_ceil(tasks));
        }
        prop_assert_eq!(sorted(shards.concat()), all(count));
    }

    #[test]
    fn batches_hold_the_elements_in_order(count in 0usize..100, size in 1usize..12, drop in any::<bool>()) {
        let data = numbers(count).batch(size, drop);
        let kept = if drop { count / size * size } else { count };
        prop_assert_eq!(values(&data), all(kept));
        let full = data.iter().filter(|batch| batch.as_ref().unwrap().tensors()[0].elements() == size);
        prop_assert_eq!(full.count(), count / size);
    }

    #[test]
    fn whole_pipelines_see_each_element_once_an_epoch(
        count in 0usize..60, tasks in 1usize..4, buffer in 1usize..20, epochs in 1u64..4, size in 1usize..7, ahead in 0usize..4
    ) {
        let mut seen = Vec::new();
        for task in 0..tasks {
            let data = numbers(count).shard(tasks, task).shuffle(buffer, 5).repeat(epochs);
            seen.extend(values(&data.batch(size, false).prefetch(ahead)));
        }
        let expected = all(count).repeat(epochs as usize);
        prop_assert_eq!(sorted(seen), sorted(expected));
    }

    #[test]
    fn interleaving_keeps_every_element(counts in prop::collection::vec(0usize..8, 0..7), cycle in 1usize..5, block in 1usize..4) {
        let counts_inside = counts.clone();
        let data = numbers(counts.len()).interleave(cycle, block, move |input| {
            let index = input.at(0)?.to_scalar::<i64>()?;
            let count = counts_inside[index as usize] as i64;
            Ok(Dataset::from_elements((0..count).map(move |i| Tensor::scalar(index * 100 + i))))
        });
        let expected = counts.iter().zip(0i64..).flat_map(|(count, index)| (0..*count as i64).map(move |i| index * 100 + i));
        prop_assert_eq!(sorted(values(&data)), expected.collect::<Vec<_>>());
    }

    #[test]
    fn selections_are_those_of_iterators(count in 0usize..50, skip in 0usize..60, take in 0usize..60, divisor in 1i64..5) {
        let data = numbers(count).skip(skip).filter(move |e| Ok(e.at(0)?.to_scalar::<i64>()? % divisor == 0)).take(take);
        let expected = all(count).into_iter().skip(skip).filter(|v| v % divisor == 0).take(take);
        prop_assert_eq!(values(&data), expected.collect::<Vec<_>>());
        let cached = data.cache();
        prop_assert_eq!(values(&cached), values(&cached));
    }

    #[test]
    fn no_more_is_read_than_the_buffers_hold(buffer in 1usize..20, size in 1usize..7, ahead in 0usize..4, taken in 0usize..9) {
        let read = Arc::new(AtomicUsize::new(0));
        let counter = read.clone();
        let endless = Dataset::from_generator(move || {
            let counter = counter.clone();
            (0i64..).map(move |i| {
                counter.fetch_add(1, Ordering::SeqCst);
                Ok(Element::from(Tensor::scalar(i)))
            })
        });
        let mut batches = endless.shuffle(buffer, 1).batch(size, true).prefetch(ahead).iter();
        prop_assert_eq!(batches.by_ref().take(taken).count(), taken);
        let read = read.load(Ordering::SeqCst);
        prop_assert!(read <= (taken + ahead) * size + buffer, "{} read", read);
    }
}
