//! An index that is JSON: one entry is in memory at a time.

use std::cell::Cell;
use std::fmt;
use std::io::{self, BufRead, Read, Seek, Write};
use std::rc::Rc;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use crate::error::Error;
use crate::index::Index;
use crate::limits::MAX_ENTRY;
use crate::outcome::Attempt;

/// How many blanks may stand before the brace.
const MAX_BLANKS: usize = 4 << 10;
/// Bytes that the reader takes at a time; they count for the piece that began before them.
const SLACK: u64 = 64 << 10;

/// Returns whether the first character says that this is JSON, or YAML in flow style.
pub(crate) fn looks_like_json(reader: &mut impl BufRead) -> Result<bool, Error> {
    for _ in 0..MAX_BLANKS {
        match reader.fill_buf()?.first() {
            Some(b' ' | b'\t' | b'\r' | b'\n') => reader.consume(1),
            first => return Ok(first == Some(&b'{')),
        }
    }
    Ok(false)
}

/// Reads an index that is JSON. What is no JSON may still be YAML.
pub(crate) fn read<S: Read + Write + Seek>(
    reader: impl BufRead,
    index: &mut Index<S>,
) -> Result<Attempt, Error> {
    let budget = Rc::new(Cell::new(MAX_ENTRY as u64 + SLACK));
    let metered = Metered {
        reader,
        budget: budget.clone(),
    };
    let mut failure = None;
    let mut deserializer = serde_json::Deserializer::from_reader(metered);
    let read = IndexSeed {
        index,
        budget: &budget,
        failure: &mut failure,
    }
    .deserialize(&mut deserializer)
    .and_then(|()| deserializer.end());
    match (read, failure) {
        (_, Some(failure)) => Err(failure),
        (Ok(()), None) => Ok(Attempt::Done),
        (Err(error), None) if error.is_io() && budget.get() == 0 => Err(Error::TooLarge {
            what: "an entry",
            limit: MAX_ENTRY as u64,
            chart: String::new(),
            line: u32::try_from(error.line()).unwrap_or_default(),
        }),
        (Err(error), None) if error.is_io() => Err(Error::Io(error.into())),
        (Err(_), None) => Ok(Attempt::NotInPieces(None)),
    }
}

/// A reader that ends with an error when the piece that is being read is too large.
struct Metered<R> {
    reader: R,
    budget: Rc<Cell<u64>>,
}

impl<R: Read> Read for Metered<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        let left = self.budget.get().saturating_sub(read as u64);
        self.budget.set(left);
        if left == 0 && read > 0 {
            return Err(io::Error::other("too large"));
        }
        Ok(read)
    }
}

struct IndexSeed<'a, S: Write> {
    index: &'a mut Index<S>,
    budget: &'a Cell<u64>,
    /// Error in the content, which is no error of the JSON.
    failure: &'a mut Option<Error>,
}

impl<S: Write> IndexSeed<'_, S> {
    fn renew(&self) {
        self.budget.set(MAX_ENTRY as u64 + SLACK);
    }

    /// The first failure is kept; what follows is only checked for being JSON.
    fn keep(&mut self, result: Result<(), Error>) {
        if let Err(error) = result {
            self.failure.get_or_insert(error);
        }
    }
}

impl<'de, S: Read + Write + Seek> DeserializeSeed<'de> for IndexSeed<'_, S> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, S: Read + Write + Seek> Visitor<'de> for IndexSeed<'_, S> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an index")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<String>()? {
            self.renew();
            if Index::<S>::is_entries(&name) {
                map.next_value_seed(ChartsSeed(&mut self))?;
            } else {
                let value: Value = map.next_value()?;
                let result = self.index.field(&name, value, 0);
                self.keep(result);
            }
        }
        Ok(())
    }
}

/// `entries`.
struct ChartsSeed<'a, 'b, S: Write>(&'a mut IndexSeed<'b, S>);

impl<'de, S: Read + Write + Seek> DeserializeSeed<'de> for ChartsSeed<'_, '_, S> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, S: Read + Write + Seek> Visitor<'de> for ChartsSeed<'_, '_, S> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("entries")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self(outer) = self;
        outer.index.begin_entries();
        while let Some(chart) = map.next_key::<String>()? {
            map.next_value_seed(VersionsSeed { outer, chart })?;
        }
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        let result = self.0.index.field("entries", Value::Null, 0);
        self.0.keep(result);
        Ok(())
    }
}

/// The versions of a chart.
struct VersionsSeed<'a, 'b, S: Write> {
    outer: &'a mut IndexSeed<'b, S>,
    chart: String,
}

impl<'de, S: Read + Write + Seek> DeserializeSeed<'de> for VersionsSeed<'_, '_, S> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, S: Read + Write + Seek> Visitor<'de> for VersionsSeed<'_, '_, S> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list of chart versions")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut versions: A) -> Result<(), A::Error> {
        let Self { outer, chart } = self;
        outer.index.begin_chart(&chart);
        loop {
            outer.renew();
            if outer.failure.is_some() {
                if versions.next_element::<IgnoredAny>()?.is_none() {
                    return Ok(());
                }
                continue;
            }
            let Some(version) = versions.next_element::<Value>()? else {
                return Ok(());
            };
            let result = outer.index.version(&chart, version, 0);
            outer.keep(result);
        }
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        let result = self.outer.index.chart(&self.chart, Value::Null, 0);
        self.outer.keep(result);
        Ok(())
    }
}
