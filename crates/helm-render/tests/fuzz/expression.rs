//! Generated expressions, as trees, so that a failing one can be made smaller.

use std::fmt;

use crate::functions::{FUNCTIONS, Sort};
use crate::random::Random;

/// Expression in an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expression {
    Leaf(String),
    Call(&'static str, Vec<Expression>),
    /// The left one is the last argument of the call.
    Pipe(Box<Expression>, &'static str, Vec<Expression>),
    /// A field of what parentheses hold.
    Field(Box<Expression>, &'static str),
}

/// Makes an expression of a sort, usually.
pub fn expression(random: &mut Random, sort: Sort, depth: usize, variables: &[String]) -> Expression {
    if !variables.is_empty() && random.chance(5) {
        return Expression::Leaf(variables[random.below(variables.len())].clone());
    }
    if depth == 0 || random.chance(45) {
        let sort = if random.chance(2) { Sort::Any } else { sort };
        return Expression::Leaf(random.pick(sort.leaves()).to_owned());
    }
    if random.chance(2) {
        let inner = expression(random, Sort::Map, depth - 1, variables);
        return Expression::Field(Box::new(inner), ["name", "a", "tag", "list.x"][random.below(4)]);
    }
    let (name, signature) = FUNCTIONS[random.below(FUNCTIONS.len())];
    let mut arguments = Vec::new();
    let mut last = Sort::Any;
    for letter in signature.chars() {
        if letter == '*' {
            for _ in 0..random.below(3) {
                arguments.push(expression(random, last, depth - 1, variables));
            }
        } else {
            last = Sort::from_letter(letter);
            arguments.push(expression(random, last, depth - 1, variables));
        }
    }
    if random.chance(1) {
        arguments.pop();
    }
    match arguments.pop() {
        Some(piped) if random.chance(35) => Expression::Pipe(Box::new(piped), name, arguments),
        popped => {
            arguments.extend(popped);
            Expression::Call(name, arguments)
        }
    }
}

impl Expression {
    fn is_leaf(&self) -> bool {
        matches!(self, Self::Leaf(_))
    }

    /// Gives smaller ones that may stand in its place.
    pub fn smaller(&self) -> Vec<Self> {
        let mut smaller = Vec::new();
        match self {
            Self::Leaf(text) if text == "1" || text.starts_with('$') => {}
            Self::Leaf(_) => smaller.push(Self::Leaf("1".to_owned())),
            Self::Call(name, arguments) => {
                smaller.extend(arguments.iter().cloned());
                for (index, argument) in arguments.iter().enumerate() {
                    smaller.extend(argument.smaller().into_iter().map(|other| {
                        let mut arguments = arguments.clone();
                        arguments[index] = other;
                        Self::Call(name, arguments)
                    }));
                }
            }
            Self::Pipe(left, name, arguments) => {
                let mut all = arguments.clone();
                all.push((**left).clone());
                smaller.push(Self::Call(name, all));
                smaller.push((**left).clone());
            }
            Self::Field(inner, field) => {
                smaller.push((**inner).clone());
                smaller.extend(
                    inner
                        .smaller()
                        .into_iter()
                        .map(|inner| Self::Field(Box::new(inner), field)),
                );
            }
        }
        smaller
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = |f: &mut fmt::Formatter<'_>, name: &str, arguments: &[Self]| {
            write!(f, "{name}")?;
            for argument in arguments {
                if argument.is_leaf() {
                    write!(f, " {argument}")?;
                } else {
                    write!(f, " ({argument})")?;
                }
            }
            Ok(())
        };
        match self {
            Self::Leaf(text) => f.write_str(text),
            Self::Call(name, arguments) => words(f, name, arguments),
            Self::Pipe(left, name, arguments) => {
                write!(f, "{left} | ")?;
                words(f, name, arguments)
            }
            Self::Field(inner, field) => write!(f, "({inner}).{field}"),
        }
    }
}
