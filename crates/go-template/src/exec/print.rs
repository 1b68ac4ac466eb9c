//! Prints the value of an action.

use crate::ast::{Node, NodeRef};
use crate::{Error, Value, format};

use super::Exec;

impl<'a> Exec<'a> {
    /// Prints a value as Go's `Fprint` does; no value is `<no value>`.
    pub(super) fn print(&mut self, node: &'a Node, value: &Value) -> Result<(), Error> {
        self.at(NodeRef::Node(node));
        match value {
            Value::String(text) => self.write(text),
            Value::Invalid => self.write(b"<no value>"),
            Value::Func(_) => {
                let text = self.text_of(NodeRef::Node(node));
                Err(self.error(format!("can't print {text} of type {}", value.type_name())))
            }
            Value::Object(object) if object.addressed_text().is_some() => {
                self.write(&object.addressed_text().unwrap_or_default())
            }
            value => {
                let before = self.out.len();
                format::append(&mut self.out, value, self.context.work.room())?;
                self.context.work.charge(self.out.len() - before)
            }
        }
    }
}
