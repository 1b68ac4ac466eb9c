//! Charts put together and packaged as Helm packages them.
