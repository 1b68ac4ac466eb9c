//! Ports in known_hosts.

/// ssh's own port: entries without a port are for it.
pub(super) const DEFAULT_PORT: u16 = 22;
