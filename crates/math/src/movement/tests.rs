use proptest::prelude::*;

use super::*;
use crate::par::{Pool, Serial};

/// All indices of a box, in order.
fn indices_of(dims: &[usize]) -> Vec<Vec<usize>> {
    let mut all = vec![vec![]];
    for &extent in dims {
        all = all
            .into_iter()
            .flat_map(|index| (0..extent).map(move |i| [index.clone(), vec![i]].concat()))
            .collect();
    }
    all
}

fn at(dims: &[usize], index: &[usize]) -> usize {
    dims.iter()
        .zip(index)
        .fold(0, |at, (extent, i)| at * extent + i)
}

fn bad<T>(position: usize, value: i64) -> Result<T, BadIndex> {
    Err(BadIndex { position, value })
}

fn numbers(len: usize) -> Vec<u32> {
    (0..len as u32)
        .map(|i| i.wrapping_mul(2_654_435_761))
        .collect()
}

fn bytes(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|n| n.to_le_bytes()).collect()
}

/// Copies a view by plain numbers, by bytes and by strings on several threads, and compares with `expected(index)`.
fn check_view(len: usize, view: &View, expected: impl Fn(&[usize]) -> usize) {
    let src = numbers(len);
    let expected: Vec<u32> = indices_of(&view.dims)
        .iter()
        .map(|index| src[expected(index)])
        .collect();
    let pool = Pool::new(3);
    let mut dst = vec![7; expected.len()];
    copy_view(&pool, &src, view, &mut dst);
    assert_eq!(dst, expected, "{view:?}");
    for size in [1, 2, 4, 8, 16] {
        let wide = |numbers: &[u32]| -> Vec<u8> {
            let wide = |n: &u32| n.to_le_bytes().into_iter().cycle().take(size);
            numbers.iter().flat_map(wide).collect()
        };
        let mut dst = vec![7; size * expected.len()];
        copy_view_bytes(&Serial, size, &wide(&src), view, &mut dst);
        assert_eq!(dst, wide(&expected), "{view:?} of {size} bytes");
    }
    let strings: Vec<String> = src.iter().map(u32::to_string).collect();
    let mut dst = vec![String::new(); expected.len()];
    copy_view(&pool, &strings, view, &mut dst);
    assert!(dst.iter().zip(&expected).all(|(s, n)| *s == n.to_string()));
}

fn dims(rank: impl Into<prop::collection::SizeRange>) -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(0..7_usize, rank)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn transposes(dims in dims(0..6), seed in any::<u64>()) {
        let mut order: Vec<usize> = (0..dims.len()).collect();
        order.sort_by_key(|&i| (i as u64 + 1).wrapping_mul(seed | 1) >> 7);
        let view = View::transposed(&dims, &order);
        check_view(dims.iter().product(), &view, |index| {
            let mut from = vec![0; dims.len()];
            for (i, &dim) in order.iter().enumerate() {
                from[dim] = index[i];
            }
            at(&dims, &from)
        });
    }

    #[test]
    fn slices(cut in prop::collection::vec((1..7_usize, 0..7_usize, 1..4_isize, any::<bool>(), 0..7_usize), 0..5)) {
        let dims: Vec<usize> = cut.iter().map(|c| c.0).collect();
        let begin: Vec<usize> = cut.iter().map(|c| c.1 % c.0).collect();
        let steps: Vec<isize> = cut.iter().map(|c| if c.3 { -c.2 } else { c.2 }).collect();
        let sizes: Vec<usize> = (0..cut.len()).map(|i| {
            let room = if cut[i].3 { begin[i] } else { dims[i] - 1 - begin[i] };
            cut[i].4.min(room / cut[i].2 as usize + 1)
        }).collect();
        let view = View::sliced(&dims, &begin, &steps, &sizes);
        let expected = |index: &[usize]| {
            let from: Vec<usize> = (0..dims.len())
                .map(|i| (begin[i] as isize + index[i] as isize * steps[i]) as usize)
                .collect();
            at(&dims, &from)
        };
        check_view(dims.iter().product(), &view, expected);
        // And back: pasted elements arrive, the others stay; adding adds.
        let src = numbers(view.len());
        let mut dst = vec![1; dims.iter().product()];
        let mut sum = dst.clone();
        paste_view(&src, &view, &mut dst);
        let wrapped: Vec<std::num::Wrapping<u32>> = src.iter().map(|&n| std::num::Wrapping(n)).collect();
        let mut sums: Vec<_> = sum.iter().map(|&n| std::num::Wrapping(n)).collect();
        add_view(&wrapped, &view, &mut sums);
        let mut pasted = vec![1; dst.len()];
        for (index, &n) in indices_of(&sizes).iter().zip(&src) {
            pasted[expected(index)] = n;
            sum[expected(index)] = n.wrapping_add(1);
        }
        prop_assert_eq!(dst, pasted);
        prop_assert_eq!(sums.iter().map(|n| n.0).collect::<Vec<_>>(), sum);
    }

    #[test]
    fn broadcasts_and_tiles(dims in dims(0..4), more in dims(0..2), multiples in dims(4), ones in any::<u8>()) {
        let from: Vec<usize> = dims.iter().enumerate().map(|(i, &d)| if ones >> i & 1 == 1 { 1 } else { d }).collect();
        let to = [more.clone(), dims.clone()].concat();
        let view = View::broadcast(&from, &to);
        check_view(from.iter().product(), &view, |index| {
            let index: Vec<usize> = index[more.len()..].iter().zip(&from).map(|(&i, &d)| if d == 1 { 0 } else { i }).collect();
            at(&from, &index)
        });
        let view = View::tiled(&dims, &multiples[..dims.len()]);
        check_view(dims.iter().product(), &view, |index| {
            let index: Vec<usize> = index.chunks(2).map(|pair| pair[1]).collect();
            at(&dims, &index)
        });
    }

    #[test]
    fn reversals(dims in dims(0..5), mask in any::<u8>()) {
        let reversed: Vec<bool> = (0..dims.len()).map(|i| mask >> i & 1 == 1).collect();
        let view = View::reversed(&dims, &reversed);
        check_view(dims.iter().product(), &view, |index| {
            let index: Vec<usize> = (0..dims.len())
                .map(|i| if reversed[i] { dims[i] - 1 - index[i] } else { index[i] })
                .collect();
            at(&dims, &index)
        });
    }

    #[test]
    fn concatenates(rows in 0..5_usize, lens in prop::collection::vec(0..20_usize, 1..5)) {
        let parts: Vec<Vec<u32>> = lens.iter().enumerate().map(|(i, len)| numbers(rows * len + i)[i..].to_vec()).collect();
        let mut expected = Vec::new();
        for row in 0..rows {
            for (part, &len) in parts.iter().zip(&lens) {
                expected.extend(&part[row * len..(row + 1) * len]);
            }
        }
        let refs: Vec<_> = parts.iter().zip(&lens).map(|(part, &len)| (part.as_slice(), len)).collect();
        let mut dst = vec![0; expected.len()];
        concat(&Pool::new(2), &refs, &mut dst);
        prop_assert_eq!(&dst, &expected);
        let raw: Vec<Vec<u8>> = parts.iter().map(|part| bytes(part)).collect();
        let refs: Vec<_> = raw.iter().zip(&lens).map(|(part, &len)| (part.as_slice(), 4 * len)).collect();
        let mut dst = vec![0; 4 * expected.len()];
        concat_bytes(&Serial, &refs, &mut dst);
        prop_assert_eq!(dst, bytes(&expected));
    }

    #[test]
    fn pads(dims in dims(0..5), pads in prop::collection::vec((0..4_usize, 0..4_usize), 5)) {
        let pads = &pads[..dims.len()];
        let padded: Vec<usize> = dims.iter().zip(pads).map(|(d, p)| d + p.0 + p.1).collect();
        let src = numbers(dims.iter().product());
        let expected: Vec<u32> = indices_of(&padded).iter().map(|index| {
            let inner: Option<Vec<usize>> = (0..dims.len())
                .map(|i| index[i].checked_sub(pads[i].0).filter(|&k| k < dims[i]))
                .collect();
            inner.map_or(9, |inner| src[at(&dims, &inner)])
        }).collect();
        let mut dst = vec![0; expected.len()];
        pad(&Pool::new(2), &src, &dims, pads, &9, &mut dst);
        prop_assert_eq!(&dst, &expected);
        let mut dst = vec![0; 4 * expected.len()];
        pad_bytes(&Serial, 4, &bytes(&src), &dims, pads, &9_u32.to_le_bytes(), &mut dst);
        prop_assert_eq!(dst, bytes(&expected));
    }

    #[test]
    fn gathers(
        (batch, outer, limit, inner, count) in (0..3_usize, 0..4_usize, 1..6_usize, 0..20_usize, 0..6_usize),
        seed in any::<u32>(),
    ) {
        let shape = Gather { batch, outer, limit, inner, count };
        let src = numbers(batch * outer * limit * inner);
        let indices: Vec<i32> = (0..batch * count).map(|i| ((i as u32).wrapping_mul(seed | 1) >> 3) as i32 % limit as i32).collect();
        let expected: Vec<u32> = indices_of(&[batch, outer, count, inner]).iter().map(|index| {
            let &[b, o, c, i] = index.as_slice() else { unreachable!() };
            let row = indices[b * count + c] as usize;
            src[((b * outer + o) * limit + row) * inner + i]
        }).collect();
        let mut dst = vec![0; expected.len()];
        prop_assert_eq!(gather(&Pool::new(2), shape, &src, &indices, &mut dst), Ok(()));
        prop_assert_eq!(&dst, &expected);
        let mut dst = vec![0; 4 * expected.len()];
        prop_assert_eq!(gather_bytes(&Serial, 4, shape, &bytes(&src), &indices, &mut dst), Ok(()));
        prop_assert_eq!(dst, bytes(&expected));
    }

    #[test]
    fn mirrors(dims in prop::collection::vec(1..6_usize, 1..4), pads in prop::collection::vec((0..6_usize, 0..6_usize), 3), symmetric in any::<bool>()) {
        let skip = usize::from(!symmetric);
        let pads: Vec<_> = dims.iter().zip(&pads).map(|(d, p)| (p.0.min(d - skip), p.1.min(d - skip))).collect();
        let maps: Vec<Vec<usize>> = dims.iter().zip(&pads).map(|(&d, &p)| mirrored(d, p, symmetric)).collect();
        let padded: Vec<usize> = maps.iter().map(Vec::len).collect();
        let src = numbers(dims.iter().product());
        let mut dst = vec![0; padded.iter().product()];
        remap(&Pool::new(2), &src, &dims, &maps, &mut dst);
        let mut sums = vec![0.0; src.len()];
        remap_add(&vec![1.0; dst.len()], &dims, &maps, &mut sums);
        let mut uses = vec![0.0; src.len()];
        for (index, got) in indices_of(&padded).iter().zip(&dst) {
            let from: Vec<usize> = (0..dims.len()).map(|i| {
                let (k, d) = (index[i] as isize - pads[i].0 as isize, dims[i] as isize);
                let skip = skip as isize;
                let k = if k < 0 { -k - 1 + skip } else if k >= d { 2 * d - 1 - k - skip } else { k };
                k as usize
            }).collect();
            prop_assert_eq!(*got, src[at(&dims, &from)]);
            uses[at(&dims, &from)] += 1.0;
        }
        prop_assert_eq!(sums, uses);
    }

    #[test]
    fn top_k_sorts(rows in 0..4_usize, columns in 1..30_usize, k in 0..30_usize, seed in any::<u32>()) {
        let k = k.min(columns);
        let src: Vec<i32> = numbers(rows * columns).iter().map(|n| (n.wrapping_mul(seed | 1) >> 28) as i32).collect();
        let (mut values, mut indices) = (vec![0; rows * k], vec![0_i64; rows * k]);
        top_k(&Pool::new(2), &src, columns, k, &mut values, &mut indices, |a, b| a > b);
        for row in 0..rows {
            let src = &src[row * columns..(row + 1) * columns];
            let mut order: Vec<usize> = (0..columns).collect();
            order.sort_by_key(|&i| (-src[i], i));
            for i in 0..k {
                prop_assert_eq!(indices[row * k + i], order[i] as i64);
                prop_assert_eq!(values[row * k + i], src[order[i]]);
            }
        }
    }

    #[test]
    fn finds_first_occurrences(elements in prop::collection::vec(0..40_i64, 0..200)) {
        let mut index = Vec::new();
        let found = unique(&elements, |n| n as u64, |number| index.push(number));
        let mut distinct: Vec<i64> = Vec::new();
        for n in &elements {
            if !distinct.contains(n) {
                distinct.push(*n);
            }
        }
        prop_assert_eq!(found.first.iter().map(|&i| elements[i]).collect::<Vec<_>>(), distinct.clone());
        prop_assert_eq!(index.iter().map(|&i| distinct[i]).collect::<Vec<_>>(), elements.clone());
        for (i, n) in distinct.iter().enumerate() {
            prop_assert_eq!(found.count[i], elements.iter().filter(|m| *m == n).count());
        }
    }
}

#[test]
fn exchanges_large_dimensions() {
    for dims in [
        [130, 257, 3],
        [257, 3, 130],
        [3, 513, 70],
        [1, 1000, 33],
        [2, 512, 45],
    ] {
        for order in [[0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let view = View::transposed(&dims, &order);
            check_view(dims.iter().product(), &view, |index| {
                let mut from = [0; 3];
                for (i, &dim) in order.iter().enumerate() {
                    from[dim] = index[i];
                }
                at(&dims, &from)
            });
        }
    }
}

#[test]
fn scatters_in_order_on_all_threads() {
    let (rows, row_len, count) = (40, 33, 3000);
    let indices: Vec<i64> = numbers(count)
        .iter()
        .map(|n| i64::from(n >> 8) % rows as i64)
        .collect();
    let updates = numbers(count * row_len);
    let start = numbers(rows * row_len);
    // Not commutative, so the order shows.
    let step = |a: &mut u32, b: &u32| *a = a.wrapping_mul(31).wrapping_add(*b);
    let mut expected = start.clone();
    let mut last = start.clone();
    let mut filled = start.clone();
    for (i, &row) in indices.iter().enumerate() {
        for j in 0..row_len {
            let element = row as usize * row_len + j;
            step(&mut expected[element], &updates[i * row_len + j]);
            last[element] = updates[i * row_len + j];
            filled[element] = 5;
        }
    }
    let mut dst = start.clone();
    let pool = Pool::new(3);
    scatter(
        &pool,
        &mut dst,
        row_len,
        &indices,
        Updates::Rows(&updates),
        step,
    )
    .unwrap();
    assert_eq!(dst, expected);
    for par in [&pool as &dyn crate::par::Par, &Serial] {
        let mut dst = bytes(&start);
        scatter_update_bytes(par, 4, &mut dst, row_len, &indices, &bytes(&updates)).unwrap();
        assert_eq!(dst, bytes(&last));
        scatter_fill_bytes(par, 4, &mut dst, row_len, &indices, &5_u32.to_le_bytes()).unwrap();
        assert_eq!(dst, bytes(&filled));
    }
    // Rows of one element move as one cell.
    let mut dst = bytes(&start);
    scatter_update_bytes(&pool, 4, &mut dst, 1, &[3, 3, 0], &bytes(&[1, 2, 3])).unwrap();
    assert_eq!((dst[12], dst[0]), (2, 3));
}

/// Rows that are copied by vectors: of whole blocks, and long ones with a rest.
#[test]
fn gathers_long_rows() {
    for inner in [32, 96, 515] {
        let shape = Gather {
            batch: 1,
            outer: 1,
            limit: 50,
            inner,
            count: 40,
        };
        let src = numbers(50 * inner);
        let indices: Vec<i64> = (0..40).map(|i| i * 37 % 50).collect();
        let row = |&index: &i64| &src[index as usize * inner..][..inner];
        let expected: Vec<u32> = indices.iter().flat_map(row).copied().collect();
        let mut dst = vec![0; 4 * expected.len()];
        gather_bytes(&Pool::new(2), 4, shape, &bytes(&src), &indices, &mut dst).unwrap();
        assert_eq!(dst, bytes(&expected), "rows of {inner}");
    }
}

#[test]
fn reports_the_first_bad_index() {
    let shape = Gather {
        batch: 1,
        outer: 1,
        limit: 3,
        inner: 2,
        count: 3,
    };
    let mut dst = [0; 6];
    assert_eq!(
        gather(&Serial, shape, &[0; 6], &[1, 3, -1], &mut dst),
        bad(1, 3)
    );
    assert_eq!(
        gather(&Serial, shape, &[0; 6], &[1_i64, 2, i64::MIN], &mut dst),
        bad(2, i64::MIN)
    );
    let mut table = [0; 6];
    let updates = Updates::Rows(&[9; 4]);
    assert_eq!(
        scatter(&Serial, &mut table, 2, &[0, -5], updates, |a, b| *a = *b),
        bad(1, -5)
    );
    assert_eq!(table, [0; 6], "nothing is written");
    let flatten = |indices: &[i32], dims: &[usize]| flatten_coordinates(&Serial, indices, dims);
    assert_eq!(flatten(&[0, 1, 1, 2, 1, 0], &[2, 2]), bad(1, 2));
    assert_eq!(flatten(&[0, 1, 1, 0], &[2, 2]), Ok(vec![1, 2]));
    assert_eq!(flatten(&[], &[0, 2]), Ok(vec![]));
    assert_eq!(flatten(&[2, 0, 3], &[3]), bad(2, 3));
    assert_eq!(flatten(&[1, 2, 3, 0, 0, -4], &[2, 3, 4]), bad(1, -4));
    assert_eq!(flatten(&[1, 2, 3, 0, 0, 1], &[2, 3, 4]), Ok(vec![23, 1]));
    assert_eq!(flatten(&[1, 0, 2, 3], &[2, 1, 3, 4]), Ok(vec![23]));
    assert_eq!(flatten(&[1, 1, 2, 3], &[2, 1, 3, 4]), bad(0, 1));
    assert_eq!(partition_positions(&[0, 2, 0], 2), bad(1, 2));
    assert_eq!(
        partition_positions(&[0, 1, 0], 3),
        Ok(vec![vec![0, 2], vec![1], vec![]])
    );
}

#[test]
fn gathers_nothing_from_nothing() {
    let shape = Gather {
        batch: 1,
        outer: 1,
        limit: 0,
        inner: 4,
        count: 0,
    };
    assert_eq!(gather::<u8, i32>(&Serial, shape, &[], &[], &mut []), Ok(()));
    let shape = Gather {
        batch: 1,
        outer: 1,
        limit: 0,
        inner: 4,
        count: 1,
    };
    let mut dst = [0; 4];
    let empty = gather::<u8, i32>(&Serial, shape, &[], &[0], &mut dst);
    assert_eq!(
        empty,
        Err(BadIndex {
            position: 0,
            value: 0
        })
    );
}

#[test]
fn one_hot_ignores_what_is_out_of_range() {
    let mut dst = [0; 12];
    one_hot(&Serial, &[0, 2, -1, 1], 3, 2, (&5, &1), &mut dst);
    assert_eq!(dst, [5, 1, 1, 1, 1, 5, 1, 1, 1, 5, 1, 1]);
    let mut dst = [0; 6];
    one_hot_bytes(&Serial, 1, &[1, 3], 3, 1, (&[5], &[1]), &mut dst);
    assert_eq!(dst, [1, 5, 1, 1, 1, 1]);
}

#[test]
fn lists_distinct_elements() {
    let mut index = Vec::new();
    let key = |x: f32| u64::from((x + 0.0).to_bits());
    let found = unique(&[f32::NAN, 0.0, -0.0, f32::NAN], key, |number| {
        index.push(number);
    });
    assert_eq!(index, [0, 1, 1, 2]);
    assert_eq!(found.first, [0, 1, 3]);
}
