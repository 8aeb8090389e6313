//! Which boxes are kept of those that overlap.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use tensorfleet_math::par::poll;

/// A box that may be selected.
struct Candidate {
    index: usize,
    score: f32,
    /// Of the selected boxes, the first it was not compared with yet.
    compared: usize,
}

impl PartialEq for Candidate {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Candidate {}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Candidate {
    /// By score; of equal scores the first box is the greatest.
    fn cmp(&self, other: &Self) -> Ordering {
        let scores = self.score.total_cmp(&other.score);
        scores.then_with(|| other.index.cmp(&self.index))
    }
}

/// What is selected, and by which rules.
pub(super) struct Rules {
    pub(super) size: usize,
    pub(super) overlap: f32,
    pub(super) score: f32,
    /// How fast scores fall with overlap; zero drops boxes instead.
    pub(super) sigma: f32,
}

impl Rules {
    /// The selected boxes and their scores.
    pub(super) fn select(
        &self,
        scores: &[f32],
        overlap: impl Fn(usize, usize) -> f32,
    ) -> (Vec<i32>, Vec<f32>) {
        let candidates = scores.iter().enumerate();
        let mut heap: BinaryHeap<Candidate> = candidates
            .filter(|(_, score)| **score > self.score)
            .map(|(index, &score)| Candidate {
                index,
                score,
                compared: 0,
            })
            .collect();
        let soft = self.sigma > 0.0;
        let (mut selected, mut kept) = (Vec::new(), Vec::new());
        while selected.len() < self.size
            && let Some(mut next) = heap.pop()
        {
            poll();
            let original = next.score;
            let mut dropped = false;
            for &other in selected[next.compared..].iter().rev() {
                let shared = overlap(next.index, other as usize);
                if soft {
                    next.score *= (-0.5 / self.sigma * shared * shared).exp();
                } else if shared > self.overlap {
                    dropped = true;
                    break;
                }
                if next.score <= self.score {
                    break;
                }
            }
            next.compared = selected.len();
            if dropped {
                continue;
            }
            if next.score == original {
                selected.push(next.index as i32);
                kept.push(next.score);
            } else if next.score > self.score {
                heap.push(next);
            }
        }
        (selected, kept)
    }
}

/// Intersection over union of two boxes, whatever the order of their corners.
pub(super) fn iou(a: &[f32; 4], b: &[f32; 4]) -> f32 {
    let edges = |corners: &[f32; 4]| {
        let [y1, x1, y2, x2] = *corners;
        [y1.min(y2), x1.min(x2), y1.max(y2), x1.max(x2)]
    };
    let (a, b) = (edges(a), edges(b));
    let area = |edges: [f32; 4]| (edges[2] - edges[0]) * (edges[3] - edges[1]);
    if area(a) <= 0.0 || area(b) <= 0.0 {
        return 0.0;
    }
    let height = (a[2].min(b[2]) - a[0].max(b[0])).max(0.0);
    let width = (a[3].min(b[3]) - a[1].max(b[1])).max(0.0);
    let shared = height * width;
    shared / (area(a) + area(b) - shared)
}
