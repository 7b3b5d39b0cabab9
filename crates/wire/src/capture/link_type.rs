//! Link types of captures.

use core::fmt;

/// Link type of a record, as numbered in <https://www.tcpdump.org/linktypes.html>.
///
/// Any number is valid; the constants are the named types.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkType(pub u32);

/// Declares the named constants and the table of their names.
macro_rules! link_types {
    ($($constant:ident = $number:literal, $meaning:literal;)*) => {
        impl LinkType {
            $(
                #[doc = $meaning]
                pub const $constant: Self = Self($number);
            )*

            /// Returns the registry's name without its prefix, such as `EN10MB`; `None` for other
            /// types.
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($number => Some(stringify!($constant)),)*
                    _ => None,
                }
            }
        }
    };
}

link_types! {
    NULL = 0, "BSD loopback: a 4-byte address family in the order of the capturing machine.";
    EN10MB = 1, "Ethernet, without FCS unless the interface says otherwise.";
    EXP_ETHERNET = 2, "Experimental Ethernet of 3 Mb/s.";
    IEEE802_5 = 6, "Token ring.";
    ARCNET = 7, "ARCNET.";
    SLIP = 8, "SLIP.";
    PPP = 9, "PPP, with or without the HDLC-like frame of RFC 1662.";
    FDDI = 10, "FDDI.";
    RAW_BSD = 12, "Raw IP, by the number that most systems use internally and some wrote to files.";
    RAW_OPENBSD = 14, "Raw IP, by the number that OpenBSD uses.";
    PPP_SERIAL = 50, "PPP in HDLC-like framing, RFC 1662, or Cisco HDLC.";
    PPP_ETHER = 51, "PPPoE session packets without their Ethernet header.";
    ATM_RFC1483 = 100, "LLC-encapsulated ATM, RFC 1483.";
    RAW = 101, "Raw IP: the packet begins with an IPv4 or IPv6 header.";
    C_HDLC = 104, "Cisco PPP with HDLC framing, RFC 1547 section 4.3.1.";
    IEEE802_11 = 105, "IEEE 802.11 without radio information.";
    FRELAY = 107, "Frame relay.";
    LOOP = 108, "OpenBSD loopback: a 4-byte address family in network order.";
    LINUX_SLL = 113, "Linux cooked capture, version 1: a 16-byte header.";
    LTALK = 114, "Apple LocalTalk.";
    PFLOG = 117, "OpenBSD firewall log.";
    PRISM_HEADER = 119, "Prism monitor header before IEEE 802.11.";
    IP_OVER_FC = 122, "IP over Fibre Channel, RFC 2625.";
    IEEE802_11_RADIOTAP = 127, "Radiotap header before IEEE 802.11.";
    APPLE_IP_OVER_IEEE1394 = 138, "IP over IEEE 1394.";
    MTP2 = 140, "SS7 MTP level 2.";
    MTP3 = 141, "SS7 MTP level 3.";
    DOCSIS = 143, "DOCSIS MAC frames.";
    USER0 = 147, "Private use.";
    USER1 = 148, "Private use.";
    USER2 = 149, "Private use.";
    USER3 = 150, "Private use.";
    USER4 = 151, "Private use.";
    USER5 = 152, "Private use.";
    USER6 = 153, "Private use.";
    USER7 = 154, "Private use.";
    USER8 = 155, "Private use.";
    USER9 = 156, "Private use.";
    USER10 = 157, "Private use.";
    USER11 = 158, "Private use.";
    USER12 = 159, "Private use.";
    USER13 = 160, "Private use.";
    USER14 = 161, "Private use.";
    USER15 = 162, "Private use.";
    IEEE802_11_AVS = 163, "AVS header before IEEE 802.11.";
    PPP_PPPD = 166, "PPP with a direction byte from pppd.";
    JUNIPER_ETHER = 178, "Ethernet behind Juniper's meta-information header.";
    BLUETOOTH_HCI_H4 = 187, "Bluetooth HCI UART.";
    USB_LINUX = 189, "USB with a Linux header.";
    PPI = 192, "Per-Packet Information header.";
    IEEE802_15_4_WITHFCS = 195, "IEEE 802.15.4 with FCS.";
    ERF = 197, "Endace ERF records.";
    BLUETOOTH_HCI_H4_WITH_PHDR = 201, "Bluetooth HCI UART with a direction header.";
    PPP_WITH_DIR = 204, "PPP with a direction byte.";
    MPLS = 219, "A packet that begins with an MPLS label.";
    USB_LINUX_MMAPPED = 220, "USB with a padded Linux header.";
    CAN_SOCKETCAN = 227, "CAN frames with a SocketCAN header.";
    IPV4 = 228, "Raw IPv4.";
    IPV6 = 229, "Raw IPv6.";
    IEEE802_15_4_NOFCS = 230, "IEEE 802.15.4 without FCS.";
    DBUS = 231, "D-Bus messages.";
    NFLOG = 239, "Linux netfilter log.";
    NETANALYZER = 240, "Hilscher netANALYZER Ethernet.";
    NETANALYZER_TRANSPARENT = 241, "Hilscher netANALYZER Ethernet with preamble.";
    IPOIB = 242, "IP over InfiniBand.";
    INFINIBAND = 247, "InfiniBand.";
    USBPCAP = 249, "USB with a USBPcap header.";
    NETLINK = 253, "Linux netlink messages.";
    PKTAP = 258, "Apple packet tap.";
    VSOCK = 271, "Linux virtual sockets.";
    NORDIC_BLE = 272, "Nordic Bluetooth Low Energy sniffer.";
    ETHERNET_MPACKET = 274, "IEEE 802.3br mPackets.";
    LINUX_SLL2 = 276, "Linux cooked capture, version 2: a 20-byte header.";
    IEEE802_15_4_TAP = 283, "IEEE 802.15.4 with a TAP header.";
}

impl fmt::Display for LinkType {
    /// Formats as name and number: `LINUX_SLL (113)`, or `link type 60000` without a name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{name} ({})", self.0),
            None => write!(f, "link type {}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn a_link_type_shows_its_name_and_number() {
        assert_eq!(LinkType::LINUX_SLL.to_string(), "LINUX_SLL (113)");
        assert_eq!(LinkType(162).to_string(), "USER15 (162)");
        assert_eq!(LinkType(60_000).to_string(), "link type 60000");
    }
}
