/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * When a frame departs, and the record of it: the rules of wirestorm_base::departure.
 */
#ifndef WIRESTORM_DEPARTURE_H
#define WIRESTORM_DEPARTURE_H

#include <linux/types.h>
#include <bpf/bpf_helpers.h>

#include "ring.h"

enum { BOUNDED = 0, STRICT = 1, STRETCH = 2 };
enum { GAP_TOLERANCE_DIVISOR = 10 };
/* See wirestorm_base::departure. */
enum { REGAIN_SPAN_SHIFT = 25, GAP_DIVISOR_MAX = 8, REGAIN_DIVISOR_MAX = 128 };
#define REGAIN_SPAN (1ull << REGAIN_SPAN_SHIFT)
#define REGAIN_GAP_MAX (1ull << 39)

/* Set before loading. */
const volatile __u32 catch_up = BOUNDED;
const volatile __u64 backlog = 1000000;

static __always_inline void departed(struct ring *ring, __u64 now, __u64 due, __u64 lateness)
{
	struct kernel_side *kernel = &ring->kernel;

	if (lateness > kernel->lateness_max)
		kernel->lateness_max = lateness;
	if (kernel->timed) {
		__u64 gap = now - kernel->last;
		__u64 scheduled = due > kernel->due_before ? due - kernel->due_before : 0;
		__u64 error = gap > scheduled ? gap - scheduled : scheduled - gap;
		__u32 bucket = bucket_of(gap);

		if (bucket < HISTOGRAM_BUCKETS)
			ring->gaps[bucket]++;
		bucket = bucket_of(error);
		if (bucket < HISTOGRAM_BUCKETS)
			ring->gap_errors[bucket]++;
		if (gap > kernel->gap_max)
			kernel->gap_max = gap;
		if (error > kernel->gap_error_max)
			kernel->gap_error_max = error;
	} else {
		kernel->first = now;
	}
	kernel->timed++;
	kernel->last = now;
	kernel->due_before = due;
}

enum admission { SEND, WAIT, LEAVE_OUT };

/* Same as wirestorm_base::departure::gap_part. */
static __always_inline __u64 gap_part(__u64 gap, __u64 delay)
{
	__u64 share = delay;

	if (share < REGAIN_SPAN / REGAIN_DIVISOR_MAX)
		share = REGAIN_SPAN / REGAIN_DIVISOR_MAX;
	if (share > REGAIN_SPAN - REGAIN_SPAN / GAP_DIVISOR_MAX)
		share = REGAIN_SPAN - REGAIN_SPAN / GAP_DIVISOR_MAX;
	if (gap > REGAIN_GAP_MAX)
		gap = REGAIN_GAP_MAX;

	__u64 part = (gap * share >> REGAIN_SPAN_SHIFT) + 1;

	return part < delay ? part : delay;
}

/* Same as wirestorm_base::departure::Departures::admit, line by line. */
static __always_inline enum admission admit(struct ring *ring, __u64 now, __u64 scheduled)
{
	struct kernel_side *kernel = &ring->kernel;
	__u64 due = scheduled + kernel->start_delay + kernel->shifted - kernel->regained;

	if (now < due)
		return WAIT;

	__u64 lateness = now - due;

	if (!kernel->timed) {
		kernel->start_delay = lateness;
		departed(ring, now, now, 0);
		return SEND;
	}

	__u64 gap = due > kernel->due_before ? due - kernel->due_before : 0;
	__u64 tolerance = gap / GAP_TOLERANCE_DIVISOR;

	if (catch_up == BOUNDED) {
		__u64 excess = lateness > backlog ? lateness - backlog : 0;

		kernel->shifted += excess;
		departed(ring, now, due + excess, lateness);
		if (gap && kernel->regained < kernel->shifted) {
			__u64 part = gap_part(gap, kernel->shifted - kernel->regained);

			kernel->regained += part;
			kernel->due_before -= part;
		}
		return SEND;
	}
	if (catch_up == STRICT && lateness > backlog)
		return LEAVE_OUT;
	if (now < kernel->last + gap - tolerance)
		return WAIT;
	if (catch_up == STRETCH && lateness > tolerance) {
		kernel->shifted += lateness;
		due += lateness;
	}
	departed(ring, now, due, lateness);
	return SEND;
}

#endif
