//! The certificate authority and keys of a control plane, re-created for each: nothing to cache, nothing that expires.
//!
//! ECDSA keys: the API server takes seconds to make RSA keys by itself and would sign tokens more slowly with them.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};

/// The files that the components are started with.
#[derive(Debug)]
pub struct Certificates {
    /// The authority's certificate, PEM.
    pub authority: String,
    /// File of the authority's certificate.
    pub authority_file: PathBuf,
    /// File of the API server's certificate.
    pub server_certificate_file: PathBuf,
    /// File of the API server's private key.
    pub server_key_file: PathBuf,
    /// File of the key that signs service account tokens.
    pub token_key_file: PathBuf,
    /// File of the key that service account tokens are verified with.
    pub token_public_key_file: PathBuf,
}

/// Makes an authority, a server certificate for `names` (host names and addresses) and a token key in `directory`.
pub fn write(directory: &Path, names: &[&str]) -> Result<Certificates> {
    let authority_key = KeyPair::generate().context("failed to make the authority's key")?;
    let mut authority = CertificateParams::default();
    authority
        .distinguished_name
        .push(DnType::CommonName, "windlass-testkit");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    let authority_pem = authority
        .self_signed(&authority_key)
        .context("failed to sign the authority's certificate")?
        .pem();
    let issuer = Issuer::new(authority, authority_key);

    let server_key = KeyPair::generate().context("failed to make the server's key")?;
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut server = CertificateParams::new(names).context("failed to describe the server's certificate")?;
    server
        .distinguished_name
        .push(DnType::CommonName, "kube-apiserver");
    let server_pem = server
        .signed_by(&server_key, &issuer)
        .context("failed to sign the server's certificate")?;

    let token_key = KeyPair::generate().context("failed to make the token key")?;
    Ok(Certificates {
        authority_file: write_file(directory, "ca.crt", &authority_pem)?,
        server_certificate_file: write_file(directory, "apiserver.crt", &server_pem.pem())?,
        server_key_file: write_file(directory, "apiserver.key", &server_key.serialize_pem())?,
        token_key_file: write_file(directory, "tokens.key", &token_key.serialize_pem())?,
        token_public_key_file: write_file(directory, "tokens.pub", &token_key.public_key_pem())?,
        authority: authority_pem,
    })
}

fn write_file(directory: &Path, name: &str, contents: &str) -> Result<PathBuf> {
    let path = directory.join(name);
    fs::write(&path, contents).with_context(|| format!("failed to write {}", path.display()))?;
    Ok(path)
}
