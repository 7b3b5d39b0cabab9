//! What ptp4l of linuxptp reports through its management socket.

use wirestorm_base::bytes::Reader;

use crate::ptp::identity::{ClockIdentity, PortIdentity};
use crate::ptp::interval::LogInterval;
use crate::ptp::message::{
    Body, Flags, Header, Management, ManagementAction, ManagementId, Message,
};
use crate::ptp::time::Correction;
use crate::source::{SourceKind, SourceReport};

/// Age in ns of the last Sync from which ptp4l counts as stopped: the longest interval of most
/// profiles, several times.
const AGE_MAX: i64 = 64_000_000_000;

/// The data sets that describe the clock of ptp4l.
pub const DATA_SETS: [ManagementId; 3] =
    [ManagementId::TIME_STATUS_NP, ManagementId::CURRENT_DATA_SET, ManagementId::PARENT_DATA_SET];

/// Answers of ptp4l.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ptp4lStatus {
    /// Clock of ptp4l minus master in ns (TIME_STATUS_NP).
    pub offset_ns: Option<i64>,
    /// Arrival of the last Sync by the clock of ptp4l, in ns since 1970 (TIME_STATUS_NP).
    pub ingress_ns: Option<i64>,
    /// Whether another clock is the grandmaster (TIME_STATUS_NP).
    pub has_grandmaster: bool,
    /// The grandmaster (TIME_STATUS_NP).
    pub grandmaster: ClockIdentity,
    /// Mean path delay to the master in ns (CURRENT_DATA_SET).
    pub path_delay_ns: Option<i64>,
    /// Steps to the grandmaster (CURRENT_DATA_SET).
    pub steps_removed: u16,
    /// Code of the accuracy of the grandmaster (PARENT_DATA_SET).
    pub accuracy: Option<u8>,
}

/// Returns a request for a data set. `client` is the identity of the sender.
pub fn request(client: PortIdentity, domain: u8, sequence: u16, id: ManagementId) -> Vec<u8> {
    let header = Header {
        domain,
        flags: Flags::default(),
        correction: Correction::default(),
        source: client,
        sequence,
        log_interval: LogInterval::UNSPECIFIED,
    };
    let (target, action) = (PortIdentity::ALL, ManagementAction::Get);
    let body = Body::Management(Management { target, action, id: Some(id), data: Vec::new() });
    Message { header, body }.to_bytes()
}

impl Ptp4lStatus {
    /// Takes an answer. Returns the data set that it was; `None` if it is no answer with a data set.
    pub fn take(&mut self, bytes: &[u8]) -> Option<ManagementId> {
        let Body::Management(answer) = Message::read(bytes).ok()?.body else { return None };
        let (ManagementAction::Response, Some(id)) = (answer.action, answer.id) else {
            return None;
        };
        let mut reader = Reader::new(&answer.data);
        match id {
            ManagementId::TIME_STATUS_NP => {
                let (offset, ingress) = (reader.i64()?, reader.i64()?);
                // Rate and phase of the grandmaster, which ptp4l takes from one profile only.
                reader.bytes(22)?;
                let has_grandmaster = reader.u32()? != 0;
                let grandmaster = ClockIdentity(reader.array()?);
                (self.offset_ns, self.ingress_ns) = (Some(offset), Some(ingress));
                (self.has_grandmaster, self.grandmaster) = (has_grandmaster, grandmaster);
            }
            ManagementId::CURRENT_DATA_SET => {
                let steps_removed = reader.u16()?;
                let _offset = reader.i64()?;
                self.path_delay_ns = Some(Correction(reader.i64()?).to_nanos());
                self.steps_removed = steps_removed;
            }
            ManagementId::PARENT_DATA_SET => {
                // Parent port, statistics, priority and class.
                reader.bytes(PortIdentity::BYTES + 10)?;
                self.accuracy = Some(reader.u8()?);
            }
            _ => return None,
        }
        Some(id)
    }

    /// Describes the source; `now_ns` is the system clock in ns since 1970.
    ///
    /// Half of a round trip bounds the error of the offset, as no path is more asymmetric than that.
    pub fn report(&self, name: &str, now_ns: i64) -> SourceReport {
        let reference_error = self.accuracy.and_then(accuracy_ns);
        let own_error = self
            .offset_ns
            .zip(self.path_delay_ns)
            .map(|(offset, delay)| offset.unsigned_abs().saturating_add(delay.unsigned_abs()));
        let age = self.ingress_ns.map(|ingress| now_ns.saturating_sub(ingress));
        let problem = match (self.has_grandmaster, age, own_error) {
            (false, ..) => Some("ptp4l has no master".to_owned()),
            (_, _, None) | (_, None, _) => Some("ptp4l did not answer all requests".to_owned()),
            (_, Some(age), _) if !(0..AGE_MAX).contains(&age) => Some(
                "its clock is not the system clock, but a hardware clock; or it has stopped"
                    .to_owned(),
            ),
            _ => None,
        };
        let is_independent = reference_error.is_some() && problem.is_none();
        let bound_ns = own_error.map(|error| error.saturating_add(reference_error.unwrap_or(0)));
        SourceReport {
            kind: SourceKind::Ptp4l,
            name: name.to_owned(),
            reference: self.has_grandmaster.then(|| format!("grandmaster {}", self.grandmaster)),
            offset_ns: self.offset_ns.filter(|_| self.has_grandmaster),
            bound_ns: bound_ns.filter(|_| self.has_grandmaster),
            is_independent,
            last_update_ns: self.ingress_ns.filter(|ingress| *ingress > 0),
            problem,
        }
    }
}

/// Returns the largest error for a code of `clockAccuracy` in ns (IEEE 1588-2019 table 5); `None` if
/// it is unknown.
pub fn accuracy_ns(code: u8) -> Option<u64> {
    // Below a nanosecond up to 0x1d.
    const STEPS: [u64; 19] = [
        3,
        10,
        25,
        100,
        250,
        1_000,
        2_500,
        10_000,
        25_000,
        100_000,
        250_000,
        1_000_000,
        2_500_000,
        10_000_000,
        25_000_000,
        100_000_000,
        250_000_000,
        1_000_000_000,
        10_000_000_000,
    ];
    match code {
        0x17..=0x1d => Some(1),
        // 0x31 is "more than 10 s", so it is no bound.
        0x1e..=0x30 => STEPS.get(usize::from(code - 0x1e)).copied(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW: i64 = 1_700_000_000_000_000_000;

    fn answer(id: ManagementId, data: Vec<u8>) -> Vec<u8> {
        let client = PortIdentity::default();
        let Message { header, .. } = Message::read(&request(client, 0, 0, id)).unwrap();
        let action = ManagementAction::Response;
        let body = Body::Management(Management { target: client, action, id: Some(id), data });
        Message { header, body }.to_bytes()
    }

    fn status(has_grandmaster: bool, ingress: i64, accuracy: u8) -> Ptp4lStatus {
        let mut time = Vec::new();
        time.extend((-300_i64).to_be_bytes());
        time.extend(ingress.to_be_bytes());
        time.extend([0; 22]);
        time.extend(u32::from(has_grandmaster).to_be_bytes());
        time.extend([2, 0x57, 0x53, 0xff, 0xfe, 0, 0, 1]);
        let mut current = vec![0, 1];
        current.extend((-300_i64 << 16).to_be_bytes());
        current.extend((2_900_i64 << 16).to_be_bytes());
        let mut parent = vec![0; 20];
        parent.extend([accuracy, 0xff, 0xff, 128]);
        parent.extend([0; 8]);
        let mut status = Ptp4lStatus::default();
        for (id, data) in DATA_SETS.into_iter().zip([time, current, parent]) {
            assert_eq!(status.take(&answer(id, data)), Some(id));
        }
        status
    }

    #[test]
    fn bound_includes_the_path_and_the_grandmaster() {
        let report = status(true, NOW - 1_000, 0x21).report("/var/run/ptp4l", NOW);
        assert_eq!((report.offset_ns, report.bound_ns), (Some(-300), Some(3_300)));
        assert_eq!(report.reference.as_deref(), Some("grandmaster 025753.fffe.000001"));
        assert!(report.is_usable(), "{report:?}");
    }

    #[test]
    fn grandmaster_of_unknown_accuracy_is_no_independent_reference() {
        let report = status(true, NOW - 1_000, 0xfe).report("/var/run/ptp4l", NOW);
        assert_eq!((report.bound_ns, report.problem.as_deref()), (Some(3_200), None));
        assert!(!report.is_usable());
    }

    #[test]
    fn clock_without_a_master_or_of_hardware_has_a_problem() {
        let report = status(false, 0, 0x21).report("ptp4l", NOW);
        assert_eq!((report.bound_ns, report.offset_ns), (None, None));
        assert_eq!(report.problem.as_deref(), Some("ptp4l has no master"));
        // A hardware clock that counts TAI is ahead of the system clock.
        let report = status(true, NOW + 37_000_000_000, 0x21).report("ptp4l", NOW);
        assert!(report.problem.unwrap().contains("hardware clock"));
        assert!(Ptp4lStatus::default().report("ptp4l", NOW).problem.is_some());
    }

    #[test]
    fn accuracy_codes_are_those_of_the_standard() {
        let known =
            [(0x20, 25), (0x21, 100), (0x23, 1_000), (0x29, 1_000_000), (0x2f, 1_000_000_000)];
        for (code, nanoseconds) in known {
            assert_eq!(accuracy_ns(code), Some(nanoseconds), "{code:#x}");
        }
        assert_eq!([0, 0x16, 0x31, 0xfe, 0xff].map(accuracy_ns), [None; 5]);
    }

    #[test]
    fn requests_and_errors_are_no_answers() {
        let mut status = Ptp4lStatus::default();
        let request = request(PortIdentity::default(), 0, 0, ManagementId::TIME_STATUS_NP);
        assert_eq!(status.take(&request), None);
        assert_eq!(status.take(&answer(ManagementId::TIME_STATUS_NP, vec![0; 49])), None);
        assert_eq!(status, Ptp4lStatus::default());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..128)) {
            let mut status = Ptp4lStatus::default();
            status.take(&bytes);
            for id in DATA_SETS {
                status.take(&answer(id, bytes.clone()));
            }
            status.report("ptp4l", NOW);
        }
    }
}
