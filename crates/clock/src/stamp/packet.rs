//! Packets of STAMP, unauthenticated mode (RFC 8762 section 4.2.1 and 4.3.1, RFC 8972).
//!
//! | bytes | request | reply |
//! | --- | --- | --- |
//! | 0-3 | sequence number | sequence number of the reflector |
//! | 4-11 | time stamp (T1) | time stamp of the reply (T3) |
//! | 12-13 | error estimate | error estimate of the reflector |
//! | 14-15 | session identifier | the same |
//! | 16-23 | zero | time stamp of arrival (T2) |
//! | 24-27 | zero | sequence number of the request |
//! | 28-35 | zero | time stamp of the request |
//! | 36-37 | zero | error estimate of the request |
//! | 40 | zero | time to live of the request |
//! | 44- | extensions | extensions |
//!
//! TWAMP Light (RFC 5357 appendix I) has the same fields up to byte 41.

use crate::timestamp::Timestamp;

/// Length of a packet without extensions.
pub const BASE_LENGTH: usize = 44;

/// Shortest reply of a TWAMP Light reflector.
const REPLY_LENGTH_MIN: usize = 41;

/// Length of the extension header.
const TLV_HEADER: usize = 4;

/// Follow-Up Telemetry (RFC 8972 section 4.7): exact departure of the previous reply.
const FOLLOW_UP: u8 = 7;
const FOLLOW_UP_LENGTH: usize = 16;

/// The receiver does not know the extension.
const UNRECOGNIZED: u8 = 0x80;
/// The receiver could not parse the extensions from here on.
const MALFORMED: u8 = 0x40;

/// Time stamps of software of this machine (RFC 8972 section 4.3).
const SOFTWARE_STAMP: u8 = 2;

/// Seconds from 1900, the epoch of NTP, to 1970.
const NTP_EPOCH: i64 = 2_208_988_800;

/// The time stamp format of IEEE 1588: seconds and nanoseconds (bit Z of an error estimate).
const PTP_FORMAT: u16 = 0x4000;

/// The clock is synchronised to a reference (bit S of an error estimate).
const SYNCHRONIZED: u16 = 0x8000;

/// A request, as a session sender builds it and a reflector reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Sequence number.
    pub sequence: u32,
    /// Departure as known when the packet was built (T1).
    pub sent: Timestamp,
    /// Error estimate field.
    pub error: ErrorEstimate,
    /// Session identifier; 0 in packets of TWAMP Light.
    pub session: u16,
}

/// A reply, as a reflector builds it and a session sender reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Sequence number of the reflector.
    pub sequence: u32,
    /// Departure as known when the reply was built (T3).
    pub sent: Timestamp,
    /// Error estimate of the reflector.
    pub error: ErrorEstimate,
    /// Session identifier.
    pub session: u16,
    /// Arrival of the request (T2).
    pub received: Timestamp,
    /// The request.
    pub request: Request,
    /// Time to live of the request; 255 if the reflector does not know it.
    pub ttl: u8,
    /// Whether the reflector reports exact departures (Follow-Up Telemetry).
    pub follows_up: bool,
    /// Exact departure of an earlier reply.
    pub follow_up: Option<FollowUp>,
}

/// Exact departure of an earlier reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FollowUp {
    /// Sequence number of the reflector in that reply.
    pub sequence: u32,
    /// Departure of that reply.
    pub sent: Timestamp,
}

/// Error estimate (RFC 4656 section 4.1.2): multiplier * 2^(scale - 32) s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorEstimate(u16);

impl ErrorEstimate {
    /// Builds the field for an error in ns, rounded up; a clock is either synchronised to a reference
    /// or runs free.
    pub fn new(error_ns: f64, is_synchronized: bool) -> Self {
        let units = (error_ns.max(0.0) * 1e-9 * 4_294_967_296.0).max(1.0);
        let scale = (units / 255.0).log2().ceil().clamp(0.0, 63.0);
        let multiplier = (units / scale.exp2()).ceil().clamp(1.0, 255.0);
        let flags = if is_synchronized { SYNCHRONIZED } else { 0 };
        Self(flags | (scale as u16) << 8 | multiplier as u16)
    }

    /// Returns the error in ns; `None` if the field is not valid (its multiplier is 0).
    pub fn error_ns(self) -> Option<f64> {
        let (scale, multiplier) = (f64::from(self.0 >> 8 & 0x3f), f64::from(self.0 & 0xff));
        (multiplier > 0.0).then(|| multiplier * (scale - 32.0).exp2() * 1e9)
    }

    /// Returns whether the clock is synchronised to a reference.
    pub const fn is_synchronized(self) -> bool {
        self.0 & SYNCHRONIZED != 0
    }
}

impl Request {
    /// Returns the packet. It asks for the exact departure of the previous reply.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0; BASE_LENGTH];
        bytes[0..4].copy_from_slice(&self.sequence.to_be_bytes());
        bytes[4..12].copy_from_slice(&ntp(self.sent));
        bytes[12..14].copy_from_slice(&self.error.0.to_be_bytes());
        bytes[14..16].copy_from_slice(&self.session.to_be_bytes());
        bytes.extend([UNRECOGNIZED, FOLLOW_UP, 0, FOLLOW_UP_LENGTH as u8]);
        bytes.extend([0; FOLLOW_UP_LENGTH]);
        bytes
    }

    /// Reads a packet that arrived about `now`; `None` if it is too short.
    pub fn decode(bytes: &[u8], now: Timestamp) -> Option<Self> {
        let packet: &[u8; 16] = bytes.first_chunk()?;
        (bytes.len() >= BASE_LENGTH).then_some(())?;
        let error = ErrorEstimate(half(packet, 12));
        Some(Self {
            sequence: word(packet, 0),
            sent: time(long(packet, 4), error, now),
            error,
            session: half(packet, 14),
        })
    }
}

impl Reply {
    /// Returns the reply to a packet, as long as the packet. Extensions that are not known here have
    /// the flag `U`.
    pub fn encode(&self, request: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; BASE_LENGTH];
        bytes[0..4].copy_from_slice(&self.sequence.to_be_bytes());
        bytes[4..12].copy_from_slice(&ntp(self.sent));
        bytes[12..14].copy_from_slice(&self.error.0.to_be_bytes());
        bytes[14..16].copy_from_slice(&self.session.to_be_bytes());
        bytes[16..24].copy_from_slice(&ntp(self.received));
        // The fields of the request, unchanged.
        let of_request = request.get(..14).unwrap_or(&[0; 14]);
        bytes[24..38].copy_from_slice(of_request);
        bytes[40] = self.ttl;
        let mut rest = request.get(BASE_LENGTH..).unwrap_or_default();
        while let Some((header, after)) = rest.split_first_chunk::<TLV_HEADER>() {
            let length = usize::from(half(header, 2));
            let Some((value, next)) = after.split_at_checked(length) else {
                bytes.push(header[0] | MALFORMED);
                bytes.extend(&rest[1..]);
                return bytes;
            };
            match (header[1], self.follow_up) {
                (FOLLOW_UP, follow_up) if length == FOLLOW_UP_LENGTH => {
                    bytes.extend([0, FOLLOW_UP, header[2], header[3]]);
                    bytes.extend(follow_up.map_or([0; FOLLOW_UP_LENGTH], FollowUp::encode));
                }
                _ => {
                    bytes.push(header[0] | UNRECOGNIZED);
                    bytes.extend(&header[1..]);
                    bytes.extend(value);
                }
            }
            rest = next;
        }
        bytes.extend(rest);
        bytes
    }

    /// Reads a packet that arrived about `now`; `None` if it is too short.
    pub fn decode(bytes: &[u8], now: Timestamp) -> Option<Self> {
        let packet: &[u8; REPLY_LENGTH_MIN] = bytes.first_chunk()?;
        let (error, error_of_request) =
            (ErrorEstimate(half(packet, 12)), ErrorEstimate(half(packet, 36)));
        let value = follow_up(bytes.get(BASE_LENGTH..).unwrap_or_default());
        let follow_up = value.filter(|value| long(value, 4) != 0);
        Some(Self {
            sequence: word(packet, 0),
            sent: time(long(packet, 4), error, now),
            error,
            session: half(packet, 14),
            received: time(long(packet, 16), error, now),
            request: Request {
                sequence: word(packet, 24),
                sent: time(long(packet, 28), error_of_request, now),
                error: error_of_request,
                session: half(packet, 14),
            },
            ttl: packet[40],
            follows_up: value.is_some(),
            follow_up: follow_up.map(|value| FollowUp {
                sequence: word(&value, 0),
                sent: time(long(&value, 4), error, now),
            }),
        })
    }
}

impl FollowUp {
    fn encode(self) -> [u8; FOLLOW_UP_LENGTH] {
        let mut value = [0; FOLLOW_UP_LENGTH];
        value[0..4].copy_from_slice(&self.sequence.to_be_bytes());
        value[4..12].copy_from_slice(&ntp(self.sent));
        value[12] = SOFTWARE_STAMP;
        value
    }
}

/// Returns the value of the extension for exact departures, if the reflector knows it.
fn follow_up(mut rest: &[u8]) -> Option<[u8; FOLLOW_UP_LENGTH]> {
    while let Some((header, after)) = rest.split_first_chunk::<TLV_HEADER>() {
        let (value, next) = after.split_at_checked(usize::from(half(header, 2)))?;
        if header[1] == FOLLOW_UP && header[0] & (UNRECOGNIZED | MALFORMED) == 0 {
            return value.try_into().ok();
        }
        rest = next;
    }
    None
}

/// Encodes a time stamp as NTP does: seconds since 1900 modulo 2^32, and 32 bits of fraction.
fn ntp(time: Timestamp) -> [u8; 8] {
    let nanoseconds = time.as_nanos();
    let seconds = (nanoseconds.div_euclid(1_000_000_000) + NTP_EPOCH) as u32;
    let part = nanoseconds.rem_euclid(1_000_000_000) as u64;
    // Rounded, so that decoding gives the same nanosecond.
    let fraction = ((part << 32) + 500_000_000) / 1_000_000_000;
    (u64::from(seconds) << 32).wrapping_add(fraction).to_be_bytes()
}

/// Decodes a time stamp in the format that the error estimate names. The seconds are modulo 2^32, so
/// the time closest to `now` counts.
fn time(bits: u64, error: ErrorEstimate, now: Timestamp) -> Timestamp {
    let (seconds, low) = ((bits >> 32) as u32, bits & 0xffff_ffff);
    let (epoch, nanoseconds) = match error.0 & PTP_FORMAT {
        0 => (NTP_EPOCH, (low * 1_000_000_000 + (1 << 31)) >> 32),
        _ => (0, low),
    };
    let here = now.as_nanos().div_euclid(1_000_000_000);
    let difference = seconds.wrapping_sub((here + epoch) as u32) as i32;
    let seconds = here.saturating_add(i64::from(difference));
    Timestamp::from_nanos(seconds.saturating_mul(1_000_000_000)) + nanoseconds as i64
}

fn half(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |it| u16::from_be_bytes(*it))
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |it| u32::from_be_bytes(*it))
}

fn long(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |it| u64::from_be_bytes(*it))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOW: Timestamp = Timestamp::from_nanos(1_795_000_000_123_456_789);

    fn reply(follow_up: Option<FollowUp>) -> Reply {
        let error = ErrorEstimate::new(1_000.0, true);
        let request = Request { sequence: 7, sent: NOW, error, session: 99 };
        let (sent, received) = (NOW + 2_000, NOW + 1_001);
        Reply {
            sequence: 3,
            sent,
            error,
            session: 99,
            received,
            request,
            ttl: 64,
            follows_up: true,
            follow_up,
        }
    }

    #[test]
    fn packets_are_read_as_they_were_written() {
        let follow_up = Some(FollowUp { sequence: 2, sent: NOW + -10_000_001 });
        for reply in [reply(None), reply(follow_up)] {
            let request = reply.request.encode();
            assert_eq!(Request::decode(&request, NOW), Some(reply.request));
            let bytes = reply.encode(&request);
            assert_eq!(bytes.len(), request.len());
            assert_eq!(Reply::decode(&bytes, NOW + 1_000_000_000), Some(reply));
        }
    }

    #[test]
    fn reflector_returns_unknown_extensions_with_a_flag() {
        let base = reply(None).request.encode()[..BASE_LENGTH].to_vec();
        // Class of service, then a header whose value is missing.
        let bytes = [&base[..], &[0x80, 4, 0, 2, 9, 9, 0x80, 1, 0, 200]].concat();
        let reply = reply(None).encode(&bytes);
        assert_eq!(reply[BASE_LENGTH..], [0x80, 4, 0, 2, 9, 9, 0xc0, 1, 0, 200]);
        let padded = [&base[..], &[0; 3]].concat();
        assert_eq!(self::reply(None).encode(&padded).len(), padded.len());
    }

    #[test]
    fn reply_of_twamp_light_has_no_extensions() {
        let of_stamp = reply(None);
        let bytes = of_stamp.encode(&of_stamp.request.encode());
        let decoded = Reply::decode(&bytes[..REPLY_LENGTH_MIN], NOW);
        assert_eq!(decoded, Some(Reply { follows_up: false, ..of_stamp }));
        assert_eq!(Reply::decode(&bytes[..REPLY_LENGTH_MIN - 1], NOW), None);
    }

    #[test]
    fn time_stamps_of_ptp_and_of_the_next_era_are_read() {
        let estimate = ErrorEstimate(PTP_FORMAT | 1);
        let bits = 1_795_000_001_u64 << 32 | 5;
        assert_eq!(time(bits, estimate, NOW).as_nanos(), 1_795_000_001_000_000_005);
        // The seconds of NTP overflow in 2036.
        let later = Timestamp::from_nanos(2_100_000_000_000_000_001);
        let decoded = time(u64::from_be_bytes(ntp(later)), ErrorEstimate(1), later + -5);
        assert_eq!(decoded, later);
    }

    #[test]
    fn error_estimate_is_rounded_up() {
        for error in [0.0, 0.3, 1.0, 59.9, 60.0, 1e3, 1e6, 1e9, 3e12] {
            let estimate = ErrorEstimate::new(error, true);
            let decoded = estimate.error_ns().unwrap();
            assert!(decoded >= error && decoded <= error * 1.02 + 0.3, "{error} {decoded}");
            assert!(estimate.is_synchronized());
        }
        assert!(!ErrorEstimate::new(1.0, false).is_synchronized());
        assert_eq!(ErrorEstimate(0).error_ns(), None);
        assert!(ErrorEstimate::new(f64::INFINITY, false).error_ns().is_some());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>, now: i64) {
            let now = Timestamp::from_nanos(now);
            Request::decode(&bytes, now);
            Reply::decode(&bytes, now);
            prop_assert_eq!(reply(None).encode(&bytes).len(), bytes.len().max(BASE_LENGTH));
        }

        #[test]
        fn every_nanosecond_survives(nanoseconds in 0..4_000_000_000_000_000_000_i64) {
            let at = Timestamp::from_nanos(nanoseconds);
            prop_assert_eq!(time(u64::from_be_bytes(ntp(at)), ErrorEstimate(1), at), at);
        }
    }
}
