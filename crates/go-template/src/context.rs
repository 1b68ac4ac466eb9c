//! A render, and what a function may ask of the one that calls it.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use crate::stack::Floor;
use crate::templates::{Layers, Templates, parse_with};
use crate::{Error, ErrorKind, Functions, Limits, Map, MissingKey, Options, Str, Value, exec, format};

/// Executions that share data, bounds and state, such as the files of a chart.
///
/// Maps that templates change are seen by what is executed later. When the render is dropped, these maps are emptied: cycles
/// can only arise in them, and counted references would never free those.
pub struct Render<'a> {
    templates: &'a Templates,
    functions: &'a Functions,
    work: Work,
}

impl<'a> Render<'a> {
    /// Starts a render. It belongs to one thread.
    pub fn new(templates: &'a Templates, functions: &'a Functions, options: &Options) -> Self {
        Self {
            templates,
            functions,
            work: Work::new(options),
        }
    }

    /// Executes a template: Go's `ExecuteTemplate`.
    pub fn execute(&mut self, name: impl AsRef<[u8]>, data: &Value) -> Result<Vec<u8>, Error> {
        self.context().execute(name, data)
    }

    /// Returns what a function called from outside any template sees.
    pub fn context(&mut self) -> Context<'_> {
        self.work.floor = Floor::below_here(self.work.limits.stack);
        Context {
            layers: Layers::new(self.templates),
            functions: self.functions,
            work: &mut self.work,
        }
    }
}

impl Drop for Render<'_> {
    fn drop(&mut self) {
        for map in self.work.mutated.drain(..) {
            map.clear();
        }
    }
}

/// The render that calls a function: its templates, its bounds, and what must be undone at its end.
pub struct Context<'a> {
    pub(crate) layers: Layers<'a>,
    pub(crate) functions: &'a Functions,
    pub(crate) work: &'a mut Work,
}

impl Context<'_> {
    /// Executes a named template with `data`: Go's `ExecuteTemplate` on the templates that are current, which within
    /// [`Context::execute_text`] are those of the text as well.
    pub fn execute(&mut self, name: impl AsRef<[u8]>, data: &Value) -> Result<Vec<u8>, Error> {
        let Some(tree) = self.layers.find(name.as_ref()) else {
            return Err(Error::new(format!(
                "template: no template {} associated with template {}",
                exec::quoted(name.as_ref()),
                exec::quoted(self.layers.name()),
            )));
        };
        let context = Context {
            layers: self.layers,
            functions: self.functions,
            work: &mut *self.work,
        };
        exec::run(context, tree, data)
    }

    /// Parses `text` beside a copy of the current templates, as a template of the name of the one at the root, and executes
    /// it: Go's `Clone`, `New`, `Parse` and `Execute`. What it defines is seen by no one else.
    ///
    /// What the parser refuses is an error of [`ErrorKind::Parse`].
    pub fn execute_text(&mut self, text: &Str, data: &Value) -> Result<Vec<u8>, Error> {
        let root = self.layers.name();
        if self.layers.are_too_many() {
            return Err(self.work.limit("texts execute each other without end".to_owned()));
        }
        let trees = self.work.parse(root, text, self.functions)?;
        let mut own = Templates::new(root.clone());
        let mut main = None;
        for tree in trees.iter() {
            if tree.name() == root {
                main = Some(tree);
            }
            if self.layers.takes(tree) {
                own.add(Arc::clone(tree));
            }
        }
        let Some(main) = main else {
            return Err(exec::incomplete(root));
        };
        let context = Context {
            layers: self.layers.with(&own),
            functions: self.functions,
            work: &mut *self.work,
        };
        exec::run(context, main, data)
    }

    /// Counts work of a function against the render's bounds: `bytes` that it is about to make. To be called before the
    /// memory is taken, by whatever makes much from little (`repeat`, `indent`, `until`).
    pub fn charge(&mut self, bytes: usize) -> Result<(), Error> {
        self.work.charge(bytes)
    }

    /// Fails near the end of the stack. To be called at each level by functions that recurse over values: a value may be
    /// deeper than what templates have left.
    pub fn descend(&mut self) -> Result<(), Error> {
        if self.work.floor.is_reserve_used() {
            return Err(self.work.limit("a value is deeper than the stack".to_owned()));
        }
        Ok(())
    }

    /// Counts one step of work that takes time but no memory, and notices when the render was cancelled.
    pub fn step(&mut self) -> Result<(), Error> {
        self.work.step()
    }

    /// Tells that a template put something into a map that existed before. A cycle can only arise so; these maps are
    /// emptied when the render ends, since counted references would never free them.
    pub fn mutated(&mut self, map: &Map) {
        let mutated = &mut self.work.mutated;
        if !mutated.iter().rev().take(8).any(|known| known.is_same(map)) {
            mutated.push(map.clone());
        }
    }

    /// Returns what functions keep for the length of the render, one of each Rust type; made when first asked for.
    pub fn state<T: Any + Default>(&mut self) -> &mut T {
        self.work
            .states
            .entry(TypeId::of::<T>())
            .or_insert_with(|| Box::<T>::default())
            .downcast_mut()
            .expect("the key is the type of the value")
    }
}

/// The part of a render that changes.
pub(crate) struct Work {
    pub(crate) missing_key: MissingKey,
    pub(crate) floor: Floor,
    limits: Limits,
    until: Option<Instant>,
    /// Held by a large render until it ends.
    turn: Option<Box<dyn Any>>,
    steps: u64,
    bytes: usize,
    mutated: Vec<Map>,
    states: HashMap<TypeId, Box<dyn Any>>,
    texts: HashMap<Str, Trees>,
}

type Trees = Arc<[Arc<crate::ast::Tree>]>;

/// How many texts of `tpl` are kept parsed, and how long each may be: charts pass the same few over and over.
const KEPT_TEXTS: usize = 256;
const KEPT_TEXT_BYTES: usize = 16 * 1024;

/// How much memory a byte of a text may take when it is parsed: `{{.}}` makes some 150 bytes of five.
const BYTES_PER_BYTE: usize = 32;

impl Work {
    fn new(options: &Options) -> Self {
        Self {
            missing_key: options.missing_key,
            floor: Floor::below_here(options.limits.stack),
            limits: options.limits.clone(),
            until: options
                .limits
                .time
                .and_then(|time| Instant::now().checked_add(time)),
            turn: None,
            steps: 0,
            bytes: 0,
            mutated: Vec::new(),
            states: HashMap::new(),
            texts: HashMap::new(),
        }
    }

    #[inline]
    pub(crate) fn step(&mut self) -> Result<(), Error> {
        self.steps += 1;
        if self.steps > self.limits.steps {
            return Err(self.limit(format!("exceeded {} steps", self.limits.steps)));
        }
        if self.steps.is_multiple_of(256) {
            self.check_end()?;
        }
        Ok(())
    }

    /// Fails if the render was cancelled or exceeded its time limit. Called before each function call, because one call can
    /// take as long as many steps (generating keys, hashing passwords, matching patterns in long texts).
    #[inline]
    pub(crate) fn check_end(&self) -> Result<(), Error> {
        if self.is_cancelled() {
            return Err(self.limit("cancelled".to_owned()));
        }
        if let Some(until) = self.until
            && Instant::now() >= until
        {
            let time = self.limits.time.unwrap_or_default();
            return Err(self.limit(format!("took longer than {} seconds", time.as_secs_f32())));
        }
        Ok(())
    }

    fn is_cancelled(&self) -> bool {
        let flag: Option<&AtomicBool> = self.limits.cancelled.as_deref();
        flag.is_some_and(|flag| flag.load(Ordering::Relaxed))
    }

    #[inline]
    pub(crate) fn charge(&mut self, bytes: usize) -> Result<(), Error> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > self.limits.bytes {
            return Err(self.limit(format!("exceeded {} bytes of output", self.limits.bytes)));
        }
        if let Some(turn) = &self.limits.turn
            && self.bytes > turn.above
            && self.turn.is_none()
        {
            let asked = Instant::now();
            self.turn = Some((turn.take)());
            self.until = self.until.and_then(|until| until.checked_add(asked.elapsed()));
        }
        Ok(())
    }

    /// Number of bytes charged so far.
    pub(crate) fn made(&self) -> usize {
        self.bytes
    }

    /// Charges for the result of a function, less what the function has charged itself since `before`. A value that is
    /// shared existed before the call, and is free.
    pub(crate) fn charge_made(&mut self, value: &Value, before: usize) -> Result<(), Error> {
        let made = match value {
            Value::String(text) | Value::Bytes(text) if text.is_unshared() => text.len(),
            Value::List(list) if list.is_unshared() => list.len() * size_of::<Value>(),
            Value::Map(map) if map.is_unshared() => map.len() * size_of::<(Str, Value)>(),
            _ => return Ok(()),
        };
        self.charge(made.saturating_sub(self.bytes - before))
    }

    /// Returns how much may be printed at once.
    pub(crate) fn room(&self) -> usize {
        format::MAX_BYTES.min(self.limits.bytes - self.bytes.min(self.limits.bytes))
    }

    #[cold]
    fn limit(&self, what: String) -> Error {
        Error::from_parts(ErrorKind::Limit, format!("render stopped: {what}"))
    }

    fn parse(&mut self, name: &Str, text: &Str, functions: &Functions) -> Result<Trees, Error> {
        if let Some(trees) = self.texts.get(text) {
            return Ok(Arc::clone(trees));
        }
        self.charge(text.len().saturating_mul(BYTES_PER_BYTE))?;
        let trees = parse_with(name, text, functions)?;
        let trees: Trees = trees.into_iter().map(Arc::new).collect();
        if self.texts.len() < KEPT_TEXTS && text.len() <= KEPT_TEXT_BYTES {
            self.texts.insert(text.clone(), Arc::clone(&trees));
        }
        Ok(trees)
    }
}
