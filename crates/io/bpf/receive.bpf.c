/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Redirects the frames of a receive queue to the AF_XDP socket bound to it, each preceded by its
 * arrival time. Frames of queues without a socket pass to the network stack. So do datagrams that
 * compare clocks, and neighbour discovery, PTP and pings if `passes_neighbours` is set.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "clock.h"
#include "neighbour.h"

/* Set before loading: 1 to pass ARP, PTP, neighbour discovery and pings to the kernel. */
const volatile __u32 passes_neighbours = 0;

/* Highest number of receive queues of an interface. */
enum { QUEUES_MAX = 1024 };

/* Header directly before a frame: nanoseconds of CLOCK_MONOTONIC. */
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

	/* Look up the socket first: a frame for the network stack must stay unmodified. */
	if (!bpf_map_lookup_elem(&sockets, &queue))
		return XDP_PASS;
	if (passes_neighbours && (is_for_neighbours(context) || is_ping(context)))
		return XDP_PASS;
	if (is_for_clocks(context))
		return XDP_PASS;
	if (bpf_xdp_adjust_meta(context, -(int)sizeof(struct arrival)) == 0) {
		struct arrival *arrival = (void *)(long)context->data_meta;

		if ((void *)(arrival + 1) <= (void *)(long)context->data)
			arrival->nanoseconds = bpf_ktime_get_ns();
	}
	return bpf_redirect_map(&sockets, queue, XDP_PASS);
}

char _license[] SEC("license") = "Dual MIT/GPL";
