//! Git's ssh transport: from an address, a private key and `known_hosts` to the two ends of a program of Git's.
//!
//! ```text
//! Target ──dial──▶ TCP, through a proxy or not
//!        ──handshake──▶ the server's key is checked against KnownHosts
//!        ──authenticate──▶ with the Identity
//!        ──exec──▶ git-upload-pack or git-receive-pack '<path>' ──▶ a blocking Reader and Writer
//! ```
//!
//! The crate fences off russh, which pins pre-releases of the RustCrypto crates: none of its types is seen outside.
//! No program is started, no file, agent or configuration of the machine is read. The server is hostile until its key
//! is checked, and what it sends is bounded by a deadline and by a number of bytes after that.
//!
//! Not here: Git's protocol, which key or `known_hosts` belongs to which object, retries.

pub mod algorithms;
mod deadline;
mod dial;
mod error;
pub mod identity;
pub mod known_hosts;
pub mod scan;
mod session;
mod stream;

pub use dial::Proxy;
pub use error::Error;
pub use session::{Access, Bounds, Program, Target, run};
pub use stream::{Outcome, Reader, Running, Writer};
