//! Loops over slices, maps and integers.

use crate::ast::{Branch, Node, NodeRef};
use crate::{Error, Kind, Value};

use super::{Cell, Exec, Flow};

impl<'a> Exec<'a> {
    pub(super) fn walk_range(
        &mut self,
        dot: &Cell,
        node: &'a Node,
        branch: &'a Branch,
    ) -> Result<Flow, Error> {
        self.at(NodeRef::Node(node));
        let mark = self.variables.len();
        let value = self.evaluate_pipe(dot, &branch.pipe)?;
        let ran = self.iterate(&value, branch)?;
        let flow = match &branch.else_list {
            // Go ends this loop at a `break` in its else, but passes a `continue` on to the loop around.
            Some(list) if !ran => match self.walk_list(dot, list)? {
                Flow::Break => Flow::Next,
                flow => flow,
            },
            _ => Flow::Next,
        };
        self.variables.truncate(mark);
        Ok(flow)
    }

    /// Runs the body for each element; tells whether there was one.
    fn iterate(&mut self, value: &Value, branch: &'a Branch) -> Result<bool, Error> {
        match value {
            Value::Invalid | Value::Nil => Ok(false),
            Value::List(list) => {
                let element = list.type_().element();
                for (index, item) in list.iter().enumerate() {
                    let item = Cell::element(item.clone(), element);
                    if self.iteration(branch, index_value(index), item)? == Flow::Break {
                        break;
                    }
                }
                Ok(!list.is_empty())
            }
            Value::Bytes(bytes) => {
                for (index, byte) in bytes.iter().enumerate() {
                    let byte = Value::Uint(u64::from(*byte), Kind::Uint8);
                    if self.iteration(branch, index_value(index), byte.into())? == Flow::Break {
                        break;
                    }
                }
                Ok(!bytes.is_empty())
            }
            Value::Map(map) => {
                let element = map.type_().element();
                let entries = map.entries();
                let ran = !entries.is_empty();
                for (key, item) in entries {
                    let item = Cell::element(item, element);
                    if self.iteration(branch, Value::String(key), item)? == Flow::Break {
                        break;
                    }
                }
                Ok(ran)
            }
            Value::Object(object) if object.entries().is_some() => {
                let entries = object.entries().unwrap_or_default();
                let ran = !entries.is_empty();
                for (key, item) in entries {
                    if self.iteration(branch, key, item.into())? == Flow::Break {
                        break;
                    }
                }
                Ok(ran)
            }
            Value::Object(object) if object.underlying().is_some() => {
                self.refuse_two_variables(value, branch)?;
                self.iterate(&object.underlying().unwrap_or_default(), branch)
            }
            Value::Int(count, kind) => {
                self.refuse_two_variables(value, branch)?;
                self.count((0..*count).map(|number| Value::Int(number, *kind)), branch)
            }
            Value::Uint(count, kind) => {
                self.refuse_two_variables(value, branch)?;
                self.count((0..*count).map(|number| Value::Uint(number, *kind)), branch)
            }
            _ => {
                let text = crate::format::pointee_text(value)?;
                Err(self.error(format!("range can't iterate over {text}")))
            }
        }
    }

    fn count(&mut self, numbers: impl Iterator<Item = Value>, branch: &'a Branch) -> Result<bool, Error> {
        let mut ran = false;
        for number in numbers {
            ran = true;
            if self.iteration(branch, Value::Invalid, number.into())? == Flow::Break {
                break;
            }
        }
        Ok(ran)
    }

    fn refuse_two_variables(&self, value: &Value, branch: &Branch) -> Result<(), Error> {
        if branch.pipe.variables.len() < 2 {
            return Ok(());
        }
        let text = crate::format::reflect_text(value)?;
        Err(self.error(format!("can't use {text} to iterate over more than one variable")))
    }

    fn iteration(&mut self, branch: &'a Branch, index: Value, item: Cell) -> Result<Flow, Error> {
        self.context.work.step()?;
        self.set_loop_variables(branch, index, &item)?;
        let mark = self.variables.len();
        let flow = self.walk_list(&item, &branch.list)?;
        self.variables.truncate(mark);
        Ok(flow)
    }

    /// Gives the variables of a loop their values: one gets the element, two get index and element.
    fn set_loop_variables(&mut self, branch: &'a Branch, index: Value, item: &Cell) -> Result<(), Error> {
        let pipe = &branch.pipe;
        let (index_variable, item_variable) = match &*pipe.variables {
            [] => return Ok(()),
            [item] => (None, item),
            [index, item, ..] => (Some(index), item),
        };
        if pipe.is_assign {
            if let Some(variable) = index_variable {
                *self.variable(variable)? = index.into();
            }
            *self.variable(item_variable)? = item.clone();
            return Ok(());
        }
        // The pipeline declared them: they are on top.
        let top = self.variables.len();
        self.variables[top - 1].cell = item.clone();
        if index_variable.is_some() {
            self.variables[top - 2].cell = index.into();
        }
        Ok(())
    }
}

fn index_value(index: usize) -> Value {
    Value::int(i64::try_from(index).unwrap_or(i64::MAX))
}
