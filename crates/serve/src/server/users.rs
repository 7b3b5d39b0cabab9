//! Users of a server, in a file. Tokens are stored as digests.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};
use serde::{Deserialize, Serialize};
use wirestorm_api::session::{Limits, NewUser, Role, User, UserRequest};

/// Format of the file.
const SCHEMA: &str = "wirestorm.users/1";
/// Name of the file in the directory of the server.
const FILE: &str = "users.json";
/// Beginning of tokens, by which scanners for leaked secrets find them.
const TOKEN_PREFIX: &str = "wirestorm_";
/// Random bytes of a token.
const TOKEN_BYTES: usize = 32;

/// Error of reading or writing the users.
#[derive(Debug, thiserror::Error)]
pub enum UsersError {
    /// The file cannot be read or written.
    #[error("{}: {error}", path.display())]
    File {
        /// Path.
        path: PathBuf,
        /// Error of the system.
        error: io::Error,
    },
    /// The file is damaged.
    #[error("{}: {reason}", path.display())]
    Damaged {
        /// Path.
        path: PathBuf,
        /// What was found.
        reason: String,
    },
    /// No user has the name.
    #[error("no user {0:?}")]
    Unknown(String),
    /// The system has no random numbers.
    #[error("the system has no random numbers")]
    Random,
}

/// Users of a server. Other processes may change the file; the next request sees the change.
#[derive(Debug)]
pub struct Users {
    path: PathBuf,
    cached: Mutex<Cached>,
}

#[derive(Debug, Default)]
struct Cached {
    /// Inode, length and time of change of the file that was read; `None` if there was no file.
    version: Option<(u64, u64, i64, i64)>,
    users: Arc<Vec<StoredUser>>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct File {
    schema: String,
    users: Vec<StoredUser>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct StoredUser {
    name: String,
    role: Role,
    #[serde(default)]
    limits: Limits,
    /// SHA-256 digest of the token, in hexadecimal. Tokens are random, so they need no salt.
    token_sha256: Option<String>,
    /// Common name of the client certificate.
    #[serde(default)]
    certificate: Option<String>,
}

impl StoredUser {
    fn user(&self) -> User {
        User {
            name: self.name.clone(),
            role: self.role,
            limits: self.limits.clone(),
            has_token: self.token_sha256.is_some(),
            certificate: self.certificate.clone(),
        }
    }
}

impl Users {
    /// Opens the users of a server with this directory. There may be none yet.
    ///
    /// # Errors
    /// The file cannot be read, or is damaged.
    pub fn open(directory: &Path) -> Result<Self, UsersError> {
        let users = Self { path: directory.join(FILE), cached: Mutex::default() };
        users.read()?;
        Ok(users)
    }

    /// Returns all users, by name.
    ///
    /// # Errors
    /// The file cannot be read, or is damaged.
    pub fn list(&self) -> Result<Vec<User>, UsersError> {
        Ok(self.read()?.iter().map(StoredUser::user).collect())
    }

    /// Adds a user with a new token, or replaces one.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn put(&self, name: &str, request: UserRequest) -> Result<NewUser, UsersError> {
        let token = new_token()?;
        let UserRequest { role, limits, certificate } = request;
        let token_sha256 = Some(digest_of(&token));
        let stored = StoredUser { name: name.to_owned(), role, limits, token_sha256, certificate };
        let user = stored.user();
        self.change(|users| {
            users.retain(|user| user.name != name);
            users.push(stored);
            users.sort_by(|a, b| a.name.cmp(&b.name));
            Ok(())
        })?;
        Ok(NewUser { user, token })
    }

    /// Removes a user. Its token ends at once; its runs continue.
    ///
    /// # Errors
    /// There is no such user, or the file cannot be read or written.
    pub fn remove(&self, name: &str) -> Result<(), UsersError> {
        self.change(|users| {
            let before = users.len();
            users.retain(|user| user.name != name);
            if users.len() == before {
                return Err(UsersError::Unknown(name.to_owned()));
            }
            Ok(())
        })
    }

    /// Returns the user with a token.
    ///
    /// # Errors
    /// The file cannot be read, or is damaged.
    pub(crate) fn with_token(&self, token: &str) -> Result<Option<User>, UsersError> {
        // Digests of tokens are compared, so the time of the comparison reveals nothing on a token.
        let found = digest_of(token);
        let users = self.read()?;
        let user = users.iter().find(|user| user.token_sha256.as_ref() == Some(&found));
        Ok(user.map(StoredUser::user))
    }

    /// Returns the user with a client certificate, by its common name.
    ///
    /// # Errors
    /// The file cannot be read, or is damaged.
    pub(crate) fn with_certificate(&self, common_name: &str) -> Result<Option<User>, UsersError> {
        let users = self.read()?;
        let user = users.iter().find(|user| user.certificate.as_deref() == Some(common_name));
        Ok(user.map(StoredUser::user))
    }

    /// Returns the users in the file, which is read if it has changed.
    fn read(&self) -> Result<Arc<Vec<StoredUser>>, UsersError> {
        let mut cached = self.lock();
        let version = match fs::metadata(&self.path) {
            Ok(file) => Some((file.ino(), file.len(), file.mtime(), file.mtime_nsec())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(self.failed(error)),
        };
        if version.is_none() {
            *cached = Cached::default();
        } else if version != cached.version {
            let text = fs::read_to_string(&self.path).map_err(|error| self.failed(error))?;
            let damaged = |reason| UsersError::Damaged { path: self.path.clone(), reason };
            let file: File =
                serde_json::from_str(&text).map_err(|error| damaged(error.to_string()))?;
            if file.schema != SCHEMA {
                let found = format!("found format {:?}, expected {SCHEMA:?}", file.schema);
                return Err(damaged(found));
            }
            *cached = Cached { version, users: Arc::new(file.users) };
        }
        Ok(Arc::clone(&cached.users))
    }

    /// Changes the file. A crash at any time leaves the old or the new file.
    fn change(
        &self,
        change: impl FnOnce(&mut Vec<StoredUser>) -> Result<(), UsersError>,
    ) -> Result<(), UsersError> {
        let failed = |error| self.failed(error);
        let directory = self.path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(directory).map_err(failed)?;
        // The lock excludes changes by other processes. It is on the directory, because the file
        // is replaced.
        let lock = fs::File::open(directory).map_err(failed)?;
        lock.lock().map_err(failed)?;
        let mut users = self.read()?.to_vec();
        change(&mut users)?;
        let document = File { schema: SCHEMA.to_owned(), users };
        let text = serde_json::to_string_pretty(&document)
            .map_err(|error| self.failed(io::Error::other(error)))?;
        let staging = self.path.with_extension("json.new");
        let write = || {
            // Digests are no secrets, but the names of users are nobody else's business.
            let mut options = fs::OpenOptions::new();
            options.write(true).create(true).truncate(true).mode(0o600);
            let mut file = options.open(&staging)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&staging, &self.path)?;
            lock.sync_all()
        };
        write().map_err(failed)
    }

    fn failed(&self, error: io::Error) -> UsersError {
        UsersError::File { path: self.path.clone(), error }
    }

    fn lock(&self) -> MutexGuard<'_, Cached> {
        self.cached.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A user of one socket, with the role `administer`. It ends with the process, and the file of the
/// users does not have it: for a program that serves itself.
#[derive(Clone)]
pub struct Owner {
    name: String,
    token: Arc<str>,
    digest: Arc<str>,
}

impl std::fmt::Debug for Owner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The token is secret.
        f.debug_struct("Owner").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Owner {
    /// Creates a user with a new token.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn new(name: impl Into<String>) -> Result<Self, UsersError> {
        let token = new_token()?;
        let digest = digest_of(&token).into();
        Ok(Self { name: name.into(), token: token.into(), digest })
    }

    /// Returns the token.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// Returns the user if this is its token.
    pub(crate) fn with_token(&self, token: &str) -> Option<User> {
        (digest_of(token) == *self.digest).then(|| User {
            name: self.name.clone(),
            role: Role::Administer,
            limits: Limits::default(),
            has_token: true,
            certificate: None,
        })
    }
}

fn new_token() -> Result<String, UsersError> {
    let mut bytes = [0; TOKEN_BYTES];
    SystemRandom::new().fill(&mut bytes).map_err(|_| UsersError::Random)?;
    Ok(format!("{TOKEN_PREFIX}{}", hexadecimal(&bytes)))
}

fn digest_of(token: &str) -> String {
    hexadecimal(digest(&SHA256, token.as_bytes()).as_ref())
}

fn hexadecimal(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(role: Role) -> UserRequest {
        UserRequest { role, limits: Limits::default(), certificate: None }
    }

    #[test]
    fn file_holds_digests_and_a_token_finds_its_user() {
        let directory = tempfile::tempdir().unwrap();
        let users = Users::open(directory.path()).unwrap();
        let ada = users.put("ada", request(Role::Operate)).unwrap();
        let bob = users.put("bob", request(Role::Observe)).unwrap();
        let text = fs::read_to_string(directory.path().join(FILE)).unwrap();
        assert!(!text.contains(&ada.token) && !text.contains(&bob.token), "{text}");
        assert_eq!(users.with_token(&ada.token).unwrap(), Some(ada.user));
        assert_eq!(users.with_token(&bob.token).unwrap(), Some(bob.user));
        for wrong in ["", "wirestorm_", &ada.token[1..], &format!("{}0", ada.token)] {
            assert_eq!(users.with_token(wrong).unwrap(), None, "{wrong}");
        }
        let mode = fs::metadata(directory.path().join(FILE)).unwrap().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn change_of_another_process_is_seen() {
        let directory = tempfile::tempdir().unwrap();
        let (server, command) =
            (Users::open(directory.path()).unwrap(), Users::open(directory.path()).unwrap());
        let old = command.put("ada", request(Role::Operate)).unwrap().token;
        assert!(server.with_token(&old).unwrap().is_some());
        let new = command.put("ada", request(Role::Administer)).unwrap().token;
        assert!(server.with_token(&old).unwrap().is_none(), "a new token replaces the old one");
        assert_eq!(server.with_token(&new).unwrap().unwrap().role, Role::Administer);
        command.remove("ada").unwrap();
        assert!(server.with_token(&new).unwrap().is_none());
        assert!(matches!(command.remove("ada"), Err(UsersError::Unknown(_))));
    }

    #[test]
    fn owner_has_the_only_token_of_its_socket() {
        let owner = Owner::new("ada").unwrap();
        let user = owner.with_token(owner.token()).unwrap();
        assert_eq!((user.name.as_str(), user.role), ("ada", Role::Administer));
        assert_eq!(owner.with_token(Owner::new("ada").unwrap().token()), None);
        assert!(!format!("{owner:?}").contains(owner.token()), "the token is secret");
    }

    #[test]
    fn damaged_file_is_an_error_with_its_path() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join(FILE), "{\"schema\": \"other/1\", \"users\": []}").unwrap();
        let error = Users::open(directory.path()).unwrap_err().to_string();
        assert!(error.contains(FILE) && error.contains("other/1"), "{error}");
    }
}
