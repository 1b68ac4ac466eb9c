//! Parsed templates, kept from one rendering to the next.
//!
//! Values decide which dependencies take part and by which names, so each file is kept by its path and its content; and the
//! whole set of the last rendering is kept as well, since the next one is mostly of the same files.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use go_template::ast::Tree;
use go_template::{Str, Templates};

use super::message;
use super::scope::Renderable;
use crate::functions;
use crate::{Error, ErrorKind};
use helm_chart::{File, Helm};

/// The name of Go's template at the root, which messages show.
const ROOT: &str = "gotpl";

/// The parsed templates of a chart. Shared by renderings on all threads.
#[derive(Debug, Default)]
pub(crate) struct Parsed {
    files: Mutex<HashMap<Key, ParsedFile>>,
    last: Mutex<Option<(Vec<Key>, Arc<Templates>)>>,
}

/// A path, and the address of the content; [`ParsedFile`] keeps that in its place.
type Key = (Arc<str>, usize);

#[derive(Clone, Debug)]
struct ParsedFile {
    trees: Arc<[Arc<Tree>]>,
    _content: Arc<File>,
}

impl Parsed {
    /// Returns all templates of the files, parsed in their order.
    pub(super) fn templates(&self, files: &[Renderable<'_>], helm: Helm) -> Result<Arc<Templates>, Error> {
        let keys: Vec<Key> = files.iter().map(key).collect();
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, templates)) = &*last
            && *known == keys
        {
            return Ok(templates.clone());
        }
        let mut templates = Templates::new(ROOT);
        let mut parsed = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        for (file, key) in files.iter().zip(&keys) {
            let known = match parsed.get(key) {
                Some(known) => known.clone(),
                None => {
                    let new = parse(file, helm)?;
                    parsed.insert(key.clone(), new.clone());
                    new
                }
            };
            known.trees.iter().for_each(|tree| templates.add(tree.clone()));
        }
        let templates = Arc::new(templates);
        *last = Some((keys, templates.clone()));
        Ok(templates)
    }
}

fn key(file: &Renderable<'_>) -> Key {
    (file.path.clone(), Arc::as_ptr(file.file).addr())
}

fn parse(file: &Renderable<'_>, helm: Helm) -> Result<ParsedFile, Error> {
    let functions = functions::functions(helm);
    let (name, text) = (Str::from(&*file.path), &file.file.data);
    let trees = go_template::parse_with(&name, text, functions).map_err(|error| {
        let text = message::of_parser(&file.path, &error);
        Error::new(ErrorKind::Parse, text).in_file(&file.path, message::line_of(&error))
    })?;
    Ok(ParsedFile {
        trees: trees.into_iter().map(Arc::new).collect(),
        _content: file.file.clone(),
    })
}
