use super::*;

/// Runs every kernel of a table against plain loops; whole numbers make all sums exact.
fn check_table<T: Real + From<i16> + std::fmt::Debug>(kernels: &Kernels<T>) {
    let number = |i: usize| T::from((i * 2654435761 % 13) as i16 - 6);
    let data: Vec<T> = (0..20_000).map(number).collect();
    for rows in 1..=kernels.rows() {
        for used in 1..=kernels.columns() {
            for (depth, segments) in [(0, 1), (1, 1), (7, 1), (5, 3), (1, 4)] {
                for store in [
                    Store::Set,
                    Store::Add,
                    Store::Scale(T::from(2), T::from(-3)),
                    Store::Scale(T::from(2), T::ZERO),
                ] {
                    let width = kernels.tile(rows, used).1;
                    assert!(used <= width && width <= used.next_multiple_of(kernels.lanes));
                    let (a_row, a_step, a_segment) = (41, 2, 500);
                    let (b_step, b_segment, c_row) = (width + 3, 900, width + 1);
                    // C ends with the last element of the tile, and what lies between its rows must stay.
                    let old: Vec<T> = (0..(rows - 1) * c_row + used).map(number).collect();
                    let mut c = old.clone();
                    let tile = Tile {
                        depth,
                        segments,
                        a: data.as_ptr(),
                        a_row,
                        a_step,
                        a_segment,
                        b: data.as_ptr(),
                        b_step,
                        b_segment,
                        c: c.as_mut_ptr(),
                        c_row,
                        store,
                    };
                    // SAFETY: all strides stay inside `data` and `c`; only tables this CPU can run get here.
                    unsafe { kernels.run(rows, used, &tile) };
                    let mut expected = old;
                    for i in 0..rows {
                        for j in 0..used {
                            let mut sum = T::ZERO;
                            for (s, p) in
                                (0..segments).flat_map(|s| (0..depth).map(move |p| (s, p)))
                            {
                                let x = data[i * a_row + s * a_segment + p * a_step];
                                sum = sum.plus(x.times(data[s * b_segment + p * b_step + j]));
                            }
                            let to = &mut expected[i * c_row + j];
                            *to = match store {
                                Store::Set => sum,
                                Store::Add => to.plus(sum),
                                Store::Scale(alpha, beta) => alpha.times(sum).plus(beta.times(*to)),
                            };
                        }
                    }
                    assert_eq!(
                        c, expected,
                        "{} {rows}x{used} depth {depth}·{segments} {store:?}",
                        kernels.name
                    );
                }
            }
        }
    }
    for width in 1..40 {
        for depth in [1, 3, 8, 19, 64] {
            let stride = depth + 5;
            let mut to = vec![T::ZERO; width * depth + kernels.lanes];
            // SAFETY: `width` lines of `stride` lie in `data`; `to` has one vector to spare.
            unsafe { (kernels.pack)(data.as_ptr(), stride, width, depth, to.as_mut_ptr()) };
            for (i, x) in to[..width * depth].iter().enumerate() {
                assert_eq!(
                    *x,
                    data[i % width * stride + i / width],
                    "{} pack {width}x{depth}",
                    kernels.name
                );
            }
        }
    }
    for (n, k) in [(1, 1), (3, 5), (4, 64), (7, 33), (50, 70)] {
        let x = &data[3..3 + k];
        let mut y: Vec<T> = data[..n].to_vec();
        // SAFETY: `n·k` elements lie in `data`.
        unsafe { (kernels.axpy)(x, data.as_ptr(), n, &mut y) };
        for j in 0..n {
            let sum = (0..k).fold(data[j], |sum, p| sum.plus(x[p].times(data[p * n + j])));
            assert_eq!(y[j], sum, "{} axpy {n}x{k}", kernels.name);
        }
        // SAFETY: `n·k` elements lie in `data`.
        unsafe { (kernels.dot)(x, data.as_ptr(), k, &mut y) };
        for j in 0..n {
            let sum = (0..k).fold(T::ZERO, |sum, p| sum.plus(x[p].times(data[j * k + p])));
            assert_eq!(y[j], sum, "{} dot {n}x{k}", kernels.name);
        }
    }
}

#[test]
fn every_table_agrees_with_plain_loops() {
    check_table(&portable::F64);
    all_f32().into_iter().for_each(check_table);
    available_f64().into_iter().for_each(check_table);
}
