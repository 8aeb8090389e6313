//! Ranges for whoever asks next.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::Par;

/// Most sections: more threads than these share them.
const SECTIONS: usize = 8;

/// Cuts `0..len` for several threads as they ask.
///
/// Every thread has a section that it begins with, and helps with the others' then. So it meets what it has in its cache from
/// the loop before, which cut a tensor of that length in the same way. Ranges are large at first and get smaller, so that a
/// delayed thread is made up for by the others.
pub(crate) struct Claims {
    sections: [Section; SECTIONS],
    /// How many sections there are.
    count: usize,
    grain: usize,
}

/// In a cache line of its own, as mostly one thread claims from it.
#[derive(Default)]
#[repr(align(64))]
struct Section {
    /// First index not claimed yet.
    next: AtomicUsize,
    end: usize,
}

impl Claims {
    /// Ranges begin at multiples of `grain`, which is at least 1.
    pub(crate) fn new(len: usize, grain: usize, threads: usize) -> Self {
        let count = threads.clamp(1, SECTIONS);
        let units = len.div_ceil(grain);
        // Not `units * i / count`: that may be more than fits.
        let (each, longer) = (units / count, units % count);
        let at = |i: usize| ((each * i + i.min(longer)).saturating_mul(grain)).min(len);
        let mut sections: [Section; SECTIONS] = Default::default();
        for (i, section) in sections.iter_mut().enumerate().take(count) {
            section.next = AtomicUsize::new(at(i));
            section.end = at(i + 1);
        }
        Self {
            sections,
            count,
            grain,
        }
    }

    /// The ranges for one of the threads.
    pub(crate) fn of_member(&self, member: usize) -> Member<'_> {
        let section = member % self.count;
        Member {
            claims: self,
            section,
            left: self.count,
        }
    }

    /// Whether all has been claimed.
    pub(crate) fn are_over(&self) -> bool {
        let mut sections = self.sections.iter().take(self.count);
        sections.all(|section| section.next.load(Ordering::Relaxed) >= section.end)
    }

    fn claim(&self, section: &Section) -> Option<Range<usize>> {
        let mut begin = section.next.load(Ordering::Relaxed);
        while begin < section.end {
            let left = section.end - begin;
            let size = if self.count > 1 {
                (left / 2 / self.grain).max(1) * self.grain
            } else {
                left
            };
            let end = begin.saturating_add(size).min(section.end);
            match section.next.compare_exchange_weak(
                begin,
                end,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Some(begin..end),
                Err(now) => begin = now,
            }
        }
        None
    }
}

/// The ranges that one thread claims, and nobody else gets.
pub(crate) struct Member<'a> {
    claims: &'a Claims,
    section: usize,
    /// Sections not seen empty yet, this one among them.
    left: usize,
}

impl Iterator for Member<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        while self.left > 0 {
            let claimed = self.claims.claim(&self.claims.sections[self.section]);
            if claimed.is_some() {
                return claimed;
            }
            self.section = (self.section + 1) % self.claims.count;
            self.left -= 1;
        }
        None
    }
}

/// Runs `body` on every thread that comes to help with `0..len`: it takes ranges until none is left, and what it prepares for
/// the first serves it for all.
pub(crate) fn crew(par: &dyn Par, len: usize, grain: usize, body: &(dyn Fn(Member<'_>) + Sync)) {
    let grain = grain.max(1);
    let threads = par.threads().min(len.div_ceil(grain));
    let claims = Claims::new(len, grain, threads);
    par.for_each(threads, 1, &|members| {
        for member in members {
            body(claims.of_member(member));
        }
    });
}
