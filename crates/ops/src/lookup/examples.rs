//! What tables of each kind do, as data.

use tensorfleet_graph::example::{Script, script};

pub(super) const SHARED: Script = script(
    "shared by name, by the node's name, or not at all",
    "a = HashTableV2() {key_dtype=DT_STRING, value_dtype=DT_INT64, shared_name='t'}
     b = HashTableV2() {key_dtype=DT_STRING, value_dtype=DT_INT64, shared_name='t'}
     own = HashTableV2() {key_dtype=DT_STRING, value_dtype=DT_INT64}
     named = MutableHashTableV2() {key_dtype=DT_STRING, value_dtype=DT_INT64, use_node_name_sharing=true}
     same = MutableHashTableV2() {key_dtype=DT_STRING, value_dtype=DT_INT64, shared_name='named'}
     keys = string[2]{x, y}
     values = int64[2]{1, 2}
     fill = InitializeTableV2(a, keys, values)
     put = LookupTableInsertV2(named, keys, values)
     size_b = LookupTableSizeV2(b)
     size_own = LookupTableSizeV2(own)
     size_same = LookupTableSizeV2(same)
     wrong = HashTableV2() {key_dtype=DT_INT64, value_dtype=DT_INT64, shared_name='t'}
     mutable = MutableHashTableV2() {key_dtype=DT_STRING, value_dtype=DT_FLOAT, shared_name='t'}
     underscore = MutableHashTableV2() {key_dtype=DT_STRING, value_dtype=DT_FLOAT, shared_name='_t'}
     gone = DestroyResourceOp(a)",
    &[
        "run fill, put",
        "fetch size_b, size_own, size_same => int64[]{2}; int64[]{0}; int64[]{2}",
        "run wrong fails INVALID_ARGUMENT Conflicting key/value dtypes int64->int64 with string-int64 for table t",
        "run mutable fails INVALID_ARGUMENT Conflicting key/value dtypes string->float with string-int64 for table t",
        "run underscore fails INVALID_ARGUMENT shared_name cannot start with '_':_t",
        "run gone",
        "fetch size_b => int64[]{0}",
    ],
);

pub(super) const BY_NAME: Script = script(
    "by reference to a name",
    "h = HashTable() {key_dtype=DT_INT32, value_dtype=DT_DOUBLE, shared_name='h'}
     m = MutableHashTable() {key_dtype=DT_STRING, value_dtype=DT_BOOL}
     r = MutableHashTableOfTensors() {key_dtype=DT_INT64, value_dtype=DT_FLOAT, value_shape=[2]}
     hk = int32[2]{1, 2}
     hv = double[2]{0.5, 1.5}
     fill = InitializeTable(h, hk, hv)
     mk = string[1]{k}
     mv = bool[1]{true}
     put_m = LookupTableInsert(m, mk, mv)
     rk = int64[1]{3}
     rv = float[1,2]{1, 2}
     put_r = LookupTableInsert(r, rk, rv)
     hd = double[]{-1}
     hi = int32[2]{2, 3}
     find_h = LookupTableFind(h, hi, hd)
     md = bool[]{false}
     mi = string[2]{k, l}
     find_m = LookupTableFind(m, mi, md)
     rd = float[2]{8, 9}
     ri = int64[2]{2, 3}
     find_r = LookupTableFind(r, ri, rd)
     wrong = HashTable() {key_dtype=DT_INT32, value_dtype=DT_FLOAT, shared_name='h'}",
    &[
        "run fill, put_m, put_r",
        "fetch find_h, find_m, find_r => double[2]{1.5, -1}; bool[2]{true, false}; float[2,2]{8, 9, 1, 2}",
        "run wrong fails INVALID_ARGUMENT Conflicting key/value dtypes int32->float with int32-double for table h",
    ],
);

pub(super) const ANONYMOUS: Script = script(
    "new in every step",
    "h = AnonymousHashTable() {key_dtype=DT_INT64, value_dtype=DT_INT64}
     m = AnonymousMutableHashTable() {key_dtype=DT_INT64, value_dtype=DT_INT64}
     r = AnonymousMutableHashTableOfTensors() {key_dtype=DT_INT64, value_dtype=DT_INT64, value_shape=[1]}
     e = int64[]{-1}
     g = int64[]{-2}
     d = AnonymousMutableDenseHashTable(e, g) {value_dtype=DT_INT64, initial_num_buckets=4}
     keys = int64[2]{1, 2}
     values = int64[2]{3, 4}
     rows = int64[2,1]{3, 4}
     fill_h = InitializeTableV2(h, keys, values)
     put_m = LookupTableInsertV2(m, keys, values)
     put_r = LookupTableInsertV2(r, keys, rows)
     put_d = LookupTableInsertV2(d, keys, values)
     size_h = LookupTableSizeV2(h)
     size_m = LookupTableSizeV2(m)
     size_r = LookupTableSizeV2(r)
     size_d = LookupTableSizeV2(d)
     full_h = LookupTableSizeV2(h, ^fill_h)
     full_m = LookupTableSizeV2(m, ^put_m)
     full_r = LookupTableSizeV2(r, ^put_r)
     full_d = LookupTableSizeV2(d, ^put_d)",
    &[
        "fetch full_h, full_m, full_r, full_d => int64[]{2}; int64[]{2}; int64[]{2}; int64[]{2}",
        "fetch size_h, size_m, size_r, size_d => int64[]{0}; int64[]{0}; int64[]{0}; int64[]{0}",
    ],
);

pub(super) const ROWS_WRONG: Script = script(
    "values are vectors",
    "scalars = MutableHashTableOfTensorsV2() {key_dtype=DT_INT64, value_dtype=DT_FLOAT}
     matrices = MutableHashTableOfTensorsV2() {key_dtype=DT_INT64, value_dtype=DT_FLOAT, value_shape=[2,2]}
     t = MutableHashTableOfTensorsV2() {key_dtype=DT_INT64, value_dtype=DT_FLOAT, value_shape=[2]}
     keys = int64[2]{1, 2}
     values = float[2]{1, 2}
     wide = float[2,3]{1}
     put = LookupTableInsertV2(t, keys, values)
     put_wide = LookupTableInsertV2(t, keys, wide)
     none = float[]{0}
     find = LookupTableFindV2(t, keys, none)
     empty = MutableHashTableOfTensorsV2() {key_dtype=DT_INT64, value_dtype=DT_FLOAT, value_shape=[0]}
     nothing = float[2,0]{}
     put_nothing = LookupTableInsertV2(empty, keys, nothing)
     no_value = float[0]{}
     found_nothing = LookupTableFindV2(empty, keys, no_value)
     size = LookupTableSizeV2(empty)",
    &[
        "run scalars fails INVALID_ARGUMENT Default value must be a vector, got shape []",
        "run matrices fails INVALID_ARGUMENT Default value must be a vector, got shape [2,2]",
        "run put fails INVALID_ARGUMENT Expected shape [2,2] for value, got [2]",
        "run put_wide fails INVALID_ARGUMENT Expected shape [2,2] for value, got [2,3]",
        "fetch find fails INVALID_ARGUMENT Expected shape [2] or [2,2] for default value, got []",
        "run put_nothing",
        "fetch size, found_nothing => int64[]{2}; float[2,0]{}",
    ],
);

pub(super) const DENSE: Script = script(
    "buckets in TensorFlow's order",
    "e = int64[]{-1}
     g = int64[]{-2}
     t = MutableDenseHashTableV2(e, g) {value_dtype=DT_FLOAT, initial_num_buckets=8}
     keys = int64[4]{3, 11, 12, 19}
     values = float[4]{1, 2, 3, 4}
     put = LookupTableInsertV2(t, keys, values)
     some = int64[2]{11, 7}
     drop = LookupTableRemoveV2(t, some)
     out = LookupTableExportV2(t) {Tkeys=DT_INT64, Tvalues=DT_FLOAT}
     default = float[]{-1}
     own = float[4]{5, 6, 7, 8}
     found = LookupTableFindV2(t, keys, default)
     first = LookupTableFindV2(t, keys, own)
     size = LookupTableSizeV2(t)
     u = MutableDenseHashTableV2(e, g) {value_dtype=DT_FLOAT}
     import = LookupTableImportV2(u, out, out:1)
     found_u = LookupTableFindV2(u, keys, default)
     size_u = LookupTableSizeV2(u)
     one = int64[]{12}
     found_one = LookupTableFindV2(t, one, default)",
    &[
        "run put",
        "fetch size, found => int64[]{4}; float[4]{1, 2, 3, 4}",
        "fetch out, out:1 => int64[8,1]{-1, -1, -1, 3, 11, 12, 19, -1}; float[8,1]{0, 0, 0, 1, 2, 3, 4, 0}",
        "run drop",
        "fetch size, found, found_one => int64[]{3}; float[4]{1, -1, 3, 4}; float[]{3}",
        "fetch first => float[4]{1, 5, 3, 4}",
        "fetch out => int64[8,1]{-1, -1, -1, 3, -2, 12, 19, -1}",
        "run import",
        "fetch size_u, found_u => int64[]{3}; float[4]{1, -1, 3, 4}",
        "run put",
        "fetch out => ?",
    ],
);

pub(super) const DENSE_GROWS: Script = script(
    "grows as TensorFlow's does, strings too",
    "e = string[]{}
     g = string[]{'-'}
     t = MutableDenseHashTableV2(e, g) {value_dtype=DT_INT64, initial_num_buckets=4, max_load_factor=0.5}
     keys = string[5]{a, bc, 'eight ch', 'rather more than eight', ä}
     values = int64[5]{1, 2, 3, 4, 5}
     put = LookupTableInsertV2(t, keys, values)
     out = LookupTableExportV2(t) {Tkeys=DT_STRING, Tvalues=DT_INT64}
     more_keys = string[9]{b, c, d, f, h, i, j, k, a}
     more = int64[9]{11, 12, 13, 14, 15, 16, 17, 18, 19}
     put_more = LookupTableInsertV2(t, more_keys, more)
     default = int64[]{-1}
     found = LookupTableFindV2(t, keys, default)
     size = LookupTableSizeV2(t)",
    &[
        "run put",
        "fetch out, out:1 => ?",
        "run put_more",
        "fetch out, out:1 => ?",
        "fetch size, found => int64[]{13}; int64[5]{19, 2, 3, 4, 5}",
    ],
);

pub(super) const DENSE_ROWS: Script = script(
    "vectors as keys and values",
    "e = int64[2]{0, 0}
     g = int64[2]{-1, -1}
     t = MutableDenseHashTableV2(e, g) {value_dtype=DT_INT32, value_shape=[3], initial_num_buckets=4, max_load_factor=0.8}
     keys = int64[2,2]{0, 1, 1, 0}
     values = int32[2,3]{1, 2, 3, 4, 5, 6}
     put = LookupTableInsertV2(t, keys, values)
     ask = int64[3,2]{1, 0, 1, 1, 0, 1}
     default = int32[3]{7, 8, 9}
     found = LookupTableFindV2(t, ask, default)
     single = int64[2]{1, 0}
     deep = int64[1,3,2]{1, 0, 1, 1, 0, 1}
     found_deep = LookupTableFindV2(t, deep, default)
     wrong = int64[3]{1, 2, 3}
     bad = LookupTableFindV2(t, wrong, default)
     drop = LookupTableRemoveV2(t, ask)
     out = LookupTableExportV2(t) {Tkeys=DT_INT64, Tvalues=DT_INT32}
     size = LookupTableSizeV2(t)",
    &[
        "run put",
        "fetch out, out:1 => ?",
        "fetch found => int32[3,3]{4, 5, 6, 7, 8, 9, 1, 2, 3}",
        "fetch found_deep fails INVALID_ARGUMENT Expected key shape [1,2] got [1,3,2]",
        "fetch bad fails INVALID_ARGUMENT must end with the table's key shape [2]",
        "run drop",
        "fetch size => int64[]{0}",
    ],
);

pub(super) const DENSE_WRONG: Script = script(
    "keys that nobody may use, and sizes that are none",
    "e = int64[]{-1}
     g = int64[]{-2}
     v = int64[2]{-1, -2}
     t = MutableDenseHashTableV2(e, g) {value_dtype=DT_INT64, initial_num_buckets=4}
     load = MutableDenseHashTableV2(e, g) {value_dtype=DT_INT64, max_load_factor=1.5}
     buckets = MutableDenseHashTableV2(e, g) {value_dtype=DT_INT64, initial_num_buckets=12}
     few = MutableDenseHashTableV2(e, g) {value_dtype=DT_INT64, initial_num_buckets=2}
     equal = MutableDenseHashTableV2(e, e) {value_dtype=DT_INT64}
     shapes = MutableDenseHashTableV2(e, v) {value_dtype=DT_INT64}
     deep_value = MutableDenseHashTableV2(e, g) {value_dtype=DT_INT64, value_shape=[2,2]}
     keys = int64[1]{-1}
     gone = int64[1]{-2}
     values = int64[1]{1}
     none = int64[]{0}
     put = LookupTableInsertV2(t, keys, values)
     put_gone = LookupTableInsertV2(t, gone, values)
     find = LookupTableFindV2(t, keys, none)
     find_gone = LookupTableFindV2(t, gone, none)
     drop = LookupTableRemoveV2(t, keys)
     matrix = int64[2,2]{1}
     put_matrix = LookupTableInsertV2(t, matrix, matrix)
     narrow = int64[4,1]{1, 2, 3, 4}
     wide = int64[4,2]{1}
     import_wide = LookupTableImportV2(t, narrow, wide)
     fill = InitializeTableV2(t, keys, values)",
    &[
        "run load fails INVALID_ARGUMENT max_load_factor must be between 0 and 1, got: 1.5",
        "run buckets fails INVALID_ARGUMENT Number of buckets must be at least 4 and a power of 2, got: 12",
        "run few fails INVALID_ARGUMENT Number of buckets must be at least 4 and a power of 2, got: 2",
        "run equal fails INVALID_ARGUMENT Empty and deleted keys cannot be equal",
        "run shapes fails INVALID_ARGUMENT Empty and deleted keys must have same shape, got shapes: [] and [2]",
        "run deep_value fails INVALID_ARGUMENT Empty value must be a scalar or a vector, got shape [2,2]",
        "run put fails INVALID_ARGUMENT Using the empty_key as a table key is not allowed",
        "run put_gone fails INVALID_ARGUMENT Using the deleted_key as a table key is not allowed",
        "fetch find fails INVALID_ARGUMENT Using the empty_key as a table key is not allowed",
        "fetch find_gone fails INVALID_ARGUMENT Using the deleted_key as a table key is not allowed",
        "run drop fails INVALID_ARGUMENT Using the empty_key as a table key is not allowed",
        "run put_matrix fails INVALID_ARGUMENT Expected key shape [2] got [2,2]",
        "run import_wide fails INVALID_ARGUMENT Expected shape [4,1] for value, got [4,2]",
        "run fill fails INVALID_ARGUMENT is not initializable",
    ],
);

pub(super) const DENSE_BY_NAME: Script = script(
    "lacks a key that its kernel wants",
    "e = int64[]{-1}
     t = MutableDenseHashTable(e) {value_dtype=DT_INT64, initial_num_buckets=4}
     size = LookupTableSize(t)",
    &["fetch size fails INVALID_ARGUMENT Unknown input name: deleted_key"],
);
