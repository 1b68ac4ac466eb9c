//! The metrics of several controllers of one process, as one text.

use std::collections::HashMap;

/// Metrics of the process are the same for all of its controllers.
const OF_THE_PROCESS: &str = "process_";
const END: &str = "# EOF\n";

/// What has one name.
#[derive(Default)]
struct Family {
    /// The lines that describe it.
    about: String,
    /// Series and their values, in the order in which they came.
    samples: Vec<(String, String)>,
    places: HashMap<String, usize>,
}

/// Joins texts of OpenMetrics. Of series that are in several of them the sum is given, but for those of the process.
pub(crate) fn joined(mut texts: Vec<String>) -> String {
    if texts.len() == 1 {
        return texts.remove(0);
    }
    let (mut families, mut places) = (Vec::<Family>::new(), HashMap::<String, usize>::new());
    for text in &texts {
        let (mut at, mut is_known) = (None, false);
        for line in text.lines().filter(|line| !END.starts_with(line)) {
            if let Some(about) = line.strip_prefix("# ") {
                let name = about.split(' ').nth(1).unwrap_or_default();
                let known = places.get(name).copied();
                if at.is_none() || known != at {
                    is_known = known.is_some();
                    let place = known.unwrap_or(families.len());
                    if !is_known {
                        families.push(Family::default());
                        places.insert(name.to_owned(), place);
                    }
                    at = Some(place);
                }
                if let Some(family) = at.and_then(|at| families.get_mut(at)).filter(|_| !is_known) {
                    family.about.push_str(line);
                    family.about.push('\n');
                }
            } else if let Some(family) = at.and_then(|at| families.get_mut(at))
                && let Some((series, value)) = line.rsplit_once(' ')
            {
                family.add(series, value);
            }
        }
    }
    let mut text = String::new();
    for family in families {
        text.push_str(&family.about);
        for (series, value) in family.samples {
            text.push_str(&format!("{series} {value}\n"));
        }
    }
    text + END
}

impl Family {
    fn add(&mut self, series: &str, value: &str) {
        let Some(at) = self.places.get(series) else {
            self.places.insert(series.to_owned(), self.samples.len());
            self.samples.push((series.to_owned(), value.to_owned()));
            return;
        };
        if series.starts_with(OF_THE_PROCESS) {
            return;
        }
        let (_, known) = &mut self.samples[*at];
        if let (Ok(one), Ok(other)) = (known.parse::<f64>(), value.parse::<f64>()) {
            *known = (one + other).to_string();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_is_described_once_and_equal_series_are_added() {
        let one = "# HELP a All.\n# TYPE a counter\na_total{x=\"1 2\"} 3\n# HELP process_x X.\n# TYPE process_x gauge\nprocess_x 7\n# EOF\n";
        let other = "# HELP b B.\n# TYPE b gauge\nb 1\n# HELP process_x X.\n# TYPE process_x gauge\nprocess_x 7\n# HELP a All.\n\
                     # TYPE a counter\na_total{x=\"1 2\"} 4\na_total{x=\"3\"} 1.5\n# EOF\n";
        let expected = "# HELP a All.\n# TYPE a counter\na_total{x=\"1 2\"} 7\na_total{x=\"3\"} 1.5\n# HELP process_x X.\n\
                        # TYPE process_x gauge\nprocess_x 7\n# HELP b B.\n# TYPE b gauge\nb 1\n# EOF\n";
        assert_eq!(joined(vec![one.to_owned(), other.to_owned()]), expected);
        assert_eq!(joined(vec![one.to_owned()]), one);
    }
}
