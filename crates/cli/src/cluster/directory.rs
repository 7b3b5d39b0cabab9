//! The files of a cluster.

use std::fs;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use wirestorm_bus::BusError;
use wirestorm_bus::cluster::{Cluster, Credentials, Limits, Paths, Role};

use super::Failure;

/// Schema of the file of a cluster.
const SCHEMA: &str = "wirestorm.cluster/1";
/// Largest file of a cluster in bytes.
const FILE_MAX: u64 = 16 << 20;

/// The file of a cluster. It has no secrets.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ClusterFile {
    schema: String,
    /// Program of the server.
    pub(super) server_command: PathBuf,
    /// Maximum size of stored data in bytes.
    store_bytes: u64,
    /// Site, address and members.
    pub(super) cluster: Cluster,
}

/// Settings of a new cluster.
pub(super) struct NewCluster<'a> {
    pub(super) site: &'a str,
    pub(super) listen: SocketAddr,
    pub(super) hosts: &'a [String],
    pub(super) members: Vec<(Role, &'a String)>,
    pub(super) server_command: &'a Path,
    pub(super) store_bytes: u64,
}

/// The directory of a cluster.
pub(super) struct Directory {
    path: PathBuf,
}

impl Directory {
    pub(super) const fn new(path: PathBuf) -> Self {
        Self { path }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Path of the server's configuration.
    pub(super) fn configuration(&self) -> PathBuf {
        self.path.join("nats-server.conf")
    }

    /// Path of the file with the server's process ID.
    pub(super) fn process_id(&self) -> PathBuf {
        self.path.join("nats-server.pid")
    }

    /// Path of the credentials of a member.
    pub(super) fn credentials(&self, name: &str) -> PathBuf {
        self.path.join("credentials").join(format!("{name}.json"))
    }

    fn file(&self) -> PathBuf {
        self.path.join("cluster.json")
    }

    fn paths(&self) -> Paths {
        Paths {
            certificate: self.path.join("server.pem"),
            key: self.path.join("server-key.pem"),
            store: self.path.join("jetstream"),
            process_id: self.process_id(),
        }
    }

    /// Creates a cluster.
    pub(super) fn create(&self, new: &NewCluster<'_>) -> Result<ClusterFile, Failure> {
        let (mut cluster, certificates) =
            Cluster::new(new.site, new.listen, new.hosts).map_err(usage)?;
        let mut credentials = Vec::new();
        // Agents get the keys of all directors.
        let mut members: Vec<&(Role, &String)> = new.members.iter().collect();
        members.sort_by_key(|(role, _)| *role != Role::Director);
        for (role, name) in members {
            credentials.push(cluster.add(*role, name).map_err(usage)?);
        }
        let _lock = self.lock()?;
        if self.file().exists() {
            return Err(Failure::Usage(format!(
                "{}: there is a cluster already; add agents with `wirestorm cluster add-agent`, \
                 or choose another directory with --dir",
                self.path.display()
            )));
        }
        let paths = self.paths();
        write(&self.path.join("ca.pem"), &certificates.authority, 0o644)?;
        write(&paths.certificate, &certificates.server, 0o644)?;
        write(&paths.key, &certificates.server_key, 0o600)?;
        let file = ClusterFile {
            schema: SCHEMA.into(),
            server_command: new.server_command.into(),
            store_bytes: new.store_bytes,
            cluster,
        };
        self.store(&file, &credentials)?;
        Ok(file)
    }

    /// Adds members.
    pub(super) fn add(&self, members: &[(Role, &String)]) -> Result<(), Failure> {
        let _lock = self.lock()?;
        let mut file = self.read()?;
        let mut credentials = Vec::new();
        for (role, name) in members {
            credentials.push(file.cluster.add(*role, name).map_err(usage)?);
        }
        self.store(&file, &credentials)
    }

    /// Removes members, and their credentials.
    pub(super) fn revoke(&self, names: &[String]) -> Result<(), Failure> {
        let _lock = self.lock()?;
        let mut file = self.read()?;
        for name in names {
            file.cluster.revoke(name).map_err(usage)?;
        }
        self.store(&file, &[])?;
        for name in names {
            let path = self.credentials(name);
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(failed(&path, &error).into());
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Reads the cluster.
    pub(super) fn read(&self) -> Result<ClusterFile, Failure> {
        let path = self.file();
        let length = match fs::metadata(&path) {
            Ok(metadata) => metadata.len(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(Failure::Usage(format!(
                    "{}: there is no cluster; `wirestorm cluster init` creates one",
                    self.path.display()
                )));
            }
            Err(error) => return Err(failed(&path, &error).into()),
        };
        if length > FILE_MAX {
            return Err(failed(&path, &format!("{length} bytes; at most {FILE_MAX}")).into());
        }
        let text = fs::read_to_string(&path).map_err(|error| failed(&path, &error))?;
        let file: ClusterFile =
            serde_json::from_str(&text).map_err(|error| failed(&path, &error))?;
        match file.schema == SCHEMA {
            true => Ok(file),
            false => {
                let found = &file.schema;
                Err(failed(&path, &format!("schema {found:?}, expected {SCHEMA:?}")).into())
            }
        }
    }

    /// Writes the credentials of new members, the server's configuration, and last the cluster.
    fn store(&self, file: &ClusterFile, credentials: &[Credentials]) -> Result<(), Failure> {
        let limits = Limits { store_bytes: file.store_bytes };
        let configuration = file.cluster.configuration(&self.paths(), limits).map_err(usage)?;
        let text = serde_json::to_string_pretty(file).map_err(|error| error.to_string())?;
        create_private(&self.path.join("credentials"))?;
        for credentials in credentials {
            let path = self.credentials(&credentials.name);
            write(&path, &credentials.to_json().map_err(usage)?, 0o600)?;
        }
        write(&self.configuration(), &configuration, 0o600)?;
        Ok(write(&self.file(), &(text + "\n"), 0o600)?)
    }

    /// Creates the directory, and excludes changes by other processes until the drop.
    fn lock(&self) -> Result<fs::File, String> {
        create_private(&self.path)?;
        let open = || {
            let directory = fs::File::open(&self.path)?;
            directory.lock()?;
            Ok(directory)
        };
        open().map_err(|error: io::Error| failed(&self.path, &error))
    }
}

fn usage(error: BusError) -> Failure {
    Failure::Usage(error.to_string())
}

fn failed(path: &Path, error: &dyn std::fmt::Display) -> String {
    format!("{}: {error}", path.display())
}

/// Creates a directory that only its owner can read.
fn create_private(path: &Path) -> Result<(), String> {
    let created = fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
    created.map_err(|error| failed(path, &error))
}

/// Writes a file. A crash at any time leaves the old or the new file.
fn write(path: &Path, text: &str, mode: u32) -> Result<(), String> {
    let mut staging = path.as_os_str().to_owned();
    staging.push(".new");
    let staging = PathBuf::from(staging);
    let written = || {
        // A file that a crash left may have other rights.
        let _ = fs::remove_file(&staging);
        let mut options = fs::OpenOptions::new();
        let mut file = options.write(true).create_new(true).mode(mode).open(&staging)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&staging, path)
    };
    written().map_err(|error: io::Error| failed(path, &error))
}
