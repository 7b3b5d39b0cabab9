/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * The counting receiver: counts and drops frames. It passes ARP, PTP, ICMPv6 neighbour discovery,
 * pings and datagrams that compare clocks to the kernel as well. So a device under test can resolve
 * the addresses of this interface and ping it.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "clock.h"
#include "histogram.h"
#include "neighbour.h"

/* Set before loading: 1 to time every arrival, 0 to time one in 32. */
const volatile __u32 times_all = 0;

struct arrivals {
	__u64 packets;
	__u64 bytes;
	__u64 neighbour_packets;
	__u64 first; /* CLOCK_MONOTONIC in ns */
	__u64 last;
	__u64 gap_max;
	__u64 gaps[HISTOGRAM_BUCKETS];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct arrivals);
} arrivals_map SEC(".maps");

SEC("xdp.frags")
int count(struct xdp_md *context)
{
	__u32 zero = 0;
	struct arrivals *arrivals = bpf_map_lookup_elem(&arrivals_map, &zero);

	if (!arrivals)
		return XDP_ABORTED;

	__u64 number = arrivals->packets++;

	arrivals->bytes += bpf_xdp_get_buff_len(context);
	if (times_all || number < 64 || number % 32 == 0) {
		__u64 now = bpf_ktime_get_ns();

		if (!number)
			arrivals->first = now;
		else if (times_all) {
			__u64 gap = now - arrivals->last;
			__u32 bucket = bucket_of(gap);

			if (bucket < HISTOGRAM_BUCKETS)
				arrivals->gaps[bucket]++;
			if (gap > arrivals->gap_max)
				arrivals->gap_max = gap;
		}
		arrivals->last = now;
	}
	if (is_for_neighbours(context)) {
		arrivals->neighbour_packets++;
		return XDP_PASS;
	}
	return is_ping(context) || is_for_clocks(context) ? XDP_PASS : XDP_DROP;
}

char _license[] SEC("license") = "Dual MIT/GPL";
