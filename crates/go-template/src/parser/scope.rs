//! Knows which variables are declared at a place of a tree.
//!
//! Go's parser sees more than its execution does: what the `if` part declares, or what is only assigned, is known in the
//! `else` part as well. Such a use parses and fails when it is executed.

use std::collections::HashMap;

use crate::ast::Variable;

/// The variables of a tree.
pub(super) struct Scope {
    symbols: HashMap<Box<str>, u32>,
    /// The declarations in scope, the latest last.
    declared: Vec<u32>,
    /// How many of them each symbol has.
    counts: Vec<u32>,
}

impl Scope {
    pub(super) fn new() -> Self {
        let mut scope = Self {
            symbols: HashMap::new(),
            declared: Vec::new(),
            counts: Vec::new(),
        };
        let root = scope.declare("$");
        debug_assert_eq!(root, Variable::ROOT);
        scope
    }

    /// Declares a variable and returns its symbol.
    pub(super) fn declare(&mut self, name: &str) -> u32 {
        let symbol = self.symbols.get(name).copied().unwrap_or_else(|| {
            let symbol = self.counts.len() as u32;
            self.symbols.insert(name.into(), symbol);
            self.counts.push(0);
            symbol
        });
        self.declared.push(symbol);
        self.counts[symbol as usize] += 1;
        symbol
    }

    /// Returns the symbol of a variable that is in scope.
    pub(super) fn find(&self, name: &str) -> Option<u32> {
        let symbol = *self.symbols.get(name)?;
        (self.counts[symbol as usize] > 0).then_some(symbol)
    }

    /// Returns the place to which [`Scope::leave`] goes back.
    pub(super) fn mark(&self) -> usize {
        self.declared.len()
    }

    /// Takes the declarations since `mark` out of scope.
    pub(super) fn leave(&mut self, mark: usize) {
        for symbol in self.declared.drain(mark..) {
            self.counts[symbol as usize] -= 1;
        }
    }
}
