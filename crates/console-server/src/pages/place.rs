//! Addresses of pages, read.

use axum::extract::Query;
use axum::http::{StatusCode, Uri};
use console_pages::search::Search;
use fleet::query::Parameters;
use percent_encoding::percent_decode_str;
use url::form_urlencoded::{Serializer, parse};

use super::rows::{APPLICATIONS, CHANGES, IMAGES, Kinds, NOTIFICATIONS, PIPELINES, SOURCES};
use crate::api::deliveries;
use crate::api::diff::Sides;
use crate::problem::Problem;

/// Bytes of an address.
const MAX_ADDRESS: usize = 16 << 10;

/// Cluster, kind, namespace and name.
pub type Named = (String, String, String, String);

/// What a list was asked for.
pub struct Asked {
    /// What was typed, read, with the other parameters.
    pub search: Search,
    /// The other parameters as they were given.
    pub given: Parameters,
}

/// Where someone is.
pub enum Place {
    Home,
    /// Objects of certain kinds.
    List(Kinds, Box<Asked>),
    Object(Named),
    /// An object, compared with what is there.
    Compared(Named),
    /// The Events about an object.
    Events(Named),
    /// What an object is built with.
    Values(Named),
    /// Logs of its Pods.
    Logs(Named),
    /// The manifest of an object, to be changed.
    Edit(Named),
    /// Kinds of new objects, or the form for one, in a cluster, with a chart.
    New(Option<(String, String, String)>),
    /// What two want to have applied.
    Between(Sides),
    Fleet {
        asked: Box<Asked>,
        skip: usize,
    },
    Change(String),
    /// How it was at a time, as it was typed.
    State(String),
    Wall,
    Graph(Box<Asked>),
    History(Box<deliveries::Parameters>),
    Profile,
    Design,
}

impl Place {
    /// Reads path and query.
    pub fn read(address: &str) -> Result<Self, Problem> {
        let missing = || Problem::new(StatusCode::NOT_FOUND, "there is no such page");
        if address.len() > MAX_ADDRESS {
            return Err(wrong("the address is too long"));
        }
        let (path, query) = address.split_once('?').unwrap_or((address, ""));
        let parts: Option<Vec<String>> = path
            .strip_prefix('/')
            .ok_or_else(missing)?
            .split('/')
            .map(|part| Some(percent_decode_str(part).decode_utf8().ok()?.into_owned()))
            .collect();
        let parts = parts.ok_or_else(missing)?;
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let named = |cluster: &str, kind: &str, namespace: &str, name: &str| {
            (
                cluster.to_owned(),
                kind.to_owned(),
                namespace.to_owned(),
                name.to_owned(),
            )
        };
        Ok(match parts.as_slice() {
            [""] => Self::Home,
            ["apps"] => Self::List(APPLICATIONS, Box::new(asked(query)?)),
            ["sources"] => Self::List(SOURCES, Box::new(asked(query)?)),
            ["pipelines"] => Self::List(PIPELINES, Box::new(asked(query)?)),
            ["images"] => Self::List(IMAGES, Box::new(asked(query)?)),
            ["notifications"] => Self::List(NOTIFICATIONS, Box::new(asked(query)?)),
            ["objects", cluster, kind, namespace, name] => {
                Self::Object(named(cluster, kind, namespace, name))
            }
            ["objects", cluster, kind, namespace, name, "diff"] => {
                Self::Compared(named(cluster, kind, namespace, name))
            }
            ["fleet"] => {
                let (skip, rest) = taken(query, "skip");
                let skip = match skip.as_str() {
                    "" => 0,
                    skip => skip.parse().map_err(|_| wrong("skip: it is no number"))?,
                };
                let asked = Box::new(asked(&rest)?);
                Self::Fleet { asked, skip }
            }
            ["change"] => Self::Change(taken(query, "q").0.trim().to_owned()),
            ["objects", cluster, kind, namespace, name, "events"] => {
                Self::Events(named(cluster, kind, namespace, name))
            }
            ["objects", cluster, kind, namespace, name, "values"] => {
                Self::Values(named(cluster, kind, namespace, name))
            }
            ["objects", cluster, kind, namespace, name, "logs"] => {
                Self::Logs(named(cluster, kind, namespace, name))
            }
            ["objects", cluster, kind, namespace, name, "edit"] => {
                Self::Edit(named(cluster, kind, namespace, name))
            }
            ["new"] => Self::New(None),
            ["new", kind] => {
                let (cluster, chart) = (taken(query, "cluster").0, taken(query, "chart").0);
                Self::New(Some(((*kind).to_owned(), cluster, chart)))
            }
            ["changes"] => Self::List(CHANGES, Box::new(asked(query)?)),
            ["history"] => Self::History(Box::new(parsed(&without_empty(query))?)),
            ["compare"] => Self::Between(parsed(&without_empty(query))?),
            ["state"] => Self::State(taken(query, "at").0),
            ["graph"] => Self::Graph(Box::new(asked(query)?)),
            ["wall"] => Self::Wall,
            ["me"] => Self::Profile,
            ["design"] => Self::Design,
            _ => return Err(missing()),
        })
    }
}

fn asked(query: &str) -> Result<Asked, Problem> {
    let (typed, rest) = taken(query, "q");
    let given: Parameters = parsed(&rest)?;
    Ok(Asked {
        search: Search::read(&typed, given.clone()),
        given,
    })
}

/// The last value of a parameter, and the query without it.
fn taken(query: &str, name: &str) -> (String, String) {
    let mut value = String::new();
    let mut rest = Serializer::new(String::new());
    for (key, one) in parse(query.as_bytes()) {
        match key == name {
            true => value = one.into_owned(),
            false => {
                rest.append_pair(&key, &one);
            }
        }
    }
    (value, rest.finish())
}

/// Forms send their empty fields, too.
fn without_empty(query: &str) -> String {
    let given = parse(query.as_bytes()).filter(|(_, value)| !value.is_empty());
    Serializer::new(String::new()).extend_pairs(given).finish()
}

fn parsed<T: serde::de::DeserializeOwned>(query: &str) -> Result<T, Problem> {
    let address: Uri = format!("/?{query}")
        .parse()
        .map_err(|_| wrong("this is no query"))?;
    let Query(parameters) = Query::try_from_uri(&address).map_err(|error| wrong(&error.body_text()))?;
    Ok(parameters)
}

fn wrong(message: &str) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        let Ok(Place::Object(named)) = Place::read("/objects/eu%2F1/ks/shop/a%20b") else {
            panic!("it is an object");
        };
        assert_eq!(named, ("eu/1".into(), "ks".into(), "shop".into(), "a b".into()));
        let Ok(Place::List(_, asked)) = Place::read("/apps?q=ns:shop+web&status=Failed") else {
            panic!("it is a list");
        };
        let parameters = &asked.search.parameters;
        assert_eq!(
            (&*parameters.namespace, &*parameters.text, &*parameters.status),
            ("shop", "web", "Failed")
        );
        assert_eq!((&*asked.given.namespace, &*asked.given.status), ("", "Failed"));
        assert!(matches!(
            Place::read("/history?name=&since=7d"),
            Ok(Place::History(_))
        ));
        for (address, code) in [
            ("/nowhere", 404),
            ("apps", 404),
            ("/objects/a/b/c", 404),
            ("/objects/%ff/ks/a/b", 404),
            ("/apps?nonsense=1", 400),
            ("/fleet?skip=-1", 400),
        ] {
            assert_eq!(
                Place::read(address).err().map(|problem| problem.code),
                Some(code),
                "{address}"
            );
        }
    }
}
