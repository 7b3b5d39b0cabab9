//! References that may tell how wrong the system clock of this machine is.
//!
//! Each source has a codec here: it turns an answer of the kernel or of a daemon into a
//! [`SourceReport`]. The crate `io` has the sockets and system calls.

pub mod chrony;
pub mod kernel;
pub mod phc;
pub mod ptp4l;

use schemars::JsonSchema;
use serde::Serialize;

/// Kind of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SourceKind {
    /// A hardware clock of a network interface or of the hypervisor (`/dev/ptp*`).
    Phc,
    /// The daemon ptp4l of linuxptp.
    Ptp4l,
    /// The daemon chronyd.
    Chrony,
    /// The kernel's own bound, which a daemon maintains (`adjtimex`).
    Kernel,
}

/// What a source reports about the system clock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct SourceReport {
    /// Kind of the source.
    pub kind: SourceKind,
    /// Name: a socket or device.
    pub name: String,
    /// The reference behind the source: a grandmaster, a server, a kind of hardware; null without one.
    pub reference: Option<String>,
    /// System clock minus reference in ns; null if the source does not report it.
    pub offset_ns: Option<i64>,
    /// Largest error of the system clock in ns, the offset included; null if it is not known.
    pub bound_ns: Option<u64>,
    /// Whether the error of the reference itself is known, and in the bound. Clocks of several
    /// machines can be compared by such sources alone.
    pub is_independent: bool,
    /// Time of the last measurement by the system clock, in ns since 1970; null if it is not known.
    pub last_update_ns: Option<i64>,
    /// Reason why the source cannot be used; null without one.
    pub problem: Option<String>,
}

impl SourceReport {
    /// A source that did not answer, or not with what is needed.
    pub fn failed(kind: SourceKind, name: &str, problem: String) -> Self {
        Self {
            kind,
            name: name.to_owned(),
            reference: None,
            offset_ns: None,
            bound_ns: None,
            is_independent: false,
            last_update_ns: None,
            problem: Some(problem),
        }
    }

    /// Returns whether clocks of several machines can be compared by this source.
    pub const fn is_usable(&self) -> bool {
        self.is_independent && self.bound_ns.is_some() && self.problem.is_none()
    }
}

/// Sources by their bound, with the chosen one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Sources {
    /// All sources. Those that can be used come first, by their bound.
    pub sources: Vec<SourceReport>,
    /// Index of the chosen source, from 0; null if none can be used.
    pub chosen: Option<usize>,
    /// Reason of the choice, for people.
    pub reason: String,
}

impl Sources {
    /// Orders the sources and chooses the one with the smallest bound.
    pub fn choose(mut sources: Vec<SourceReport>) -> Self {
        sources.sort_by_key(|source| {
            let bound = source.bound_ns.unwrap_or(u64::MAX);
            (!source.is_usable(), source.problem.is_some(), bound, source.kind)
        });
        let usable = sources.iter().filter(|source| source.is_usable()).count();
        let reason = match usable {
            0 => {
                "no source has a reference with a known error; machines must compare their clocks \
                  with each other, by PTP or STAMP"
                    .to_owned()
            }
            1 => "the only source that has a reference with a known error".to_owned(),
            _ => format!("the smallest bound of {usable} sources"),
        };
        Self { chosen: (usable > 0).then_some(0), sources, reason }
    }

    /// Returns the chosen source.
    pub fn chosen(&self) -> Option<&SourceReport> {
        self.sources.get(self.chosen?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(name: &str, bound_ns: Option<u64>, is_independent: bool) -> SourceReport {
        let report = SourceReport::failed(SourceKind::Chrony, name, String::new());
        SourceReport { bound_ns, is_independent, problem: None, ..report }
    }

    #[test]
    fn usable_source_with_the_smallest_bound_is_chosen() {
        let mut broken = source("broken", Some(1), true);
        broken.problem = Some("not synchronised".into());
        let sources = Sources::choose(vec![
            broken,
            source("unknown", None, true),
            source("wide", Some(900), true),
            source("dependent", Some(2), false),
            source("narrow", Some(300), true),
        ]);
        let names: Vec<&str> = sources.sources.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["narrow", "wide", "dependent", "unknown", "broken"]);
        assert_eq!(sources.chosen().unwrap().name, "narrow");
        assert_eq!(sources.reason, "the smallest bound of 2 sources");
    }

    #[test]
    fn without_a_known_reference_none_is_chosen() {
        let sources = Sources::choose(vec![source("dependent", Some(2), false)]);
        assert_eq!(sources.chosen(), None);
        assert!(sources.reason.contains("PTP or STAMP"), "{}", sources.reason);
    }
}
