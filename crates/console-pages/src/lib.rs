//! Pages of the console as HTML. Pure: what a page shows is given to it, and cut to what the reader may get.
//!
//! A page is a [`Shown`]: its main element, and those parts of it that change while someone looks. A stream sends a part again when
//! it differs, so that page and stream have one render function. Everything that a tenant wrote is escaped by maud; links are made
//! by [`link`], which encodes names.
//!
//! | module | what it is |
//! |---|---|
//! | `texts` | every text of ours, in each language |
//! | `layout` | the document around a page, and pages of errors |
//! | `element` | small things that all pages use: a status, a time, a revision |
//! | `link` | addresses of pages |
//! | `forms` | forms for new objects, and the manifests that are made of them |
//! | `chart_values` | fields for the values of a chart, by its schema |
//! | `reasons` | what the reasons of conditions mean |
//! | `search` | what is typed into the search field |
//! | `home`, `list`, `object`, `board`, `compared`, `values`, `events`, `logs`, `outcomes`, `change`, `changes`, `fleet`, `graph`, `history`, `state`, `wall`, `profile`, `design` | a page each |
//! | `assets` | style, scripts and icons, under names that have their digest |

pub mod assets;
pub mod board;
pub mod change;
pub mod changes;
pub mod chart_values;
pub mod compared;
pub mod design;
pub mod element;
pub mod events;
pub mod fleet;
pub mod forms;
pub mod graph;
pub mod history;
pub mod home;
pub mod layout;
pub mod link;
pub mod list;
pub mod logs;
pub mod object;
pub mod outcomes;
pub mod profile;
pub mod reasons;
pub mod search;
pub mod state;
pub mod texts;
pub mod values;
pub mod wall;

use jiff::Timestamp;
use maud::Markup;

pub use self::texts::Texts;

/// Who looks, when, and in which language.
#[derive(Clone)]
pub struct View {
    /// The texts of a language.
    pub texts: &'static Texts,
    /// The time.
    pub now: Timestamp,
    /// What relative times are counted from: when the page was loaded. The page's script goes on from there, so that a part is
    /// not another one only because time has passed.
    pub loaded: Timestamp,
    /// How the reader is called.
    pub user: String,
    /// Path and query of the page.
    pub address: String,
    /// The number of the last change that the page has: its stream goes on from there.
    pub change: u64,
    /// Whether a ledger is kept.
    pub has_ledger: bool,
    /// Whether any cluster has pipelines.
    pub has_pipelines: bool,
    /// Whether anything can be done here.
    pub has_actions: bool,
    /// Whether changes can be proposed through Git.
    pub has_changes: bool,
}

/// A page.
pub struct Shown {
    /// Its title.
    pub title: String,
    /// What the icon of the tab tells.
    pub mood: Mood,
    /// The content of `<main>`.
    pub main: Markup,
    /// Elements of it that change, by their id. Each has that id, and is in `main` as it is here.
    pub parts: Vec<(String, Markup)>,
    /// The element that is sent when other parts are there than before, by its id: it holds those that come and go. None if all
    /// of `main` is.
    pub frame: Option<(&'static str, Markup)>,
}

/// How that is which a page shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mood {
    /// As it should be.
    Good,
    /// On its way.
    Busy,
    /// Something needs a person.
    Bad,
}
