/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Hands the frames of a receive queue to the AF_XDP socket bound to it, each with its time of
 * arrival in front. Frames of queues without a socket go on to the kernel's network stack, and
 * so do, where that is asked for, those of neighbour discovery and pings.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "neighbour.h"

/* Set before loading: whether the kernel gets the frames by which hosts find out where to send, and
 * ask each other whether they are there. */
const volatile __u32 passes_neighbours = 0;

/* Receive queues of one interface. */
enum { QUEUES_MAX = 1024 };

/* What stands right before a frame: nanoseconds of CLOCK_MONOTONIC. */
struct arrival {
	__u64 nanoseconds;
};

struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__uint(max_entries, QUEUES_MAX);
	__type(key, __u32);
	__type(value, __u32);
} sockets SEC(".maps");

SEC("xdp")
int receive(struct xdp_md *context)
{
	__u32 queue = context->rx_queue_index;

	/* Asked first, so that a frame for the network stack is left exactly as it came. */
	if (!bpf_map_lookup_elem(&sockets, &queue))
		return XDP_PASS;
	if (passes_neighbours && (is_for_neighbours(context) || is_ping(context)))
		return XDP_PASS;
	if (bpf_xdp_adjust_meta(context, -(int)sizeof(struct arrival)) == 0) {
		struct arrival *arrival = (void *)(long)context->data_meta;

		if ((void *)(arrival + 1) <= (void *)(long)context->data)
			arrival->nanoseconds = bpf_ktime_get_ns();
	}
	return bpf_redirect_map(&sockets, queue, XDP_PASS);
}

char _license[] SEC("license") = "Dual MIT/GPL";
