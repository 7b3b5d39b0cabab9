//! Runs of plans that name files of this machine: upload of the files.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use ring::digest::{Context, SHA256};

use crate::client::{Client, ClientError};
use crate::error::ErrorCode;
use crate::run::{RunRequest, RunSummary};

/// Most rounds of uploads: a plan can name files that name files.
const ROUNDS_MAX: usize = 100;
/// Digits of the digest in the name of an uploaded file.
const DIGEST_DIGITS: usize = 16;
/// Longest part of the name of a file that its name on the server keeps, in bytes.
const NAME_BYTES_MAX: usize = 100;

/// Error of a run whose plan names files.
#[derive(Debug, thiserror::Error)]
pub enum UploadError {
    /// A file cannot be read.
    #[error("{}: {error}", path.display())]
    File {
        /// Path.
        path: PathBuf,
        /// Error of the system.
        error: io::Error,
    },
    /// A directory, a pipe or another file that cannot be uploaded.
    #[error("{}: expected a file to upload", .0.display())]
    NoFile(PathBuf),
    /// The plan names more files than this many uploads give.
    #[error("the plan names too many files")]
    TooMany,
    /// A request failed.
    #[error(transparent)]
    Client(#[from] ClientError),
}

impl Client {
    /// Creates a run. Uploads the files that the plan names and the server does not have; names in
    /// the plan are relative to `folder`. `notice` gets a line before each upload.
    ///
    /// # Errors
    /// See [`UploadError`].
    pub fn create_run_with_files(
        &self,
        mut request: RunRequest,
        folder: &Path,
        notice: &mut dyn FnMut(&str),
    ) -> Result<RunSummary, UploadError> {
        for _ in 0..ROUNDS_MAX {
            let refused = match self.create_run(&request) {
                Err(ClientError::Refused(document)) if document.code == ErrorCode::MissingFile => {
                    document
                }
                outcome => return Ok(outcome?),
            };
            let before = request.files.len();
            for missing in &refused.errors {
                let name = self.upload_file(&folder.join(&missing.path), notice)?;
                request.files.insert(missing.path.clone(), name);
            }
            if request.files.len() == before {
                return Err(ClientError::Refused(refused).into());
            }
        }
        Err(UploadError::TooMany)
    }

    /// Uploads a file, unless the server has it. Returns its name on the server, which begins with
    /// a digest of the content, so that equal files are uploaded once and different ones never
    /// collide.
    ///
    /// # Errors
    /// See [`UploadError`].
    pub fn upload_file(
        &self,
        path: &Path,
        notice: &mut dyn FnMut(&str),
    ) -> Result<String, UploadError> {
        let unreadable = |error| UploadError::File { path: path.to_owned(), error };
        if !std::fs::metadata(path).map_err(unreadable)?.is_file() {
            return Err(UploadError::NoFile(path.to_owned()));
        }
        let (bytes, digest) = digest(path).map_err(unreadable)?;
        let name = name_on_server(path, &digest);
        let known = self.captures()?;
        if known.iter().any(|capture| capture.name == name && capture.bytes == bytes) {
            return Ok(name);
        }
        notice(&format!("uploading {} ({bytes} bytes)", path.display()));
        self.upload(&name, File::open(path).map_err(unreadable)?)?;
        Ok(name)
    }
}

/// Returns the length of a file and the SHA-256 of its content in hexadecimal.
fn digest(path: &Path) -> io::Result<(u64, String)> {
    let mut file = File::open(path)?;
    let mut digest = Context::new(&SHA256);
    let mut buffer = vec![0; 1 << 16];
    let mut bytes = 0;
    loop {
        match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(length) => {
                digest.update(buffer.get(..length).unwrap_or_default());
                bytes += length as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok((bytes, digest.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect()))
}

fn name_on_server(path: &Path, digest: &str) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let plain = |it: char| if it.is_ascii_alphanumeric() || ".-_".contains(it) { it } else { '_' };
    let name: String = name.chars().map(plain).collect();
    let begin = name.len().saturating_sub(NAME_BYTES_MAX);
    format!("{}-{}", &digest[..DIGEST_DIGITS], &name[begin..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_on_the_server_is_plain_and_bounded() {
        let digest = "0123456789abcdef0123456789abcdef";
        let name = name_on_server(Path::new("dir/my capture ü.pcap"), digest);
        assert_eq!(name, "0123456789abcdef-my_capture__.pcap");
        let long = name_on_server(Path::new(&"x".repeat(300)), digest);
        assert_eq!(long.len(), DIGEST_DIGITS + 1 + NAME_BYTES_MAX);
    }
}
