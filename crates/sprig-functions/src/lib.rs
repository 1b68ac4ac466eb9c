//! The functions of sprig 3 that Helm exposes to templates.
//!
//! One module for each family; each registers its functions under sprig's names, with the parameter types that Go's
//! reflection sees. Knows no charts: what Helm replaces (`fail`, `toYaml`, `include`) it registers over these.

mod arguments;
mod cast;
mod checksums;
mod conversion;
mod crypto;
mod date;
mod decimal;
mod deep_equal;
mod defaults;
mod dicts;
mod encoding;
mod flow;
mod json;
mod lists;
mod math;
mod merge;
mod network;
mod path;
mod printed;
mod random;
mod reflection;
mod regex;
mod semver;
mod strings;
#[cfg(test)]
mod testing;
mod unicode;
mod url;

pub use date::{DurationObject, TimeObject};

use go_template::Functions;

/// Returns all functions: sprig's for text templates, without `env` and `expandenv`.
pub fn all() -> Functions {
    let mut functions = Functions::default();
    checksums::register(&mut functions);
    conversion::register(&mut functions);
    crypto::register(&mut functions);
    date::register(&mut functions);
    defaults::register(&mut functions);
    dicts::register(&mut functions);
    encoding::register(&mut functions);
    flow::register(&mut functions);
    json::register(&mut functions);
    lists::register(&mut functions);
    math::register(&mut functions);
    network::register(&mut functions);
    path::register(&mut functions);
    random::register(&mut functions);
    reflection::register(&mut functions);
    regex::register(&mut functions);
    semver::register(&mut functions);
    strings::register(&mut functions);
    url::register(&mut functions);
    functions
}
