//! Repositories that generators of ApplicationSets look into.

/// Repositories that generators of ApplicationSets look into, as they are checked out.
pub trait Checkouts {
    /// Lists the files of a repository by their paths; None if it is not there.
    ///
    /// # Errors
    /// When they cannot be listed.
    fn files(&self, url: &str) -> Result<Option<Vec<String>>, String>;

    /// Reads a file of a repository.
    ///
    /// # Errors
    /// When it cannot be read.
    fn read(&self, url: &str, path: &str) -> Result<String, String>;
}
