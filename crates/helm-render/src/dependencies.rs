//! Which of a chart's dependencies take part, under which name, and which of their values the chart imports.
//!
//! Between loading and composing values (Helm's `ProcessDependencies`): a loaded chart and the given values go in, a chart
//! comes out whose disabled dependencies are gone, whose aliases are charts of their own and whose default values hold
//! what it imports. Files, templates and values that no one changed are shared with the loaded chart.

mod enabled;
mod graph;
mod import;
mod log;

use go_template::Map;

use graph::Graph;
use helm_chart::{Chart, Error, Helm, Warning};

/// Processes the dependencies of a loaded chart for given values.
///
/// Charts of charts/ that Chart.yaml does not name always take part. Those that it names are looked for by name and
/// version; one that is not found is passed over here ([`helm_chart::check`] asks for names only).
pub fn process(chart: &Chart, given: &Map, helm: Helm, warnings: &mut Vec<Warning>) -> Result<Chart, Error> {
    if chart.dependencies.is_empty() && chart.metadata.dependencies.is_none() {
        return Ok(chart.clone());
    }
    let mut graph = Graph::from_chart(chart);
    let root = graph.root();
    enabled::process(&mut graph, root, given, "", helm, warnings).map_err(|error| match helm {
        Helm::V3 => error,
        Helm::V4 => error.within("chart dependencies processing failed"),
    })?;
    import::process(&mut graph, root, helm, warnings).map_err(|error| match helm {
        Helm::V3 => error,
        Helm::V4 => error.within("chart dependencies processing failed"),
    })?;
    Ok(graph.into_chart())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::values;
    use helm_chart::{File, load_files};

    /// Loads files given as pairs of name and text, all with a Chart.yaml whose name and version are added.
    fn chart(files: &[(&str, &str)], helm: Helm) -> Chart {
        let files = files.iter().map(|(name, text)| File {
            name: (*name).to_owned(),
            data: (*text).into(),
        });
        load_files(files.collect(), helm, &mut Vec::new()).expect("the chart is valid")
    }

    fn paths(chart: &Chart, found: &mut Vec<String>) {
        found.push(chart.path.to_string());
        for below in &chart.dependencies {
            paths(below, found);
        }
    }

    struct Outcome {
        paths: Vec<String>,
        values: Value,
        warnings: Vec<String>,
    }

    fn outcome(files: &[(&str, &str)], given: &Value, helm: Helm) -> Outcome {
        let given = values::from_json(given.as_object().expect("a map"));
        let mut warnings = Vec::new();
        let chart = process(&chart(files, helm), &given, helm, &mut warnings).expect("the values fit");
        let composed = values::coalesce(&chart, &given, helm, &mut warnings).expect("the values fit");
        let mut found = Vec::new();
        paths(&chart, &mut found);
        Outcome {
            paths: found,
            values: Value::Object(values::to_json(&composed)),
            warnings: warnings.iter().map(ToString::to_string).collect(),
        }
    }

    const SUB: (&str, &str) = (
        "charts/sub/Chart.yaml",
        "{apiVersion: v2, name: sub, version: 1.2.0}",
    );

    fn parent(dependency: &str) -> String {
        format!("{{apiVersion: v2, name: top, version: 1.0.0, dependencies: [{{name: sub, {dependency}}}]}}")
    }

    #[test]
    fn conditions_and_tags_decide_who_takes_part() {
        for (dependency, given, takes_part) in [
            ("version: 1.x", json!({}), true),
            // What Chart.yaml names in another version counts as not named.
            ("version: 2.x", json!({}), true),
            (
                "version: 1.x, condition: sub.use",
                json!({"sub": {"use": false}}),
                false,
            ),
            (
                "version: 1.x, condition: sub.use",
                json!({"sub": {"use": true}}),
                true,
            ),
            (
                "version: 1.x, condition: 'a,sub.use'",
                json!({"a": true, "sub": {"use": false}}),
                true,
            ),
            (
                "version: 1.x, condition: 'a, sub.use'",
                json!({"sub": {"use": false}}),
                true,
            ),
            ("version: 1.x, tags: [t, u]", json!({"tags": {"t": false}}), false),
            (
                "version: 1.x, tags: [t, u]",
                json!({"tags": {"t": false, "u": true}}),
                true,
            ),
            (
                "version: 1.x, tags: [t], condition: use",
                json!({"tags": {"t": false}, "use": true}),
                true,
            ),
        ] {
            let found = outcome(&[("Chart.yaml", &parent(dependency)), SUB], &given, Helm::V4);
            let expected = if takes_part {
                vec!["top", "top/charts/sub"]
            } else {
                vec!["top"]
            };
            assert_eq!(found.paths, expected, "{dependency} {given}");
        }
    }

    #[test]
    fn what_is_no_boolean_is_warned_of_and_passed_over() {
        let files = [
            ("Chart.yaml", &*parent("version: 1.x, condition: use, tags: [t]")),
            SUB,
        ];
        let given = json!({"use": "yes", "tags": {"t": 1}});
        for (helm, expected) in [
            (
                Helm::V3,
                [
                    "Warning: Tag 't' for chart sub returned non-bool value",
                    "Warning: Condition path 'use' for chart sub returned non-bool value",
                ],
            ),
            (
                Helm::V4,
                [
                    "returned non-bool value tag=t chart=sub",
                    "returned non-bool value path=use chart=sub",
                ],
            ),
        ] {
            let found = outcome(&files, &given, helm);
            assert_eq!(found.warnings, expected);
            assert_eq!(found.paths, ["top", "top/charts/sub"]);
        }
    }

    #[test]
    fn aliases_are_charts_of_their_own_but_helm_3_does_not_move_what_is_in_them() {
        let files = [
            (
                "Chart.yaml",
                "{apiVersion: v2, name: top, version: 1.0.0, dependencies: [{name: sub, version: '*', alias: one}, {name: sub, version: '*', alias: two}]}",
            ),
            SUB,
            ("charts/sub/values.yaml", "a: 1"),
            (
                "charts/sub/charts/leaf/Chart.yaml",
                "{apiVersion: v2, name: leaf, version: 1.0.0}",
            ),
        ];
        let found = outcome(&files, &json!({"one": {"a": 2}}), Helm::V4);
        let expected = [
            "top",
            "top/charts/one",
            "top/charts/one/charts/leaf",
            "top/charts/two",
            "top/charts/two/charts/leaf",
        ];
        assert_eq!(found.paths, expected);
        assert_eq!(
            (&found.values["one"]["a"], &found.values["two"]["a"]),
            (&json!(2), &json!(1.0))
        );
        let found = outcome(&files, &json!({}), Helm::V3);
        assert_eq!(found.paths[2], "top/charts/sub/charts/leaf");
    }

    #[test]
    fn values_are_imported_below_the_importers_own() {
        let files = [
            (
                "Chart.yaml",
                &*parent(
                    "version: 1.x, import-values: [data, {child: own, parent: a.b}, {child: none, parent: .}]",
                ),
            ),
            ("values.yaml", "x: top"),
            SUB,
            (
                "charts/sub/values.yaml",
                "{exports: {data: {x: sub, z: sub}}, own: {c: 1}}",
            ),
        ];
        let found = outcome(&files, &json!({}), Helm::V4);
        assert_eq!(
            (&found.values["x"], &found.values["z"]),
            (&json!("top"), &json!("sub"))
        );
        assert_eq!(found.values["a"], json!({"b": {"c": 1.0}}));
        let expected = r#"ImportValues missing table from chart chart=sub error="\"none\" is not a table""#;
        assert_eq!(found.warnings, [expected]);
    }

    #[test]
    fn a_second_owner_of_the_same_imports_gets_nothing() {
        // Both aliases share the chart `in`, and with it what it wants to import: Helm writes that down for the first.
        let files = [
            (
                "Chart.yaml",
                "{apiVersion: v2, name: top, version: 1.0.0, dependencies: [{name: sub, version: '*', alias: one}, {name: sub, version: '*', alias: two}]}",
            ),
            SUB,
            (
                "charts/sub/charts/in/Chart.yaml",
                "{apiVersion: v2, name: in, version: 1.0.0, dependencies: [{name: leaf, version: '*', import-values: [data]}]}",
            ),
            (
                "charts/sub/charts/in/charts/leaf/Chart.yaml",
                "{apiVersion: v2, name: leaf, version: 1.0.0}",
            ),
            (
                "charts/sub/charts/in/charts/leaf/values.yaml",
                "exports: {data: {x: 1}}",
            ),
        ];
        let found = outcome(&files, &json!({}), Helm::V4);
        assert_eq!(found.values["one"]["in"]["x"], json!(1.0));
        assert_eq!(found.values["two"]["in"].get("x"), None);
    }

    #[test]
    fn imports_that_would_hold_themselves_are_refused() {
        let long = format!(
            "version: 1.x, import-values: [{{child: t, parent: {}z}}]",
            "z.".repeat(100_000)
        );
        let doubled: Vec<String> = (1..40)
            .map(|n| {
                let below = format!("q{}", ".l".repeat(n - 1));
                format!("{{child: t{n}, parent: {below}.l}}, {{child: t{n}, parent: {below}.r}}")
            })
            .collect();
        let doubled = format!(
            "version: 1.x, import-values: [{{child: t, parent: q}}, {}]",
            doubled.join(", ")
        );
        let itself = "version: 1.x, import-values: [{child: t, parent: q}, {child: t, parent: q.s}]";
        let tables: String = (1..40).map(|n| format!("t{n}: {{v: 1}}\n")).collect();
        let sub_values = ("charts/sub/values.yaml", &*format!("t: {{v: 1}}\n{tables}"));
        for (dependency, expected) in [
            (itself, "tables are nested deeper than 512"),
            (&long, "tables are nested deeper than 512"),
            (&doubled, "there are more than 2000000"),
        ] {
            let chart = chart(&[("Chart.yaml", &parent(dependency)), SUB, sub_values], Helm::V3);
            let error = process(&chart, &Map::new(), Helm::V3, &mut Vec::new()).expect_err("too large");
            assert_eq!(
                error.to_string(),
                format!("failed to compose the values: {expected}")
            );
        }
    }
}
