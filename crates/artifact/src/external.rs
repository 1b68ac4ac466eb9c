//! Addresses that a tenant may have written: what must not be reached by them, and how those who serve artifacts know them.

use std::net::IpAddr;

/// Says that a request follows such an address. Who serves artifacts that are not for everybody refuses it: the tenant may not
/// read what the controller may that follows the address.
pub const HEADER: &str = "windlass-external-artifact";

/// Returns whether an address is no server's that could have artifacts: unspecified, link-local (where clouds keep credentials),
/// or of many.
#[must_use]
pub fn leads_nowhere(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => {
            address.is_unspecified()
                || address.is_link_local()
                || address.is_multicast()
                || address.is_broadcast()
        }
        IpAddr::V6(address) => {
            address.is_unspecified() || address.is_unicast_link_local() || address.is_multicast()
        }
    }
}
