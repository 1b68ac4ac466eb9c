//! The index while it is read: its fields, and where in the spool the entries of each chart are. Writes the result.

use std::collections::BTreeMap;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};

use go_semver::Version;
use serde_json::Value;

use crate::coerce::{Target, coerce};
use crate::decode::{Filled, json_kind};
use crate::error::Error;
use crate::fields::{CHART_VERSION, INDEX, folds_to};
use crate::go_json::Writer;
use crate::outcome::{Dropped, Summary};
use crate::validate::validate;

/// How many entries that were passed over are named.
const MAX_DROPPED: usize = 20;
/// Blanks before an entry in what is written, in levels.
const ENTRY_DEPTH: usize = 3;
/// Where `entries` stands among the fields of an index.
const FIELDS_BEFORE_ENTRIES: usize = 3;
/// Bytes that are read or written at a time.
const BUFFER: usize = 64 << 10;

/// Index as read so far.
pub(crate) struct Index<S: Write> {
    fields: Filled,
    /// None as long as there was no `entries`, or null.
    charts: Option<BTreeMap<String, Versions>>,
    spool: BufWriter<S>,
    spooled: u64,
    /// YAML, whose unknown fields are errors and whose numbers may become text.
    strict: bool,
    summary: Summary,
}

/// The versions of a chart; None for null.
type Versions = Option<Vec<Spooled>>;

/// An entry in the spool.
struct Spooled {
    version: Version,
    offset: u64,
    length: u64,
}

impl<S: Read + Write + Seek> Index<S> {
    pub(crate) fn new(spool: S, strict: bool) -> Self {
        Self {
            fields: Filled::new(&INDEX),
            charts: None,
            spool: BufWriter::with_capacity(BUFFER, spool),
            spooled: 0,
            strict,
            summary: Summary::default(),
        }
    }

    /// Lets go of all that was read, to begin anew.
    pub(crate) fn into_spool(self) -> Result<S, Error> {
        Ok(self.spool.into_inner().map_err(io::IntoInnerError::into_error)?)
    }

    /// Returns whether a field of the index holds its entries.
    pub(crate) fn is_entries(name: &str) -> bool {
        folds_to(name, "entries")
    }

    /// Takes a field of the index, entries or not.
    pub(crate) fn field(&mut self, name: &str, mut value: Value, line: u32) -> Result<(), Error> {
        if Self::is_entries(name) {
            return self.entries(value, line);
        }
        if self.strict {
            let field = INDEX.fields.iter().find(|field| folds_to(name, field.name));
            coerce(&mut value, field.map_or(Target::Nothing, Target::from_field));
        }
        let set = self.fields.set(name, value, self.strict);
        set.map_err(|text| self.refused("", line, text))
    }

    fn entries(&mut self, value: Value, line: u32) -> Result<(), Error> {
        match value {
            Value::Null => self.charts = None,
            Value::Object(charts) => {
                self.begin_entries();
                for (chart, versions) in charts {
                    self.chart(&chart, versions, line)?;
                }
            }
            other => {
                let kind = json_kind(&other);
                let text = format!(
                    "json: cannot unmarshal {kind} into Go struct field IndexFile.entries of type map[string]repo.ChartVersions"
                );
                return Err(self.refused("", line, text));
            }
        }
        Ok(())
    }

    /// There are entries, even if none follows.
    pub(crate) fn begin_entries(&mut self) {
        self.charts.get_or_insert_default();
    }

    /// Returns whether there is a chart of this name already.
    pub(crate) fn has(&self, chart: &str) -> bool {
        self.charts
            .as_ref()
            .is_some_and(|charts| charts.contains_key(chart))
    }

    /// Takes a chart whose versions are at hand; they replace those that it had.
    pub(crate) fn chart(&mut self, chart: &str, versions: Value, line: u32) -> Result<(), Error> {
        match versions {
            Value::Null => {
                self.charts.get_or_insert_default().insert(chart.to_owned(), None);
            }
            Value::Array(versions) => {
                self.begin_chart(chart);
                for version in versions {
                    self.version(chart, version, line)?;
                }
            }
            other => {
                let kind = json_kind(&other);
                let text = format!(
                    "json: cannot unmarshal {kind} into Go struct field IndexFile.entries of type repo.ChartVersions"
                );
                return Err(self.refused(chart, line, text));
            }
        }
        Ok(())
    }

    /// A chart whose versions follow.
    pub(crate) fn begin_chart(&mut self, chart: &str) {
        let charts = self.charts.get_or_insert_default();
        charts.insert(chart.to_owned(), Some(Vec::new()));
    }

    /// Takes a version of a chart that was begun.
    pub(crate) fn version(&mut self, chart: &str, mut value: Value, line: u32) -> Result<(), Error> {
        if self.strict {
            coerce(&mut value, Target::Struct(CHART_VERSION.fields));
        }
        let object = match value {
            Value::Null => {
                self.drop_entry(chart, "", line, "empty entry".to_owned());
                return Ok(());
            }
            Value::Object(object) => object,
            other => {
                let kind = json_kind(&other);
                let text = format!(
                    "json: cannot unmarshal {kind} into Go struct field IndexFile.entries of type repo.ChartVersion"
                );
                return Err(self.refused(chart, line, text));
            }
        };
        let read = Filled::read(&CHART_VERSION, object, self.strict);
        let mut entry = read.map_err(|text| self.refused(chart, line, text))?;
        let checked = validate(&mut entry).and_then(|()| {
            Version::parse(entry.text("version")).map_err(|error| format!("validation: {error}"))
        });
        match checked {
            Ok(version) => self.spool(chart, version, &entry)?,
            Err(reason) => {
                let version = entry.text("version").to_owned();
                self.drop_entry(chart, &version, line, reason);
            }
        }
        Ok(())
    }

    fn refused(&self, chart: &str, line: u32, text: String) -> Error {
        Error::Decode {
            chart: chart.to_owned(),
            line,
            text: if self.strict { json_error(&text) } else { text },
        }
    }

    fn drop_entry(&mut self, chart: &str, version: &str, line: u32, reason: String) {
        self.summary.dropped_count += 1;
        if self.summary.dropped.len() < MAX_DROPPED {
            self.summary.dropped.push(Dropped {
                chart: chart.to_owned(),
                version: version.to_owned(),
                line,
                reason,
            });
        }
    }

    fn spool(&mut self, chart: &str, version: Version, entry: &Filled) -> Result<(), Error> {
        let mut text = Vec::new();
        Writer::new(&mut text).filled(entry, ENTRY_DEPTH)?;
        self.spool.write_all(&text)?;
        let spooled = Spooled {
            version,
            offset: self.spooled,
            length: text.len() as u64,
        };
        self.spooled += spooled.length;
        let charts = self.charts.get_or_insert_default();
        let versions = charts.entry(chart.to_owned()).or_default();
        versions.get_or_insert_default().push(spooled);
        Ok(())
    }

    /// Writes the index.
    pub(crate) fn finish(mut self, out: impl Write) -> Result<Summary, Error> {
        if self.fields.text("apiVersion").is_empty() {
            return Err(Error::NoApiVersion);
        }
        let mut spool = self.spool.into_inner().map_err(io::IntoInnerError::into_error)?;
        spool.seek(SeekFrom::Start(0))?;
        let mut spool = Spool {
            reader: BufReader::with_capacity(BUFFER, spool),
            position: 0,
        };
        let mut writer = Writer::new(BufWriter::with_capacity(BUFFER, out));
        let mut first = true;
        writer.raw("{")?;
        writer.fields(&self.fields, 0..FIELDS_BEFORE_ENTRIES, &mut first, 1)?;
        writer.raw(",")?;
        writer.line(1)?;
        writer.raw("\"entries\": ")?;
        match self.charts {
            Some(charts) => write_charts(&mut writer, charts, &mut spool, &mut self.summary)?,
            None => writer.raw("null")?,
        }
        let rest = FIELDS_BEFORE_ENTRIES..self.fields.slots.len();
        writer.fields(&self.fields, rest, &mut first, 1)?;
        writer.line(0)?;
        writer.raw("}")?;
        writer.flush()?;
        Ok(self.summary)
    }
}

fn write_charts<S: Read + Seek>(
    writer: &mut Writer<impl Write>,
    charts: BTreeMap<String, Versions>,
    spool: &mut Spool<S>,
    summary: &mut Summary,
) -> Result<(), Error> {
    let is_empty = charts.is_empty();
    writer.raw("{")?;
    for (index, (chart, versions)) in charts.into_iter().enumerate() {
        writer.raw(if index > 0 { "," } else { "" })?;
        writer.line(2)?;
        writer.text(&chart)?;
        writer.raw(": ")?;
        summary.charts += 1;
        let Some(mut versions) = versions else {
            writer.raw("null")?;
            continue;
        };
        summary.versions += versions.len();
        versions.sort_by(|a, b| b.version.compare(&a.version));
        writer.raw("[")?;
        for (index, version) in versions.iter().enumerate() {
            writer.raw(if index > 0 { "," } else { "" })?;
            writer.line(ENTRY_DEPTH)?;
            writer.copy(&mut spool.at(version)?)?;
        }
        if !versions.is_empty() {
            writer.line(2)?;
        }
        writer.raw("]")?;
    }
    if !is_empty {
        writer.line(1)?;
    }
    writer.raw("}")?;
    Ok(())
}

/// The entries as they were spooled. Reads on where the next one is near, as it is when a chart was sorted already.
struct Spool<S> {
    reader: BufReader<S>,
    position: u64,
}

impl<S: Read + Seek> Spool<S> {
    fn at(&mut self, entry: &Spooled) -> io::Result<impl Read> {
        let distance = i64::try_from(entry.offset).unwrap_or(i64::MAX)
            - i64::try_from(self.position).unwrap_or(i64::MAX);
        self.reader.seek_relative(distance)?;
        self.position = entry.offset + entry.length;
        Ok(self.reader.by_ref().take(entry.length))
    }
}

/// Words an error of encoding/json as sigs.k8s.io/yaml wraps it.
pub(crate) fn json_error(text: &str) -> String {
    format!("error unmarshaling JSON: while decoding JSON: {text}")
}
