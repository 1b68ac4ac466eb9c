//! Git's ssh transport.
