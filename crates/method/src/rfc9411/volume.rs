//! Estimated volume of a connection in frames, for the first trial of a throughput test. Later
//! trials use the volume that was measured.

use crate::connections::TrafficClass;

/// TCP payload of a full segment: an MSS of 1460 bytes without the timestamps option.
const SEGMENT: u64 = 1448;
/// Ethernet header and FCS, IPv4 and TCP headers with timestamps.
const HEADERS: u64 = 18 + 20 + 32;
/// Head of a request and of its response.
const MESSAGE_HEADS: u64 = 110 + 115;
/// Bytes of a full TLS handshake with an ECDSA certificate.
const TLS_HANDSHAKE: u64 = 1_800;
/// Payload of a TLS record, and what the record adds.
const TLS_RECORD: u64 = 16_384;
const TLS_RECORD_OVERHEAD: u64 = 24;

/// Returns the estimated bits of layer 2 of a connection in both directions.
pub fn bits_per_connection(class: &TrafficClass) -> f64 {
    let overhead = |bytes: u64| match class.tls {
        Some(_) => TLS_RECORD_OVERHEAD * (1 + bytes.div_ceil(TLS_RECORD)),
        None => 0,
    };
    // Each transaction: a request, the segments of the response, and an acknowledgement for each
    // second one.
    let transaction = |bytes: u64| {
        let payload = bytes + MESSAGE_HEADS + overhead(bytes);
        let segments = payload.div_ceil(SEGMENT);
        payload + HEADERS * (1 + segments + segments / 2)
    };
    let transactions: u64 =
        class.objects.iter().map(|&size| transaction(u64::from(size))).sum::<u64>()
            * u64::from(class.rounds);
    // Three segments open the connection and four close it.
    let handshake = if class.tls.is_some() { TLS_HANDSHAKE + 4 * HEADERS } else { 0 };
    ((transactions + handshake + 7 * HEADERS) * 8) as f64
}
