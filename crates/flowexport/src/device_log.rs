//! Figures that flow exporters log about themselves: the statistics of nprobe and softflowd.
//!
//! Both print names and numbers in lines for people. This reader knows the names; it takes the
//! number behind each, with its unit prefix. The last line with a name counts.

use alloc::collections::BTreeMap;
use alloc::string::String;

/// Figures by name.
pub type Figures = BTreeMap<String, f64>;

/// A name in a log, and the name of the figure.
type Name = (&'static str, &'static str);

/// Names of both programs, in lower case. A longer name comes before its start.
const NAMES: &[Name] = &[
    // softflowd: `softflowctl statistics`, and the log at the end.
    ("number of active flows:", "active_flows"),
    ("packets processed:", "processed_packets"),
    ("fragments:", "fragments"),
    ("ignored packets:", "ignored_packets"),
    ("flows expired:", "expired_flows"),
    ("flows exported:", "exported_flows"),
    ("packets received by libpcap:", "pcap_received"),
    ("packets dropped by libpcap:", "pcap_dropped"),
    ("packets dropped by interface:", "interface_dropped"),
    ("flow records exported:", "exported_records"),
    // nprobe: every 30 s.
    ("average traffic: [", "average_pps"),
    ("current traffic: [", "current_pps"),
    ("flow export rate: [", "export_rate"),
    ("export queue too long=", "drops_queue"),
    ("export queue full=", "drops_queue"),
    ("too many flows=", "drops_flows"),
    ("export queue: ", "export_queue"),
    ("[active=", "active_buckets"),
    ("active flows buckets: ", "active_buckets"),
    ("processed packets: ", "processed_packets"),
    ("max bucket search: ", "max_bucket_search"),
];

/// Reads the figures of a log.
pub fn read(text: &str) -> Figures {
    let mut figures = Figures::new();
    for line in text.lines() {
        let line = line.to_ascii_lowercase();
        for (needle, name) in NAMES {
            let behind = line.find(needle).and_then(|at| line.get(at + needle.len()..));
            if let Some(value) = behind.and_then(number) {
                figures.insert((*name).into(), value);
            }
        }
        if let Some((received, dropped)) = packets_of_pcap(&line) {
            figures.insert("pcap_received".into(), received);
            figures.insert("pcap_dropped".into(), dropped);
        }
    }
    figures
}

/// Reads `13100072/234355 pkts rcvd/dropped` of nprobe.
fn packets_of_pcap(line: &str) -> Option<(f64, f64)> {
    let before = line.get(..line.find(" pkts rcvd/dropped")?)?;
    let pair = before.rsplit([' ', ':', '[']).next()?;
    let (received, dropped) = pair.split_once('/')?;
    Some((received.parse().ok()?, dropped.parse().ok()?))
}

/// Reads the number at the start of a text, with digit groups, decimals and the prefixes k, M, G.
fn number(text: &str) -> Option<f64> {
    let text = text.trim_start();
    let end = text.find(|it: char| !it.is_ascii_digit() && it != '.' && it != ',');
    let (digits, rest) = text.split_at(end.unwrap_or(text.len()));
    let digits: String = digits.chars().filter(|it| *it != ',').collect();
    let value: f64 = digits.trim_end_matches('.').parse().ok()?;
    let factor = match rest.trim_start().as_bytes() {
        // A prefix stands before its unit, as in `1.870 M pps`.
        [b'k', b' ' | b'p' | b'f', ..] => 1e3,
        [b'm', b' ' | b'p' | b'f', ..] => 1e6,
        [b'g', b' ' | b'p' | b'f', ..] => 1e9,
        _ => 1.0,
    };
    Some(value * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_of_softflowd() {
        let figures = read(
            "softflowd[4242]: Accumulated statistics since 2026-11-27T00:00:00 UTC:\n\
             Number of active flows: 12\n\
             Packets processed: 23183007\n\
             Ignored packets: 9 (9 non-IP, 0 too short)\n\
             Flows exported: 2034300 (4068600 records) in 70000 packets (0 failures)\n\
             Packets received by libpcap: 23200000\n\
             Packets dropped by libpcap: 17000\n",
        );
        assert_eq!(figures["active_flows"], 12.0);
        assert_eq!(figures["processed_packets"], 23_183_007.0);
        assert_eq!(figures["ignored_packets"], 9.0);
        assert_eq!(figures["exported_flows"], 2_034_300.0);
        assert_eq!(figures["pcap_dropped"], 17_000.0);
    }

    #[test]
    fn statistics_of_nprobe() {
        let figures = read(
            "Average traffic: [1.870 M pps][6 Gb/sec]\n\
             Current traffic: [569.089 K pps][2 Gb/sec]\n\
             Current flow export rate: [0.0 flows/sec]\n\
             Flow drops: [export queue too long=3][too many flows=4]\n\
             Export Queue: 17/512000 [0.0 %]\n\
             Flow Buckets: [active=749448][allocated=749448][toBeExported=0]\n\
             Processed packets: 13,089,188 (max bucket search: 162)\n\
             Pcap: 13100072/234355 pkts rcvd/dropped [1.8%]\n",
        );
        assert_eq!((figures["average_pps"], figures["current_pps"]), (1_870_000.0, 569_089.0));
        assert_eq!((figures["export_rate"], figures["export_queue"]), (0.0, 17.0));
        assert_eq!((figures["drops_queue"], figures["drops_flows"]), (3.0, 4.0));
        assert_eq!(figures["active_buckets"], 749_448.0);
        assert_eq!(figures["processed_packets"], 13_089_188.0);
        assert_eq!(figures["max_bucket_search"], 162.0);
        assert_eq!((figures["pcap_received"], figures["pcap_dropped"]), (13_100_072.0, 234_355.0));
    }

    #[test]
    fn last_line_counts_and_other_text_is_ignored() {
        let figures = read("Packets processed: 1\nnothing\nPackets processed: 2\nFragments: x\n");
        assert_eq!(figures.len(), 1);
        assert_eq!(figures["processed_packets"], 2.0);
    }
}
