/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * The frames by which hosts find each other and ask whether they are there: ARP, ICMPv6 neighbour
 * discovery, and pings. A receiver of test traffic leaves them to the kernel.
 */
#ifndef WIRESTORM_NEIGHBOUR_H
#define WIRESTORM_NEIGHBOUR_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

enum {
	ETHERTYPE_IPV4 = 0x0800,
	ETHERTYPE_ARP = 0x0806,
	ETHERTYPE_IPV6 = 0x86dd,
	ICMP = 1,
	ICMPV6 = 58,
	ECHO_REPLY = 0,
	ECHO_REQUEST = 8,
	ECHO_REQUEST_V6 = 128,
	ECHO_REPLY_V6 = 129,
	ROUTER_SOLICITATION = 133,
	REDIRECT = 137,
	HOP_LIMIT_OFFSET = 14 + 7,
	NEXT_HEADER_OFFSET = 14 + 6,
	ICMPV6_TYPE_OFFSET = 14 + 40,
	PROTOCOL_OFFSET = 14 + 9,
	ICMP_TYPE_OFFSET = 14 + 20,
	SIGNATURE_BYTES = 18,
	SIGNATURE_MAGIC = 0x5753,
};

static __always_inline int is_for_neighbours(struct xdp_md *context)
{
	__u8 *data = (__u8 *)(long)context->data;
	__u8 *end = (__u8 *)(long)context->data_end;

	if (data + 14 > end)
		return 0;

	__u16 type = (__u16)(data[12] << 8 | data[13]);

	if (type == ETHERTYPE_ARP)
		return 1;
	if (type != ETHERTYPE_IPV6 || data + ICMPV6_TYPE_OFFSET + 1 > end)
		return 0;
	/* RFC 4861 section 7.1: a hop limit of 255 says that no router has forwarded it. */
	return data[NEXT_HEADER_OFFSET] == ICMPV6 && data[HOP_LIMIT_OFFSET] == 255 &&
	       data[ICMPV6_TYPE_OFFSET] >= ROUTER_SOLICITATION &&
	       data[ICMPV6_TYPE_OFFSET] <= REDIRECT;
}

/* Echo requests and replies that carry no signature: those of others, or of this host. */
static __always_inline int is_ping(struct xdp_md *context)
{
	__u8 *data = (__u8 *)(long)context->data;
	__u8 *end = (__u8 *)(long)context->data_end;
	__u8 magic[2];

	if (data + ICMPV6_TYPE_OFFSET + 1 > end)
		return 0;

	__u16 type = (__u16)(data[12] << 8 | data[13]);
	__u8 icmp = data[ICMP_TYPE_OFFSET];
	__u8 icmpv6 = data[ICMPV6_TYPE_OFFSET];
	/* Without options, as pings are. */
	int is_ipv4 = type == ETHERTYPE_IPV4 && data[14] == 0x45 && data[PROTOCOL_OFFSET] == ICMP &&
		      (icmp == ECHO_REQUEST || icmp == ECHO_REPLY);
	int is_ipv6 = type == ETHERTYPE_IPV6 && data[NEXT_HEADER_OFFSET] == ICMPV6 &&
		      (icmpv6 == ECHO_REQUEST_V6 || icmpv6 == ECHO_REPLY_V6);

	if (!is_ipv4 && !is_ipv6)
		return 0;
	if (bpf_xdp_load_bytes(context, bpf_xdp_get_buff_len(context) - SIGNATURE_BYTES, magic, 2))
		return 1;
	return (magic[0] << 8 | magic[1]) != SIGNATURE_MAGIC;
}

#endif
