use super::*;
use crate::par::{Pool, Serial};

fn naive(op: Segment, ids: &[usize], rows: &[f64], row_len: usize, segments: usize) -> Vec<f64> {
    let mut out = vec![0.0; segments * row_len];
    for segment in 0..segments {
        for column in 0..row_len {
            let values: Vec<f64> = (0..ids.len())
                .filter(|&i| ids[i] == segment)
                .map(|i| rows[i * row_len + column])
                .collect();
            let (sum, count) = (values.iter().sum::<f64>(), values.len() as f64);
            out[segment * row_len + column] = match op {
                Segment::Prod => values.iter().product(),
                _ if values.is_empty() => 0.0,
                Segment::Sum => sum,
                Segment::Mean => sum / count,
                Segment::SqrtN => sum / count.sqrt(),
                Segment::Max => values.iter().copied().fold(f64::MIN, f64::max),
                Segment::Min => values.iter().copied().fold(f64::MAX, f64::min),
            };
        }
    }
    out
}

const ALL: [Segment; 6] = [
    Segment::Sum,
    Segment::Mean,
    Segment::SqrtN,
    Segment::Prod,
    Segment::Max,
    Segment::Min,
];

#[test]
fn sorted_segments_agree_with_the_naive_loop() {
    let pool = Pool::new(2);
    for (count, row_len) in [(0, 3), (1, 1), (7, 2), (900, 33)] {
        let ids: Vec<usize> = (0..count).map(|i| i / 3 + usize::from(i > 4)).collect();
        let segments = ids.last().map_or(0, |last| last + 2);
        let data: Vec<f64> = (0..count * row_len)
            .map(|i| ((i * 37) % 11) as f64 - 5.0)
            .collect();
        for op in ALL {
            let expected = naive(op, &ids, &data, row_len, segments);
            for par in [&Serial as &dyn Par, &pool] {
                let mut out = vec![9.0; segments * row_len];
                reduce(par, op, &ids, Rows::All(&data), row_len, &mut out);
                assert_eq!(out, expected, "{op:?} of {count} rows of {row_len}");
            }
        }
    }
}

#[test]
fn picked_rows_are_those_of_the_table() {
    let table: Vec<f64> = (0..20).map(f64::from).collect();
    let indices = [9, 0, 3, 3, 1];
    let ids = [0, 0, 1, 3, 3];
    let rows: Vec<f64> = indices
        .iter()
        .flat_map(|&i| table[i * 2..i * 2 + 2].to_vec())
        .collect();
    for op in ALL {
        let mut out = vec![0.0; 8];
        reduce(
            &Serial,
            op,
            &ids,
            Rows::Picked(&table, &indices),
            2,
            &mut out,
        );
        assert_eq!(out, naive(op, &ids, &rows, 2, 4), "{op:?}");
    }
}

#[test]
fn unsorted_segments_pass_over_rows_without_one() {
    let pool = Pool::new(2);
    let ids: Vec<usize> = (0..2000)
        .map(|i| {
            if i % 7 == 0 {
                usize::MAX
            } else {
                (i * 13) % 50
            }
        })
        .collect();
    let data: Vec<f64> = (0..2000 * 16).map(|i| ((i * 31) % 17) as f64).collect();
    for par in [&Serial as &dyn Par, &pool] {
        let mut out = vec![1.0; 52 * 16];
        scatter(par, Segment::Sum, &ids, &data, 16, &mut out);
        assert_eq!(out, naive(Segment::Sum, &ids, &data, 16, 52));
        scatter(par, Segment::Max, &ids, &data, 16, &mut out);
        let expected = naive(Segment::Max, &ids, &data, 16, 52);
        assert_eq!(out[..50 * 16], expected[..50 * 16]);
        assert!(out[50 * 16..].iter().all(|&x| x == f64::MIN));
    }
}

#[test]
fn gradients_are_spread_to_the_picked_rows() {
    let grad = [1.0f32, 2.0, 10.0, 20.0];
    let mut out = [7.0; 6];
    let places = (&[0usize, 1, 0][..], &[2usize, 2, 0][..]);
    spread(&Serial, &grad, &[1.0, 0.5], places, 2, &mut out);
    assert_eq!(out, [1.0, 2.0, 0.0, 0.0, 6.0, 12.0]);
}
