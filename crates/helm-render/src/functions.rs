//! The functions that templates of charts may call: sprig's, with what Helm takes away, puts in their place and adds.
//!
//! Two tables for all renders, one for each version of Helm. What a function must know of its render (how deep `include`
//! is nested, how to look objects up) is kept in the render itself, as [`State`].

mod author;
mod duration;
mod json;
mod state;
mod templates;
mod toml;
pub(crate) mod yaml;
mod yaml_pretty;

use std::sync::LazyLock;

use go_template::{Function, Functions, Map, Type, Value};

pub use state::Lookup;
pub(crate) use state::State;
pub(crate) use templates::without_missing;

use helm_chart::Helm;

/// Returns the functions of a version of Helm.
pub(crate) fn functions(helm: Helm) -> &'static Functions {
    static V3: LazyLock<Functions> = LazyLock::new(|| made(Helm::V3));
    static V4: LazyLock<Functions> = LazyLock::new(|| made(Helm::V4));
    match helm {
        Helm::V3 => &V3,
        Helm::V4 => &V4,
    }
}

fn made(helm: Helm) -> Functions {
    let mut functions = sprig_functions::all();
    // What a process holds in its environment is no chart's business.
    functions.remove("env");
    functions.remove("expandenv");
    functions.add("getHostByName", Function::new(&[Type::STRING], host));
    author::register(&mut functions);
    json::register(&mut functions, helm);
    templates::register(&mut functions);
    toml::register(&mut functions, helm);
    yaml::register(&mut functions, helm);
    yaml_pretty::register(&mut functions);
    if helm == Helm::V4 {
        duration::register(&mut functions);
    }
    functions.add("lookup", Function::new(LOOKUP, lookup));
    functions
}

/// Looks a host up, where that is allowed; else a chart resolves no names, as without `--enable-dns`. Of several addresses
/// it is always the same one, so that a chart renders to the same.
fn host(context: &mut go_template::Context<'_>, arguments: &[Value]) -> Result<Value, go_template::Error> {
    let lookup = context.state::<State>().lookup.clone();
    let name = arguments[0]
        .as_string()
        .map(|text| text.to_text().into_owned())
        .unwrap_or_default();
    let found = lookup.map_or(Ok(None), |lookup| lookup.addresses(&name));
    let Some(found) = found.map_err(go_template::Error::new)? else {
        return Ok("".into());
    };
    match found.iter().min() {
        Some(address) => Ok(address.to_string().into()),
        // What choosing one of none panics with in Go.
        None => Err(go_template::Error::new("invalid argument to Intn")),
    }
}

const LOOKUP: &[Type] = &[Type::STRING, Type::STRING, Type::STRING, Type::STRING];

/// Looks an object up, or a list of them; nothing where there is no cluster to ask.
fn lookup(context: &mut go_template::Context<'_>, arguments: &[Value]) -> Result<Value, go_template::Error> {
    let Some(lookup) = context.state::<State>().lookup.clone() else {
        return Ok(Map::new().into());
    };
    let text = |index: usize| {
        arguments[index]
            .as_string()
            .map(|text| text.to_text().into_owned())
    };
    let [api_version, kind, namespace, name] =
        [text(0), text(1), text(2), text(3)].map(Option::unwrap_or_default);
    let found = lookup
        .lookup(&api_version, &kind, &namespace, &name)
        .map_err(go_template::Error::new)?;
    Ok(match found {
        Some(object) => crate::values::from_json(&object).into(),
        None => Map::new().into(),
    })
}
