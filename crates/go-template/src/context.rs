//! What a function may ask of the render that calls it.

use crate::{Error, Map, Str, Value};

/// The render that calls a function: its templates, its bounds, and what must be undone at its end.
pub struct Context<'a> {
    mutated: Vec<Map>,
    unfinished: std::marker::PhantomData<&'a ()>,
}

impl Context<'_> {
    /// Executes a named template with `data`: Go's `ExecuteTemplate` on the templates that are current, which within
    /// [`Context::execute_text`] are those of the text as well.
    pub fn execute(&mut self, name: &Str, data: &Value) -> Result<Vec<u8>, Error> {
        let _ = (name, data);
        Err(Error::new("not there yet"))
    }

    /// Parses `text` beside a copy of the current templates, as a template of the name of the one at the root, and executes
    /// it: Go's `Clone`, `New`, `Parse` and `Execute`. What it defines is seen by nobody else.
    pub fn execute_text(&mut self, text: &Str, data: &Value) -> Result<Vec<u8>, Error> {
        let _ = (text, data);
        Err(Error::new("not there yet"))
    }

    /// Counts work of a function against the render's bounds: `bytes` that it is about to make. To be called before the
    /// memory is taken, by whatever makes much from little (`repeat`, `indent`, `until`).
    pub fn charge(&mut self, bytes: usize) -> Result<(), Error> {
        let _ = bytes;
        Ok(())
    }

    /// Tells that a template put something into a map that existed before. A cycle can only arise so; these maps are
    /// emptied when the render ends, since counted references would never free them.
    pub fn mutated(&mut self, map: &Map) {
        if !self.mutated.iter().rev().take(8).any(|known| known.is_same(map)) {
            self.mutated.push(map.clone());
        }
    }
}
