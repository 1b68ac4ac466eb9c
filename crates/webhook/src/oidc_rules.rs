//! Defaults of generic-oidc.

/// Audience of tokens unless the spec names another.
pub(super) const DEFAULT_AUDIENCE: &str = "notification-controller";

/// Variables of expressions.
pub(super) const VARIABLES: [&str; 2] = ["claims", "vars"];
