//! Style, scripts and icons. Their names have their digest, so that browsers may keep them for good.

/// A file that browsers fetch.
#[derive(Debug)]
pub struct Asset {
    /// As in the sources.
    file: &'static str,
    /// With the digest of the content.
    pub name: &'static str,
    /// As it is.
    pub content: &'static [u8],
    /// By brotli.
    pub compressed: &'static [u8],
}

static ALL: &[Asset] = include!(concat!(env!("OUT_DIR"), "/assets.rs"));

/// Where they are.
pub const FOLDER: &str = "/assets/";

impl Asset {
    /// Finds one by the name that has its digest.
    pub fn named(name: &str) -> Option<&'static Self> {
        ALL.iter().find(|asset| asset.name == name)
    }

    /// Its type.
    pub fn content_type(&self) -> &'static str {
        match self.file.rsplit_once('.').map(|(_, extension)| extension) {
            Some("css") => "text/css; charset=utf-8",
            Some("js") => "text/javascript; charset=utf-8",
            Some("svg") => "image/svg+xml",
            _ => "application/octet-stream",
        }
    }
}

/// The address of a file.
pub fn address(file: &str) -> String {
    let name = ALL
        .iter()
        .find(|asset| asset.file == file)
        .map(|asset| asset.name);
    format!("{FOLDER}{}", name.unwrap_or(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_a_page_loads_is_small() {
        let size: usize = ALL.iter().map(|asset| asset.compressed.len()).sum();
        assert!(size < 40_000, "{size} bytes");
        for file in [
            "style.css",
            "page.js",
            "htmx.js",
            "hx-sse.js",
            "good.svg",
            "busy.svg",
            "bad.svg",
        ] {
            let address = address(file);
            let asset = Asset::named(address.strip_prefix(FOLDER).unwrap()).unwrap();
            assert_eq!(asset.file, file);
            assert_ne!(asset.content_type(), "application/octet-stream");
        }
        assert!(Asset::named("../src/lib.rs").is_none());
    }
}
