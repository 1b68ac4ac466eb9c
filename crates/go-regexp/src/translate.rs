//! Hands the tree of a pattern to the engine, in the engine's terms.

use regex_syntax::hir::{Capture, Class, Hir, Repetition};

use crate::node::{Kind, Node};
use crate::unicode;

/// Translates the tree for the engine. The tree is at most as deep as the parser allows.
pub(crate) fn translate(node: Node) -> Hir {
    match node.kind {
        Kind::Empty => Hir::empty(),
        Kind::Literal {
            characters,
            fold_case,
        } => literal(&characters, fold_case),
        Kind::Class(class) => Hir::class(Class::Unicode(class)),
        Kind::Look(look) => Hir::look(look),
        Kind::Capture { index, sub } => Hir::capture(Capture {
            index,
            // Go lets several groups have one name, the engine does not.
            name: None,
            sub: Box::new(translate(*sub)),
        }),
        Kind::Repeat(repeat) => Hir::repetition(Repetition {
            min: repeat.min,
            max: repeat.max,
            greedy: repeat.greedy,
            sub: Box::new(translate(*repeat.sub)),
        }),
        Kind::Concat(nodes) => Hir::concat(nodes.into_iter().map(translate).collect()),
        Kind::Alternate(nodes) => Hir::alternation(nodes.into_iter().map(translate).collect()),
    }
}

fn literal(characters: &[u32], fold_case: bool) -> Hir {
    if fold_case {
        return Hir::concat(characters.iter().map(|&c| folded(c)).collect());
    }
    let text: Option<String> = characters.iter().map(|&c| char::from_u32(c)).collect();
    // A surrogate is in no text.
    text.map_or_else(Hir::fail, |text| Hir::literal(text.into_bytes()))
}

fn folded(c: u32) -> Hir {
    let mut class = unicode::range(c, c);
    unicode::fold_case(&mut class);
    Hir::class(Class::Unicode(class))
}
