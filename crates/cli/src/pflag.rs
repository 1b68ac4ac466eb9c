//! Command lines as Go's pflag reads them, with its words for what is wrong.
//!
//! `helm` takes flags between its arguments, long ones with `=` or a word behind them, short ones in a bunch. Its messages
//! are recorded in cases, so they are made here and not by clap. A caller gives the table of flags and gets what was set.

mod csv;
mod value;

use std::collections::BTreeMap;

pub(crate) use value::Kind;

/// A flag that may be set.
#[derive(Debug)]
pub(crate) struct Flag {
    pub(crate) name: &'static str,
    pub(crate) short: Option<char>,
    pub(crate) kind: Kind,
    /// Replacement; shown when the flag is used.
    pub(crate) deprecated: Option<&'static str>,
    /// Description for the help.
    pub(crate) help: &'static str,
}

/// Parsed command line.
#[derive(Debug, Default)]
pub(crate) struct Line {
    /// Arguments that belong to no flag.
    pub(crate) arguments: Vec<String>,
    /// Warnings about deprecated flags that were used.
    pub(crate) deprecations: Vec<String>,
    values: BTreeMap<&'static str, Vec<String>>,
}

impl Line {
    /// Reads the words behind the command's name.
    pub(crate) fn parse(words: &[String], flags: &'static [Flag]) -> Result<Self, String> {
        let mut line = Self::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            if word == "--" {
                line.arguments.extend(words.by_ref().cloned());
            } else if let Some(long) = word.strip_prefix("--") {
                line.long(word, long, &mut words, flags)?;
            } else if word.len() > 1 && word.starts_with('-') {
                line.short(word, &mut words, flags)?;
            } else {
                line.arguments.push(word.clone());
            }
        }
        Ok(line)
    }

    /// Returns all values of a flag, in order.
    pub(crate) fn all(&self, name: &str) -> &[String] {
        self.values.get(name).map_or(&[], Vec::as_slice)
    }

    /// Returns the last value of a flag.
    pub(crate) fn last(&self, name: &str) -> Option<&str> {
        self.all(name).last().map(String::as_str)
    }

    /// Returns whether a boolean flag is set.
    pub(crate) fn is_true(&self, name: &str) -> bool {
        self.last(name) == Some("true")
    }

    /// Returns whether a flag was given, with whatever value.
    pub(crate) fn is_given(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    fn long<'a>(
        &mut self,
        word: &str,
        long: &str,
        words: &mut impl Iterator<Item = &'a String>,
        flags: &'static [Flag],
    ) -> Result<(), String> {
        if long.starts_with(['-', '=']) {
            return Err(format!("bad flag syntax: {word}"));
        }
        let (name, value) = match long.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (long, None),
        };
        if name == "help" && value.is_none() {
            self.values.insert("help", Vec::new());
            return Ok(());
        }
        let Some(flag) = flags.iter().find(|flag| flag.name == name) else {
            return Err(format!("unknown flag: --{name}"));
        };
        match (value, flag.kind.when_alone()) {
            (Some(value), _) | (None, Some(value)) => self.set(flag, value),
            (None, None) => match words.next() {
                Some(value) => self.set(flag, value),
                None => Err(format!("flag needs an argument: {word}")),
            },
        }
    }

    fn short<'a>(
        &mut self,
        word: &str,
        words: &mut impl Iterator<Item = &'a String>,
        flags: &'static [Flag],
    ) -> Result<(), String> {
        let mut rest = &word[1..];
        while let Some(letter) = rest.chars().next() {
            let bunch = rest;
            rest = &rest[letter.len_utf8()..];
            let Some(flag) = flags.iter().find(|flag| flag.short == Some(letter)) else {
                if letter == 'h' {
                    self.values.insert("help", Vec::new());
                    return Ok(());
                }
                return Err(format!("unknown shorthand flag: {letter:?} in -{bunch}"));
            };
            if let Some(value) = rest.strip_prefix('=').filter(|_| bunch.len() > 2) {
                return self.set(flag, value);
            }
            if let Some(value) = flag.kind.when_alone() {
                self.set(flag, value)?;
            } else if !rest.is_empty() {
                return self.set(flag, rest);
            } else {
                return match words.next() {
                    Some(value) => self.set(flag, value),
                    None => Err(format!("flag needs an argument: {letter:?} in -{bunch}")),
                };
            }
        }
        Ok(())
    }

    fn set(&mut self, flag: &'static Flag, value: &str) -> Result<(), String> {
        let values = flag.kind.read(value).map_err(|problem| {
            let name = match flag.short {
                Some(short) => format!("-{short}, --{}", flag.name),
                None => format!("--{}", flag.name),
            };
            format!("invalid argument {value:?} for {name:?} flag: {problem}")
        })?;
        self.values.entry(flag.name).or_default().extend(values);
        if let Some(instead) = flag.deprecated {
            let deprecation = format!("Flag --{} has been deprecated, {instead}", flag.name);
            self.deprecations.push(deprecation);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static FLAGS: [Flag; 5] = [
        flag("set", None, Kind::Text),
        flag("values", Some('f'), Kind::List),
        flag("generate", Some('g'), Kind::Switch),
        flag("labels", Some('l'), Kind::Pairs),
        flag("namespace", Some('n'), Kind::Text),
    ];

    const fn flag(name: &'static str, short: Option<char>, kind: Kind) -> Flag {
        Flag {
            name,
            short,
            kind,
            deprecated: None,
            help: "",
        }
    }

    fn parse(line: &str) -> Result<Line, String> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        Line::parse(&words, &FLAGS)
    }

    #[test]
    fn flags_stand_between_arguments() {
        let line = parse("a --set x=1 -f a,b b --values=c -gn ns -- --set").expect("it is right");
        assert_eq!(line.arguments, ["a", "b", "--set"]);
        assert_eq!(line.all("values"), ["a", "b", "c"]);
        assert_eq!(
            (line.last("set"), line.last("namespace")),
            (Some("x=1"), Some("ns"))
        );
        assert!(line.is_true("generate") && !line.is_given("labels"));
    }

    #[test]
    fn wrong_lines_are_refused_in_pflags_words() {
        let check = |line, expected| assert_eq!(parse(line).err().as_deref(), Some(expected));
        check("--xyz", "unknown flag: --xyz");
        check("-gZ", "unknown shorthand flag: 'Z' in -Z");
        check("--set", "flag needs an argument: --set");
        check("-f", "flag needs an argument: 'f' in -f");
        check("--=a", "bad flag syntax: --=a");
        check(
            "-lead",
            r#"invalid argument "ead" for "-l, --labels" flag: ead must be formatted as key=value"#,
        );
        check(
            "--generate=foo",
            r#"invalid argument "foo" for "-g, --generate" flag: strconv.ParseBool: parsing "foo": invalid syntax"#,
        );
    }
}
