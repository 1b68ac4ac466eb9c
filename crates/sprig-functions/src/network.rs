//! `getHostByName`. Helm puts its own in its place, which finds nothing, unless it is told to ask the network.

use std::net::ToSocketAddrs;

use go_template::{Error, Functions, Type};

use crate::arguments::{add, string};
use crate::random::below;

pub(crate) fn register(functions: &mut Functions) {
    add(
        functions,
        &[("getHostByName", &[Type::STRING], |_, arguments| {
            let name = string(arguments, 0).to_text().into_owned();
            let mut addresses: Vec<String> = (name.as_str(), 0)
                .to_socket_addrs()
                .map(|found| found.map(|address| address.ip().to_string()).collect())
                .unwrap_or_default();
            addresses.dedup();
            if addresses.is_empty() {
                // What choosing one of none panics with.
                return Err(Error::new("invalid argument to Intn"));
            }
            let chosen = below(addresses.len() as u64)?;
            Ok(addresses.swap_remove(chosen as usize).into())
        })],
    );
}
