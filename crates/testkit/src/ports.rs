//! Free TCP ports on loopback for processes that cannot be told "any port and tell me which".
//!
//! Ports come from below the kernel's ephemeral range (32768 on Linux), so that no outgoing connection takes one
//! between the moment when it is chosen and the moment when the process listens on it. Each test process starts at a
//! place of its own in the range, and never gives out the same port twice.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Result, bail};

const FIRST: u32 = 15_000;
const COUNT: u32 = 17_000;

static NEXT: AtomicU32 = AtomicU32::new(0);

/// Returns a port of 127.0.0.1 on which no one listens at this moment.
pub fn free_port() -> Result<u16> {
    // 97 is coprime to COUNT: neighbouring process ids, which test binaries have, land far apart.
    let start = std::process::id().wrapping_mul(97);
    for _ in 0..COUNT {
        let step = NEXT.fetch_add(1, Ordering::Relaxed);
        let port = FIRST + start.wrapping_add(step) % COUNT;
        let port = u16::try_from(port).expect("FIRST + COUNT is below 65536");
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return Ok(port);
        }
    }
    bail!("no free port between {FIRST} and {} on 127.0.0.1", FIRST + COUNT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_port_is_given_out_twice() {
        let ports: Vec<u16> = (0..50).map(|_| free_port().unwrap()).collect();
        assert_eq!(ports.iter().collect::<BTreeSet<_>>().len(), ports.len());
    }

    #[test]
    fn a_port_in_use_is_passed_over() {
        let next = FIRST
            + std::process::id()
                .wrapping_mul(97)
                .wrapping_add(NEXT.load(Ordering::Relaxed))
                % COUNT;
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, u16::try_from(next).unwrap()));
        assert_ne!(u32::from(free_port().unwrap()), next, "listener: {taken:?}");
    }
}
