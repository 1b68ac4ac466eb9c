//! The command line of several controllers in one process. Pure.

use std::ffi::OsString;

use clap::Parser;
use controller_kit::flags::CommonFlags;

/// Separates the controllers.
const SEPARATOR: &str = "--";

/// Runs several controllers in one process. Flags before the first `--` are for all of them and for the process; the others follow the name of their
/// controller: `windlass-controllers all --log-level=debug -- source-controller --storage-path=/data -- helm-controller`. Without any,
/// source-, kustomize-, helm- and notification-controller run.
#[derive(Debug, Parser)]
#[command(
    name = "windlass-controllers all",
    bin_name = "windlass-controllers all",
    version
)]
pub(crate) struct All {
    /// Flags that all controllers have.
    #[command(flatten)]
    pub(crate) common: CommonFlags,
}

/// Splits arguments, of which the first is the name: those of the process, and those of each controller, which has the flags of all before
/// its own.
pub(crate) fn groups(arguments: Vec<OsString>, base: &[&str]) -> (Vec<OsString>, Vec<Vec<OsString>>) {
    let mut parts = arguments.split(|argument| argument == SEPARATOR);
    let own = parts.next().unwrap_or_default().to_vec();
    let mut named: Vec<Vec<OsString>> = parts.map(<[OsString]>::to_vec).collect();
    if named.is_empty() {
        named = base.iter().map(|name| vec![OsString::from(name)]).collect();
    }
    for group in &mut named {
        let shared = own.iter().skip(1).cloned();
        let at = group.len().min(1);
        group.splice(at..at, shared);
    }
    (own, named)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(line: &str) -> (Vec<OsString>, Vec<Vec<OsString>>) {
        groups(
            line.split(' ').map(OsString::from).collect(),
            &["a-controller", "b-controller"],
        )
    }

    #[test]
    fn each_controller_has_the_flags_of_all_and_its_own() {
        let (own, groups) = split("all --x --y=1 -- a-controller --z -- b-controller");
        assert_eq!(own, ["all", "--x", "--y=1"]);
        assert_eq!(
            groups,
            [
                vec!["a-controller", "--x", "--y=1", "--z"],
                vec!["b-controller", "--x", "--y=1"]
            ]
        );
        let (_, groups) = split("all --x");
        assert_eq!(groups, [["a-controller", "--x"], ["b-controller", "--x"]]);
        // A separator without a name is a controller without one.
        assert_eq!(split("all --").1, [Vec::<&str>::new()]);
    }

    #[test]
    fn flags_of_all_are_known_and_those_of_one_are_refused() {
        let flags = [
            "all",
            "--health-addr=:1",
            "--watch-label-selector=a=b",
            "--metrics-addr=:2",
        ];
        let all = All::try_parse_from(flags).unwrap().common.endpoints;
        assert_eq!(all.health_addr.socket().unwrap().port(), 1);
        assert_eq!(all.metrics_addr.socket().unwrap().port(), 2);
        assert!(All::try_parse_from(["all", "--storage-path=/data"]).is_err());
    }
}
