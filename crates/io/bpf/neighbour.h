/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * The frames by which neighbours find each other: ARP, and ICMPv6 neighbour discovery.
 */
#ifndef WIRESTORM_NEIGHBOUR_H
#define WIRESTORM_NEIGHBOUR_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

enum {
	ETHERTYPE_ARP = 0x0806,
	ETHERTYPE_IPV6 = 0x86dd,
	ICMPV6 = 58,
	ROUTER_SOLICITATION = 133,
	REDIRECT = 137,
	HOP_LIMIT_OFFSET = 14 + 7,
	NEXT_HEADER_OFFSET = 14 + 6,
	ICMPV6_TYPE_OFFSET = 14 + 40,
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

#endif
