//! Functions that templates call, with the parameter types that Go would check.
//!
//! Go's engine looks at the signature of a function to convert constants, to refuse arguments and to word the refusal. So
//! a function declares its parameters here; by the time that it is called, each argument is of its parameter's type.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use crate::{Context, Error, Type, Value};

/// Body of a function: gets the render that calls it, and its arguments, already checked against the
/// parameters.
pub type Call = dyn Fn(&mut Context<'_>, &[Value]) -> Result<Value, Error> + Send + Sync;

/// The same without state, which needs no allocation: most functions, and all methods.
pub type PlainCall = fn(&mut Context<'_>, &[Value]) -> Result<Value, Error>;

/// A function with its signature. Cloning shares it.
///
/// A method is a function that gets its receiver as first argument; the declared parameters do not count it.
#[derive(Clone)]
pub struct Function {
    parameters: &'static [Type],
    variadic: Option<Type>,
    call: Implementation,
}

#[derive(Clone)]
enum Implementation {
    Plain(PlainCall),
    Shared(Arc<Call>),
}

impl Function {
    /// Makes a function of fixed parameters. A nil argument of an interface parameter arrives as [`Value::Nil`].
    pub const fn new(parameters: &'static [Type], call: PlainCall) -> Self {
        Self {
            parameters,
            variadic: None,
            call: Implementation::Plain(call),
        }
    }

    /// Makes a function that holds what it needs, such as the access to a cluster.
    pub fn closure(
        parameters: &'static [Type],
        call: impl Fn(&mut Context<'_>, &[Value]) -> Result<Value, Error> + Send + Sync + 'static,
    ) -> Self {
        Self {
            parameters,
            variadic: None,
            call: Implementation::Shared(Arc::new(call)),
        }
    }

    /// Lets the function take any number of further arguments of one type.
    #[must_use]
    pub const fn with_rest(mut self, rest: Type) -> Self {
        self.variadic = Some(rest);
        self
    }

    /// Returns the types of the fixed parameters.
    pub fn parameters(&self) -> &'static [Type] {
        self.parameters
    }

    /// Returns the type of further arguments, where the function takes any.
    pub fn rest(&self) -> Option<Type> {
        self.variadic
    }

    /// Calls it. The caller has checked the arguments, and put the receiver of a method before them.
    pub fn call(&self, context: &mut Context<'_>, arguments: &[Value]) -> Result<Value, Error> {
        match &self.call {
            Implementation::Plain(call) => call(context, arguments),
            Implementation::Shared(call) => call(context, arguments),
        }
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "func{:?}", self.parameters)
    }
}

/// The functions that templates may name, besides Go's own.
///
/// The table is shared by renders on many threads.
#[derive(Clone, Debug, Default)]
pub struct Functions(HashMap<&'static str, Function>);

impl Functions {
    /// Adds a function; one of the same name is replaced.
    pub fn add(&mut self, name: &'static str, function: Function) {
        self.0.insert(name, function);
    }

    /// Takes a function out, as Helm does with `env` and `expandenv`.
    pub fn remove(&mut self, name: &str) {
        self.0.remove(name);
    }

    /// Finds a function.
    pub fn get(&self, name: &str) -> Option<&Function> {
        self.0.get(name)
    }

    /// Lists the names, in no order.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.0.keys().copied()
    }
}
