//! The chart of a release: as a record has it, or as it was loaded and rendered.
//!
//! Clones share it. A record's is carried as text: it holds all templates, and nothing but what [`Chart::name`] and its like
//! tell is needed of it. A loaded one is written when the record is, straight from files that all releases of the chart
//! share.

mod loaded;

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::release::or_default;
use go_text::json;
use loaded::Loaded;

/// The chart of a release.
#[derive(Clone, Debug)]
pub struct Chart {
    source: Source,
    head: Arc<Head>,
}

#[derive(Clone, Debug)]
enum Source {
    Recorded(Arc<RawValue>),
    Loaded(Arc<helm_chart::Chart>),
}

#[derive(Debug)]
struct Head {
    metadata: Option<Box<RawValue>>,
    names: Names,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Names {
    #[serde(deserialize_with = "or_default")]
    name: String,
    #[serde(deserialize_with = "or_default")]
    version: String,
    #[serde(deserialize_with = "or_default")]
    app_version: String,
}

impl Chart {
    /// Takes a chart that was rendered ([`helm_render::Rendered::chart`]).
    ///
    /// The times at which its files were changed are not known, and not recorded.
    #[must_use]
    pub fn from_chart(chart: helm_chart::Chart) -> Self {
        let metadata = &chart.metadata;
        let head = Head {
            metadata: Some(loaded::metadata(metadata)),
            names: Names {
                name: metadata.name.clone(),
                version: metadata.version.clone(),
                app_version: metadata.app_version.clone(),
            },
        };
        Self {
            head: Arc::new(head),
            source: Source::Loaded(Arc::new(chart)),
        }
    }

    /// Reads what a record says of a chart.
    ///
    /// # Errors
    /// When it is no JSON object, or its metadata is none.
    pub fn read(text: Box<RawValue>) -> serde_json::Result<Self> {
        #[derive(Deserialize)]
        struct Outline {
            #[serde(default)]
            metadata: Option<Box<RawValue>>,
        }
        let Outline { metadata } = serde_json::from_str(text.get())?;
        let metadata = metadata.filter(|metadata| metadata.get() != "null");
        let names = match &metadata {
            Some(metadata) => serde_json::from_str(metadata.get())?,
            None => Names::default(),
        };
        Ok(Self {
            source: Source::Recorded(Arc::from(text)),
            head: Arc::new(Head { metadata, names }),
        })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.head.names.name
    }

    /// Its version.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.head.names.version
    }

    /// The version of what it installs.
    #[must_use]
    pub fn app_version(&self) -> &str {
        &self.head.names.app_version
    }

    /// Content of Chart.yaml, as Helm writes it.
    #[must_use]
    pub fn metadata(&self) -> Option<&RawValue> {
        self.head.metadata.as_deref()
    }

    /// Its default values.
    ///
    /// # Errors
    /// When a record has something else in their place.
    pub fn values(&self) -> serde_json::Result<Arc<Map<String, Value>>> {
        #[derive(Deserialize)]
        struct Outline {
            #[serde(default, deserialize_with = "or_default")]
            values: Map<String, Value>,
        }
        match &self.source {
            Source::Loaded(chart) => Ok(chart.values.clone()),
            Source::Recorded(text) => {
                let Outline { values } = serde_json::from_str(text.get())?;
                Ok(Arc::new(values))
            }
        }
    }

    /// All of it, as it stands in a record.
    #[must_use]
    pub fn text(&self) -> Cow<'_, str> {
        match &self.source {
            Source::Recorded(text) => Cow::Borrowed(text.get()),
            Source::Loaded(chart) => Cow::Owned(json::to_string(&Loaded(chart))),
        }
    }
}

impl PartialEq for Chart {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl Serialize for Chart {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.source {
            Source::Recorded(text) => (**text).serialize(serializer),
            Source::Loaded(chart) => Loaded(chart).serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Chart {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::read(Box::<RawValue>::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}
