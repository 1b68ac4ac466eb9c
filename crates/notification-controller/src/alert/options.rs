//! Options of an Alert beyond Flux, by annotations. All are off by default.

use std::collections::BTreeMap;
use std::time::Duration;

use super::template::Template;

/// Prefix of every annotation.
const PREFIX: &str = "windlass.dev/";

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

/// Options of an Alert beyond Flux.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Events within this time after a message are combined into one message.
    pub group_window: Option<Duration>,
    /// An error is told only if the object still fails after this time.
    pub hold: Option<Duration>,
    /// It is told when an object that was said to fail is ready again.
    pub resolve: bool,
    /// Messages about one object are kept in one thread, where the provider supports it.
    pub thread: bool,
    /// Promotions are deployments at the Git service, too, where it has these.
    pub deployments: bool,
    /// Failures of what depends on something that fails are part of that.
    pub fold: bool,
    /// One summary per this time, and nothing else.
    pub digest: Option<Duration>,
    /// The text of messages.
    pub template: Option<Template>,
}

impl Options {
    /// Reads the annotations. A value that cannot be read is a problem and counts as none.
    pub fn from_annotations(annotations: &BTreeMap<String, String>) -> (Self, Vec<Problem>) {
        let mut reader = Reader {
            annotations,
            problems: Vec::new(),
        };
        let options = Self {
            group_window: reader.duration("group-window", Duration::from_secs(1), HOUR),
            hold: reader.duration("for", Duration::from_secs(1), 24 * HOUR),
            resolve: reader.flag("resolve"),
            thread: reader.flag("thread"),
            deployments: reader.flag("deployments"),
            fold: reader.flag("fold"),
            digest: reader.duration("digest", 15 * MINUTE, 24 * HOUR),
            template: reader.template("template"),
        };
        (options, reader.problems)
    }

    /// Returns whether each event is a message at once, as in Flux.
    pub fn are_plain(&self) -> bool {
        let Self {
            group_window,
            hold,
            resolve,
            fold,
            digest,
            // How a message looks and where it stands does not change when it is said.
            thread: _,
            deployments: _,
            template: _,
        } = self;
        group_window.is_none() && hold.is_none() && !resolve && !fold && digest.is_none()
    }
}

struct Reader<'a> {
    annotations: &'a BTreeMap<String, String>,
    problems: Vec<Problem>,
}

impl Reader<'_> {
    fn value(&self, name: &str) -> Option<String> {
        self.annotations.get(&format!("{PREFIX}{name}")).cloned()
    }

    fn duration(&mut self, name: &str, least: Duration, most: Duration) -> Option<Duration> {
        let text = self.value(name)?;
        match controller_kit::duration::parse(&text) {
            Ok(duration) if (least..=most).contains(&duration) => Some(duration),
            Ok(_) => self.problem(name, &format!("it must be from {least:?} to {most:?}")),
            Err(error) => self.problem(name, &error.to_string()),
        }
    }

    fn flag(&mut self, name: &str) -> bool {
        match self.value(name).as_deref() {
            None | Some("false") => false,
            Some("true") => true,
            Some(_) => self
                .problem::<bool>(name, "it must be \"true\" or \"false\"")
                .unwrap_or(false),
        }
    }

    fn template(&mut self, name: &str) -> Option<Template> {
        match Template::parse(&self.value(name)?) {
            Ok(template) => Some(template),
            Err(error) => self.problem(name, &error),
        }
    }

    fn problem<T>(&mut self, name: &str, why: &str) -> Option<T> {
        self.problems.push(Problem {
            reason: "InvalidConfig",
            message: format!("failed to read the annotation {PREFIX}{name}, which is ignored: {why}"),
        });
        None
    }
}

/// Problem of an Alert, reported by a Kubernetes Event on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The Event's reason.
    pub reason: &'static str,
    /// The problem.
    pub message: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(annotations: &[(&str, &str)]) -> (Options, Vec<Problem>) {
        let annotations = annotations
            .iter()
            .map(|(name, value)| (format!("{PREFIX}{name}"), (*value).to_owned()));
        Options::from_annotations(&annotations.collect())
    }

    #[test]
    fn without_annotations_alerts_are_fluxs() {
        let (options, problems) = read(&[]);
        assert!(options.are_plain() && !options.thread && options.template.is_none() && problems.is_empty());
    }

    #[test]
    fn annotations_are_read() {
        let (options, problems) = read(&[
            ("group-window", "5m"),
            ("for", "90s"),
            ("resolve", "true"),
            ("thread", "true"),
            ("fold", "false"),
            ("digest", "24h"),
            ("template", "{{ .event.message | upper }}"),
        ]);
        assert_eq!(problems, []);
        assert_eq!(options.group_window, Some(5 * MINUTE));
        assert_eq!(options.hold, Some(Duration::from_secs(90)));
        assert_eq!(options.digest, Some(24 * HOUR));
        assert!(options.resolve && options.thread && !options.fold && options.template.is_some());
    }

    #[test]
    fn what_cannot_be_read_is_told_and_ignored() {
        for (name, value) in [
            ("group-window", "2h"),
            ("group-window", "0s"),
            ("for", "soon"),
            ("for", "-1m"),
            ("resolve", "yes"),
            ("digest", "1m"),
            ("template", "{{ .event"),
            ("template", "{{ getHostByName \"example.com\" }}"),
        ] {
            let (options, problems) = read(&[(name, value)]);
            assert!(
                options.are_plain() && options.template.is_none(),
                "{name}={value}"
            );
            assert_eq!(problems.len(), 1, "{name}={value}");
            assert_eq!(problems[0].reason, "InvalidConfig");
            assert!(
                problems[0].message.contains(&format!("windlass.dev/{name}")),
                "{}",
                problems[0].message
            );
        }
    }
}
