//! `--feature-gates=A=true,B=false`, checked against the gates that a controller knows.

use std::collections::BTreeMap;

use clap::{ArgAction, Args};

use super::value::parse_bool;

/// Switches of features, as typed.
#[derive(Args, Debug, Clone, Default, PartialEq, Eq)]
#[command(args_override_self = true)]
pub struct FeatureGateFlags {
    /// Comma-separated list of name=bool pairs that enable or disable features
    #[arg(long = "feature-gates", value_parser = parse_pair, action = ArgAction::Append, value_delimiter = ',',
          value_name = "NAME=BOOL")]
    pub feature_gates: Vec<(String, bool)>,
}

/// A gate was named that the controller does not have.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("failed to switch feature gate '{name}': it is not supported")]
pub struct Error {
    name: String,
}

/// The state of every gate that the controller knows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FeatureGates {
    gates: BTreeMap<&'static str, bool>,
}

impl FeatureGateFlags {
    /// Lays what was typed over the controller's gates and their defaults. The last of several mentions counts.
    pub fn resolve(&self, known: &[(&'static str, bool)]) -> Result<FeatureGates, Error> {
        let mut gates: BTreeMap<&'static str, bool> = known.iter().copied().collect();
        for (name, enabled) in &self.feature_gates {
            let gate = gates
                .get_mut(name.as_str())
                .ok_or_else(|| Error { name: name.clone() })?;
            *gate = *enabled;
        }
        Ok(FeatureGates { gates })
    }
}

impl FeatureGates {
    /// Returns whether the gate is on. A gate that is not in the controller's list is off.
    pub fn enabled(&self, name: &str) -> bool {
        self.gates.get(name).copied().unwrap_or(false)
    }

    /// All gates with their state, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, bool)> {
        self.gates.iter().map(|(name, enabled)| (*name, *enabled))
    }
}

fn parse_pair(text: &str) -> Result<(String, bool), String> {
    let (name, value) = text
        .split_once('=')
        .ok_or_else(|| format!("{text:?} is not of the form name=bool"))?;
    Ok((name.trim().to_owned(), parse_bool(value.trim())?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(pairs: &[(&str, bool)]) -> FeatureGateFlags {
        let feature_gates = pairs
            .iter()
            .map(|(name, enabled)| ((*name).to_owned(), *enabled))
            .collect();
        FeatureGateFlags { feature_gates }
    }

    #[test]
    fn an_unknown_gate_is_refused() {
        let error = typed(&[("TimeTravel", true)])
            .resolve(&[("Known", false)])
            .expect_err("unknown");
        assert_eq!(
            error.to_string(),
            "failed to switch feature gate 'TimeTravel': it is not supported"
        );
    }

    #[test]
    fn the_last_mention_counts() {
        let gates = typed(&[("A", true), ("A", false)])
            .resolve(&[("A", true)])
            .expect("known");
        assert!(!gates.enabled("A"));
        assert_eq!(gates.iter().collect::<Vec<_>>(), [("A", false)]);
    }
}
