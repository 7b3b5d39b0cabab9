//! Subjects: their syntax, and the names of all subjects of a site.
//!
//! | subject | sender | receiver |
//! | --- | --- | --- |
//! | `ws.SITE.agent.AGENT.rpc` | director | agent: requests |
//! | `ws.SITE.agent.AGENT.status` | agent | presence and live counters |
//! | `ws.SITE.agent.AGENT.event` | agent | events |
//! | `ws.SITE.director.TEST.lease` | agent | director of a test: requests for a new lease |
//! | `ws.SITE.result.TEST.AGENT` | agent | log of results |
//! | `ws.SITE.object.STORE.NAME.PART` | all | object stores |
//! | `ws.SITE.written.BUCKET.KEY` | server | writes of buckets, for those who watch |
//! | `_INBOX.ws.SITE.ROLE.NAME.>` | all | answers for one agent or director |

use crate::BusError;

/// Longest name of a site, an agent, a director or a test, in bytes.
pub const NAME_MAX: usize = 64;
/// Longest name of a bucket, a log or an object store, in bytes.
pub const STORE_NAME_MAX: usize = 32;
/// Longest subject or pattern, in bytes.
pub const SUBJECT_MAX: usize = 255;

/// First token of all subjects for answers.
pub(crate) const INBOX: &str = "_INBOX";

/// Checks a name of a site, an agent, a director or a test. `kind` names it in the message.
///
/// # Errors
/// The name has other characters than ASCII letters, digits, `-` and `_`, or not 1 to 64 of them.
pub fn checked_name<'a>(kind: &str, name: &'a str) -> Result<&'a str, BusError> {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if (1..=NAME_MAX).contains(&name.len()) && name.bytes().all(is_allowed) {
        return Ok(name);
    }
    let reason = format!("expected 1 to {NAME_MAX} letters, digits, - and _");
    Err(BusError::invalid(format!("{kind} {name:?}"), reason))
}

/// Checks the name of a bucket, a log or an object store.
pub(crate) fn checked_store<'a>(kind: &str, name: &'a str) -> Result<&'a str, BusError> {
    let is_allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    if (1..=STORE_NAME_MAX).contains(&name.len()) && name.bytes().all(is_allowed) {
        return Ok(name);
    }
    let reason = format!("expected 1 to {STORE_NAME_MAX} lower-case letters and digits");
    Err(BusError::invalid(format!("{kind} {name:?}"), reason))
}

/// Checks the name of an object: one to four names with dots between them.
pub(crate) fn checked_object(name: &str) -> Result<&str, BusError> {
    if name.split('.').count() > 4 {
        return Err(BusError::invalid(format!("object {name:?}"), "expected at most 4 tokens"));
    }
    name.split('.').try_for_each(|token| checked_name("object", token).map(drop))?;
    Ok(name)
}

/// Checks a subject or a key, which has no wildcards.
pub(crate) fn checked_subject(subject: &str) -> Result<&str, BusError> {
    let is_token = |token: &str| token != "*" && token != ">";
    match is_pattern(subject) && subject.split('.').all(is_token) {
        true => Ok(subject),
        false => Err(malformed("subject", subject)),
    }
}

/// Checks a pattern of subjects or keys.
pub(crate) fn checked_pattern(pattern: &str) -> Result<&str, BusError> {
    match is_pattern(pattern) {
        true => Ok(pattern),
        false => Err(malformed("pattern", pattern)),
    }
}

fn malformed(kind: &str, text: &str) -> BusError {
    let reason = format!(
        "expected 1 to {SUBJECT_MAX} characters: tokens of printable ASCII with dots between them"
    );
    BusError::invalid(format!("{kind} {text:?}"), reason)
}

fn is_pattern(text: &str) -> bool {
    let mut tokens = text.split('.').peekable();
    let mut is_right = (1..=SUBJECT_MAX).contains(&text.len());
    while let Some(token) = tokens.next() {
        let is_wildcard = token == "*" || token == ">" && tokens.peek().is_none();
        let is_plain = |byte: u8| byte.is_ascii_graphic() && byte != b'*' && byte != b'>';
        is_right &= is_wildcard || !token.is_empty() && token.bytes().all(is_plain);
    }
    is_right
}

/// Returns whether a subject fits a pattern.
pub(crate) fn matches(pattern: &str, subject: &str) -> bool {
    let mut tokens = subject.split('.');
    for expected in pattern.split('.') {
        match (expected, tokens.next()) {
            (_, None) => return false,
            (">", Some(_)) => return true,
            ("*", Some(_)) => {}
            (expected, Some(token)) if expected == token => {}
            _ => return false,
        }
    }
    tokens.next().is_none()
}

/// A site: an installation with one bus. All subjects of a site begin with `ws.SITE.`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site(String);

impl Site {
    /// Returns the site of a name.
    ///
    /// # Errors
    /// See [`checked_name`].
    pub fn new(name: &str) -> Result<Self, BusError> {
        Ok(Self(checked_name("site", name)?.to_owned()))
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.0
    }

    /// Returns the pattern of all subjects of the site.
    pub fn all(&self) -> String {
        format!("ws.{}.>", self.0)
    }

    /// Returns the subject of requests to an agent.
    ///
    /// # Errors
    /// See [`checked_name`]; so for the other subjects.
    pub fn agent_rpc(&self, agent: &str) -> Result<String, BusError> {
        self.agent(agent, "rpc")
    }

    /// Returns the subject of an agent's presence and live counters.
    ///
    /// # Errors
    /// See [`checked_name`].
    pub fn agent_status(&self, agent: &str) -> Result<String, BusError> {
        self.agent(agent, "status")
    }

    /// Returns the pattern of the presence of all agents.
    pub fn all_agent_status(&self) -> String {
        format!("ws.{}.agent.*.status", self.0)
    }

    /// Returns the subject of an agent's events.
    ///
    /// # Errors
    /// See [`checked_name`].
    pub fn agent_event(&self, agent: &str) -> Result<String, BusError> {
        self.agent(agent, "event")
    }

    /// Returns the pattern of the events of all agents.
    pub fn all_agent_events(&self) -> String {
        format!("ws.{}.agent.*.event", self.0)
    }

    /// Returns the subject of requests for a new lease to the director of a test.
    ///
    /// # Errors
    /// See [`checked_name`].
    pub fn director_lease(&self, test: &str) -> Result<String, BusError> {
        Ok(format!("ws.{}.director.{}.lease", self.0, checked_name("test", test)?))
    }

    /// Returns the subject of an agent's results in the log of results.
    ///
    /// # Errors
    /// See [`checked_name`].
    pub fn result(&self, test: &str, agent: &str) -> Result<String, BusError> {
        let (test, agent) = (checked_name("test", test)?, checked_name("agent", agent)?);
        Ok(format!("ws.{}.result.{test}.{agent}", self.0))
    }

    /// Returns the pattern of the results of all agents of a test.
    ///
    /// # Errors
    /// See [`checked_name`].
    pub fn test_results(&self, test: &str) -> Result<String, BusError> {
        Ok(format!("ws.{}.result.{}.*", self.0, checked_name("test", test)?))
    }

    /// Returns the pattern of all results, for [`crate::LogConfig::pattern`].
    pub fn all_results(&self) -> String {
        format!("ws.{}.result.*.*", self.0)
    }

    /// Returns the agent of one of its subjects: `rpc`, `status`, `event`, or a result.
    pub fn agent_of<'a>(&self, subject: &'a str) -> Option<&'a str> {
        let rest = subject.strip_prefix("ws.")?.strip_prefix(self.name())?.strip_prefix('.')?;
        let mut tokens = rest.split('.');
        match (tokens.next()?, tokens.next()?, tokens.next()?, tokens.next()) {
            ("agent", agent, _, None) | ("result", _, agent, None) => Some(agent),
            _ => None,
        }
    }

    fn agent(&self, agent: &str, last: &str) -> Result<String, BusError> {
        Ok(format!("ws.{}.agent.{}.{last}", self.0, checked_name("agent", agent)?))
    }

    /// Returns the prefix of answers for an agent or director, without a dot at the end.
    pub(crate) fn inbox(&self, role: &str, name: &str) -> String {
        format!("{INBOX}.ws.{}.{role}.{name}", self.0)
    }

    /// Returns the name of a bucket on a NATS server.
    pub(crate) fn bucket(&self, bucket: &str) -> String {
        format!("ws-{}-{bucket}", self.0)
    }

    /// Returns the name of the stream of a bucket on a NATS server.
    pub(crate) fn bucket_stream(&self, bucket: &str) -> String {
        format!("KV_{}", self.bucket(bucket))
    }

    /// Returns the prefix of the subjects of the writes of a bucket, without a dot at the end.
    pub(crate) fn written(&self, bucket: &str) -> String {
        format!("ws.{}.written.{bucket}", self.0)
    }

    /// Returns the name of the stream of a log on a NATS server.
    pub(crate) fn log_stream(&self, log: &str) -> String {
        format!("LOG_ws-{}-{log}", self.0)
    }

    /// Returns the name of the stream of an object store on a NATS server.
    pub(crate) fn objects_stream(&self, store: &str) -> String {
        format!("OBJ_ws-{}-{store}", self.0)
    }

    /// Returns the prefix of the subjects of an object store, without a dot at the end.
    pub(crate) fn objects(&self, store: &str) -> String {
        format!("ws.{}.object.{store}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_like_those_of_nats() {
        for (pattern, subject, expected) in [
            ("a.b", "a.b", true),
            ("a.b", "a.c", false),
            ("a.*", "a.b", true),
            ("a.*", "a.b.c", false),
            ("a.*", "a", false),
            ("*.b", "a.b", true),
            ("a.>", "a.b.c", true),
            ("a.>", "a", false),
            (">", "a", true),
        ] {
            assert_eq!(matches(pattern, subject), expected, "{pattern} {subject}");
        }
    }

    #[test]
    fn malformed_subjects_and_patterns_are_refused() {
        for subject in ["", ".", "a.", ".a", "a..b", "a b", "a.*", "a.>", "a.\r\nPUB x", "é"] {
            assert!(checked_subject(subject).is_err(), "{subject:?}");
        }
        for pattern in ["", "a.>.b", "a*", "a.>x", "a b"] {
            assert!(checked_pattern(pattern).is_err(), "{pattern:?}");
        }
        for pattern in ["a.*.b", ">", "a.>", "*"] {
            assert!(checked_pattern(pattern).is_ok(), "{pattern:?}");
        }
        assert!(checked_subject(&"a".repeat(SUBJECT_MAX + 1)).is_err());
    }

    #[test]
    fn a_name_cannot_leave_its_token() {
        let site = Site::new("lab-1").unwrap();
        assert_eq!(site.agent_rpc("tx_1").unwrap(), "ws.lab-1.agent.tx_1.rpc");
        for name in ["", "a.b", "*", ">", "a b", &"a".repeat(NAME_MAX + 1)] {
            assert!(site.agent_rpc(name).is_err(), "{name:?}");
            assert!(site.result("t", name).is_err(), "{name:?}");
            assert!(site.director_lease(name).is_err(), "{name:?}");
            assert!(Site::new(name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn the_agent_of_a_subject_is_found() {
        let site = Site::new("lab").unwrap();
        assert_eq!(site.agent_of("ws.lab.agent.a.status"), Some("a"));
        assert_eq!(site.agent_of("ws.lab.result.t.a"), Some("a"));
        assert_eq!(site.agent_of("ws.other.agent.a.status"), None);
        assert_eq!(site.agent_of("ws.lab.director.t.lease"), None);
    }
}
