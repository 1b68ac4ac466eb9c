//! Objects of a build: encrypted ones, and Secrets whose values are encrypted files.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use crate::decryptor::Decryptor;
use crate::error::Error;
use crate::format::Format;

/// With this annotation of the value `disabled` an object stays as it is.
pub const DECRYPT_ANNOTATION: &str = "kustomize.toolkit.fluxcd.io/decrypt";

/// Why an object is not decrypted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ObjectError {
    /// The object itself is encrypted.
    #[error("failed to decrypt and format '{namespace}/{name}' {kind} data: {source}")]
    Object {
        /// Its namespace; may be empty.
        namespace: String,
        /// Its name.
        name: String,
        /// Its kind.
        kind: String,
        /// Why.
        source: Error,
    },
    /// A value of a Secret is encrypted.
    #[error("failed to decrypt and format '{namespace}/{name}' Secret field '{field}': {source}")]
    Field {
        /// Its namespace; may be empty.
        namespace: String,
        /// Its name.
        name: String,
        /// The key of the value.
        field: String,
        /// Why.
        source: Error,
    },
    /// The result is no object.
    #[error("failed to unmarshal decrypted '{namespace}/{name}' {kind} to JSON")]
    NoObject {
        /// Its namespace; may be empty.
        namespace: String,
        /// Its name.
        name: String,
        /// Its kind.
        kind: String,
    },
}

/// Returns whether anything of an object is to be decrypted: most objects need no keys and no waiting.
#[must_use]
pub fn is_encrypted(object: &Map<String, Value>) -> bool {
    !is_disabled(object) && (is_encrypted_whole(object) || encrypted_fields(object).next().is_some())
}

/// Decrypts an object, whatever of it is encrypted. None when nothing is.
pub async fn decrypt(
    decryptor: &Decryptor,
    object: &Map<String, Value>,
) -> Result<Option<Map<String, Value>>, ObjectError> {
    if is_disabled(object) {
        return Ok(None);
    }
    if is_encrypted_whole(object) {
        return whole(decryptor, object).await.map(Some);
    }
    fields(decryptor, object).await
}

async fn whole(
    decryptor: &Decryptor,
    object: &Map<String, Value>,
) -> Result<Map<String, Value>, ObjectError> {
    let (namespace, name, kind) = (
        text(object, "namespace"),
        text(object, "name"),
        kind(object).to_owned(),
    );
    // Nothing is left of a file's comments or order here, so JSON does.
    let json = Value::Object(object.clone()).to_string();
    let plain = decryptor.decrypt(json.as_bytes(), Format::Json).await;
    let plain = match plain {
        Ok(plain) => plain,
        Err(source) => {
            return Err(ObjectError::Object {
                namespace,
                name,
                kind,
                source,
            });
        }
    };
    serde_json::from_slice(&plain).map_err(|_| ObjectError::NoObject {
        namespace,
        name,
        kind,
    })
}

async fn fields(
    decryptor: &Decryptor,
    object: &Map<String, Value>,
) -> Result<Option<Map<String, Value>>, ObjectError> {
    let mut decrypted = Vec::new();
    for (field, data, format) in encrypted_fields(object) {
        let plain = decryptor.convert(&data, format, Format::of_path(field)).await;
        let plain = plain.map_err(|source| ObjectError::Field {
            namespace: text(object, "namespace"),
            name: text(object, "name"),
            field: field.clone(),
            source,
        })?;
        decrypted.push((field.clone(), Value::String(STANDARD.encode(plain))));
    }
    if decrypted.is_empty() {
        return Ok(None);
    }
    let mut object = object.clone();
    if let Some(data) = object.get_mut("data").and_then(Value::as_object_mut) {
        data.extend(decrypted);
    }
    Ok(Some(object))
}

/// The values of a Secret that look encrypted. What is no base64 the API server refuses with better words.
fn encrypted_fields(object: &Map<String, Value>) -> impl Iterator<Item = (&String, Vec<u8>, Format)> {
    let data = match kind(object) {
        "Secret" => object.get("data").and_then(Value::as_object),
        _ => None,
    };
    data.into_iter().flatten().filter_map(|(field, value)| {
        let text: String = value
            .as_str()?
            .chars()
            .filter(|c| !matches!(c, '\n' | '\r'))
            .collect();
        let data = STANDARD.decode(text).ok()?;
        let format = Format::of_encrypted(&data)?;
        Some((field, data, format))
    })
}

fn is_encrypted_whole(object: &Map<String, Value>) -> bool {
    let mac = object.get("sops").and_then(|sops| sops.get("mac"));
    mac.is_some_and(|mac| !mac.is_null())
}

fn is_disabled(object: &Map<String, Value>) -> bool {
    let value = object
        .get("metadata")
        .and_then(|metadata| metadata.get("annotations")?.get(DECRYPT_ANNOTATION)?.as_str());
    value.is_some_and(|value| value.eq_ignore_ascii_case("disabled"))
}

fn kind(object: &Map<String, Value>) -> &str {
    object.get("kind").and_then(Value::as_str).unwrap_or_default()
}

fn text(object: &Map<String, Value>, name: &str) -> String {
    let metadata = object
        .get("metadata")
        .and_then(|metadata| metadata.get(name)?.as_str());
    metadata.unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::decryptor::Integrity;
    use crate::flux::secret::Imported;
    use std::collections::BTreeMap;

    /// The recorded case of this name, encrypted.
    fn recorded(name: &str) -> String {
        let cases = include_str!("../../tests/cases.jsonl").lines();
        let mut cases = cases.map(|line| serde_json::from_str::<Value>(line).unwrap());
        let case = cases.find(|case| case["name"] == name).unwrap();
        case["encrypted"].as_str().unwrap().to_owned()
    }

    fn decrypted(object: &Value) -> Result<Option<Value>, String> {
        let key = include_bytes!("../../tests/keys/one.agekey").to_vec();
        let keys = Imported::of_secret(&BTreeMap::from([("one.agekey".to_owned(), key)])).unwrap();
        let decryptor = Decryptor::new(keys.into_keys(None), Integrity::Ignored);
        let mut future = std::pin::pin!(decrypt(&decryptor, object.as_object().unwrap()));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        match future.as_mut().poll(&mut context) {
            std::task::Poll::Ready(found) => found
                .map(|found| found.map(Value::Object))
                .map_err(|error| error.to_string()),
            std::task::Poll::Pending => panic!("nothing here waits"),
        }
    }

    fn secret() -> Value {
        let mut nodes = manifest::yaml::read_documents(&recorded("yaml secret"), "f").unwrap();
        nodes.remove(0).value
    }

    #[test]
    fn an_encrypted_object_loses_its_metadata_and_its_secrets_are_plain() {
        let found = decrypted(&secret()).unwrap().unwrap();
        assert_eq!(found["stringData"]["password"], "hunter2");
        assert_eq!(found["metadata"], json!({"name": "s", "namespace": "default"}));
        assert!(found.get("sops").is_none());
    }

    #[test]
    fn what_kustomize_added_does_not_hinder() {
        let mut object = secret();
        object["metadata"]["labels"] = json!({"a": "b"});
        assert_eq!(
            decrypted(&object).unwrap().unwrap()["metadata"]["labels"]["a"],
            "b"
        );
    }

    #[test]
    fn values_of_secrets_may_be_encrypted_files() {
        let yaml = STANDARD.encode(recorded("yaml with one"));
        let binary = STANDARD.encode(recorded("binary with one"));
        let object = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"},
            "data": {"a.yaml": yaml, "a.json": yaml, "tls.key": binary, "plain": "cGxhaW4=", "broken": "?"},
        });
        let found = decrypted(&object).unwrap().unwrap();
        let plain =
            |key: &str| String::from_utf8(STANDARD.decode(found["data"][key].as_str().unwrap()).unwrap());
        assert_eq!(plain("a.yaml").unwrap(), "a: secret\nb: 5\n");
        assert_eq!(
            plain("a.json").unwrap(),
            "{\n\t\"a\": \"secret\",\n\t\"b\": 5\n}\n"
        );
        assert_eq!(plain("tls.key").unwrap(), "secret\n\0\u{1}");
        assert_eq!(found["data"]["plain"], "cGxhaW4=");
        assert_eq!(found["data"]["broken"], "?");
    }

    #[test]
    fn other_objects_stay() {
        let mut disabled = secret();
        disabled["metadata"]["annotations"] = json!({DECRYPT_ANNOTATION: "Disabled"});
        for object in [
            disabled,
            json!({"kind": "Secret", "data": {"a": "cGxhaW4="}}),
            json!({"kind": "ConfigMap", "data": {"a": STANDARD.encode(recorded("yaml with one"))}}),
            json!({"kind": "Secret", "sops": {}}),
        ] {
            assert_eq!(decrypted(&object), Ok(None));
            assert!(!is_encrypted(object.as_object().unwrap()));
        }
    }

    #[test]
    fn the_object_and_the_field_are_named_when_no_key_fits() {
        let object = json!({
            "kind": "Secret", "metadata": {"name": "s", "namespace": "n"},
            "data": {"f": STANDARD.encode(recorded("json for a stranger"))},
        });
        let error = decrypted(&object).unwrap_err();
        assert!(
            error.starts_with(
                "failed to decrypt and format 'n/s' Secret field 'f': cannot get sops data key: "
            ),
            "{error}"
        );
    }
}
