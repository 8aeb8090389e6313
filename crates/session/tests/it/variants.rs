//! Gradients through sparse matrices and ragged tensors that are values of variants.

use tensorfleet_graph::text;

use crate::graphs::{builder, session, values};
use crate::lists::gradient_of;

/// Compares the gradient by the rules with the change by each element of `x` alone: all these graphs are linear.
/// `@` stands for the elements of `x`.
fn check(graph: &str, size: usize) {
    let with = |numbers: &[f64]| {
        let numbers: Vec<String> = numbers.iter().map(f64::to_string).collect();
        graph.replace('@', &numbers.join(", "))
    };
    let by_rules = gradient_of(&with(&vec![1.0; size]));
    let by_change: Vec<f64> = (0..size)
        .map(|at| {
            let mut x = vec![0.0; size];
            x[at] = 1.0;
            let mut builder = builder();
            text::parse_graph(&mut builder, &with(&x)).unwrap();
            let session = session(&builder.finish());
            let out = session.run(&[], &["y:0", "weights:0"], &[]).unwrap();
            let (y, weights): (Vec<f64>, Vec<f64>) = (values(&out[0]), values(&out[1]));
            y.iter().zip(&weights).map(|(y, weight)| y * weight).sum()
        })
        .collect();
    assert_eq!(by_rules, by_change, "{graph}");
}

#[test]
fn gradients_flow_through_products_of_sparse_and_dense_matrices() {
    // Each way round, with the sizes that go with it.
    for (flags, b, y) in [
        ("", "3, 2", "2, 2"),
        ("transpose_a=true", "2, 2", "3, 2"),
        ("adjoint_a=true, transpose_output=true", "2, 2", "2, 3"),
        ("transpose_b=true", "2, 3", "2, 2"),
        ("adjoint_b=true, transpose_a=true", "1, 2", "3, 1"),
        ("transpose_b=true, transpose_output=true", "1, 3", "1, 2"),
    ] {
        let count = |dims: &str| -> usize {
            let dims = dims.split(", ").map(|dim| dim.parse::<usize>().unwrap());
            dims.product()
        };
        let ramp = |count: usize| -> String {
            let numbers: Vec<String> = (1..=count).map(|n| (n * n).to_string()).collect();
            numbers.join(", ")
        };
        let graph = |x: &str, b: &str, result: &str| {
            format!(
                "{x}
                 {b}
                 weights = double[{y}]{{{}}}
                 i = int64[3, 2]{{0, 0, 0, 2, 1, 1}}
                 m = DenseToCSRSparseMatrix({result}, i)
                 y = SparseMatrixMatMul(m, b) {{{flags}}}",
                ramp(count(y))
            )
        };
        let b_values = format!("b = double[{b}]{{{}}}", ramp(count(b)));
        check(&graph("x = double[2, 3]{@}", &b_values, "x"), 6);
        let to_b = graph(
            &format!("x = double[{b}]{{@}}\n b = Identity(x)"),
            "a = double[2, 3]{1, 0, 2, 0, 3, 0}",
            "a",
        );
        check(&to_b, count(b));
    }
}

#[test]
fn gradients_flow_through_sparse_products_and_transpositions() {
    for flags in [
        "transpose_b=true",
        "adjoint_b=true",
        "transpose_a=true",
        "adjoint_a=true",
    ] {
        let is_outer = flags.contains("_b");
        let (y, weights) = if is_outer {
            ("2, 2", "1, 2, 3, 4")
        } else {
            ("3, 3", "1, 2, 3, 4, 5, 6, 7, 8, 9")
        };
        for (a, b) in [("m", "n"), ("n", "m")] {
            check(
                &format!(
                    "x = double[3]{{@}}
                     weights = double[{y}]{{{weights}}}
                     i = int64[3, 2]{{0, 0, 0, 2, 1, 1}}
                     s = int64[2]{{2, 3}}
                     m = SparseTensorToCSRSparseMatrix(i, x, s)
                     j = int64[4, 2]{{0, 0, 0, 1, 1, 0, 1, 1}}
                     v = double[4]{{2, 3, 5, 7}}
                     n = SparseTensorToCSRSparseMatrix(j, v, s)
                     p = SparseMatrixSparseMatMul({a}, {b}) {{{flags}, type=DT_DOUBLE}}
                     t = SparseMatrixTranspose(p) {{type=DT_DOUBLE}}
                     y = CSRSparseMatrixToDense(t) {{type=DT_DOUBLE}}"
                ),
                3,
            );
        }
    }
}

#[test]
fn gradients_flow_through_rows_of_ragged_tensors() {
    check(
        "x = double[3]{@}
         weights = double[3]{1, 2, 3}
         outer = int64[3]{0, 2, 3}
         inner = int64[4]{0, 1, 3, 3}
         rows = RaggedTensorToVariant([outer, inner], x) {batched_input=true}
         back = RaggedTensorFromVariant(rows) {input_ragged_rank=1, output_ragged_rank=2, Tvalues=DT_DOUBLE, Tsplits=DT_INT64}
         y = Identity(back:2)",
        3,
    );
}
