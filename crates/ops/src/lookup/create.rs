//! `HashTableV2`, `MutableHashTableV2`, `MutableHashTableOfTensorsV2`, `MutableDenseHashTableV2`, their older forms and
//! their anonymous ones: make tables.
//!
//! TensorFlow: HashTableV2() -> table_handle: resource, filled once, with attrs container: string = "", shared_name: string
//! = "", use_node_name_sharing: bool = false, key_dtype: type, value_dtype: type. Without a shared name a table is the node's
//! own, or goes by the node's name. The mutable ones are filled at any time; OfTensors also has value_shape: shape, a vector's.
//! MutableDenseHashTableV2(empty_key: key_dtype, deleted_key: key_dtype) takes vectors as keys, and keeps buckets marked by
//! two keys that nobody may use: value_shape: shape = {}, initial_num_buckets: int = 131072, max_load_factor: float = 0.8.
//! An anonymous table is a new one in every run and ends with its handles. TensorFlow's MutableDenseHashTable lacks the
//! deleted key that its kernel asks for, so that it always fails.

use std::sync::Arc;

use tensorfleet_graph::{Cost, KernelDef, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Result, ensure, invalid_argument};
use tensorfleet_tensor::{DType, Shape};

use super::dense::{Layout, dense};
use super::hashed::hashed;
use super::table::{Contents, Fixed, Table};
use super::{BY_HANDLE, examples};
use crate::data_flow::keeper::Keeper;
use crate::state::names::handle_to;

pub(crate) static OPS: [OpDef; 12] = [
    OpDef {
        name: "AnonymousHashTable",
        attrs: &["key_dtype: type", "value_dtype: type"],
        kernels: &fixed_kernels(build_anonymous),
        scripts: &[examples::ANONYMOUS],
        ..CREATE
    },
    OpDef {
        name: "AnonymousMutableDenseHashTable",
        inputs: MARKS,
        attrs: &[
            "key_dtype: type",
            "value_dtype: type",
            "value_shape: shape = {}",
            "initial_num_buckets: int = 131072",
            "max_load_factor: float = 0.8",
        ],
        kernels: &dense_kernels(build_anonymous),
        scripts: &[examples::ANONYMOUS],
        ..CREATE
    },
    OpDef {
        name: "AnonymousMutableHashTable",
        attrs: &["key_dtype: type", "value_dtype: type"],
        kernels: &mutable_kernels(INT64_TO_SCALAR, build_anonymous),
        scripts: &[examples::ANONYMOUS],
        ..CREATE
    },
    OpDef {
        name: "AnonymousMutableHashTableOfTensors",
        attrs: &[
            "key_dtype: type",
            "value_dtype: type",
            "value_shape: shape = {}",
        ],
        kernels: &mutable_kernels(INT64_TO_ROWS, build_anonymous),
        scripts: &[examples::ANONYMOUS],
        ..CREATE
    },
    OpDef {
        name: "HashTable",
        attrs: NAMED,
        kernels: &fixed_kernels(build_named),
        scripts: &[examples::BY_NAME],
        ..CREATE_REF
    },
    OpDef {
        name: "HashTableV2",
        attrs: NAMED,
        kernels: &fixed_kernels(build_named),
        scripts: &[examples::SHARED],
        ..CREATE
    },
    OpDef {
        name: "MutableDenseHashTable",
        inputs: &["empty_key: key_dtype"],
        attrs: NAMED_DENSE,
        kernels: &dense_kernels(build_named),
        scripts: &[examples::DENSE_BY_NAME],
        ..CREATE_REF
    },
    OpDef {
        name: "MutableDenseHashTableV2",
        inputs: MARKS,
        attrs: NAMED_DENSE,
        kernels: &dense_kernels(build_named),
        scripts: &[
            examples::DENSE,
            examples::DENSE_GROWS,
            examples::DENSE_ROWS,
            examples::DENSE_WRONG,
        ],
        ..CREATE
    },
    OpDef {
        name: "MutableHashTable",
        attrs: NAMED,
        kernels: &mutable_kernels(INT64_TO_SCALAR, build_named),
        scripts: &[examples::BY_NAME],
        ..CREATE_REF
    },
    OpDef {
        name: "MutableHashTableOfTensors",
        attrs: NAMED_ROWS,
        kernels: &mutable_kernels(INT64_TO_ROWS, build_named),
        scripts: &[examples::BY_NAME],
        ..CREATE_REF
    },
    OpDef {
        name: "MutableHashTableOfTensorsV2",
        attrs: NAMED_ROWS,
        kernels: &mutable_kernels(INT64_TO_ROWS, build_named),
        scripts: &[examples::ROWS_WRONG],
        ..CREATE
    },
    OpDef {
        name: "MutableHashTableV2",
        attrs: NAMED,
        kernels: &mutable_kernels(INT64_TO_SCALAR, build_named),
        scripts: &[examples::SHARED],
        ..CREATE
    },
];

const CREATE: OpDef = OpDef {
    outputs: &["table_handle: resource"],
    infer: infer::scalar,
    cost: Cost::Cheap,
    ..BY_HANDLE
};

const CREATE_REF: OpDef = OpDef {
    outputs: &["table_handle: Ref(string)"],
    infer: infer::unknown,
    ..CREATE
};

const MARKS: &[&str] = &["empty_key: key_dtype", "deleted_key: key_dtype"];

const NAMED: &[&str] = &[
    "container: string = ''",
    "shared_name: string = ''",
    "use_node_name_sharing: bool = false",
    "key_dtype: type",
    "value_dtype: type",
];

const NAMED_ROWS: &[&str] = &[
    "container: string = ''",
    "shared_name: string = ''",
    "use_node_name_sharing: bool = false",
    "key_dtype: type",
    "value_dtype: type",
    "value_shape: shape = {}",
];

const NAMED_DENSE: &[&str] = &[
    "container: string = ''",
    "shared_name: string = ''",
    "use_node_name_sharing: bool = false",
    "key_dtype: type",
    "value_dtype: type",
    "value_shape: shape = {}",
    "initial_num_buckets: int = 131072",
    "max_load_factor: float = 0.8",
];

type Types = &'static [(&'static str, &'static [DType])];
type Build = fn(&NodeInfo) -> Result<AnyKernel>;

const INT32: (&str, &[DType]) = ("key_dtype", &[DType::I32]);
const INT64: (&str, &[DType]) = ("key_dtype", &[DType::I64]);
const STRING: (&str, &[DType]) = ("key_dtype", &[DType::String]);

const fn fixed_kernels(build: Build) -> [KernelDef; 3] {
    const VALUES: &[DType] = &[
        DType::F64,
        DType::F32,
        DType::I32,
        DType::String,
        DType::I64,
        DType::Bool,
    ];
    const VALUES_OF_INT32: (&str, &[DType]) = ("value_dtype", VALUES.split_at(4).0);
    const VALUES_OF_INT64: (&str, &[DType]) = ("value_dtype", VALUES.split_at(5).0);
    [
        cpu(&[INT32, VALUES_OF_INT32], build),
        cpu(&[INT64, VALUES_OF_INT64], build),
        cpu(&[STRING, ("value_dtype", VALUES)], build),
    ]
}

/// Of mutable tables with values of one element.
const INT64_TO_SCALAR: Types = &[
    INT64,
    (
        "value_dtype",
        &[
            DType::F64,
            DType::F32,
            DType::I32,
            DType::I64,
            DType::String,
            DType::Variant,
        ],
    ),
];

/// Of mutable tables with vectors as values.
const INT64_TO_ROWS: Types = &[
    INT64,
    (
        "value_dtype",
        &[
            DType::F64,
            DType::F32,
            DType::I32,
            DType::I64,
            DType::String,
        ],
    ),
];

const INT32_TO_NUMBER: Types = &[
    INT32,
    ("value_dtype", &[DType::F64, DType::F32, DType::I32]),
];

const fn mutable_kernels(of_int64: Types, build: Build) -> [KernelDef; 3] {
    const OF_STRING: Types = &[
        STRING,
        (
            "value_dtype",
            &[DType::F64, DType::F32, DType::I32, DType::I64, DType::Bool],
        ),
    ];
    [
        cpu(INT32_TO_NUMBER, build),
        cpu(of_int64, build),
        cpu(OF_STRING, build),
    ]
}

const fn dense_kernels(build: Build) -> [KernelDef; 3] {
    const OF_INT64: Types = &[
        INT64,
        (
            "value_dtype",
            &[
                DType::Bool,
                DType::F64,
                DType::F32,
                DType::I32,
                DType::I64,
                DType::Variant,
            ],
        ),
    ];
    const OF_STRING: Types = &[
        STRING,
        (
            "value_dtype",
            &[
                DType::Bool,
                DType::F64,
                DType::F32,
                DType::I32,
                DType::I64,
                DType::Resource,
            ],
        ),
    ];
    [
        cpu(INT32_TO_NUMBER, build),
        cpu(OF_INT64, build),
        cpu(OF_STRING, build),
    ]
}

fn build_named(node: &NodeInfo) -> Result<AnyKernel> {
    let plan = Plan::of(node)?;
    let keeper: Keeper<Table> = Keeper::of(node)?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let make = |name: &str| plan.make(ctx, name);
        let verify = |table: &Table| {
            ensure!(
                (table.key_dtype, table.value_dtype) == (plan.key, plan.value),
                invalid_argument,
                "Conflicting key/value dtypes {}->{} with {}-{} for table {}",
                plan.key,
                plan.value,
                table.key_dtype,
                table.value_dtype,
                table.name
            );
            Ok(())
        };
        let value = keeper.value(ctx, make, verify)?;
        ctx.set_value(0, value);
        Ok(())
    })
}

fn build_anonymous(node: &NodeInfo) -> Result<AnyKernel> {
    let plan = Plan::of(node)?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let name = format!("Resource-{}", ctx.env().resources.unique_id());
        let table = Arc::new(plan.make(ctx, &name)?);
        let handle = handle_to(ctx, "Anonymous", &name, table);
        ctx.set(0, handle);
        Ok(())
    })
}

/// What a node wants for a table.
struct Plan {
    key: DType,
    value: DType,
    kind: Kind,
}

enum Kind {
    Fixed,
    Scalars,
    Rows(Shape),
    Dense {
        value_shape: Shape,
        buckets: i64,
        max_load_factor: f32,
    },
}

impl Plan {
    fn of(node: &NodeInfo) -> Result<Plan> {
        let attrs = &node.attrs;
        let value_shape = || {
            let shape = attrs.shape("value_shape")?;
            let known = shape.to_shape();
            known.ok_or_else(|| invalid_argument!("value_shape {shape} is not fully known"))
        };
        let kind = if attrs.get("initial_num_buckets").is_some() {
            Kind::Dense {
                value_shape: value_shape()?,
                buckets: attrs.int("initial_num_buckets")?,
                max_load_factor: attrs.float("max_load_factor")?,
            }
        } else if attrs.get("value_shape").is_some() {
            Kind::Rows(value_shape()?)
        } else if node.op.contains("Mutable") {
            Kind::Scalars
        } else {
            Kind::Fixed
        };
        Ok(Plan {
            key: attrs.dtype("key_dtype")?,
            value: attrs.dtype("value_dtype")?,
            kind,
        })
    }

    fn make(&self, ctx: &KernelCtx<'_>, name: &str) -> Result<Table> {
        let scalar = Shape::scalar();
        let (key_shape, value_shape, contents) = match &self.kind {
            Kind::Fixed => {
                let fixed = Fixed {
                    entries: hashed(self.key, self.value, &scalar, false)?,
                    is_initialized: false,
                };
                (scalar.clone(), scalar, Contents::Fixed(fixed))
            }
            Kind::Scalars => {
                let entries = hashed(self.key, self.value, &scalar, true)?;
                (scalar.clone(), scalar, Contents::Mutable(entries))
            }
            Kind::Rows(shape) => {
                ensure!(
                    shape.rank() == 1,
                    invalid_argument,
                    "Default value must be a vector, got shape {shape}"
                );
                let entries = hashed(self.key, self.value, shape, true)?;
                (scalar, shape.clone(), Contents::Mutable(entries))
            }
            Kind::Dense {
                value_shape,
                buckets,
                max_load_factor,
            } => {
                let layout = layout(ctx, (self.value, value_shape), *buckets, *max_load_factor)?;
                let entries = dense(&layout)?;
                let key_shape = layout.empty_key.shape().clone();
                (key_shape, value_shape.clone(), Contents::Dense(entries))
            }
        };
        Ok(Table::new(
            name,
            (self.key, key_shape),
            (self.value, value_shape),
            contents,
        ))
    }
}

/// The layout of a dense table, checked in TensorFlow's order.
fn layout<'a>(
    ctx: &'a KernelCtx<'_>,
    (value, value_shape): (DType, &'a Shape),
    buckets: i64,
    max_load_factor: f32,
) -> Result<Layout<'a>> {
    ensure!(
        max_load_factor > 0.0 && max_load_factor < 1.0,
        invalid_argument,
        "max_load_factor must be between 0 and 1, got: {max_load_factor}"
    );
    ensure!(
        value_shape.rank() <= 1,
        invalid_argument,
        "Empty value must be a scalar or a vector, got shape {value_shape}"
    );
    let empty_key = ctx.input(0)?;
    ensure!(
        empty_key.rank() <= 1,
        invalid_argument,
        "Empty key must be a scalar or a vector, got shape {}",
        empty_key.shape()
    );
    ensure!(
        ctx.num_inputs() > 1,
        invalid_argument,
        "Unknown input name: deleted_key"
    );
    let deleted_key = ctx.input(1)?;
    ensure!(
        empty_key.shape() == deleted_key.shape(),
        invalid_argument,
        "Empty and deleted keys must have same shape, got shapes: {} and {}",
        empty_key.shape(),
        deleted_key.shape()
    );
    Ok(Layout {
        empty_key,
        deleted_key,
        value,
        value_shape,
        buckets,
        max_load_factor,
    })
}
