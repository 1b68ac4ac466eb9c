//! Credentials for a push: those on the command line, else those of `docker login`, from Docker's
//! configuration file or from the credential helper that it names.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::{env, fs, io};

use oci_client::credentials::{self, Credentials};
use oci_client::name::Name;
use serde::Deserialize;

use crate::cluster::Failure;

/// Finds the credentials; None if there are none, which some registries are fine with.
pub(crate) fn credentials(name: &Name, typed: Option<&str>) -> Result<Option<Credentials>, Failure> {
    if let Some(typed) = typed {
        let (user, password) = typed.split_once(':').unwrap_or((typed, ""));
        if user.is_empty() || password.is_empty() {
            return Err(Failure::Usage("--creds: write USER:PASSWORD".to_owned()));
        }
        return Ok(Some(Credentials::Basic(user.to_owned(), password.to_owned())));
    }
    let Some(path) = config_file() else {
        return Ok(None);
    };
    let text = match fs::read(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Failure::Usage(format!("{}: {error}", path.display()))),
    };
    let failed = |why: String| Failure::Usage(format!("{}: {why}", path.display()));
    if let Some(helper) = helper(&text, name) {
        return ask(&helper, name).map_err(failed);
    }
    credentials::in_config_file(&text, name).map_err(|error| failed(error.to_string()))
}

/// The file of `docker login`.
pub(crate) fn config_file() -> Option<PathBuf> {
    let folder = env::var_os("DOCKER_CONFIG").map(PathBuf::from);
    let folder = folder.or_else(|| Some(env::home_dir()?.join(".docker")))?;
    Some(folder.join("config.json"))
}

/// The program that keeps the password of a registry, as Docker's file names it.
fn helper(text: &[u8], name: &Name) -> Option<String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Config {
        #[serde(default)]
        cred_helpers: std::collections::HashMap<String, String>,
        #[serde(default)]
        creds_store: String,
    }
    let config: Config = serde_json::from_slice(text).ok()?;
    let own = config.cred_helpers.get(&name.registry).cloned();
    own.or(Some(config.creds_store))
        .filter(|helper| !helper.is_empty())
}

fn ask(helper: &str, name: &Name) -> Result<Option<Credentials>, String> {
    let program = format!("docker-credential-{helper}");
    let failed = |error: io::Error| format!("{program}: {error}");
    let registry = match name.registry.as_str() {
        "index.docker.io" => "https://index.docker.io/v1/",
        registry => registry,
    };
    let mut child = Command::new(&program)
        .arg("get")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(failed)?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(registry.as_bytes()).map_err(failed)?;
    }
    let output = child.wait_with_output().map_err(failed)?;
    // That is how it says that it knows nothing.
    if !output.status.success() {
        return Ok(None);
    }
    read_credentials(&output.stdout).ok_or_else(|| format!("{program}: its answer cannot be read"))
}

/// Reads an answer. With this user name the password is a refresh token.
fn read_credentials(answer: &[u8]) -> Option<Option<Credentials>> {
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Answer {
        username: String,
        secret: String,
    }
    let Answer { username, secret } = serde_json::from_slice(answer).ok()?;
    Some(Some(match username.as_str() {
        "<token>" => Credentials::IdentityToken(secret),
        _ => Credentials::Basic(username, secret),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name() -> Name {
        Name::parse("oci://ghcr.io/org/app").unwrap()
    }

    #[test]
    fn what_is_typed_goes_first() {
        assert_eq!(
            credentials(&name(), Some("a:b:c")).unwrap(),
            Some(Credentials::Basic("a".to_owned(), "b:c".to_owned()))
        );
        assert!(credentials(&name(), Some("a")).is_err());
    }

    #[test]
    fn the_program_that_keeps_passwords_is_found_and_understood() {
        let own = br#"{"credHelpers": {"ghcr.io": "gh"}, "credsStore": "desktop"}"#;
        assert_eq!(helper(own, &name()).as_deref(), Some("gh"));
        let store = br#"{"credsStore": "desktop"}"#;
        assert_eq!(helper(store, &name()).as_deref(), Some("desktop"));
        assert_eq!(helper(br#"{"auths": {}}"#, &name()), None);
        let answer = br#"{"ServerURL": "x", "Username": "a", "Secret": "b"}"#;
        assert_eq!(
            read_credentials(answer),
            Some(Some(Credentials::Basic("a".to_owned(), "b".to_owned())))
        );
        let token = br#"{"Username": "<token>", "Secret": "b"}"#;
        assert_eq!(
            read_credentials(token),
            Some(Some(Credentials::IdentityToken("b".to_owned())))
        );
        assert_eq!(read_credentials(b"no"), None);
    }
}
