//! Who made a piece of content: OpenPGP, SSH, cosign and notation signatures.
