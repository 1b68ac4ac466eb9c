//! A cause: a word for programs, where it is, and the sentence for people.

use std::fmt;

/// Class of a cause. The names are part of what `windlass.dev/why` promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// An image cannot be pulled, or its name is none.
    ImagePull,
    /// A ConfigMap or Secret, or a key of it, is missing.
    MissingConfig,
    /// A container cannot be made as it is written.
    ContainerConfig,
    /// A container ends with an error, again and again or for good.
    Crash,
    /// A container needs more memory than it may have.
    OutOfMemory,
    /// A probe fails.
    Probe,
    /// A Pod was ended as a whole: evicted, preempted, past its deadline.
    PodFailed,
    /// No node takes a Pod.
    Unschedulable,
    /// A volume or a claim is not there.
    Volume,
    /// A Pod waits to be started.
    NotStarted,
    /// A Pod runs and is not ready.
    NotReady,
    /// A quota or a limit range refuses.
    Quota,
    /// The service account does not exist.
    ServiceAccount,
    /// An admission webhook or policy refuses.
    Admission,
    /// An admission webhook cannot be called.
    Webhook,
    /// An account lacks a permission.
    Forbidden,
    /// Pods cannot be created for another reason.
    PodsRefused,
    /// A warning about the object itself.
    Event,
    /// The cause could not be looked up.
    Unreadable,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// Words by which refusals are told apart, the most telling first. They are those of the API server and of its admission
/// plugins.
const REFUSALS: [(&str, Kind); 11] = [
    ("exceeded quota", Kind::Quota),
    ("failed quota", Kind::Quota),
    ("minimum memory usage per", Kind::Quota),
    ("maximum memory usage per", Kind::Quota),
    ("error looking up service account", Kind::ServiceAccount),
    ("serviceaccount \"", Kind::ServiceAccount),
    ("failed calling webhook", Kind::Webhook),
    ("denied the request", Kind::Admission),
    ("denied request", Kind::Admission),
    ("violates PodSecurity", Kind::Admission),
    ("is forbidden: User \"", Kind::Forbidden),
];

/// Words by which missing objects are told from other trouble with containers and volumes.
const MISSING: [&str; 5] = [
    "secret \"",
    "configmap \"",
    "couldn't find key",
    "references non-existent secret key",
    "references non-existent config key",
];

impl Kind {
    /// Tells what refused a request, from the API server's own message; None when it is none of these.
    pub fn of_refusal(message: &str) -> Option<Self> {
        let found = REFUSALS.iter().find(|(words, _)| message.contains(words));
        found.map(|(_, kind)| *kind)
    }

    /// Returns whether a ConfigMap or Secret is what is missing.
    pub(super) fn or_missing_config(self, message: &str) -> Self {
        let missing = message.contains("not found") || message.contains("key");
        if missing && MISSING.iter().any(|words| message.contains(words)) {
            Self::MissingConfig
        } else {
            self
        }
    }
}

/// The first cause of what is wrong with an object. Displayed as the sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// The word for programs.
    pub kind: Kind,
    /// The Pod in which it shows.
    pub pod: Option<String>,
    /// The container in which it shows.
    pub container: Option<String>,
    /// One line that names Pod and container too.
    pub text: String,
}

impl Cause {
    pub(super) fn of_object(kind: Kind, text: impl Into<String>) -> Self {
        Self {
            kind,
            pod: None,
            container: None,
            text: text.into(),
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_told_apart_by_their_words() {
        for (message, kind) in [
            (
                "pods \"a\" is forbidden: exceeded quota: small, requested: pods=1, used: pods=1, limited: pods=1",
                Some(Kind::Quota),
            ),
            (
                "pods \"a\" is forbidden: error looking up service account ns/x: serviceaccount \"x\" not found",
                Some(Kind::ServiceAccount),
            ),
            (
                "admission webhook \"w\" denied the request: no",
                Some(Kind::Admission),
            ),
            (
                "configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no",
                Some(Kind::Admission),
            ),
            (
                "Internal error occurred: failed calling webhook \"w\": service \"s\" not found",
                Some(Kind::Webhook),
            ),
            (
                "configmaps is forbidden: User \"u\" cannot create resource \"configmaps\"",
                Some(Kind::Forbidden),
            ),
            ("spec.replicas: Invalid value: -1", None),
        ] {
            assert_eq!(Kind::of_refusal(message), kind, "{message}");
        }
    }

    #[test]
    fn a_missing_object_is_told_from_other_trouble() {
        for (message, kind) in [
            (
                "MountVolume.SetUp failed for volume \"tls\" : secret \"tls\" not found",
                Kind::MissingConfig,
            ),
            ("couldn't find key url in Secret ns/db", Kind::MissingConfig),
            ("hostPath type check failed", Kind::Volume),
        ] {
            assert_eq!(Kind::Volume.or_missing_config(message), kind, "{message}");
        }
    }
}
