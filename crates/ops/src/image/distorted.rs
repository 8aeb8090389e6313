//! `SampleDistortedBoundingBox` in all versions: a random part of an image that shows enough of one of its boxes.
//!
//! TensorFlow: SampleDistortedBoundingBoxV2(image_size: T, bounding_boxes: float, min_object_covered: float) -> begin: T, size: T,
//! bboxes: float, with seed, seed2, aspect_ratio_range, area_range, max_attempts, use_image_if_no_bounding_boxes; the first version has
//! min_object_covered as an attribute, StatelessSampleDistortedBoundingBox takes a seed as its last input. If no part is found the
//! whole image is returned.

use tensorfleet_graph::example::{Lit, ex_err, ex_ref, f32s, i32s, i64s, script};
use tensorfleet_graph::infer::InferCtx;
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, Attrs, KernelCtx, NodeInfo};
use tensorfleet_math::random::Philox;
use tensorfleet_status::{Code, Result, ensure, invalid_argument};
use tensorfleet_tensor::{PartialShape, Shape, Tensor};

use crate::math::cast::{converted, integers};
use crate::random::{Stream, Words};
use crate::types::INTEGERS;

const SIZE: Lit = i32s(&[3], &[40, 50, 3]);
const BOXES: Lit = f32s(&[1, 2, 4], &[0.25, 0.25, 0.75, 0.5, 0.0, 0.5, 0.25, 1.0]);
const SEED: Lit = i64s(&[2], &[3, 8]);

const SAMPLE: OpDef = OpDef {
    outputs: &["begin: T", "size: T", "bboxes: float"],
    infer: sampled,
    exactness: Exactness::Bits,
    ..OpDef::BLANK
};

pub(crate) static OPS: [OpDef; 3] = [
    OpDef {
        name: "SampleDistortedBoundingBox",
        inputs: &["image_size: T", "bounding_boxes: float"],
        attrs: &[
            "T: {uint8, int8, int16, int32, int64}",
            "seed: int = 0",
            "seed2: int = 0",
            "min_object_covered: float = 0.1",
            "aspect_ratio_range: list(float) = [0.75, 1.33]",
            "area_range: list(float) = [0.05, 1.0]",
            "max_attempts: int = 100",
            "use_image_if_no_bounding_boxes: bool = false",
        ],
        stateful: true,
        gradient: Gradient::Stop("as in TensorFlow, which does not differentiate it"),
        kernels: &[cpu(&[("T", INTEGERS)], build)],
        examples: &[
            ex_err(
                "no boxes",
                &[],
                &[SIZE, f32s(&[1, 0, 4], &[])],
                Code::InvalidArgument,
                "No bounding boxes provided as input.",
            ),
            ex_err(
                "area",
                &[("area_range", "[0.5, 1.5]")],
                &[SIZE, BOXES],
                Code::InvalidArgument,
                "Area range must be less then or equal to 1.0",
            ),
        ],
        scripts: &[script(
            "two steps",
            "s = int32[3]{40, 50, 3}\nb = float[1,1,4]{0.25, 0.25, 0.75, 0.5}\nd = SampleDistortedBoundingBox(s, b) {seed=3, seed2=9, min_object_covered=0.5}",
            &["fetch d, d:1, d:2 => ?", "fetch d, d:1, d:2 => ?"],
        )],
        ..SAMPLE
    },
    OpDef {
        name: "SampleDistortedBoundingBoxV2",
        inputs: &[
            "image_size: T",
            "bounding_boxes: float",
            "min_object_covered: float",
        ],
        attrs: &[
            "T: {uint8, int8, int16, int32, int64}",
            "seed: int = 0",
            "seed2: int = 0",
            "aspect_ratio_range: list(float) = [0.75, 1.33]",
            "area_range: list(float) = [0.05, 1.0]",
            "max_attempts: int = 100",
            "use_image_if_no_bounding_boxes: bool = false",
        ],
        stateful: true,
        gradient: Gradient::Stop("as in TensorFlow, which does not differentiate it"),
        kernels: &[cpu(&[("T", INTEGERS)], build)],
        scripts: &[script(
            "the whole image if there is no box",
            "s = int64[3]{40, 50, 3}\nb = float[0,0,4]{}\nm = float[]{0.25}\nd = SampleDistortedBoundingBoxV2(s, b, m) {seed=3, use_image_if_no_bounding_boxes=true}",
            &["fetch d, d:1, d:2 => ?"],
        )],
        ..SAMPLE
    },
    OpDef {
        name: "StatelessSampleDistortedBoundingBox",
        inputs: &[
            "image_size: T",
            "bounding_boxes: float",
            "min_object_covered: float",
            "seed: Tseed",
        ],
        attrs: &[
            "T: {uint8, int8, int16, int32, int64}",
            "Tseed: {int32, int64}",
            "aspect_ratio_range: list(float) = [0.75, 1.33]",
            "area_range: list(float) = [0.05, 1.0]",
            "max_attempts: int = 100",
            "use_image_if_no_bounding_boxes: bool = false",
        ],
        gradient: Gradient::None("TensorFlow has none"),
        kernels: &[cpu(&[("T", INTEGERS)], build)],
        examples: &[
            ex_ref(
                "half of a box",
                &[],
                &[SIZE, BOXES, f32s(&[], &[0.5]), SEED],
            ),
            ex_ref(
                "hardly possible",
                &[("max_attempts", "2"), ("area_range", "[0.05, 0.06]")],
                &[SIZE, BOXES, f32s(&[], &[1.0]), SEED],
            ),
            ex_err(
                "boxes",
                &[],
                &[SIZE, f32s(&[1, 1, 4], &[1.5]), f32s(&[], &[0.5]), SEED],
                Code::InvalidArgument,
                "All bounding box coordinates must be in [0.0, 1.0]: 1.5",
            ),
        ],
        ..SAMPLE
    },
];

fn sampled(ctx: &mut InferCtx<'_>) -> Result<()> {
    ctx.set(0, PartialShape::new(&[3]));
    ctx.set(1, PartialShape::new(&[3]));
    ctx.set(2, PartialShape::new(&[1, 1, 4]));
    Ok(())
}

/// A node's attributes.
#[derive(Clone, Copy)]
struct Sampling {
    min_object_covered: Option<f32>,
    use_image: bool,
    aspect_ratio: [f32; 2],
    area: [f32; 2],
    max_attempts: u64,
}

impl Sampling {
    fn new(attrs: &Attrs) -> Result<Sampling> {
        let range = |name: &str, what: &str| -> Result<[f32; 2]> {
            let Ok(range) = <[f32; 2]>::try_from(attrs.floats(name)?) else {
                return Err(invalid_argument!(
                    "{what} range field must specify 2 dimensions"
                ));
            };
            ensure!(
                range[0] > 0.0 && range[1] > 0.0,
                invalid_argument,
                "{what} range must be non-negative: [{}, {}]",
                range[0],
                range[1]
            );
            Ok(range)
        };
        let area = range("area_range", "Area")?;
        ensure!(
            area[0] <= 1.0 && area[1] <= 1.0,
            invalid_argument,
            "Area range must be less then or equal to 1.0: [{}, {}]",
            area[0],
            area[1]
        );
        let attempts = attrs.int("max_attempts")?;
        ensure!(
            attempts > 0,
            invalid_argument,
            "Max attempts must be non-negative: {attempts}"
        );
        let min_object_covered = match attrs.get("min_object_covered") {
            Some(_) => Some(attrs.float("min_object_covered")?),
            None => None,
        };
        if let Some(covered) = min_object_covered {
            check_covered(covered)?;
        }
        Ok(Sampling {
            min_object_covered,
            use_image: attrs.bool("use_image_if_no_bounding_boxes")?,
            aspect_ratio: range("aspect_ratio_range", "Aspect ratio")?,
            area,
            max_attempts: attempts as u64,
        })
    }
}

fn check_covered(covered: f32) -> Result<()> {
    ensure!(
        covered >= 0.0,
        invalid_argument,
        "Min object covered must be non-negative: {covered}"
    );
    Ok(())
}

/// A part of an image: its first pixels and those behind its last ones, columns and rows.
#[derive(Clone, Copy)]
struct Part {
    x: [i64; 2],
    y: [i64; 2],
}

impl Part {
    fn area(&self) -> f32 {
        ((self.x[1] - self.x[0]) * (self.y[1] - self.y[0])) as f32
    }

    fn shared(&self, other: &Part) -> f32 {
        let overlap = |a: [i64; 2], b: [i64; 2]| a[1].min(b[1]) - a[0].max(b[0]);
        let (x, y) = (overlap(self.x, other.x), overlap(self.y, other.y));
        if x < 0 || y < 0 { 0.0 } else { (x * y) as f32 }
    }

    /// Whether it shows this share of one of the boxes.
    fn shows(&self, share: f32, boxes: &[Part]) -> bool {
        let mut boxes = boxes.iter().filter(|found| found.area() >= 1.0);
        self.area() >= 1.0 && boxes.any(|found| self.shared(found) / found.area() >= share)
    }
}

/// A random part with this ratio of width to height.
fn draw(words: &mut Words, [width, height]: [i64; 2], area: [f32; 2], ratio: f32) -> Option<Part> {
    if ratio <= 0.0 || width <= 0 || height <= 0 || area[0] > area[1] {
        return None;
    }
    let [least, most] = area.map(|area| area * width as f32 * height as f32);
    let wide = |rows: i64| (rows as f32 * ratio).round_ties_even() as i64;
    let mut rows = (least / ratio).sqrt().round_ties_even() as i64;
    let mut most_rows = (most / ratio).sqrt().round_ties_even() as i64;
    if wide(most_rows) > width {
        most_rows = ((width as f64 + 0.5 - 1e-7) / f64::from(ratio)) as i64;
        if wide(most_rows) > width {
            most_rows -= 1;
        }
    }
    let most_rows = most_rows.min(height);
    rows = rows.min(most_rows);
    if rows < most_rows {
        rows += i64::from(words.below((most_rows - rows + 1) as u32));
    }
    let size = |rows: i64| (wide(rows) * rows) as f32;
    if size(rows) < least {
        rows += 1;
    }
    if size(rows) > most {
        rows -= 1;
    }
    let columns = wide(rows);
    let fits = columns <= width && rows <= height && columns > 0 && rows > 0;
    if !fits || size(rows) < least || size(rows) > most {
        return None;
    }
    let mut place = |size: i64, whole: i64| match size < whole {
        true => i64::from(words.below((whole - size) as u32)),
        false => 0,
    };
    let y = place(rows, height);
    let x = place(columns, width);
    Some(Part {
        x: [x, x + columns],
        y: [y, y + rows],
    })
}

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let sampling = Sampling::new(&node.attrs)?;
    let dtype = node.attrs.dtype("T")?;
    let stream = match node.attrs.get("seed") {
        Some(_) => Some(Stream::new(node)?),
        None => None,
    };
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        // Four words an attempt, four words a sample.
        let philox = match &stream {
            Some(stream) => stream.reserve_samples(sampling.max_attempts),
            None => {
                let seed = ctx.ints(3)?;
                let Ok(seed) = <[i64; 2]>::try_from(seed.as_slice()) else {
                    return Err(invalid_argument!(
                        "seed must have shape [2], not {}",
                        ctx.input(3)?.shape()
                    ));
                };
                Philox::stateless(seed)
            }
        };
        let (size, part) = sample(ctx, sampling, Words::new(philox))?;
        let begin = [part.y[0], part.x[0], 0];
        let extent = [part.y[1] - part.y[0], part.x[1] - part.x[0], -1];
        let [height, width] = size.map(|size| size as f32);
        let edges = [
            part.y[0] as f32 / height,
            part.x[0] as f32 / width,
            part.y[1] as f32 / height,
            part.x[1] as f32 / width,
        ];
        ctx.set(0, converted(ctx.par(), &Tensor::vector(&begin), dtype)?);
        ctx.set(1, converted(ctx.par(), &Tensor::vector(&extent), dtype)?);
        ctx.set(2, Tensor::vector(&edges).reshaped(Shape::new(&[1, 1, 4])?)?);
        Ok(())
    })
}

/// Height and width of the image, and a part of it.
fn sample(ctx: &KernelCtx<'_>, sampling: Sampling, mut words: Words) -> Result<([i64; 2], Part)> {
    let (size, boxes) = (ctx.input(0)?, ctx.input(1)?);
    ensure!(
        size.rank() == 1,
        invalid_argument,
        "image_size must be 1-dimensional{}",
        size.shape()
    );
    let &[height, width, _] = integers(size)?.as_slice() else {
        return Err(invalid_argument!(
            "image_size must contain 3 elements{}",
            size.shape()
        ));
    };
    for (length, name) in [(height, "height"), (width, "width")] {
        ensure!(
            (0..i64::from(i32::MAX)).contains(&length),
            invalid_argument,
            "image {name} cannot be >= int32 max"
        );
    }
    ensure!(
        boxes.rank() == 3,
        invalid_argument,
        "input boxes must be 3-dimensional [batch, num_boxes, coords]: {}",
        boxes.shape()
    );
    ensure!(
        boxes.shape().dim(2) == 4,
        invalid_argument,
        "bounding boxes must have shape [4] or [*, 4], got {}",
        boxes.shape()
    );
    let covered = match sampling.min_object_covered {
        Some(covered) => covered,
        None => {
            let covered = ctx.input(2)?;
            ensure!(
                covered.rank() == 0,
                invalid_argument,
                "min_object_covered must be 0-D, got shape {}",
                covered.shape()
            );
            covered.to_scalar::<f32>()?
        }
    };
    check_covered(covered)?;
    let mut found = Vec::new();
    for corners in boxes.slice::<f32>()?.as_chunks::<4>().0 {
        if let Some(edge) = corners.iter().find(|edge| !(0.0..=1.0).contains(*edge)) {
            return Err(invalid_argument!(
                "All bounding box coordinates must be in [0.0, 1.0]: {edge}"
            ));
        }
        let place = |edge: f32, size: i64| (edge * size as f32) as i64;
        let [top, left, bottom, right] = *corners;
        found.push(Part {
            x: [place(left, width), place(right, width)],
            y: [place(top, height), place(bottom, height)],
        });
    }
    let whole = Part {
        x: [0, width],
        y: [0, height],
    };
    if found.is_empty() {
        ensure!(
            sampling.use_image,
            invalid_argument,
            "No bounding boxes provided as input. One must enable use_image_if_no_bounding_boxes if you wish to not provide any bounding boxes."
        );
        found.push(whole);
    }
    for _ in 0..sampling.max_attempts {
        let [low, high] = sampling.aspect_ratio;
        let ratio = words.float() * (high - low) + low;
        let part = draw(&mut words, [width, height], sampling.area, ratio);
        if let Some(part) = part.filter(|part| part.shows(covered, &found)) {
            return Ok(([height, width], part));
        }
        if ctx.is_cancelled() {
            break;
        }
    }
    Ok(([height, width], whole))
}
