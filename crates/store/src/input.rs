//! Input files of a run, to notice that one changed before the run continues.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use ring::digest::{Context, SHA256};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An input file of a run, as it was when the run began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct InputRecord {
    /// Flag that names the file, such as `--plan`.
    pub flag: String,
    /// Path as the command line has it.
    pub path: String,
    /// Length in bytes.
    pub bytes: u64,
    /// SHA-256 of the content in hexadecimal digits.
    pub sha256: String,
}

impl InputRecord {
    /// Reads a file; `None` if it is no regular file, such as standard input or a pipe, which can
    /// be read only once.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read(flag: &str, path: &Path) -> io::Result<Option<Self>> {
        if path.as_os_str() == "-" || !std::fs::metadata(path)?.is_file() {
            return Ok(None);
        }
        let mut file = File::open(path)?;
        let mut digest = Context::new(&SHA256);
        let mut buffer = vec![0; 1 << 16];
        let mut bytes = 0;
        loop {
            let length = match file.read(&mut buffer) {
                Ok(0) => break,
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            digest.update(buffer.get(..length).unwrap_or_default());
            bytes += length as u64;
        }
        let sha256 = digest.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Some(Self { flag: flag.to_owned(), path: path.display().to_string(), bytes, sha256 }))
    }

    /// Compares the file with the record.
    ///
    /// # Errors
    /// Returns what differs and what to do about it.
    pub fn check(&self) -> Result<(), String> {
        let Self { flag, path, .. } = self;
        let advice = "restore the file, or start a new run";
        match Self::read(flag, Path::new(path)) {
            Ok(Some(now)) if now.bytes == self.bytes && now.sha256 == self.sha256 => Ok(()),
            Ok(Some(now)) => Err(format!(
                "{flag} {path}: the file changed since the run began, from {} bytes with SHA-256 {} \
                 to {} bytes with SHA-256 {}; {advice}",
                self.bytes, self.sha256, now.bytes, now.sha256
            )),
            Ok(None) => Err(format!("{flag} {path}: found no regular file; {advice}")),
            Err(error) => Err(format!("{flag} {path}: {error}; {advice}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_and_missing_files_are_noticed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("plan.yaml");
        std::fs::write(&path, "abc").unwrap();
        let record = InputRecord::read("--plan", &path).unwrap().unwrap();
        // FIPS 180-2, appendix B.1.
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!((record.bytes, &*record.sha256), (3, expected));
        record.check().unwrap();
        // The same length.
        std::fs::write(&path, "abd").unwrap();
        let error = record.check().unwrap_err();
        assert!(
            error.contains("--plan") && error.contains("plan.yaml: the file changed"),
            "{error}"
        );
        std::fs::remove_file(&path).unwrap();
        let error = record.check().unwrap_err();
        assert!(error.contains("plan.yaml") && error.contains("start a new run"), "{error}");
        assert_eq!(InputRecord::read("--plan", directory.path()).unwrap(), None);
        assert_eq!(InputRecord::read("--plan", Path::new("-")).unwrap(), None);
    }
}
