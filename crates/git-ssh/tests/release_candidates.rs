//! Checks of the release candidates that we rely on (`ssh-key`, `rsa`, `pkcs1`; deny.toml says why): keys
//! written by the real ssh-keygen sign what it verifies, it signs what they verify, and nothing else
//! verifies.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use russh::keys;
use russh::keys::ssh_key::{self, HashAlg, LineEnding, PrivateKey, PublicKey, SshSig, encoding};

const MESSAGE: &[u8] = b"what was signed";
const NAMESPACE: &str = "test";
const KINDS: [&[&str]; 6] = [
    &["-t", "rsa", "-b", "2048"],
    &["-t", "rsa", "-b", "3072", "-m", "PEM"],
    &["-t", "ecdsa", "-b", "256"],
    &["-t", "ecdsa", "-b", "384"],
    &["-t", "ecdsa", "-b", "521"],
    &["-t", "ed25519"],
];

fn ssh_keygen(folder: &Path, arguments: &[&str], input: &[u8]) -> bool {
    use std::io::Write as _;
    let mut child = Command::new("ssh-keygen")
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it works");
    child
        .stdin
        .take()
        .expect("it works")
        .write_all(input)
        .expect("it works");
    child.wait().expect("it works").success()
}

struct Key {
    folder: tempfile::TempDir,
    private: PrivateKey,
    public: PublicKey,
}

impl Key {
    fn new(kind: &[&str]) -> Self {
        loop {
            // It refuses one key in 256 on the curve P-256; `identity::short` reads those.
            match Self::read(kind) {
                Err(keys::Error::SshKey(ssh_key::Error::Encoding(encoding::Error::Length)))
                    if kind.ends_with(&["256"]) => {}
                read => return read.expect("it works"),
            }
        }
    }

    fn read(kind: &[&str]) -> Result<Self, keys::Error> {
        let folder = tempfile::tempdir().expect("it works");
        let arguments = [&["-q", "-N", "", "-f", "key"], kind].concat();
        assert!(ssh_keygen(folder.path(), &arguments, b""), "{kind:?}");
        let text = |name: &str| fs::read_to_string(folder.path().join(name)).expect("it works");
        let private = keys::decode_secret_key(&text("key"), None)?;
        let public = PublicKey::from_openssh(&text("key.pub")).expect("it works");
        assert_eq!(private.public_key().key_data(), public.key_data(), "{kind:?}");
        Ok(Self {
            folder,
            private,
            public,
        })
    }

    /// Returns whether the real program takes it.
    fn ssh_keygen_takes(&self, signature: &SshSig) -> bool {
        let pem = signature.to_pem(LineEnding::LF).expect("it works");
        fs::write(self.folder.path().join("sig"), pem).expect("it works");
        let check = ["-Y", "check-novalidate", "-n", NAMESPACE, "-s", "sig"];
        ssh_keygen(self.folder.path(), &check, MESSAGE)
    }

    /// Signature by the real program.
    fn signed_by_ssh_keygen(&self) -> SshSig {
        fs::write(self.folder.path().join("message"), MESSAGE).expect("it works");
        let sign = ["-q", "-Y", "sign", "-n", NAMESPACE, "-f", "key", "message"];
        assert!(ssh_keygen(self.folder.path(), &sign, b""));
        let text = fs::read(self.folder.path().join("message.sig")).expect("it works");
        SshSig::from_pem(text).expect("it works")
    }

    fn takes(&self, message: &[u8], signature: &SshSig) -> bool {
        self.public.verify(NAMESPACE, message, signature).is_ok()
    }
}

#[test]
fn what_is_signed_here_is_verified_there() {
    for kind in KINDS {
        let key = Key::new(kind);
        for hash in [HashAlg::Sha256, HashAlg::Sha512] {
            let signature = key.private.sign(NAMESPACE, hash, MESSAGE).expect("it works");
            assert!(key.ssh_keygen_takes(&signature), "{kind:?}");
            assert!(key.takes(MESSAGE, &signature), "{kind:?}");
        }
    }
}

#[test]
fn what_is_signed_there_is_verified_here_and_nothing_else() {
    for kind in KINDS {
        let (key, other) = (Key::new(kind), Key::new(kind));
        let signature = key.signed_by_ssh_keygen();
        assert!(key.takes(MESSAGE, &signature), "{kind:?}");
        assert!(!key.takes(b"something else", &signature), "{kind:?}");
        assert!(!other.takes(MESSAGE, &signature), "{kind:?}");
        assert!(
            key.public.verify("other", MESSAGE, &signature).is_err(),
            "{kind:?}"
        );
        // Any bit of the signature itself, which stands at the end.
        let bytes = Vec::from(signature.signature_bytes());
        for place in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[place] ^= 1 << (place % 8);
            let algorithm = signature.signature().algorithm();
            let Ok(changed) = ssh_key::Signature::new(algorithm, changed) else {
                continue;
            };
            let parts = (
                key.public.key_data().clone(),
                NAMESPACE,
                signature.hash_alg(),
                changed,
            );
            let changed = SshSig::new(parts.0, parts.1, parts.2, parts.3).expect("it works");
            assert!(!key.takes(MESSAGE, &changed), "{kind:?}, byte {place}");
        }
    }
}
