//! TensorLists and TensorArrays in loops and under differentiation.

use std::time::{Duration, Instant};

use tensorfleet_graph::gradient::{Grad, gradients};
use tensorfleet_graph::{GraphBuilder, text};

use crate::graphs::{builder, close_loop, graph, session, values};

/// Pushes `count` numbers in a loop and returns the sum of the stack and the time of the best of three runs.
fn push_in_loop(count: i32) -> (f32, Duration) {
    let mut graph = graph(&format!(
        "zero = int32[]{{0}}
         one = int32[]{{1}}
         limit = int32[]{{{count}}}
         scalar = int32[0]{{}}
         x = float[]{{1}}
         max = int32[]{{-1}}
         empty = EmptyTensorList(scalar, max) {{element_dtype=DT_FLOAT}}
         i_in = Enter(zero) {{frame_name='loop'}}
         list_in = Enter(empty) {{frame_name='loop'}}
         limit_c = Enter(limit) {{frame_name='loop', is_constant=true}}
         one_c = Enter(one) {{frame_name='loop', is_constant=true}}
         x_c = Enter(x) {{frame_name='loop', is_constant=true}}
         i = Merge([i_in, i_in])
         list = Merge([list_in, list_in])
         less = Less(i, limit_c)
         cond = LoopCond(less)
         i_sw = Switch(i, cond)
         list_sw = Switch(list, cond)
         i_more = AddV2(i_sw:1, one_c)
         list_more = TensorListPushBack(list_sw:1, x_c)
         i_next = NextIteration(i_more)
         list_next = NextIteration(list_more)
         i_out = Exit(i_sw)
         list_out = Exit(list_sw)
         all = TensorListStack(list_out, scalar) {{element_dtype=DT_FLOAT}}"
    ));
    close_loop(&mut graph, &[("i", "i_next"), ("list", "list_next")]);
    let session = session(&graph);
    let mut best = Duration::MAX;
    let mut sum = 0.0;
    for _ in 0..3 {
        let begin = Instant::now();
        let all = session.run(&[], &["all:0"], &[]).unwrap();
        best = best.min(begin.elapsed());
        sum = values::<f32>(&all[0]).iter().sum();
    }
    (sum, best)
}

#[test]
fn pushes_in_a_loop_cost_linear_time() {
    let (few, short) = push_in_loop(2_000);
    let (many, long) = push_in_loop(32_000);
    assert_eq!((few, many), (2_000.0, 32_000.0));
    // 16 times as many: about 16 times as long if lists change in place, 256 times if they are copied.
    assert!(long < short * 80, "{short:?} for 2000, {long:?} for 32000");
}

/// d(sum of `y` times `weights`)/d`x` of a text that computes `y` from `x`.
pub(crate) fn gradient_of(text: &str) -> Vec<f64> {
    let mut builder: GraphBuilder = builder();
    text::parse_graph(&mut builder, text).unwrap();
    let find = |builder: &GraphBuilder, name: &str| builder.graph().find_output(name).unwrap();
    let (x, y, weights) = (
        find(&builder, "x"),
        find(&builder, "y"),
        find(&builder, "weights"),
    );
    builder.set_scope("gradients");
    let grads = gradients(&mut builder, &[y], &[x], &[Some(weights)]).unwrap();
    let Some(Grad::Dense(grad)) = grads[0] else {
        panic!("no dense gradient")
    };
    let name = format!("{}:{}", builder.graph().node(grad.node).name, grad.port);
    let session = session(&builder.finish());
    values(&session.run(&[], &[&name], &[]).unwrap()[0])
}

#[test]
fn gradients_flow_through_arrays() {
    // Rows are written in another order; row 0 is read twice, row 1 never.
    let grad = gradient_of(
        "x = double[3,2]{1, 2, 3, 4, 5, 6}
         three = int32[]{3}
         order = int32[3]{2, 1, 0}
         picks = int32[2]{2, 0}
         two = int32[]{2}
         ta = TensorArrayV3(three) {dtype=DT_DOUBLE, clear_after_read=false}
         w = TensorArrayScatterV3(ta, order, x, ta:1)
         some = TensorArrayGatherV3(ta, picks, w) {dtype=DT_DOUBLE}
         again = TensorArrayReadV3(ta, two, w) {dtype=DT_DOUBLE}
         y = AddV2(some, again)
         weights = double[2,2]{1, 10, 100, 1000}",
    );
    assert_eq!(grad, [102.0, 1020.0, 0.0, 0.0, 100.0, 1000.0]);
    let grad = gradient_of(
        "x = double[3]{1, 2, 3}
         two = int32[]{2}
         zero = int32[]{0}
         lengths = int64[2]{1, 2}
         ta = TensorArrayV3(two) {dtype=DT_DOUBLE, clear_after_read=false}
         w = TensorArraySplitV3(ta, x, lengths, ta:1)
         all = TensorArrayConcatV3(ta, w) {dtype=DT_DOUBLE}
         first = TensorArrayReadV3(ta, zero, w) {dtype=DT_DOUBLE}
         y = Mul(all, first)
         weights = double[3]{1, 10, 100}",
    );
    // y = x * x[0]: d/dx[0] = 2 x[0] + 10 x[1] + 100 x[2].
    assert_eq!(grad, [2.0 + 20.0 + 300.0, 10.0, 100.0]);
    let grad = gradient_of(
        "x = double[2]{3, 4}
         two = int32[]{2}
         zero = int32[]{0}
         one = int32[]{1}
         ta = TensorArrayV3(two) {dtype=DT_DOUBLE}
         square = Mul(x, x)
         w0 = TensorArrayWriteV3(ta, zero, x, ta:1)
         w1 = TensorArrayWriteV3(ta, one, square, w0)
         a = TensorArrayReadV3(ta, zero, w1) {dtype=DT_DOUBLE}
         b = TensorArrayReadV3(ta, one, w1) {dtype=DT_DOUBLE}
         y = AddV2(a, b)
         weights = double[2]{1, 1}",
    );
    assert_eq!(grad, [7.0, 9.0]);
}

#[test]
fn gradients_flow_through_lists() {
    let grad = gradient_of(
        "x = double[3,2]{1, 2, 3, 4, 5, 6}
         row = int32[1]{2}
         one = int32[]{1}
         zero = int32[]{0}
         list = TensorListFromTensor(x, row)
         a = TensorListGetItem(list, one, row) {element_dtype=DT_DOUBLE}
         b = TensorListPopBack(list, row) {element_dtype=DT_DOUBLE}
         product = Mul(a, b:1)
         c = TensorListSetItem(b:0, zero, product)
         d = TensorListPushBack(c, a)
         y = TensorListStack(d, row) {element_dtype=DT_DOUBLE}
         weights = double[3,2]{1, 2, 3, 4, 5, 6}",
    );
    // y = [a * b, a, a] with a = x[1], b = x[2].
    assert_eq!(grad, [0.0, 0.0, 5.0 + 8.0, 2.0 * 6.0 + 10.0, 3.0, 8.0]);
    let grad = gradient_of(
        "x = double[3]{1, 2, 3}
         unknown = int32[]{-1}
         scalar = int32[0]{}
         to = int32[3]{2, 0, 1}
         from = int32[2]{0, 2}
         last = int32[1]{1}
         list = TensorListScatter(x, to, scalar)
         some = TensorListGather(list, from, unknown) {element_dtype=DT_DOUBLE}
         half = double[1]{0.5}
         first = Slice(x, last, last)
         square = Mul(first, first)
         changed = TensorListScatterIntoExistingList(list, square, last)
         longer = int32[]{4}
         more = TensorListResize(changed, longer)
         all = TensorListStack(more, scalar) {element_dtype=DT_DOUBLE}
         axis = int32[]{0}
         y = ConcatV2([some, all], axis)
         weights = double[6]{1, 2, 10, 20, 30, 40}",
    );
    // some = [x1, x0], all = [x1, x1², x0, 0].
    assert_eq!(grad, [2.0 + 30.0, 1.0 + 10.0 + 20.0 * 4.0, 0.0]);
    let grad = gradient_of(
        "x = double[3,1]{1, 2, 3}
         shape = int32[2]{-1, 1}
         none = int64[0]{}
         lengths = int64[2]{1, 2}
         list = TensorListSplit(x, shape, lengths)
         y = TensorListConcatV2(list, shape, none) {element_dtype=DT_DOUBLE}
         weights = double[3,1]{5, 6, 7}",
    );
    assert_eq!(grad, [5.0, 6.0, 7.0]);
}
