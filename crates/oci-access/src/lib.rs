//! How a registry is spoken to, as far as no request is needed for it: names of repositories, credentials in the forms that
//! Docker and Kubernetes keep them in, and what a registry asks for when it refuses.
//!
//! Pure, and shared by what pulls (source-controller) and what pushes (the command line).

pub mod challenge;
pub mod credentials;
pub mod name;
