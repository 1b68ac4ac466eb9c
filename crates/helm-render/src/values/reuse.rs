//! The values of the release before, for an upgrade that keeps them (Helm's `--reuse-values`).

use std::sync::Arc;

use go_template::Map;
use serde_json::{Map as JsonMap, Value};

use super::coalesce::{Coalescer, Defaults};
use super::convert::{from_json, to_json};
use super::tables::{Nulls, check_bounds, lay_under};
use helm_chart::{Error, Helm, Warning};

/// Values of an upgrade that reuses the previous ones.
#[derive(Clone, Debug, PartialEq)]
pub struct Reused {
    /// In place of the new chart's defaults: those of the chart before, with what was given to it.
    pub chart_values: Arc<JsonMap<String, Value>>,
    /// The given values: new ones over those given before. They are recorded with the release.
    pub given: JsonMap<String, Value>,
}

/// Puts together what the release before had. `chart` and `defaults` are the name and the values of its chart, `before` is
/// what was given to it, `given` what is given now.
pub fn reuse(
    (chart, defaults): (&str, &JsonMap<String, Value>),
    before: &JsonMap<String, Value>,
    given: &JsonMap<String, Value>,
    helm: Helm,
    warnings: &mut Vec<Warning>,
) -> Result<Reused, Error> {
    let recorded = Recorded { chart, defaults };
    let before = from_json(before);
    let chart_values = Coalescer::new(helm, warnings)
        .coalesce(recorded, &before)
        .map_err(|error| error.within("failed to rebuild old values"))?;
    let given = from_json(given);
    lay_under(&given, &before, "", Nulls::Remove, warnings)?;
    check_bounds(&given)?;
    Ok(Reused {
        chart_values: Arc::new(to_json(&chart_values)),
        given: to_json(&given),
    })
}

/// A chart as a record has it: without the charts in it.
#[derive(Clone, Copy)]
struct Recorded<'a> {
    chart: &'a str,
    defaults: &'a JsonMap<String, Value>,
}

impl Defaults for Recorded<'_> {
    fn name(&self) -> String {
        self.chart.to_owned()
    }

    fn defaults(&self) -> Map {
        from_json(self.defaults)
    }

    fn dependencies(&self) -> Vec<Self> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fields(value: Value) -> JsonMap<String, Value> {
        match value {
            Value::Object(fields) => fields,
            other => panic!("{other} is no map"),
        }
    }

    #[test]
    fn what_was_given_before_stays_below_what_is_given_now() {
        let defaults = fields(json!({"replicas": 1.0, "image": {"name": "a", "tag": "1"}, "off": true}));
        let before = fields(json!({"image": {"tag": "2"}, "off": null, "own": "x"}));
        let given = fields(json!({"image": {"pull": "Always"}, "own": "y"}));
        let reused = reuse(("app", &defaults), &before, &given, Helm::V4, &mut Vec::new()).expect("they fit");
        assert_eq!(
            Value::Object(JsonMap::clone(&reused.chart_values)),
            json!({"replicas": 1.0, "image": {"name": "a", "tag": "2"}, "own": "x"})
        );
        assert_eq!(
            Value::Object(reused.given),
            json!({"image": {"pull": "Always", "tag": "2"}, "own": "y", "off": null})
        );
    }
}
