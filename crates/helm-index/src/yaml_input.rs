//! An index that is YAML: in pieces where the text allows it, else whole.

use std::io::{BufRead, Read, Seek, SeekFrom, Write};

use go_text::quote::quoted;
use manifest::yaml::{Dialect, Nodes, Problem, compose_first, json};
use serde_json::{Map, Value};

use crate::error::Error;
use crate::index::{Index, json_error};
use crate::limits::{MAX_ENTRY, MAX_WHOLE};
use crate::outcome::Attempt;
use crate::split::{Piece, Split, Splitter, What};

/// Reads an index piece by piece.
///
/// # Errors
/// When a piece is YAML and no part of an index.
pub(crate) fn read_pieces<S: Read + Write + Seek>(
    reader: &mut impl BufRead,
    index: &mut Index<S>,
) -> Result<Attempt, Error> {
    let mut splitter = Splitter::default();
    let mut taker = Taker {
        index,
        chart: String::new(),
        fields: Vec::new(),
    };
    let mut line = Vec::new();
    let mut number = 0;
    loop {
        number += 1;
        line.clear();
        // One more than is allowed, so that it shows.
        let limit = MAX_ENTRY as u64 + 1;
        let read = reader.by_ref().take(limit).read_until(b'\n', &mut line)?;
        if read == 0 {
            break;
        }
        if number == 1 && line.starts_with(b"\xef\xbb\xbf") {
            line.drain(..3);
        }
        if let Split::Unsure = splitter.line(&line, number) {
            return Ok(Attempt::NotInPieces(None));
        }
        if splitter.size() > MAX_ENTRY {
            return Err(Error::TooLarge {
                what: "an entry",
                limit: MAX_ENTRY as u64,
                chart: taker.chart,
                line: splitter.start(),
            });
        }
        if let Some(attempt) = taker.all(splitter.take())? {
            return Ok(attempt);
        }
    }
    splitter.finish();
    Ok(taker.all(splitter.take())?.unwrap_or(Attempt::Done))
}

/// Hands pieces to the index.
struct Taker<'a, S: Write> {
    index: &'a mut Index<S>,
    /// The chart whose entries come.
    chart: String,
    /// Fields that were there.
    fields: Vec<String>,
}

impl<S: Read + Write + Seek> Taker<'_, S> {
    /// Takes pieces; the attempt is over when one of them is no YAML by itself.
    fn all(&mut self, pieces: Vec<Piece>) -> Result<Option<Attempt>, Error> {
        for piece in pieces {
            match parse(&piece) {
                Ok(value) => self.piece(&piece, value)?,
                Err(Failure::Syntax(problem)) => {
                    let problem = self.yaml(problem.below(piece.line - 1));
                    return Ok(Some(Attempt::NotInPieces(Some(problem))));
                }
                Err(Failure::Content(problem)) => return Err(self.yaml(problem.below(piece.line - 1))),
            }
        }
        Ok(None)
    }

    fn yaml(&self, problem: Problem) -> Error {
        Error::Yaml {
            chart: self.chart.clone(),
            problem,
        }
    }

    fn piece(&mut self, piece: &Piece, value: Value) -> Result<(), Error> {
        let line = piece.line;
        if piece.what == What::Entry {
            let Value::Array(entries) = value else {
                return Ok(()); // it begins with a dash
            };
            let mut entries = entries.into_iter();
            return entries.try_for_each(|entry| self.index.version(&self.chart, entry, line));
        }
        let Value::Object(fields) = value else {
            return Ok(()); // it begins with a name and a colon
        };
        for (name, value) in fields {
            self.named(piece, name, value)?;
        }
        Ok(())
    }

    fn named(&mut self, piece: &Piece, name: String, value: Value) -> Result<(), Error> {
        let line = piece.line;
        match piece.what {
            What::Chart | What::ChartName => {
                if self.index.has(&name) {
                    return Err(self.yaml(duplicate(&name, line)));
                }
                if piece.what == What::Chart {
                    return self.index.chart(&name, value, line);
                }
                self.index.begin_chart(&name);
                self.chart = name;
            }
            What::Field | What::Entries => {
                self.chart.clear();
                if self.fields.contains(&name) {
                    return Err(self.yaml(duplicate(&name, line)));
                }
                self.index.field(&name, value, line)?;
                self.fields.push(name);
            }
            What::Entry => {}
        }
        Ok(())
    }
}

/// Reads what is left as one YAML document. Says what was wrong with a piece when it is too large for that.
pub(crate) fn read_whole<S: Read + Write + Seek>(
    reader: &mut (impl BufRead + Seek),
    index: &mut Index<S>,
    problem: Option<Error>,
) -> Result<(), Error> {
    reader.seek(SeekFrom::Start(0))?;
    let mut text = Vec::new();
    reader.by_ref().take(MAX_WHOLE + 1).read_to_end(&mut text)?;
    if text.len() as u64 > MAX_WHOLE {
        return Err(problem.unwrap_or(Error::TooLarge {
            what: "an index that is not written entry by entry",
            limit: MAX_WHOLE,
            chart: String::new(),
            line: 0,
        }));
    }
    let yaml = |problem| Error::Yaml {
        chart: String::new(),
        problem,
    };
    let value = decode(&text).map_err(|failure| match failure {
        Failure::Syntax(problem) | Failure::Content(problem) => yaml(problem),
    })?;
    drop(text);
    let fields = match value {
        Value::Object(fields) => fields,
        Value::Null => Map::new(),
        other => {
            let kind = crate::decode::json_kind(&other);
            return Err(Error::Decode {
                chart: String::new(),
                line: 0,
                text: json_error(&format!(
                    "json: cannot unmarshal {kind} into Go value of type repo.IndexFile"
                )),
            });
        }
    };
    for (name, value) in fields {
        index.field(&name, value, 0)?;
    }
    Ok(())
}

fn duplicate(name: &str, line: u32) -> Problem {
    let name = quoted(name);
    Problem::in_node(
        line,
        format!("unmarshal errors:\n  line {line}: key {name} already set in map"),
    )
}

enum Failure {
    /// The text is no YAML by itself.
    Syntax(Problem),
    /// It is, and what it says cannot be.
    Content(Problem),
}

fn parse(piece: &Piece) -> Result<Value, Failure> {
    decode(&piece.text)
}

fn decode(text: &[u8]) -> Result<Value, Failure> {
    let mut nodes = Nodes::default();
    let root = compose_first(text, &mut nodes, Dialect::Sigs).map_err(Failure::Syntax)?;
    let Some(root) = root else {
        return Ok(Value::Null);
    };
    json::decode_strict(&nodes, root).map_err(Failure::Content)
}
