//! Content-addressed artifact store, archives, ignore rules, and the client of the artifact service.
