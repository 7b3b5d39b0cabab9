//! The configuration file of the server.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use super::{CAPTURES, Cluster, LEASES, Member, PLANS, Role};
use crate::BusError;
use crate::subject::Site;

/// Files that the configuration names. Relative ones would depend on where the server is started.
#[derive(Clone, Debug)]
pub struct Paths {
    /// Certificate of the server.
    pub certificate: PathBuf,
    /// Private key of the server.
    pub key: PathBuf,
    /// Directory of stored data.
    pub store: PathBuf,
    /// File to which the server writes its process ID.
    pub process_id: PathBuf,
}

/// Bounds of the server.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum size of all stored data in bytes.
    pub store_bytes: u64,
}

/// Subjects that a key may use.
struct Permissions {
    publish: Vec<String>,
    publish_not: Vec<String>,
    subscribe: Vec<String>,
}

impl Cluster {
    /// Returns the configuration file of the server.
    ///
    /// # Errors
    /// A path or a name cannot be written in it.
    pub fn configuration(&self, paths: &Paths, limits: Limits) -> Result<String, BusError> {
        let site = Site::new(&self.site)?;
        let mut users = String::new();
        for member in &self.members {
            users += &user(&site, member)?;
        }
        Ok(format!(
            "\
# Configuration of nats-server. `wirestorm cluster` writes it anew at each change.
server_name: {name}
listen: {listen}
max_payload: 1048576

# Connections that are cut off end soon, so that what they still hold does not arrive late.
ping_interval: \"5s\"
ping_max: 2
write_deadline: \"5s\"

pid_file: {process_id}

tls {{
  cert_file: {certificate}
  key_file: {key}
  timeout: 5
}}

jetstream {{
  store_dir: {store}
  max_memory_store: 1048576
  max_file_store: {store_bytes}
}}

accounts {{
  WIRESTORM {{
    jetstream: enabled
    users: [
{users}    ]
  }}
}}
",
            name = quoted(&format!("wirestorm-{}", site.name()))?,
            listen = quoted(&self.listen.to_string())?,
            process_id = path(&paths.process_id)?,
            certificate = path(&paths.certificate)?,
            key = path(&paths.key)?,
            store = path(&paths.store)?,
            store_bytes = limits.store_bytes,
        ))
    }
}

/// Returns the entry of an agent or a director.
fn user(site: &Site, member: &Member) -> Result<String, BusError> {
    // The name gets into a comment and into subjects.
    let name = crate::subject::checked_name(member.role.name(), &member.name)?;
    let permissions = match member.role {
        Role::Agent => agent(site, name)?,
        Role::Director => director(site, name),
    };
    let mut text = String::new();
    let lines = [
        format!("      # {} {name}", member.role.name()),
        "      {".to_owned(),
        format!("        nkey: {}", quoted(&member.key)?),
        "        permissions: {".to_owned(),
        "          publish: {".to_owned(),
        format!("            allow: [{}]", list(&permissions.publish)?),
        format!("            deny: [{}]", list(&permissions.publish_not)?),
        "          }".to_owned(),
        format!("          subscribe: {{ allow: [{}] }}", list(&permissions.subscribe)?),
        // The right to answer a request once, wherever the answer goes.
        "          allow_responses: { max: 1, expires: \"1m\" }".to_owned(),
        "        }".to_owned(),
        "      }".to_owned(),
    ];
    for line in lines {
        let _ = writeln!(text, "{line}");
    }
    Ok(text)
}

fn agent(site: &Site, name: &str) -> Result<Permissions, BusError> {
    let plans = site.objects(PLANS);
    let (bucket, leases) = (site.bucket(LEASES), site.bucket_stream(LEASES));
    let inbox = format!("{}.>", site.inbox(Role::Agent.name(), name));
    Ok(Permissions {
        publish: vec![
            site.agent_status(name)?,
            site.agent_event(name)?,
            format!("ws.{}.director.*.lease", site.name()),
            format!("ws.{}.result.*.{name}", site.name()),
            format!("{}.{name}.>", site.objects(CAPTURES)),
            // Reads by name alone: a request without a subject could read all of a stream.
            format!("$JS.API.DIRECT.GET.{}.{plans}.>", site.objects_stream(PLANS)),
            format!("$JS.API.DIRECT.GET.{leases}.$KV.{bucket}.{name}"),
            // The names of the streams alone; tells a missing one from a slow server.
            "$JS.API.STREAM.NAMES".into(),
            inbox.clone(),
        ],
        publish_not: Vec::new(),
        subscribe: vec![site.agent_rpc(name)?, inbox],
    })
}

fn director(site: &Site, name: &str) -> Permissions {
    let inbox = format!("{}.>", site.inbox(Role::Director.name(), name));
    Permissions {
        publish: vec![
            site.all(),
            "$KV.>".into(),
            "$JS.API.STREAM.CREATE.*".into(),
            "$JS.API.STREAM.UPDATE.*".into(),
            "$JS.API.STREAM.INFO.*".into(),
            "$JS.API.STREAM.NAMES".into(),
            "$JS.API.DIRECT.GET.>".into(),
            inbox.clone(),
        ],
        publish_not: vec![site.all_agent_status(), site.all_agent_events()],
        subscribe: vec![site.all(), inbox],
    }
}

fn list(subjects: &[String]) -> Result<String, BusError> {
    let quoted: Result<Vec<String>, BusError> =
        subjects.iter().map(|subject| quoted(subject)).collect();
    Ok(quoted?.join(", "))
}

fn path(path: &Path) -> Result<String, BusError> {
    let wrong = |reason| BusError::invalid(format!("path {}", path.display()), reason);
    if !path.is_absolute() {
        return Err(wrong("expected an absolute path"));
    }
    path.to_str().ok_or_else(|| wrong("expected UTF-8")).and_then(quoted)
}

/// Returns a text in quotation marks. What would need an escape there is refused.
fn quoted(text: &str) -> Result<String, BusError> {
    match text.chars().any(|it| it.is_control() || it == '"' || it == '\\') {
        true => Err(BusError::invalid(
            format!("{text:?}"),
            "the configuration of the server cannot have quotation marks, backslashes or control \
             characters here",
        )),
        false => Ok(format!("\"{text}\"")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(root: &str) -> Paths {
        let root = Path::new(root);
        Paths {
            certificate: root.join("server.pem"),
            key: root.join("server-key.pem"),
            store: root.join("jetstream"),
            process_id: root.join("nats-server.pid"),
        }
    }

    #[test]
    fn an_agent_has_its_own_subjects_alone() {
        let listen = "127.0.0.1:4222".parse().unwrap();
        let (mut cluster, _) = Cluster::new("lab", listen, &[]).unwrap();
        cluster.add(Role::Agent, "tx").unwrap();
        let limits = Limits { store_bytes: 1 << 30 };
        let text = cluster.configuration(&paths("/etc/bus"), limits).unwrap();
        let line = |start: &str| text.lines().find(|line| line.trim().starts_with(start)).unwrap();
        let subscribe = line("subscribe:").trim();
        assert_eq!(
            subscribe,
            "subscribe: { allow: [\"ws.lab.agent.tx.rpc\", \"_INBOX.ws.lab.agent.tx.>\"] }"
        );
        let publish = line("allow:");
        for subject in publish.split('"').filter(|part| part.contains('.')) {
            let is_own = subject.contains(".tx");
            let is_shared = subject.ends_with(".lease")
                || subject == "$JS.API.STREAM.NAMES"
                || subject.contains("DIRECT.GET.OBJ_ws-lab-plans.ws.");
            assert!(is_own || is_shared, "{subject}");
        }
        assert!(!publish.contains("CONSUMER") && !publish.contains("rpc"), "{publish}");
    }

    #[test]
    fn nothing_gets_out_of_its_quotation_marks() {
        let listen = "127.0.0.1:4222".parse().unwrap();
        let (mut cluster, _) = Cluster::new("lab", listen, &[]).unwrap();
        let limits = Limits { store_bytes: 1 << 30 };
        for root in ["/a\"b", "/a\nb", "relative"] {
            assert!(cluster.configuration(&paths(root), limits).is_err(), "{root:?}");
        }
        // A cluster file that somebody changed.
        let key = "U\" }".to_owned();
        cluster.members.push(Member { role: Role::Agent, name: "a".into(), key });
        assert!(cluster.configuration(&paths("/etc/bus"), limits).is_err());
        cluster.members[0] = Member { role: Role::Agent, name: "a\n}".into(), key: "UA".into() };
        assert!(cluster.configuration(&paths("/etc/bus"), limits).is_err());
    }
}
