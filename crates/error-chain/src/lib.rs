//! An error with its causes, in one line: printed once, at the edge, by one of these two.

use std::error::Error;

/// Returns an error and all its causes, separated by colons. A cause that its wrapper ends with already is not repeated.
pub fn chain(error: &dyn Error) -> String {
    join(error, |text, cause| text.ends_with(cause))
}

/// Returns an error and its causes without those that stand anywhere in the text before them.
///
/// For errors of kube and hyper, many of which print their source in the middle of their own text.
pub fn condensed(error: &dyn Error) -> String {
    join(error, |text, cause| text.contains(cause))
}

fn join(error: &dyn Error, is_said: impl Fn(&str, &str) -> bool) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let cause = error.to_string();
        if !is_said(&text, &cause) {
            text = format!("{text}: {cause}");
        }
        source = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("connection refused")]
    struct Refused;

    #[derive(Debug, thiserror::Error)]
    enum Failed {
        #[error("failed to connect")]
        Silent(#[source] Refused),
        #[error("failed to connect: {0}")]
        Saying(#[source] Refused),
        #[error("failed to connect ({0}), gave up")]
        Amid(#[source] Refused),
    }

    #[test]
    fn causes_follow_unless_the_error_says_them_itself() {
        assert_eq!(
            chain(&Failed::Silent(Refused)),
            "failed to connect: connection refused"
        );
        assert_eq!(
            chain(&Failed::Saying(Refused)),
            "failed to connect: connection refused"
        );
        let amid = Failed::Amid(Refused);
        assert_eq!(
            chain(&amid),
            "failed to connect (connection refused), gave up: connection refused"
        );
        assert_eq!(
            condensed(&amid),
            "failed to connect (connection refused), gave up"
        );
    }
}
