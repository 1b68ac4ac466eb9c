//! Variables in the text of a built object: `${name}` and the functions on it, exactly as Flux's
//! `postBuild.substitute` (fluxcd/pkg/envsubst 1.7, a fork of drone's) expands them.
//!
//! Text goes in after the build and before the apply, text comes out; it knows nothing of YAML, so a value may hold
//! any of it. Values are not expanded again. Where the library's documentation and its code differ the code counts:
//! `${a-b}` is an error, `${a:+b}` and `${a:?b}` do what `${a:-b}` does, positions count bytes. What the library
//! does not have, bounds, is here.

mod case;
mod error;
mod evaluate;
mod glob;
mod identifier;
mod parse;

pub use error::{Error, MAXIMUM_BYTES, MAXIMUM_DEPTH, Mode};

/// Expands every `${…}` in a text.
///
/// `variables` gives the value of a variable, as bytes because the value from a Secret may be any.
///
/// ```
/// use manifest::substitute::{Mode, substitute};
///
/// let variables = |name: &str| (name == "env").then_some(b"prod".as_slice());
/// let text = "${env^^} ${region:=eu} $${kept}";
/// assert_eq!(substitute(text, &variables, Mode::Strict).as_deref(), Ok("PROD eu ${kept}"));
/// ```
pub fn substitute<'v>(
    text: &str,
    variables: &dyn Fn(&str) -> Option<&'v [u8]>,
    mode: Mode,
) -> Result<String, Error> {
    if !text.contains(['$', '\0']) {
        return Ok(text.to_owned());
    }
    let template = parse::parse(text)?;
    let bytes = evaluate::evaluate(&template, variables, mode)?;
    String::from_utf8(bytes).map_err(|_| Error::NotText)
}

/// The first expression of a text that cannot be parsed, as far as a reader needs it to find it.
///
/// ```
/// assert_eq!(manifest::substitute::malformed("a: ${ok} ${not valid} b"), Some("${not valid}"));
/// assert_eq!(manifest::substitute::malformed("a: ${ok}"), None);
/// ```
pub fn malformed(text: &str) -> Option<&str> {
    const LONGEST: usize = 60;
    let line = parse::malformed(text)?.lines().next()?;
    let end = line.find('}').map_or(line.len(), |end| end + 1);
    Some(&line[..line.floor_char_boundary(end.min(LONGEST))])
}

/// Refuses a variable whose name Flux refuses, used or not.
pub fn check_name(name: &str) -> Result<(), Error> {
    let is_word = |c: char| c == '_' || c.is_ascii_alphanumeric();
    if name.starts_with(|c: char| is_word(c) && !c.is_ascii_digit()) && name.chars().all(is_word) {
        return Ok(());
    }
    Err(Error::InvalidName(name.to_owned()))
}

/// The first character of some bytes and its width, as Go's `utf8.DecodeRune`: a byte that starts none is U+FFFD.
fn first_character(bytes: &[u8]) -> (char, usize) {
    let head = &bytes[..bytes.len().min(4)];
    let valid = match std::str::from_utf8(head) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&head[..error.valid_up_to()]).unwrap_or_default(),
    };
    match valid.chars().next() {
        Some(character) => (character, character.len_utf8()),
        None => (char::REPLACEMENT_CHARACTER, head.len().min(1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expand(text: &str) -> Result<String, Error> {
        let variables = |name: &str| -> Option<&'static [u8]> {
            match name {
                "a" => Some(b"value"),
                "binary" => Some(b"\xff\xfe"),
                _ => None,
            }
        };
        substitute(text, &variables, Mode::Lenient)
    }

    #[test]
    fn names_are_checked_as_flux_does() {
        for name in ["a", "_", "A_1", "_9"] {
            assert_eq!(check_name(name), Ok(()), "{name}");
        }
        for name in ["", "1a", "a-b", "é", "a\n", "a.b"] {
            let words =
                format!("'{name}' var name is invalid, must match '^[_[:alpha:]][_[:alpha:][:digit:]]*$'");
            assert_eq!(check_name(name).map_err(|e| e.to_string()), Err(words));
        }
    }

    #[test]
    fn a_binary_value_is_an_error_only_where_it_is_printed() {
        assert_eq!(expand("${binary}"), Err(Error::NotText));
        assert_eq!(expand("${#binary}").as_deref(), Ok("2"));
        assert_eq!(expand("${binary^^}").as_deref(), Ok("\u{fffd}\u{fffd}"));
    }

    #[test]
    fn nesting_is_bounded() {
        let nested = |depth: usize| format!("{}x{}", "${b:=".repeat(depth), "}".repeat(depth));
        assert_eq!(expand(&nested(MAXIMUM_DEPTH)).as_deref(), Ok("x"));
        assert_eq!(expand(&nested(MAXIMUM_DEPTH + 1)), Err(Error::TooDeep));
        assert_eq!(expand(&nested(1_000_000)), Err(Error::TooDeep));
    }

    #[test]
    fn output_that_multiplies_is_bounded() {
        let long = "x".repeat(4096);
        let variables = |_: &str| Some(long.as_bytes());
        let text = "${a//x/${b//x/${c}}}";
        assert_eq!(substitute(text, &variables, Mode::Lenient), Err(Error::TooLarge));
        let text = "${a}".repeat(20_000);
        assert_eq!(substitute(&text, &variables, Mode::Lenient), Err(Error::TooLarge));
    }
}
