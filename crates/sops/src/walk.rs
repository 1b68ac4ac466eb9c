//! Decrypts or encrypts a tree in place, and hashes its plaintext in the order of the document.

use aws_lc_rs::digest::{Context, SHA512};

use crate::cipher::{Cipher, Problem};
use crate::limits::MAX_NESTING;
use crate::metadata::{Metadata, Rule};
use crate::number;
use crate::tree::{Branch, Comment, Key, Value};

/// Start of a hash over encrypted values only, so that it never equals the hash over all values: SHA-256 of
/// `sops`.
const ONLY_ENCRYPTED: [u8; 32] = [
    0x8a, 0x3f, 0xd2, 0xad, 0x54, 0xce, 0x66, 0x52, 0x7b, 0x10, 0x34, 0xf3, 0xd1, 0x47, 0xbe, 0x0b, 0x0b,
    0x97, 0x5b, 0x3b, 0xf4, 0x4f, 0x72, 0xc6, 0xfd, 0xad, 0xec, 0x81, 0x76, 0xf2, 0x7d, 0x69,
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Decrypt,
    Encrypt,
}

/// Decrypts the documents of a file. Returns the authentication code of what was decrypted, in hex.
pub(crate) fn decrypt(
    branches: &mut [Branch],
    metadata: &Metadata,
    cipher: &Cipher,
) -> Result<String, Problem> {
    walk(Direction::Decrypt, branches, metadata, cipher)
}

/// Encrypts the documents of a file. Returns the authentication code of what was encrypted, in hex.
pub(crate) fn encrypt(
    branches: &mut [Branch],
    metadata: &Metadata,
    cipher: &Cipher,
) -> Result<String, Problem> {
    walk(Direction::Encrypt, branches, metadata, cipher)
}

fn walk(
    direction: Direction,
    branches: &mut [Branch],
    metadata: &Metadata,
    cipher: &Cipher,
) -> Result<String, Problem> {
    let mut hash = Context::new(&SHA512);
    if metadata.mac_only_encrypted {
        hash.update(&ONLY_ENCRYPTED);
    }
    let mut walk = Walk {
        direction,
        metadata,
        cipher,
        hash,
        path: Vec::new(),
        comments: Vec::new(),
    };
    for branch in branches {
        walk.branch(branch)?;
    }
    let digest = walk.hash.finish();
    Ok(digest.as_ref().iter().map(|byte| format!("{byte:02X}")).collect())
}

struct Walk<'a> {
    direction: Direction,
    metadata: &'a Metadata,
    cipher: &'a Cipher,
    hash: Context,
    /// The keys down to where we are. Places in lists do not count.
    path: Vec<Vec<u8>>,
    /// For each collection around us, the comments that stand directly before where we are.
    comments: Vec<Comments>,
}

/// Whether any of some comments is one that the rule looks for. The comments themselves are many in a hostile file.
#[derive(Default)]
struct Comments {
    any: bool,
    any_but_last: bool,
}

impl Walk<'_> {
    fn branch(&mut self, branch: &mut Branch) -> Result<(), Problem> {
        self.enter()?;
        for item in branch {
            match &item.key {
                Key::Comment(comment) => {
                    let comment = comment.clone();
                    item.key = Key::Comment(self.comment_key(comment)?);
                    continue;
                }
                Key::Other(kind) => {
                    return Err(format!(
                        "Tree contains a non-string key (type {kind}). Only string keys are supported"
                    ));
                }
                Key::Text(key) => self.path.push(key.clone()),
            }
            self.element(&mut item.value)?;
            self.path.pop();
        }
        self.comments.pop();
        Ok(())
    }

    fn list(&mut self, list: &mut Vec<Value>) -> Result<(), Problem> {
        self.enter()?;
        if self.direction == Direction::Encrypt && self.is_encrypted(true) {
            // It would come back as an empty text: nothing that is empty is encrypted, and so it has no type.
            list.retain(|value| !matches!(value, Value::Comment(comment) if comment.text.is_empty()));
        }
        for value in list {
            self.element(value)?;
        }
        self.comments.pop();
        Ok(())
    }

    fn enter(&mut self) -> Result<(), Problem> {
        if self.comments.len() >= MAX_NESTING {
            return Err(format!("it is nested deeper than {MAX_NESTING} levels"));
        }
        self.comments.push(Comments::default());
        Ok(())
    }

    /// A value of a collection. The comments before it are forgotten behind it.
    fn element(&mut self, value: &mut Value) -> Result<(), Problem> {
        if let Value::Comment(comment) = value {
            self.remember(&comment.text);
            return self.value(value);
        }
        self.value(value)?;
        if let Some(active) = self.comments.last_mut() {
            *active = Comments::default();
        }
        Ok(())
    }

    fn remember(&mut self, comment: &[u8]) {
        let is_match = match &self.metadata.rule {
            Rule::UnencryptedCommentRegex(pattern) | Rule::EncryptedCommentRegex(pattern) => {
                pattern.is_match(comment)
            }
            _ => return,
        };
        if let Some(active) = self.comments.last_mut() {
            active.any_but_last = active.any;
            active.any |= is_match;
        }
    }

    fn comment_key(&mut self, comment: Comment) -> Result<Comment, Problem> {
        self.remember(&comment.text);
        let inline = comment.inline;
        match self.leaf(Value::Comment(comment))? {
            Value::Comment(comment) => Ok(comment),
            Value::Text(text) => Ok(Comment { text, inline }),
            other => Err(format!(
                "walkValue of Comment should be either Comment or string, was {}",
                other.kind()
            )),
        }
    }

    fn value(&mut self, value: &mut Value) -> Result<(), Problem> {
        match value {
            Value::Null => {}
            Value::Map(branch) => self.branch(branch)?,
            Value::List(list) => self.list(list)?,
            Value::Other(kind) => return Err(format!("Cannot walk value, unknown type: {kind}")),
            leaf => *leaf = self.leaf(std::mem::replace(leaf, Value::Null))?,
        }
        Ok(())
    }

    /// Decrypts or encrypts by the rule of the file, and hashes the plaintext of what is no comment.
    fn leaf(&mut self, value: Value) -> Result<Value, Problem> {
        let is_comment = matches!(value, Value::Comment(_));
        let encrypted = self.is_encrypted(is_comment);
        let is_hashed = !is_comment && (encrypted || !self.metadata.mac_only_encrypted);
        if self.direction == Direction::Encrypt {
            if is_hashed {
                self.hash(&value)?;
            }
            return if encrypted {
                self.encrypted(value)
            } else {
                Ok(value)
            };
        }
        let value = if encrypted { self.decrypted(value)? } else { value };
        if is_hashed {
            self.hash(&value)?;
        }
        Ok(value)
    }

    fn place(&self) -> Vec<u8> {
        let mut place = self.path.join(&b':');
        place.push(b':');
        place
    }

    fn encrypted(&self, value: Value) -> Result<Value, Problem> {
        let text = self.cipher.encrypt(&value, &self.place());
        let text =
            text.map_err(|problem| format!("{}Could not encrypt value: {problem}", self.whereabouts()))?;
        Ok(match value {
            Value::Comment(comment) => Value::Comment(Comment { text, ..comment }),
            _ => Value::Text(text),
        })
    }

    fn decrypted(&self, value: Value) -> Result<Value, Problem> {
        let place = self.place();
        match value {
            // Older versions did not encrypt comments: one that cannot be decrypted stays.
            Value::Comment(comment) => Ok(match self.cipher.decrypt(&comment.text, &place) {
                Ok(plain) => plain,
                Err(_) => Value::Comment(comment),
            }),
            Value::Text(text) => self
                .cipher
                .decrypt(&text, &place)
                .map_err(|problem| format!("{}Could not decrypt value: {problem}", self.whereabouts())),
            other => Err(format!(
                "{}Expected encrypted value as string, but got {}",
                self.whereabouts(),
                other.kind()
            )),
        }
    }

    /// Where we are, for messages: keys are no secret.
    fn whereabouts(&self) -> String {
        const MOST: usize = 120;
        let path = self.path.join(&b'.');
        let path = String::from_utf8_lossy(&path);
        let path: String = path.chars().filter(|c| !c.is_control()).take(MOST).collect();
        if path.is_empty() {
            path
        } else {
            format!("at '{path}': ")
        }
    }

    fn hash(&mut self, value: &Value) -> Result<(), Problem> {
        match value {
            Value::Text(bytes) | Value::Bytes(bytes) => self.hash.update(bytes),
            Value::Comment(comment) => self.hash.update(&comment.text),
            Value::Int(integer) => self.hash.update(integer.to_string().as_bytes()),
            Value::Float(float) => self.hash.update(number::plain_digits(*float).as_bytes()),
            Value::Bool(true) => self.hash.update(b"True"),
            Value::Bool(false) => self.hash.update(b"False"),
            Value::Time(time) => self.hash.update(time.as_nanoseconds().as_bytes()),
            other => {
                return Err(format!(
                    "Could not convert unknown type {} to bytes",
                    other.kind()
                ));
            }
        }
        Ok(())
    }

    /// Returns whether what is here is encrypted, by the rule of the file.
    fn is_encrypted(&self, is_comment: bool) -> bool {
        match &self.metadata.rule {
            Rule::UnencryptedSuffix(suffix) => !self.path.iter().any(|key| key.ends_with(suffix.as_bytes())),
            Rule::EncryptedSuffix(suffix) => self.path.iter().any(|key| key.ends_with(suffix.as_bytes())),
            Rule::UnencryptedRegex(pattern) => !self.path.iter().any(|key| pattern.is_match(key)),
            Rule::EncryptedRegex(pattern) => self.path.iter().any(|key| pattern.is_match(key)),
            Rule::UnencryptedCommentRegex(_) => !self.comments.iter().any(|comments| comments.any),
            Rule::EncryptedCommentRegex(_) => match self.comments.split_last() {
                // The comment that says so is not encrypted itself.
                Some((last, outer)) => {
                    let own = if is_comment { last.any_but_last } else { last.any };
                    own || outer.iter().any(|comments| comments.any)
                }
                None => false,
            },
        }
    }
}
