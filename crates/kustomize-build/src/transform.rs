//! Changes to resources, field by field. Each file holds one transformer.

pub(crate) mod affix;
pub(crate) mod image;
pub(crate) mod namespace;
pub(crate) mod order;
pub(crate) mod replica;
pub(crate) mod text;
