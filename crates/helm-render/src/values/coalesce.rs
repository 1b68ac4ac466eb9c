//! A chart's values out of what was given and what charts set by default (Helm's `CoalesceValues` and `MergeValues`).
//!
//! What was given wins over the chart's defaults, the chart's values for a dependency win over that one's defaults, and
//! `global` is handed down from table to table. Lists are replaced, tables are merged.

use go_template::{Map, Value};

use super::convert::{copy, from_json};
use super::show;
use super::tables::{Nulls, joined, lay_under, put, remove_nulls};
use crate::chart::{Chart, Error, ErrorKind};
use crate::{Helm, Warning};

const GLOBAL: &str = "global";

/// A chart of which only the defaults matter: loaded, or on its way through the processing of dependencies.
pub(crate) trait Defaults: Copy {
    /// Returns the chart's name, which is its key in the values of the chart that holds it.
    fn name(&self) -> String;

    /// Returns a copy of the default values that may be changed.
    fn defaults(&self) -> Map;

    /// Returns the charts within.
    fn dependencies(&self) -> Vec<Self>;
}

impl Defaults for &Chart {
    fn name(&self) -> String {
        Chart::name(self).to_owned()
    }

    fn defaults(&self) -> Map {
        from_json(&self.values)
    }

    fn dependencies(&self) -> Vec<Self> {
        self.dependencies.iter().collect()
    }
}

/// Composes values and collects what Helm would warn of.
pub(crate) struct Coalescer<'w> {
    helm: Helm,
    warnings: &'w mut Vec<Warning>,
}

impl<'w> Coalescer<'w> {
    pub(crate) fn new(helm: Helm, warnings: &'w mut Vec<Warning>) -> Self {
        Self { helm, warnings }
    }

    /// Composes values; nulls that were given have done their work and are gone.
    pub(crate) fn coalesce(&mut self, chart: impl Defaults, given: &Map) -> Result<Map, Error> {
        let values = copy(given);
        self.compose(chart, &values, "", Nulls::Remove)?;
        Ok(values)
    }

    /// Composes values of nothing but defaults, with all their nulls, which a later step will look at again.
    pub(crate) fn merge_defaults(&mut self, chart: impl Defaults) -> Result<Map, Error> {
        let values = Map::new();
        self.compose(chart, &values, "", Nulls::Keep)?;
        Ok(values)
    }

    fn compose(
        &mut self,
        chart: impl Defaults,
        values: &Map,
        prefix: &str,
        nulls: Nulls,
    ) -> Result<(), Error> {
        let dependencies = chart.dependencies();
        let path = joined(prefix, &chart.name());
        self.add_defaults(chart, &dependencies, values, &path, nulls);
        for dependency in dependencies {
            let name = dependency.name();
            let below = match values.get(&name) {
                Some(Value::Map(below)) => below,
                Some(other) => {
                    let text = format!("type mismatch on {name}: {}", show::truth(&other));
                    return Err(Error::new(ErrorKind::Values, text));
                }
                None => {
                    let below = Map::new();
                    put(values, name.as_str(), Value::Map(below.clone()));
                    below
                }
            };
            self.hand_down_globals(values, &below, &path);
            self.compose(dependency, &below, &path, nulls)?;
        }
        Ok(())
    }

    /// Lays a chart's own defaults under its values (`coalesceValues`).
    fn add_defaults<C: Defaults>(
        &mut self,
        chart: C,
        dependencies: &[C],
        values: &Map,
        path: &str,
        nulls: Nulls,
    ) {
        let cleans = self.helm == Helm::V4;
        for (key, default) in chart.defaults().entries() {
            match (values.get(&key), default) {
                (Some(Value::Nil), _) if nulls == Nulls::Remove => {
                    values.remove(&key);
                }
                (Some(Value::Map(table)), Value::Map(defaults)) => {
                    let name = key.to_text();
                    // A dependency's own defaults are still to come, and a null may have to remove one of them.
                    let is_dependency = dependencies.iter().any(|dependency| dependency.name() == name);
                    let nulls = if is_dependency { Nulls::Keep } else { nulls };
                    if cleans && nulls == Nulls::Remove {
                        remove_nulls(&defaults);
                    }
                    lay_under(&table, &defaults, &joined(path, &name), nulls, self.warnings);
                }
                (Some(Value::Map(_)), Value::Nil) => {}
                (Some(Value::Map(_)), _) => {
                    let text = format!(
                        "warning: skipped value for {path}.{}: Not a table.",
                        key.to_text()
                    );
                    self.warnings.push(Warning::new(text));
                }
                (Some(_), _) => {}
                (None, default) => {
                    if cleans && nulls == Nulls::Remove {
                        match &default {
                            Value::Nil => continue,
                            Value::Map(table) => remove_nulls(table),
                            _ => {}
                        }
                    }
                    put(values, key, default);
                }
            }
        }
    }

    /// Lays the `global` of a dependency under that of the chart that holds it, and gives it to the dependency.
    ///
    /// The tables right below `global` become tables of their own, those below them are shared by both charts: what the
    /// dependency adds there, the other sees (`coalesceGlobals`).
    fn hand_down_globals(&mut self, from: &Map, to: &Map, path: &str) {
        let Some(target) = self.globals(to, "destination") else {
            return;
        };
        let Some(source) = self.globals(from, "source") else {
            return;
        };
        for (key, value) in source.entries() {
            let name = key.to_text();
            match (value, target.get(&key)) {
                (Value::Map(upper), lower) => {
                    let upper: Map = upper.entries().into_iter().collect();
                    match lower {
                        None => {}
                        Some(Value::Map(lower)) => {
                            lay_under(&upper, &lower, &joined(path, &name), Nulls::Keep, self.warnings);
                        }
                        Some(_) => {
                            let name = crate::quote::quote(&name);
                            self.warn(format!(
                                "Conflict: cannot merge map onto non-map for {name}. Skipping."
                            ));
                            continue;
                        }
                    }
                    put(&target, key.clone(), Value::Map(upper));
                }
                (_, Some(Value::Map(_))) => self.warn(format!("key {name} is table. Skipping")),
                (value, _) => put(&target, key.clone(), value),
            }
        }
        put(to, GLOBAL, Value::Map(target));
    }

    fn globals(&mut self, values: &Map, role: &str) -> Option<Map> {
        match values.get(GLOBAL) {
            None => Some(Map::new()),
            Some(Value::Map(globals)) => Some(globals),
            Some(_) => {
                self.warn(format!(
                    "warning: skipping globals because {role} {GLOBAL} is not a table."
                ));
                None
            }
        }
    }

    fn warn(&mut self, text: String) {
        self.warnings.push(Warning::new(text));
    }
}
