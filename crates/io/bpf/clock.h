/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Recognizes packets that compare clocks: STAMP, TWAMP and PTP. A receiver of test traffic passes
 * them to the kernel, which stamps them and gives them to their sockets.
 */
#ifndef WIRESTORM_CLOCK_H
#define WIRESTORM_CLOCK_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "neighbour.h"

enum {
	UDP = 17,
	UDP_HEADER_BYTES = 8,
	UDP_PORTS = 65536,
};

/* 1 for each UDP port whose datagrams belong to the kernel. Written before the program is attached. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, UDP_PORTS);
	__type(key, __u32);
	__type(value, __u8);
} clock_ports SEC(".maps");

static __always_inline int is_clock_port(const __u8 *bytes)
{
	__u32 port = bytes[0] << 8 | bytes[1];
	__u8 *listed = bpf_map_lookup_elem(&clock_ports, &port);

	return listed && *listed;
}

/* Recognizes datagrams from or to a listed port, without a signature. */
static __always_inline int is_for_clocks(struct xdp_md *context)
{
	__u8 *end = (__u8 *)(long)context->data_end;
	__u8 *packet, *udp;
	__u16 type = carried(context, &packet);

	if (type == ETHERTYPE_IPV4) {
		if (packet + IPV4_HEADER_BYTES > end || packet[PROTOCOL_OFFSET] != UDP ||
		    (packet[FRAGMENT_OFFSET] & FRAGMENT_BITS) | packet[FRAGMENT_OFFSET + 1])
			return 0;
		udp = packet + (packet[0] & 0x0f) * 4;
	} else if (type == ETHERTYPE_IPV6) {
		if (packet + IPV6_HEADER_BYTES > end || packet[NEXT_HEADER_OFFSET] != UDP)
			return 0;
		udp = packet + IPV6_HEADER_BYTES;
	} else {
		return 0;
	}
	if (udp + UDP_HEADER_BYTES > end || !(is_clock_port(udp) || is_clock_port(udp + 2)))
		return 0;
	return !has_signature(context);
}

#endif
