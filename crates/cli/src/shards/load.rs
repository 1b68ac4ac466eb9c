//! How much time each object takes, from the metrics of the controllers.

use std::collections::BTreeMap;

use jiff::Timestamp;

const SUM: &str = "gotk_reconcile_duration_seconds_sum{";
const START: &str = "process_start_time_seconds";

/// An object, as the labels of a metric name it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Who {
    kind: String,
    namespace: String,
    name: String,
}

impl Who {
    pub(super) fn new(kind: &str, namespace: &str, name: &str) -> Self {
        let owned = str::to_owned;
        Self {
            kind: owned(kind),
            namespace: owned(namespace),
            name: owned(name),
        }
    }

    /// From `kind="Kustomization",name="web",namespace="apps"`. Names of objects hold nothing that is escaped.
    fn from_labels(labels: &str) -> Option<Self> {
        let value = |name: &str| {
            let pairs = labels.split(',');
            let found = pairs.filter_map(|pair| pair.split_once('='));
            let mut found = found.filter(|(key, _)| key.trim() == name);
            found.next().map(|(_, value)| value.trim().trim_matches('"'))
        };
        Some(Self::new(value("kind")?, value("namespace")?, value("name")?))
    }
}

/// For each object, the share of the time in which it is reconciled: 1 is a worker that does nothing else.
#[derive(Debug, Default)]
pub(super) struct Loads(BTreeMap<Who, f64>);

impl Loads {
    /// Adds the metrics of one process. Of one that does not say when it started, nothing is known.
    pub(super) fn add(&mut self, metrics: &str, now: Timestamp) {
        let number = |text: &str| {
            text.split_whitespace()
                .next()
                .and_then(|text| text.parse::<f64>().ok())
        };
        let started = metrics.lines().find_map(|line| number(line.strip_prefix(START)?));
        #[expect(clippy::cast_precision_loss, reason = "milliseconds are enough")]
        let now = now.as_millisecond() as f64 / 1000.0;
        let Some(up) = started.map(|started| now - started).filter(|up| *up > 0.0) else {
            return;
        };
        for line in metrics.lines() {
            let read = line.strip_prefix(SUM).and_then(|rest| rest.rsplit_once('}'));
            let Some((labels, value)) = read else { continue };
            let taken = number(value).filter(|taken| taken.is_finite() && *taken >= 0.0);
            if let Some((who, taken)) = Who::from_labels(labels).zip(taken) {
                *self.0.entry(who).or_default() += taken / up;
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn of(&self, who: &Who) -> Option<f64> {
        self.0.get(who).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(metrics: &str) -> Option<f64> {
        let mut loads = Loads::default();
        loads.add(metrics, Timestamp::from_second(1100).unwrap());
        loads.of(&Who::new("Kustomization", "apps", "web"))
    }

    #[test]
    fn the_time_taken_is_divided_by_that_since_the_start() {
        let sum =
            r#"gotk_reconcile_duration_seconds_sum{kind="Kustomization",name="web",namespace="apps"} 25"#;
        let other =
            r#"gotk_reconcile_duration_seconds_sum{kind="Kustomization",name="bank",namespace="apps"} 9"#;
        let start = "process_start_time_seconds 1000.0";
        assert_eq!(load(&format!("# HELP\n{sum}\n{other}\n{start}\n")), Some(0.25));
        assert_eq!(load(&format!("{start}\n{other}")), None);
    }

    #[test]
    fn what_makes_no_sense_is_left_out() {
        let sum = r#"gotk_reconcile_duration_seconds_sum{kind="Kustomization",name="web",namespace="apps"}"#;
        let start = "process_start_time_seconds 1000";
        for metrics in [
            String::new(),
            format!("{sum} 25"),
            format!("{sum} 25\nprocess_start_time_seconds 2000"),
            format!("{sum} NaN\n{start}"),
            format!("{sum} -1\n{start}"),
            format!("{sum}\n{start}"),
            format!("gotk_reconcile_duration_seconds_sum{{kind=\"Kustomization\"}} 25\n{start}"),
            format!("gotk_reconcile_duration_seconds_sum{{\n{start}"),
        ] {
            assert_eq!(load(&metrics), None, "{metrics}");
        }
    }

    #[test]
    fn an_object_may_have_been_in_several_processes() {
        let mut loads = Loads::default();
        for (sum, start) in [(25, 1000), (100, 900)] {
            let text = format!(
                "process_start_time_seconds {start}\ngotk_reconcile_duration_seconds_sum{{kind=\"Bucket\",name=\"b\",\
                 namespace=\"n\"}} {sum}\n"
            );
            loads.add(&text, Timestamp::from_second(1100).unwrap());
        }
        assert_eq!(loads.of(&Who::new("Bucket", "n", "b")), Some(0.75));
    }
}
