//! [`Table`]: the resource behind every lookup table. It checks the shapes of what goes in; a [`Store`] keeps it. The types
//! are checked by the ops.

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use tensorfleet_kernel::Resource;
use tensorfleet_math::par::Par;
use tensorfleet_status::{
    Result, aborted, ensure, failed_precondition, invalid_argument, unimplemented,
};
use tensorfleet_tensor::{DType, Shape, Tensor};

use super::store::{Store, Twice};

/// Keys and their values.
pub(super) struct Table {
    pub(super) name: String,
    pub(super) key_dtype: DType,
    pub(super) value_dtype: DType,
    /// The shape of one key.
    pub(super) key_shape: Shape,
    /// The shape of one value.
    pub(super) value_shape: Shape,
    contents: RwLock<Contents>,
}

/// The entries, and what may be done with them.
pub(super) enum Contents {
    /// Filled once, then only read.
    Fixed(Fixed),
    /// Changed at any time.
    Mutable(Box<dyn Store>),
    /// As `Mutable`, in buckets that go in and out as they are.
    Dense(Box<dyn Store>),
}

/// The entries of a table that is filled once.
pub(super) struct Fixed {
    pub(super) entries: Box<dyn Store>,
    pub(super) is_initialized: bool,
}

impl Resource for Table {
    fn type_name(&self) -> &'static str {
        "N10tensorflow6lookup15LookupInterfaceE"
    }
}

impl Table {
    /// A table with these contents.
    pub(super) fn new(
        name: &str,
        (key_dtype, key_shape): (DType, Shape),
        (value_dtype, value_shape): (DType, Shape),
        contents: Contents,
    ) -> Table {
        Table {
            name: name.to_owned(),
            key_dtype,
            value_dtype,
            key_shape,
            value_shape,
            contents: RwLock::new(contents),
        }
    }

    /// The number of entries; none before a table is filled.
    pub(super) fn len(&self) -> usize {
        match &*self.read() {
            Contents::Fixed(fixed) if !fixed.is_initialized => 0,
            Contents::Fixed(Fixed { entries, .. })
            | Contents::Mutable(entries)
            | Contents::Dense(entries) => entries.len(),
        }
    }

    /// The values of the keys; the default for keys that have none.
    pub(super) fn find(&self, par: &dyn Par, keys: &Tensor, defaults: &Tensor) -> Result<Tensor> {
        let shape = self.shape_of_values(keys)?;
        ensure!(
            *defaults.shape() == self.value_shape || *defaults.shape() == shape,
            invalid_argument,
            "Expected shape {} or {shape} for default value, got {}",
            self.value_shape,
            defaults.shape()
        );
        let mut out = Tensor::new(self.value_dtype, shape)?;
        match &*self.read() {
            Contents::Fixed(fixed) if !fixed.is_initialized => {
                return Err(failed_precondition!("Table not initialized."));
            }
            Contents::Fixed(Fixed { entries, .. }) | Contents::Mutable(entries) => {
                entries.find(par, keys, defaults, &mut out)?;
            }
            Contents::Dense(entries) => {
                self.check_rows(keys)?;
                entries.find(par, keys, defaults, &mut out)?;
            }
        }
        Ok(out)
    }

    /// Adds entries; keys that are there get the new values.
    pub(super) fn insert(&self, keys: &Tensor, values: &Tensor) -> Result<()> {
        self.check_entries(keys, values)?;
        match &mut *self.write() {
            Contents::Fixed(_) => Err(not_supported("Insert")),
            Contents::Mutable(entries) => entries.insert(keys, values, Twice::Replaces),
            Contents::Dense(entries) => {
                self.check_rows(keys)?;
                entries.insert(keys, values, Twice::Replaces)
            }
        }
    }

    /// Removes the entries of these keys.
    pub(super) fn remove(&self, keys: &Tensor) -> Result<()> {
        self.shape_of_values(keys)?;
        match &mut *self.write() {
            Contents::Fixed(_) => Err(not_supported("Remove")),
            Contents::Mutable(entries) => entries.remove(keys),
            Contents::Dense(entries) => {
                self.check_rows(keys)?;
                entries.remove(keys)
            }
        }
    }

    /// All keys and values.
    pub(super) fn export(&self) -> Result<(Tensor, Tensor)> {
        match &*self.read() {
            Contents::Fixed(fixed) if !fixed.is_initialized => {
                Err(aborted!("HashTable is not initialized."))
            }
            Contents::Fixed(Fixed { entries, .. })
            | Contents::Mutable(entries)
            | Contents::Dense(entries) => entries.export(),
        }
    }

    /// Replaces what is in the table; fills it if that is done once only.
    pub(super) fn import(&self, keys: &Tensor, values: &Tensor) -> Result<()> {
        let contents = &mut *self.write();
        if let Contents::Dense(entries) = contents {
            self.check_buckets(keys, values)?;
            return entries.import(keys, values);
        }
        self.check_entries(keys, values)?;
        match contents {
            Contents::Fixed(fixed) => {
                ensure!(
                    !keys.is_empty(),
                    invalid_argument,
                    "keys and values cannot be empty tensors."
                );
                fixed.fill(keys.elements(), |entries| {
                    entries.insert(keys, values, Twice::MustAgree)
                })
            }
            Contents::Mutable(entries) | Contents::Dense(entries) => entries.import(keys, values),
        }
    }

    /// Works on the entries of a table that is filled once; `None` if it is another.
    pub(super) fn fixed<R>(&self, work: impl FnOnce(&mut Fixed) -> R) -> Option<R> {
        match &mut *self.write() {
            Contents::Fixed(fixed) => Some(work(fixed)),
            _ => None,
        }
    }

    /// The shapes of keys with their values.
    fn check_entries(&self, keys: &Tensor, values: &Tensor) -> Result<()> {
        let expected = self.shape_of_values(keys)?;
        check_value_shape(&expected, values)
    }

    /// Keys and values as buckets: matrices, even where a key or value is a scalar.
    fn check_buckets(&self, keys: &Tensor, values: &Tensor) -> Result<()> {
        self.shape_of_values(keys)?;
        let buckets = keys.shape().get(..keys.rank().saturating_sub(1));
        let width = self.value_shape.elements() as i64;
        let expected = Shape::new(buckets.unwrap_or_default())?.concat(&[width])?;
        check_value_shape(&expected, values)
    }

    /// The shape of the values of these keys, whose shape must end with that of a key.
    fn shape_of_values(&self, keys: &Tensor) -> Result<Shape> {
        match keys.shape().strip_suffix(self.key_shape.dims()) {
            Some(outer) => Shape::new(outer)?.concat(&self.value_shape),
            None => Err(invalid_argument!(
                "Input key shape {} must end with the table's key shape {}",
                keys.shape(),
                self.key_shape
            )),
        }
    }

    /// Dense tables take a vector of keys, not more dimensions of them.
    fn check_rows(&self, keys: &Tensor) -> Result<()> {
        let rows = keys.shape().dim(0);
        if rows.checked_mul(self.key_shape.elements()) == Some(keys.elements()) {
            return Ok(());
        }
        Err(invalid_argument!(
            "Expected key shape {} got {}",
            Shape::vector(rows).concat(&self.key_shape)?,
            keys.shape()
        ))
    }

    fn read(&self) -> RwLockReadGuard<'_, Contents> {
        self.contents.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Contents> {
        self.contents
            .write()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Fixed {
    /// Fills the table, unless it was filled before: then with as many entries, or it is an error.
    pub(super) fn fill(
        &mut self,
        count: usize,
        fill: impl FnOnce(&mut dyn Store) -> Result<()>,
    ) -> Result<()> {
        if !self.is_initialized {
            fill(&mut *self.entries)?;
            self.is_initialized = true;
            return Ok(());
        }
        ensure!(
            count == self.entries.len(),
            failed_precondition,
            "Table was already initialized with different data."
        );
        Ok(())
    }
}

fn check_value_shape(expected: &Shape, values: &Tensor) -> Result<()> {
    ensure!(
        values.shape() == expected,
        invalid_argument,
        "Expected shape {expected} for value, got {}",
        values.shape()
    );
    Ok(())
}

#[cold]
fn not_supported(what: &str) -> tensorfleet_status::Status {
    unimplemented!("{what} not supported by InitializableLookupTable implementations")
}
