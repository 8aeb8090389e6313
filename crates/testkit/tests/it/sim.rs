//! The simulation itself: a seed decides everything.

use tensorfleet_testkit::sim;

#[test]
fn a_seed_repeats_itself_message_by_message() {
    let registry = tensorfleet_ops::registry().unwrap();
    let mut hashes = Vec::new();
    for seed in 0..12 {
        let [once, again] = [0; 2].map(|_| sim::run(seed, &registry, true).unwrap());
        let lines = once.trace.iter().zip(&again.trace);
        let differing = lines.enumerate().find(|(_, (a, b))| a != b);
        assert_eq!(differing, None, "seed {seed}");
        assert_eq!(once.hash, again.hash, "seed {seed}");
        hashes.push(once.hash);
    }
    hashes.sort_unstable();
    hashes.dedup();
    assert_eq!(hashes.len(), 12);
}
