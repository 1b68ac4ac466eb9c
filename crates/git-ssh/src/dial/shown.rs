//! Addresses as messages show them.

/// `host:port`, with brackets around an address of IPv6.
pub(crate) fn shown(host: &str, port: u16) -> String {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    if host.contains(':') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    }
}
