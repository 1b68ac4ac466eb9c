//! Who a person at a browser is.
//!
//! | module | what it does |
//! |---|---|
//! | [`config`] | reads the file that says who is let in, and as whom |
//! | [`identity`] | makes a user of the claims of an ID token |
//! | [`provider`] | sends people to an OpenID provider, and takes them back |
//! | [`sessions`] | keeps who they are in sealed cookies |
//! | [`origin`] | tells requests of our own pages from those that other sites have a browser send |
//!
//! What the user may do is not decided here.

pub mod config;
pub mod identity;
pub mod origin;
pub mod provider;
pub mod sessions;
