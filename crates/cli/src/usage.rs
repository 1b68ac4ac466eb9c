//! Wrong command lines, in the words that kustomize's command line (cobra) has for them, which Flux's has too.

use clap::Error;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::cluster;

/// Returns the exit code of a wrong command line: kustomize ends with 1, whatever is wrong.
pub(crate) fn exit_code(typed: &[String]) -> u8 {
    match typed.get(1).map(String::as_str) {
        Some("build" | "template") => 1,
        _ => cluster::USAGE,
    }
}

/// Says what is wrong with a command line, of which `typed` are the words.
pub(crate) fn in_words_of_cobra(error: &Error, typed: &[String]) -> String {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.as_str(),
        _ => "",
    };
    // clap shows an argument with its short form and its value: `--output <PATH>`.
    let argument = text(ContextKind::InvalidArg);
    let flag = argument.split([' ', '=', '[', '<']).next().unwrap_or(argument);
    match error.kind() {
        ErrorKind::UnknownArgument => unknown(argument, typed),
        ErrorKind::InvalidValue if text(ContextKind::InvalidValue).is_empty() => {
            // Only the last word can lack what has to follow it.
            match typed.last().and_then(|last| shorthand(last)) {
                Some(name) => format!("flag needs an argument: '{name}' in -{name}"),
                None => format!("flag needs an argument: {flag}"),
            }
        }
        ErrorKind::ValueValidation => {
            let (value, source) = (text(ContextKind::InvalidValue), std::error::Error::source(error));
            let why = source.map_or_else(String::new, ToString::to_string);
            format!("invalid argument {value:?} for {flag:?} flag: {why}")
        }
        ErrorKind::InvalidSubcommand => {
            let command = text(ContextKind::InvalidSubcommand);
            format!("unknown command {command:?} for \"windlass\"\nRun 'windlass --help' for usage.")
        }
        _ => {
            let rendered = error.render().to_string();
            rendered
                .strip_prefix("error: ")
                .unwrap_or(&rendered)
                .trim_end()
                .to_owned()
        }
    }
}

fn unknown(argument: &str, typed: &[String]) -> String {
    match shorthand(argument) {
        Some(name) => {
            // clap names the letter, cobra the word that it stands in.
            let mut words = typed.iter().filter(|word| shorthand(word).is_some());
            let word = words
                .find(|word| word.contains(name))
                .map_or(argument, String::as_str);
            format!("unknown shorthand flag: '{name}' in {word}")
        }
        None if argument.starts_with('-') => format!("unknown flag: {argument}"),
        None if typed.get(1).is_some_and(|command| command == "build") => {
            "specify one path to kustomization.yaml".to_owned()
        }
        None => format!("unexpected argument {argument:?}"),
    }
}

/// Returns the letter of a flag in its short form.
fn shorthand(word: &str) -> Option<char> {
    word.strip_prefix('-')?.chars().next().filter(|name| *name != '-')
}
