/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Chooses the resident stream whose frame is next. Part of send.bpf.c.
 *
 * The program of its shape then makes the frame. One stream without due times needs no choice: its
 * program runs first, and calls the ring's program if the stream has ended.
 */
#ifndef WIRESTORM_RESIDENT_SEND_H
#define WIRESTORM_RESIDENT_SEND_H

#include "resident.h"

/* Set before loading. */
const volatile __u32 shapes_count = 0;
/* Whether frames have due times. */
const volatile __u32 is_timed = 0;

/* The process sets the number of entries of these before loading. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct stream);
} stream_map SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct turn);
} turn_map SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct value);
} value_map SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, PROGRAMS_MAX);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} program_map SEC(".maps");

static __always_inline struct turn *turn_at(__u32 place)
{
	return bpf_map_lookup_elem(&turn_map, &place);
}

static __always_inline int is_before(const struct turn *a, const struct turn *b)
{
	return a->due < b->due || (a->due == b->due && a->stream < b->stream);
}

/* Puts a turn in place of the first of `count`, and restores the order of the heap. */
static __always_inline void sink(__u32 count, struct turn turn)
{
	__u32 place = 0;

	for (int level = 0; level < HEAP_LEVELS; level++) {
		__u32 child = 2 * place + 1;

		if (child >= count)
			break;

		struct turn *first = turn_at(child);
		struct turn *second = child + 1 < count ? turn_at(child + 1) : 0;

		if (second && first && is_before(second, first)) {
			first = second;
			child++;
		}
		if (!first || !is_before(first, &turn))
			break;

		struct turn *at = turn_at(place);

		if (at)
			*at = *first;
		place = child;
	}

	struct turn *at = turn_at(place);

	if (at)
		*at = turn;
}

/* Removes a turn: the last one takes its place. Returns the number of turns. */
static __always_inline __u32 remove(struct resident_side *resident, struct turn *turn)
{
	__u32 sending = resident->sending - 1;
	struct turn *last = turn_at(sending);

	if (last)
		*turn = *last;
	*(volatile __u64 *)&resident->sending = sending;
	return sending;
}

/* Advances the stream whose turn it is to its next due time. */
static __always_inline void next_by_time(struct resident_side *resident, struct turn *turn,
					 struct stream *stream)
{
	__u32 sending = resident->sending;
	struct turn next = *turn;

	if (stream->left) {
		__u64 rest = stream->rest + stream->gap_rest;
		__u64 carry = rest >= stream->units;

		stream->rest = rest - (carry ? stream->units : 0);
		stream->due += stream->gap + carry;
		next.due = stream->due;
	} else {
		sending = remove(resident, turn);
		next = *turn;
	}
	sink(sending, next);
}

/* Gives the turn to the next stream if this one has sent its share. */
static __always_inline void next_in_circle(struct resident_side *resident, struct turn *turn,
					   struct stream *stream)
{
	__u64 place = resident->turn;
	__u64 sending = resident->sending;

	if (!stream->left)
		sending = remove(resident, turn);
	else if (--resident->turn_left)
		return;
	else
		place++;
	resident->turn_left = TURN_FRAMES;
	resident->turn = place < sending ? place : 0;
}

/* Sends the next frame of the resident streams, unless one of the ring departs before. Returns an
 * XDP action, or -1: no stream has its turn. */
static __always_inline int send_resident(struct xdp_md *context, struct ring *ring,
					 __u64 ring_departs)
{
	struct resident_side *resident = &ring->resident;

	if (!resident->sending || !resident->left)
		return -1;

	struct turn *turn = turn_at(is_timed ? 0 : resident->turn);

	if (!turn)
		return -1;

	__u32 number = turn->stream;
	struct stream *stream = bpf_map_lookup_elem(&stream_map, &number);

	if (!stream)
		return -1;
	if (is_timed) {
		if (ring_departs <= stream->due)
			return -1;

		__u64 now = bpf_ktime_get_ns();
		enum admission admission = admit(ring, now, stream->due);

		if (admission == WAIT) {
			ring->kernel.idle_turns++;
			return XDP_DROP;
		}
		resident->time = now;
		resident->leaves_out = admission == LEAVE_OUT;
	} else if (resident->left % CLOCK_FRAMES == 0) {
		resident->time = bpf_ktime_get_ns();
		if (resident->time >= resident->until) {
			*(volatile __u64 *)&resident->sending = 0;
			return -1;
		}
	}
	resident->left--;
	stream->left--;
	resident->stream = number;
	if (is_timed)
		next_by_time(resident, turn, stream);
	else
		next_in_circle(resident, turn, stream);
	if (shapes_count == 1)
		bpf_tail_call(context, &program_map, PROGRAM_SHAPES);
	else
		bpf_tail_call(context, &program_map, PROGRAM_SHAPES + stream->shape);
	/* The process has put a program there for each shape. */
	ring->kernel.refused++;
	return XDP_ABORTED;
}

#endif
