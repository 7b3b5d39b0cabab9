//! Known faults of NATS servers that matter for a bus.

/// Oldest versions that are fit for machines outside a lab.
pub const RECOMMENDED: &str = "2.12.7 or 2.14";

/// A known fault of the version of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advisory {
    /// Identifier, such as `CVE-2026-33222`.
    pub id: &'static str,
    /// What the fault allows, and where it is fixed.
    pub text: &'static str,
}

type Version = (u32, u32, u32);

struct Fault {
    advisory: Advisory,
    /// First version without the fault, for each minor version that got a fix, in rising order.
    /// Later minor versions have no fault, earlier ones and those between have it.
    fixed: &'static [Version],
}

const FAULTS: [Fault; 3] = [
    Fault {
        advisory: Advisory {
            id: "CVE-2023-47090",
            text: "a server whose only account is $SYS accepts clients without a key; \
                   fixed in 2.9.23 and 2.10.2",
        },
        fixed: &[(2, 9, 23), (2, 10, 2)],
    },
    Fault {
        advisory: Advisory {
            id: "GHSA-fhg8-qxh5-7q3w",
            text: "a user of JetStream can delete data of other accounts; \
                   fixed in 2.10.27 and 2.11.1",
        },
        fixed: &[(2, 10, 27), (2, 11, 1)],
    },
    Fault {
        advisory: Advisory {
            id: "CVE-2026-33222",
            text: "with others of 2026: access of authorised clients to JetStream beyond their \
                   rights; fixed in 2.11.16, 2.12.7 and 2.14",
        },
        fixed: &[(2, 11, 16), (2, 12, 7), (2, 14, 0)],
    },
];

const UNKNOWN: Advisory = Advisory {
    id: "unknown version",
    text: "the server tells no version that can be checked; use 2.12.7 or 2.14",
};

/// Returns the known faults of a version, such as `2.9.10`.
pub fn of_version(version: &str) -> Vec<Advisory> {
    let Some(version) = parse(version) else { return vec![UNKNOWN] };
    let faults = FAULTS.iter().filter(|fault| fault.is_in(version));
    faults.map(|fault| fault.advisory.clone()).collect()
}

impl Fault {
    fn is_in(&self, version: Version) -> bool {
        let same_minor = |fix: &&Version| (fix.0, fix.1) == (version.0, version.1);
        match (self.fixed.iter().find(same_minor), self.fixed.last()) {
            (Some(fix), _) => version < *fix,
            (None, Some(last)) => version < *last,
            (None, None) => false,
        }
    }
}

fn parse(version: &str) -> Option<Version> {
    // A pre-release, such as 2.14.0-RC.1, counts as the version.
    let version = version.split(['-', '+']).next()?;
    let mut numbers = version.trim_start_matches('v').split('.').map(str::parse);
    let mut next = || numbers.next()?.ok();
    Some((next()?, next()?, next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(version: &str) -> Vec<&'static str> {
        of_version(version).iter().map(|advisory| advisory.id).collect()
    }

    #[test]
    fn versions_have_the_faults_that_were_fixed_later() {
        let all = ["CVE-2023-47090", "GHSA-fhg8-qxh5-7q3w", "CVE-2026-33222"];
        assert_eq!(ids("2.9.10"), all);
        assert_eq!(ids("2.9.23"), all[1..]);
        assert_eq!(ids("2.10.27"), all[2..]);
        assert_eq!(ids("2.11.0"), all[1..]);
        assert_eq!(ids("2.11.16"), [""; 0]);
        assert_eq!(ids("2.12.6"), all[2..]);
        assert_eq!(ids("2.12.7"), [""; 0]);
        assert_eq!(ids("2.13.1"), all[2..]);
        assert_eq!(ids("2.14.0-RC.1"), [""; 0]);
        assert_eq!(ids("v2.15.2"), [""; 0]);
        assert_eq!(ids("3.0.0"), [""; 0]);
    }

    #[test]
    fn a_version_that_cannot_be_read_is_told() {
        for version in ["", "2", "2.9", "two.nine.ten"] {
            assert_eq!(ids(version), ["unknown version"], "{version:?}");
        }
    }
}
