//! Items that the lexer hands to the parser.

/// A piece of the source.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Item {
    pub(crate) kind: Kind,
    /// Where it starts in the source, and where it ends.
    pub(crate) start: u32,
    pub(crate) end: u32,
    /// The line in which it starts.
    pub(crate) line: u32,
}

impl Item {
    /// Stands for an item that was never read; Go's errors then name line 0.
    pub(crate) const NONE: Self = Self {
        kind: Kind::Error,
        start: 0,
        end: 0,
        line: 0,
    };
}

/// Kind of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The text is [`Lexer::error`](super::Lexer::error).
    Error,
    EndOfSource,
    Text,
    LeftDelimiter,
    RightDelimiter,
    LeftParenthesis,
    RightParenthesis,
    /// A run of spaces, which separates arguments.
    Space,
    /// `=`
    Assign,
    /// `:=`
    Declare,
    /// `|`
    Pipe,
    /// Any other printable ASCII character, such as a comma.
    Character,
    Bool,
    CharacterConstant,
    Number,
    /// Two numbers, of which the second is imaginary.
    Complex,
    /// In quotation marks, which belong to the item.
    String,
    /// In back quotes, which belong to the item.
    RawString,
    /// `.name`
    Field,
    /// `$` or `$name`
    Variable,
    Identifier,
    Dot,
    Nil,
    Block,
    Break,
    Continue,
    Define,
    Else,
    End,
    If,
    Range,
    Template,
    With,
}

impl Kind {
    /// Returns the keyword that a word is.
    pub(super) fn of_word(word: &[u8]) -> Option<Self> {
        Some(match word {
            b"block" => Kind::Block,
            b"break" => Kind::Break,
            b"continue" => Kind::Continue,
            b"define" => Kind::Define,
            b"else" => Kind::Else,
            b"end" => Kind::End,
            b"if" => Kind::If,
            b"nil" => Kind::Nil,
            b"range" => Kind::Range,
            b"template" => Kind::Template,
            b"with" => Kind::With,
            _ => return None,
        })
    }

    /// Returns whether errors print the item as `<word>`: all words with a meaning of their own, and the dot.
    pub(crate) fn is_keyword(self) -> bool {
        matches!(
            self,
            Kind::Dot
                | Kind::Nil
                | Kind::Block
                | Kind::Break
                | Kind::Continue
                | Kind::Define
                | Kind::Else
                | Kind::End
                | Kind::If
                | Kind::Range
                | Kind::Template
                | Kind::With
        )
    }
}
