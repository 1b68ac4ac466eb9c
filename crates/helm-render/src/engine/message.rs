//! Error messages of Go's templates, in the form that Helm gives them.
//!
//! Helm 3 shows them as they are, Helm 4 breaks the chain of places into lines. Both show only what a chart's author wrote
//! with `fail` and `required`. Everything here is about texts, since Helm takes the texts apart.

use go_template::{Error, ErrorKind};

use helm_chart::Helm;

const AUTHOR_START: &str = "HELM_ERR_START";
const AUTHOR_END: &str = "HELM_ERR_END";

/// Marks words of a chart's author.
pub(crate) fn from_author(words: &str) -> Error {
    Error::new(format!("{AUTHOR_START}{words}{AUTHOR_END}"))
}

/// Words an error of the parser: Helm's `cleanupParseError`.
pub(super) fn of_parser(file: &str, error: &Error) -> String {
    let message = error.message();
    let tokens: Vec<&str> = message.split(": ").collect();
    match tokens[..] {
        [_, location, ..] => format!("parse error at ({location}): {}", tokens[tokens.len() - 1]),
        _ => format!("parse error in ({file}): {message}"),
    }
}

/// Words an error of an execution: `cleanupExecError` of Helm 3, `reformatExecErrorMsg` of Helm 4.
pub(super) fn of_execution(file: &str, error: &Error, helm: Helm) -> String {
    let message = error.message();
    if error.kind() != ErrorKind::Exec {
        return message.to_owned();
    }
    let mut tokens = message.splitn(3, ": ");
    let (Some(_), Some(location), Some(rest)) = (tokens.next(), tokens.next(), tokens.next()) else {
        return format!("execution error in ({file}): {message}");
    };
    if let Some(words) = words_of_author(rest) {
        return format!("execution error at ({location}): {words}");
    }
    match helm {
        Helm::V3 => message.to_owned(),
        Helm::V4 => trace(error).unwrap_or_else(|| message.to_owned()),
    }
}

/// Finds the line in a message such as `template: FILE:3:7: …`.
pub(super) fn line_of(error: &Error) -> Option<u32> {
    let location = error.message().strip_prefix("template: ")?.split(": ").next()?;
    let mut parts = location.split(':').skip(1);
    parts.next()?.parse().ok()
}

/// Finds what stands between the marks, from the first to the last of them.
fn words_of_author(text: &str) -> Option<&str> {
    let start = text.find(AUTHOR_START)? + AUTHOR_START.len();
    let end = text[start..].rfind(AUTHOR_END)?;
    Some(&text[start..start + end])
}

/// Shows the chain of errors, a place a line. None as soon as one of them is no message of a template.
fn trace(error: &Error) -> Option<String> {
    let mut places = Vec::new();
    let mut current = Some(error);
    while let Some(error) = current {
        let place = Place::read(error.message())?;
        if places.last() != Some(&place) {
            places.push(place);
        }
        current = error.cause();
    }
    let mut shown = String::new();
    for place in places {
        place.show(&mut shown);
    }
    Some(shown.trim().to_owned())
}

/// One place of a trace.
#[derive(PartialEq, Eq)]
struct Place<'a> {
    location: &'a str,
    executed: Option<(&'a str, &'a str)>,
    message: &'a str,
}

impl<'a> Place<'a> {
    fn read(text: &'a str) -> Option<Self> {
        let rest = text.strip_prefix("template: ")?;
        if rest.starts_with("no template ") {
            return Some(Self {
                location: "",
                executed: None,
                message: text,
            });
        }
        Self::of_executing(rest).or_else(|| Self::of_anything(rest))
    }

    /// Reads `FILE:1:2: executing "NAME" at <EXPRESSION>: MESSAGE`.
    fn of_executing(text: &'a str) -> Option<Self> {
        let (location, rest) = text.split_once(": executing ")?;
        let (name, rest) = rest.strip_prefix('"')?.split_once('"')?;
        let (expression, message) = rest.strip_prefix(" at <")?.split_once(">: ")?;
        Some(Self {
            location,
            executed: Some((name, expression)),
            message: before_next(message),
        })
    }

    /// Reads `FILE: MESSAGE`.
    fn of_anything(text: &'a str) -> Option<Self> {
        let (location, message) = text.rsplit_once(": ")?;
        Some(Self {
            location,
            executed: None,
            message: before_next(message),
        })
    }

    fn show(&self, out: &mut String) {
        if !self.location.is_empty() {
            out.push_str(self.location);
            out.push_str("\n  ");
        }
        if let Some((name, expression)) = self.executed {
            out.push_str(&format!("executing \"{name}\" at <{expression}>:\n    "));
        }
        if !self.message.is_empty() {
            out.push_str(self.message);
            out.push('\n');
        }
    }
}

/// Cuts off what the next place will say.
fn before_next(message: &str) -> &str {
    message.find(" template:").map_or(message, |end| &message[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exec(message: &str) -> Error {
        Error::from_parts(ErrorKind::Exec, message)
    }

    #[test]
    fn helm_4_shows_a_place_a_line() {
        let inner =
            exec("template: c/b:2:3: executing \"c/b\" at <.x.y>: nil pointer evaluating interface {}.y");
        let outer = exec(&format!(
            "template: c/a:1:3: executing \"c/a\" at <include \"c/b\" .>: error calling include: {inner}"
        ));
        let outer = outer.with_cause(inner);
        assert_eq!(
            of_execution("c/a", &outer, Helm::V4),
            "c/a:1:3\n  executing \"c/a\" at <include \"c/b\" .>:\n    error calling include:\nc/b:2:3\n  \
             executing \"c/b\" at <.x.y>:\n    nil pointer evaluating interface {}.y"
        );
        assert_eq!(of_execution("c/a", &outer, Helm::V3), outer.message());
    }

    #[test]
    fn a_chain_that_ends_in_a_function_is_shown_as_it_is() {
        let message = "template: c/a:1:3: executing \"c/a\" at <index .x>: error calling index: out of range";
        let error = exec(message).with_cause(Error::new("out of range"));
        assert_eq!(of_execution("c/a", &error, Helm::V4), message);
    }

    #[test]
    fn authors_speak_for_themselves() {
        let words = from_author("one: two\nthree");
        let error = exec(&format!(
            "template: c/a:1:3: executing \"c/a\" at <fail>: error calling fail: {words}"
        ));
        assert_eq!(
            of_execution("c/a", &error, Helm::V4),
            "execution error at (c/a:1:3): one: two\nthree"
        );
    }

    #[test]
    fn the_parser_is_cited_by_its_last_words() {
        let error = Error::from_parts(ErrorKind::Parse, "template: c/a:3: function \"x\" not defined");
        assert_eq!(
            of_parser("c/a", &error),
            "parse error at (c/a:3): function \"x\" not defined"
        );
        assert_eq!(of_parser("c/a", &Error::new("odd")), "parse error in (c/a): odd");
    }
}
