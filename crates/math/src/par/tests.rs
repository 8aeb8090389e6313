use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use super::*;

fn covers_once(par: &dyn Par, len: usize, grain: usize) {
    let hits: Vec<AtomicUsize> = (0..len).map(|_| AtomicUsize::new(0)).collect();
    par.for_each(len, grain, &|range| {
        assert_eq!(range.start % grain.max(1), 0);
        assert!(!range.is_empty());
        for i in range {
            hits[i].fetch_add(1, Ordering::Relaxed);
        }
    });
    assert!(hits.iter().all(|h| h.load(Ordering::Relaxed) == 1));
}

#[test]
fn covers_each_index_once() {
    let pool = Pool::new(3);
    for len in [0, 1, 2, 7, 64, 1000, 4097] {
        for grain in [0, 1, 3, 64, 5000] {
            covers_once(&pool, len, grain);
            covers_once(&Serial, len, grain);
        }
    }
}

#[test]
fn nests_without_deadlock() {
    let pool = Pool::new(2);
    let sum = AtomicUsize::new(0);
    for _ in 0..200 {
        pool.for_each(8, 1, &|outer| {
            for _ in outer {
                pool.for_each(16, 1, &|inner| {
                    sum.fetch_add(inner.len(), Ordering::Relaxed);
                });
            }
        });
    }
    assert_eq!(sum.into_inner(), 200 * 8 * 16);
}

#[test]
fn serves_many_callers_at_once() {
    let pool = Pool::new(2);
    std::thread::scope(|s| {
        for _ in 0..4 {
            s.spawn(|| {
                for len in 1..300 {
                    covers_once(&pool, len, 3);
                }
            });
        }
    });
}

#[test]
fn reraises_panic_and_stays_usable() {
    let pool = Pool::new(2);
    for _ in 0..20 {
        let result = catch_unwind(AssertUnwindSafe(|| {
            pool.for_each(100, 1, &|range| {
                if range.contains(&57) {
                    std::panic::resume_unwind(Box::new("fifty-seven"));
                }
            });
        }));
        assert_eq!(
            result.unwrap_err().downcast_ref::<&str>(),
            Some(&"fifty-seven")
        );
        covers_once(&pool, 100, 1);
    }
}

#[test]
fn runs_spawned_jobs_while_caller_blocks_and_on_drop() {
    let pool = Arc::new(Pool::new(1));
    let (send, receive) = mpsc::channel();
    pool.spawn(Box::new(|| std::panic::resume_unwind(Box::new("ignored"))));
    pool.spawn(Box::new(move || {
        let _ = send.send(7);
    }));
    assert_eq!(receive.recv_timeout(Duration::from_secs(20)), Ok(7));
    let count = Arc::new(AtomicUsize::new(0));
    for _ in 0..50 {
        let count = Arc::clone(&count);
        pool.spawn(Box::new(move || {
            count.fetch_add(1, Ordering::Relaxed);
        }));
    }
    drop(pool);
    assert_eq!(count.load(Ordering::Relaxed), 50);
}

#[test]
fn a_pool_without_threads_hands_its_jobs_over() {
    let (send, receive) = mpsc::channel();
    let pool = Pool::elsewhere(move |job| send.send(job).unwrap());
    covers_once(&pool, 100, 7);
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    pool.spawn(Box::new(move || {
        counted.fetch_add(1, Ordering::Relaxed);
    }));
    assert_eq!(count.load(Ordering::Relaxed), 0);
    receive.recv().unwrap()();
    assert_eq!(count.load(Ordering::Relaxed), 1);
}

#[test]
fn jobs_use_the_pool_and_drop_it() {
    let pool = Arc::new(Pool::new(2));
    let (send, receive) = mpsc::channel();
    for _ in 0..8 {
        let (inner, send) = (Arc::clone(&pool), send.clone());
        pool.spawn(Box::new(move || {
            covers_once(&*inner, 500, 7);
            drop(inner);
            let _ = send.send(());
        }));
    }
    drop(pool);
    for _ in 0..8 {
        assert_eq!(receive.recv_timeout(Duration::from_secs(20)), Ok(()));
    }
}

#[test]
fn splits_slices_by_chunks_and_rows() {
    let pool = Pool::new(2);
    let mut data = vec![0usize; 1003];
    chunks_mut(&pool, &mut data, 16, |offset, chunk| {
        for (i, x) in chunk.iter_mut().enumerate() {
            *x = offset + i;
        }
    });
    assert!(data.iter().enumerate().all(|(i, &x)| i == x));
    let (mut a, mut b) = (vec![0; 21 * 5], vec![0; 21 * 2]);
    rows2_mut(&pool, (&mut a, 5), (&mut b, 2), 2, |row, a, b| {
        assert_eq!(a.len() / 5, b.len() / 2);
        for (i, x) in a.iter_mut().enumerate() {
            *x = row * 5 + i;
        }
        b.fill(row);
    });
    assert!(a.iter().enumerate().all(|(i, &x)| i == x));
    rows_mut(&pool, &mut a, 5, 1, |row, rows| {
        rows.fill(row + rows.len());
    });
    assert!(a.iter().all(|&x| x >= 5));
    rows_mut(&pool, &mut a[..0], 0, 1, |_, _| panic!("no rows"));
}

#[test]
fn each_member_begins_with_its_own_part_and_helps_with_the_others() {
    let claims = Claims::new(103, 4, 3);
    let (first, second) = (claims.of_member(0).next(), claims.of_member(1).next());
    assert_eq!(first, Some(0..16));
    assert_eq!(second, Some(36..52), "the second third of 26 units");
    assert!(!claims.are_over());
    // One that is alone gets all that is left, once, beginning with its own part.
    let rest: Vec<_> = claims.of_member(4).collect();
    assert_eq!(rest[0].start, 52, "a fifth thread shares the second's part");
    assert!(claims.are_over());
    let mut hits = [0; 103];
    for range in rest.into_iter().chain(first).chain(second) {
        assert_eq!(range.start % 4, 0);
        hits[range].iter_mut().for_each(|hit| *hit += 1);
    }
    assert_eq!(hits, [1; 103]);
}

/// A watch that is over after so many looks.
struct Looks(AtomicUsize);

impl Watch for Looks {
    fn is_over(&self) -> bool {
        let left = |looks: usize| looks.checked_sub(1);
        let before = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, left);
        before.is_err()
    }
}

#[test]
fn watched_loops_cover_all_or_are_given_up() {
    for threads in [1, 3] {
        let pool = Arc::new(Pool::new(threads));
        let patient = Watched::new(pool.clone(), Looks(AtomicUsize::new(usize::MAX)));
        for (len, grain) in [(0, 1), (7, 2), (100_003, 3), (4097, 5000)] {
            covers_once(&patient, len, grain);
        }
        patient.poll();
        let hasty = Watched::new(pool.clone(), Looks(AtomicUsize::new(3)));
        let done = AtomicUsize::new(0);
        let given_up = catch_unwind(AssertUnwindSafe(|| {
            hasty.for_each(1 << 40, 1, &|range| {
                done.fetch_add(range.len(), Ordering::Relaxed);
            });
        }));
        assert!(GivenUp::is_in(&*given_up.unwrap_err()));
        assert!(done.into_inner() < 1 << 20);
        let given_up = catch_unwind(AssertUnwindSafe(|| hasty.poll()));
        assert!(GivenUp::is_in(&*given_up.unwrap_err()));
        covers_once(&*pool, 1000, 1);
    }
}
