//! Go's slices: immutable once made, but for being sorted; no other template function writes to an element.

use std::cell::OnceCell;
use std::fmt;
use std::ops::Deref;
use std::rc::Rc;

use crate::{Type, Value};

use super::teardown;

/// A slice with its type. Cloning shares the elements.
#[derive(Clone)]
pub struct List {
    type_: Type,
    items: Option<Rc<Items>>,
}

struct Items {
    items: Vec<Value>,
    /// Contents that all share once the slice was sorted in place.
    sorted: OnceCell<Vec<Value>>,
}

impl From<Vec<Value>> for Items {
    fn from(items: Vec<Value>) -> Self {
        Self {
            items,
            sorted: OnceCell::new(),
        }
    }
}

impl List {
    /// Returns whether this is the only reference to the items.
    pub(crate) fn is_unshared(&self) -> bool {
        self.items
            .as_ref()
            .is_some_and(|items| Rc::strong_count(items) == 1)
    }

    /// Makes a slice of a type; the elements must be of its element type.
    pub fn new(type_: Type, items: Vec<Value>) -> Self {
        Self {
            type_,
            items: Some(Rc::new(Items::from(items))),
        }
    }

    /// Makes a nil slice of a type.
    pub fn nil(type_: Type) -> Self {
        Self { type_, items: None }
    }

    /// Makes a `[]string`.
    pub fn of_strings<S: Into<super::Str>>(items: impl IntoIterator<Item = S>) -> Self {
        let items = items.into_iter().map(|item| Value::String(item.into())).collect();
        Self::new(Type::LIST_STRING, items)
    }

    /// Returns the type of the slice.
    pub fn type_(&self) -> Type {
        self.type_
    }

    /// Returns whether it is a nil slice, which is empty as well.
    pub fn is_nil(&self) -> bool {
        self.items.is_none()
    }

    /// Sorts a slice of strings for all who hold it, as `sort.Strings` does.
    pub fn sort_strings(&self) {
        if let Some(items) = &self.items {
            items.sorted.get_or_init(|| {
                let mut sorted = items.items.clone();
                sorted.sort_by(|one, other| one.as_string().cmp(&other.as_string()));
                sorted
            });
        }
    }

    /// Returns whether both share their elements: Go's equality of the slice headers.
    pub fn is_same(&self, other: &List) -> bool {
        match (&self.items, &other.items) {
            (Some(one), Some(two)) => Rc::ptr_eq(one, two),
            (None, None) => true,
            _ => false,
        }
    }
}

impl Deref for List {
    type Target = [Value];

    fn deref(&self) -> &[Value] {
        self.items
            .as_ref()
            .map_or(&[], |items| items.sorted.get().unwrap_or(&items.items))
    }
}

impl From<Vec<Value>> for List {
    fn from(items: Vec<Value>) -> Self {
        Self::new(Type::LIST_ANY, items)
    }
}

impl FromIterator<Value> for List {
    fn from_iter<I: IntoIterator<Item = Value>>(items: I) -> Self {
        Self::from(items.into_iter().collect::<Vec<_>>())
    }
}

impl fmt::Debug for List {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.type_)?;
        f.debug_list().entries(self.iter()).finish()
    }
}

impl Drop for Items {
    fn drop(&mut self) {
        let sorted = self.sorted.take().unwrap_or_default();
        teardown::release(self.items.drain(..).chain(sorted));
    }
}
