//! The formats of files, how a name tells them, and how an encrypted file of each is recognised.

use std::fmt;

/// A format of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Format {
    /// Any bytes, in an envelope of JSON when they are encrypted.
    Binary,
    /// Lines of `NAME=value`.
    Dotenv,
    /// Sections of `name = value`.
    Ini,
    /// One JSON object.
    Json,
    /// YAML mappings.
    Yaml,
}

impl Format {
    /// The format of a file of this name: [`Format::Binary`] for those that no other has.
    ///
    /// ```
    /// use sops::Format;
    ///
    /// assert_eq!(Format::of_path("secrets/app.enc.yml"), Format::Yaml);
    /// assert_eq!(Format::of_path(".dockerconfigjson"), Format::Json);
    /// assert_eq!(Format::of_path("tls.key"), Format::Binary);
    /// ```
    #[must_use]
    pub fn of_path(path: &str) -> Self {
        // The first is Flux's addition: the key of a Secret for a registry.
        let suffixes = [
            (".dockerconfigjson", Self::Json),
            (".yaml", Self::Yaml),
            (".yml", Self::Yaml),
            (".json", Self::Json),
            (".env", Self::Dotenv),
            (".ini", Self::Ini),
        ];
        let found = suffixes.iter().find(|(suffix, _)| path.ends_with(suffix));
        found.map_or(Self::Binary, |(_, format)| *format)
    }

    /// Returns the text that every encrypted file of this format contains.
    fn marker(self) -> &'static [u8] {
        match self {
            Self::Binary | Self::Json => b"\"mac\": \"ENC[",
            Self::Dotenv => b"sops_mac=ENC[",
            Self::Ini => b"[sops]",
            Self::Yaml => b"mac: ENC[",
        }
    }

    /// Returns whether a file of this format looks encrypted. What does is decrypted, and must then be.
    #[must_use]
    pub fn is_encrypted(self, data: &[u8]) -> bool {
        contains(data, self.marker())
    }

    /// The format in which data looks encrypted, whatever its name; None if it does in none.
    ///
    /// Binary data and JSON look the same, and read the same. Of data that looks like more than one format the first
    /// in the order JSON, YAML, dotenv, INI counts; Flux takes any of them.
    #[must_use]
    pub fn of_encrypted(data: &[u8]) -> Option<Self> {
        let formats = [Self::Json, Self::Yaml, Self::Dotenv, Self::Ini];
        formats.into_iter().find(|format| format.is_encrypted(data))
    }
}

impl fmt::Display for Format {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Binary => "binary",
            Self::Dotenv => "dotenv",
            Self::Ini => "INI",
            Self::Json => "JSON",
            Self::Yaml => "YAML",
        })
    }
}

fn contains(data: &[u8], needle: &[u8]) -> bool {
    data.windows(needle.len()).any(|window| window == needle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_the_format_by_its_end() {
        for (path, format) in [
            ("a.yaml", Format::Yaml),
            ("a.yml", Format::Yaml),
            ("a.json", Format::Json),
            ("dir.yaml/.env", Format::Dotenv),
            ("a.ini", Format::Ini),
            ("a.YAML", Format::Binary),
            ("my.dockerconfigjson", Format::Json),
            ("", Format::Binary),
        ] {
            assert_eq!(Format::of_path(path), format, "{path}");
        }
    }

    #[test]
    fn encrypted_data_is_known_by_its_mac() {
        assert_eq!(
            Format::of_encrypted(b"{\"sops\": {\"mac\": \"ENC["),
            Some(Format::Json)
        );
        assert_eq!(Format::of_encrypted(b"sops:\n  mac: ENC[A"), Some(Format::Yaml));
        assert_eq!(Format::of_encrypted(b"sops_mac=ENC[A"), Some(Format::Dotenv));
        assert_eq!(Format::of_encrypted(b"a=b\n[sops]\n"), Some(Format::Ini));
        assert_eq!(Format::of_encrypted(b"mac: none"), None);
        assert!(Format::Binary.is_encrypted(b"\"mac\": \"ENC[AES"));
        assert!(!Format::Yaml.is_encrypted(b""));
    }
}
