//! A chart's values out of what was given and what charts set by default (Helm's `CoalesceValues` and `MergeValues`).
//!
//! What was given wins over the chart's defaults, the chart's values for a dependency win over that one's defaults, and
//! `global` is handed down from table to table. Lists are replaced, tables are merged.

use go_template::{Map, Value};

use super::convert::{copy, from_json};
use super::show;
use super::tables::{Nulls, check_bounds, joined, lay_under, put, remove_nulls};
use helm_chart::{Chart, Error, ErrorKind, Helm, Warning};

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
        check_bounds(&values)?;
        Ok(values)
    }

    /// Composes values of nothing but defaults, with all their nulls, which a later step will look at again.
    pub(crate) fn merge_defaults(&mut self, chart: impl Defaults) -> Result<Map, Error> {
        let values = Map::new();
        self.compose(chart, &values, "", Nulls::Keep)?;
        check_bounds(&values)?;
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
        self.add_defaults(chart, &dependencies, values, &path, nulls)?;
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
            self.hand_down_globals(values, &below, &path)?;
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
    ) -> Result<(), Error> {
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
                    lay_under(&table, &defaults, &joined(path, &name), nulls, self.warnings)?;
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
        Ok(())
    }

    /// Lays the `global` of a dependency under that of the chart that holds it, and gives it to the dependency.
    ///
    /// The tables right below `global` become tables of their own, those below them are shared by both charts: what the
    /// dependency adds there, the other sees (`coalesceGlobals`).
    fn hand_down_globals(&mut self, from: &Map, to: &Map, path: &str) -> Result<(), Error> {
        let Some(target) = self.globals(to, "destination") else {
            return Ok(());
        };
        let Some(source) = self.globals(from, "source") else {
            return Ok(());
        };
        for (key, value) in source.entries() {
            let name = key.to_text();
            match (value, target.get(&key)) {
                (Value::Map(upper), lower) => {
                    let upper: Map = upper.entries().into_iter().collect();
                    match lower {
                        None => {}
                        Some(Value::Map(lower)) => {
                            lay_under(&upper, &lower, &joined(path, &name), Nulls::Keep, self.warnings)?;
                        }
                        Some(_) => {
                            let name = go_text::quote::quoted(&name);
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
        Ok(())
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

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use super::*;
    use crate::values::{coalesce, table, to_json};
    use helm_chart::{File, load_files};

    fn chart(values: &str, sub_values: &str, helm: Helm) -> Chart {
        let sub = "{apiVersion: v2, name: sub, version: 1.0.0}";
        let files = [
            ("Chart.yaml", "{apiVersion: v2, name: top, version: 1.0.0}"),
            ("values.yaml", values),
            ("charts/sub/Chart.yaml", sub),
            ("charts/sub/values.yaml", sub_values),
        ];
        let files = files.into_iter().map(|(name, text)| File {
            name: name.to_owned(),
            data: text.into(),
        });
        load_files(files.collect(), helm, &mut Vec::new()).expect("the chart is valid")
    }

    fn composed(
        values: &str,
        sub_values: &str,
        given: &Json,
        helm: Helm,
    ) -> (Result<Map, Error>, Vec<String>) {
        let given = from_json(given.as_object().expect("a map"));
        let mut warnings = Vec::new();
        let result = coalesce(&chart(values, sub_values, helm), &given, helm, &mut warnings);
        (result, warnings.iter().map(ToString::to_string).collect())
    }

    #[track_caller]
    fn check(values: &str, sub_values: &str, given: &Json, helm: Helm, expected: Json) {
        let found = composed(values, sub_values, given, helm)
            .0
            .expect("the values fit");
        assert_eq!(Json::Object(to_json(&found)), expected);
    }

    #[test]
    fn a_given_null_takes_a_default_away() {
        let expected = json!({"t": {"b": 2.0}, "sub": {"global": {}, "m": {"z": 1.0}}});
        let given = json!({"a": null, "t": {"a": null}, "sub": {"m": {"x": null}}});
        for helm in [Helm::V3, Helm::V4] {
            check(
                "{a: 1, t: {a: 1, b: 2}}",
                "m: {x: 1, z: 1}",
                &given,
                helm,
                expected.clone(),
            );
        }
    }

    #[test]
    fn a_null_of_the_chart_stays_in_helm_3_only() {
        let values = "{a: null, t: {a: null, b: 1}}";
        check(
            values,
            "",
            &json!({}),
            Helm::V4,
            json!({"t": {"b": 1.0}, "sub": {"global": {}}}),
        );
        let expected = json!({"a": null, "t": {"a": null, "b": 1.0}, "sub": {"global": {}}});
        check(values, "", &json!({}), Helm::V3, expected);
    }

    #[test]
    fn nested_tables_of_global_are_shared_with_dependencies() {
        let values = "global: {t: {deep: {a: 1}}}";
        let found = composed(
            values,
            "",
            &json!({"sub": {"global": {"t": {"deep": {"b": 2}}}}}),
            Helm::V4,
        );
        let found = found.0.expect("the values fit");
        let [top, below] = ["global.t", "sub.global.t"].map(|path| table(&found, path).expect("a table"));
        assert!(!top.is_same(&below));
        let [top, below] = [top, below].map(|tables| table(&tables, "deep").expect("a table"));
        assert!(top.is_same(&below));
        assert_eq!(Json::Object(to_json(&top)), json!({"a": 1.0, "b": 2}));
    }

    #[test]
    fn values_of_a_dependency_must_be_a_table() {
        for (given, expected) in [
            (json!("str"), "type mismatch on sub: %!t(string=str)"),
            (json!(1.5), "type mismatch on sub: %!t(float64=1.5)"),
            (json!(true), "type mismatch on sub: true"),
            (json!(null), "type mismatch on sub: %!t(<nil>)"),
        ] {
            let error = composed("", "", &json!({ "sub": given }), Helm::V4)
                .0
                .expect_err("no table");
            assert_eq!(error.to_string(), expected);
        }
    }

    #[test]
    fn what_does_not_fit_is_warned_of() {
        for (values, given, expected) in [
            (
                "t: 1",
                json!({"t": {"a": 1}}),
                "warning: skipped value for top.t: Not a table.",
            ),
            (
                "t: {a: {b: 1}}",
                json!({"t": {"a": 2}}),
                "warning: cannot overwrite table with non table for top.t.a (map[b:1])",
            ),
            (
                "t: {a: [1, x]}",
                json!({"t": {"a": {}}}),
                "warning: destination for top.t.a is a table. Ignoring non-table value ([1 x])",
            ),
            (
                "global: 1",
                json!({}),
                "warning: skipping globals because source global is not a table.",
            ),
        ] {
            assert_eq!(composed(values, "", &given, Helm::V4).1, [expected]);
        }
    }
}
