//! Only tests; see cluster/main.rs.
