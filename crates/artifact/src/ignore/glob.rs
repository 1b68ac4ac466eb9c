//! A glob over one name, with the rules of Go's `path/filepath.Match`: `*`, `?`, `[a-z]`, `[^a-z]`, and a backslash
//! before a character that stands for itself. A malformed glob matches nothing.

/// A parsed glob.
#[derive(Debug, Clone)]
pub struct Glob {
    tokens: Vec<Token>,
}

#[derive(Debug, Clone)]
enum Token {
    Literal(char),
    /// `?`
    One,
    /// `*`, or several in a row
    Many,
    Class {
        negated: bool,
        ranges: Vec<(char, char)>,
    },
}

impl Glob {
    /// None if the text is malformed: an open class, an empty range, or a backslash at the end.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut tokens = Vec::new();
        let mut rest = text.chars();
        while let Some(character) = rest.next() {
            tokens.push(match character {
                '*' if matches!(tokens.last(), Some(Token::Many)) => continue,
                '*' => Token::Many,
                '?' => Token::One,
                '[' => class(&mut rest)?,
                '\\' => Token::Literal(rest.next()?),
                character => Token::Literal(character),
            });
        }
        Some(Self { tokens })
    }

    /// Returns whether the whole name matches. Takes at most (length of the name) × (length of the glob) steps, because only the
    /// last `*` is ever tried again.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        let (mut token, mut rest) = (0, name.chars());
        let mut retry = None;
        loop {
            let mut after = rest.clone();
            let matched = match (self.tokens.get(token), after.next()) {
                (None, None) => return true,
                (Some(Token::Many), _) => {
                    token += 1;
                    retry = Some((token, rest.clone()));
                    continue;
                }
                (Some(token), Some(character)) => token.accepts(character),
                (None, Some(_)) | (Some(_), None) => false,
            };
            if matched {
                token += 1;
                rest = after;
                continue;
            }
            // The last `*` takes one character more.
            let Some((after_star, mut start)) = retry.take() else {
                return false;
            };
            if start.next().is_none() {
                return false;
            }
            (token, rest) = (after_star, start.clone());
            retry = Some((after_star, start));
        }
    }
}

impl Token {
    fn accepts(&self, character: char) -> bool {
        match self {
            Self::Literal(literal) => *literal == character,
            Self::One | Self::Many => true,
            Self::Class { negated, ranges } => {
                ranges
                    .iter()
                    .any(|(low, high)| (*low..=*high).contains(&character))
                    != *negated
            }
        }
    }
}

/// Parses a class after its `[`. At least one range; `]` and `-` stand for themselves only behind a
/// backslash.
fn class(rest: &mut std::str::Chars<'_>) -> Option<Token> {
    let negated = rest.as_str().starts_with('^');
    if negated {
        rest.next();
    }
    let mut ranges = Vec::new();
    loop {
        if !ranges.is_empty() && rest.as_str().starts_with(']') {
            rest.next();
            return Some(Token::Class { negated, ranges });
        }
        let low = class_character(rest)?;
        let mut high = low;
        if rest.as_str().starts_with('-') {
            rest.next();
            high = class_character(rest)?;
        }
        ranges.push((low, high));
    }
}

fn class_character(rest: &mut std::str::Chars<'_>) -> Option<char> {
    match rest.next()? {
        '-' | ']' => None,
        '\\' => rest.next(),
        character => Some(character),
    }
}
