/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Recognizes ARP, PTP over Ethernet, ICMPv6 neighbour discovery and pings, with or without VLAN tags.
 * A receiver of test traffic passes these frames to the kernel.
 */
#ifndef WIRESTORM_NEIGHBOUR_H
#define WIRESTORM_NEIGHBOUR_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

enum {
	ETHERTYPE_IPV4 = 0x0800,
	ETHERTYPE_ARP = 0x0806,
	ETHERTYPE_VLAN = 0x8100,
	ETHERTYPE_IPV6 = 0x86dd,
	ETHERTYPE_PTP = 0x88f7,
	ETHERTYPE_SERVICE_VLAN = 0x88a8,
	ICMP = 1,
	FRAGMENT_V6 = 44,
	ICMPV6 = 58,
	ECHO_REPLY = 0,
	ECHO_REQUEST = 8,
	ECHO_REQUEST_V6 = 128,
	ECHO_REPLY_V6 = 129,
	ROUTER_SOLICITATION = 133,
	REDIRECT = 137,
	TAGS_MAX = 2,
	/* Offset of the EtherType in the frame. */
	TYPE_OFFSET = 12,
	/* Offset of the packet behind the EtherType of the frame or of its last tag. */
	TYPE_BYTES = 2,
	TAG_BYTES = 4,
	/* Offsets within a packet. */
	HOP_LIMIT_OFFSET = 7,
	NEXT_HEADER_OFFSET = 6,
	IPV6_HEADER_BYTES = 40,
	PROTOCOL_OFFSET = 9,
	FRAGMENT_OFFSET = 6,
	/* More fragments, and the upper bits of the fragment offset (RFC 791 section 3.1). */
	FRAGMENT_BITS = 0x3f,
	IPV4_HEADER_BYTES = 20,
	SIGNATURE_BYTES = 18,
	SIGNATURE_MAGIC = 0x5753,
};

/*
 * Returns the EtherType of a frame behind at most two VLAN tags, and sets `packet` to what follows
 * it. Returns 0 if the frame is too short. VLAN offload and a veth move the first tag out of the
 * frame; then there is one tag less to skip.
 */
static __always_inline __u16 carried(struct xdp_md *context, __u8 **packet)
{
	__u8 *end = (__u8 *)(long)context->data_end;
	__u8 *at = (__u8 *)(long)context->data + TYPE_OFFSET;

#pragma unroll
	for (int tags = 0; tags <= TAGS_MAX; tags++) {
		if (at + TYPE_BYTES > end)
			return 0;

		__u16 type = (__u16)(at[0] << 8 | at[1]);

		if (type != ETHERTYPE_VLAN && type != ETHERTYPE_SERVICE_VLAN) {
			*packet = at + TYPE_BYTES;
			return type;
		}
		at += TAG_BYTES;
	}
	return 0;
}

static __always_inline int is_for_neighbours(struct xdp_md *context)
{
	__u8 *end = (__u8 *)(long)context->data_end;
	__u8 *packet;
	__u16 type = carried(context, &packet);

	if (type == ETHERTYPE_ARP || type == ETHERTYPE_PTP)
		return 1;
	if (type != ETHERTYPE_IPV6 || packet + IPV6_HEADER_BYTES + 1 > end)
		return 0;
	/* RFC 4861 section 7.1: a hop limit of 255 proves that no router has forwarded the packet.
	 * */
	return packet[NEXT_HEADER_OFFSET] == ICMPV6 && packet[HOP_LIMIT_OFFSET] == 255 &&
	       packet[IPV6_HEADER_BYTES] >= ROUTER_SOLICITATION &&
	       packet[IPV6_HEADER_BYTES] <= REDIRECT;
}

/* Returns whether a frame ends in a signature, as the frames of measured flows do. */
static __always_inline int has_signature(struct xdp_md *context)
{
	__u8 magic[2];

	if (bpf_xdp_load_bytes(context, bpf_xdp_get_buff_len(context) - SIGNATURE_BYTES, magic, 2))
		return 0;
	return (magic[0] << 8 | magic[1]) == SIGNATURE_MAGIC;
}

/*
 * Recognizes echo requests and replies without a signature: those of other hosts, or of this host.
 * The message type of a fragment is unknown, so all ICMP fragments count.
 */
static __always_inline int is_ping(struct xdp_md *context)
{
	__u8 *end = (__u8 *)(long)context->data_end;
	__u8 *packet, *icmp;
	__u16 type = carried(context, &packet);

	if (type == ETHERTYPE_IPV4) {
		if (packet + IPV4_HEADER_BYTES > end || packet[PROTOCOL_OFFSET] != ICMP)
			return 0;
		if ((packet[FRAGMENT_OFFSET] & FRAGMENT_BITS) | packet[FRAGMENT_OFFSET + 1])
			return 1;
		/* RFC 791 section 3.1: the header length is in words of four bytes. */
		icmp = packet + (packet[0] & 0x0f) * 4;
		if (icmp + 1 > end || (*icmp != ECHO_REQUEST && *icmp != ECHO_REPLY))
			return 0;
	} else if (type == ETHERTYPE_IPV6) {
		icmp = packet + IPV6_HEADER_BYTES;
		if (icmp + 1 > end)
			return 0;
		/* RFC 8200 section 4.5: the fragment header starts with the next header number. */
		if (packet[NEXT_HEADER_OFFSET] == FRAGMENT_V6)
			return *icmp == ICMPV6;
		if (packet[NEXT_HEADER_OFFSET] != ICMPV6 ||
		    (*icmp != ECHO_REQUEST_V6 && *icmp != ECHO_REPLY_V6))
			return 0;
	} else {
		return 0;
	}
	return !has_signature(context);
}

#endif
