/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Sends the frames of a resident capture, in order and in loops. Part of send.bpf.c.
 */
#ifndef WIRESTORM_CAPTURED_SEND_H
#define WIRESTORM_CAPTURED_SEND_H

#include "captured.h"

/* Set before loading. */
const volatile __u32 has_capture = 0;

/* The process sets the number of entries of these before loading. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct captured);
} captured_map SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct captured_gap);
} gap_map SEC(".maps");

enum { PORT_FIRST = 1024, PORTS = 65536 - PORT_FIRST };

/* Frames without due times between two looks at the clock, for the end. */
enum { LIMIT_FRAMES = 32 };

/* Returns `bytes` bytes of the page from an offset on; 0 if the page ends before. */
static __always_inline void *bytes_at(struct xdp_md *context, __u32 offset, __u32 bytes)
{
	__u8 *at = (__u8 *)(long)context->data + (offset & 0xfff);

	return at + bytes > (__u8 *)(long)context->data_end ? 0 : at;
}

/* Same as wirestorm_engine::replay::unique::addresses_in_iteration. */
static __always_inline void move_addresses(__u32 *source, __u32 *destination, __u32 n)
{
	__u32 *larger = source;
	__u32 *smaller = destination;

	if (bpf_ntohl(*destination) > bpf_ntohl(*source)) {
		larger = destination;
		smaller = source;
	}

	__u32 before_up = bpf_ntohl(*larger);
	__u32 before_down = bpf_ntohl(*smaller);
	__u32 up = before_up + n;
	__u32 down = before_down - n;
	__u32 up_wrapped = up < before_up;
	__u32 down_wrapped = down > before_down;

	*larger = bpf_htonl(up + (up_wrapped & !down_wrapped));
	*smaller = bpf_htonl(down - (down_wrapped & !up_wrapped));
}

/* Same as wirestorm_engine::replay::render::move_port. */
static __always_inline void move_port(struct xdp_md *context, const struct captured *frame,
				      __u64 iteration)
{
	__u16 *ports = bytes_at(context, frame->ports, 4);

	if (!ports)
		return;

	__u32 source = bpf_ntohs(ports[0]);
	__u32 destination = bpf_ntohs(ports[1]);
	__u32 place = source >= destination ? 0 : 1;
	__u32 old = place ? destination : source;
	__u32 new = old;

	if (old >= PORT_FIRST)
		new = PORT_FIRST + (old - PORT_FIRST + iteration % PORTS) % PORTS;
	if (place)
		ports[1] = bpf_htons(new);
	else
		ports[0] = bpf_htons(new);
	if (!(frame->flags & HAS_CHECKSUM))
		return;

	__u16 *checksum = bytes_at(context, frame->checksum, 2);

	if (!checksum)
		return;

	/* RFC 1624, equation 3. */
	__u32 sum = (__u16)~bpf_ntohs(*checksum);

	sum += (__u16)~old + new;
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (__u16)~sum;
	if (!sum && frame->flags & NEVER_ZERO)
		sum = 0xffff;
	*checksum = bpf_htons(sum);
}

/* Goes on to the next frame. */
static __always_inline void next_captured(struct capture_side *capture, __u32 place)
{
	__u64 next = place + 1;

	if (is_timed) {
		const struct captured_gap *gap = bpf_map_lookup_elem(&gap_map, &place);

		if (gap) {
			__u64 rest = capture->rest + gap->rest;
			__u64 carry = rest >= capture->units;

			capture->rest = rest - (carry ? capture->units : 0);
			capture->due += gap->gap + carry;
		}
	}
	if (next >= capture->frames) {
		next = 0;
		capture->pass++;
		if (capture->passes_milli)
			capture->iteration = capture->pass * 1000 / capture->passes_milli;
	}
	capture->next = next;
}

/* Sends the next frame of the capture, unless one of the ring departs before. Returns an XDP action,
 * or -1: the capture has ended. */
static __always_inline int send_captured(struct xdp_md *context, struct ring *ring,
					 __u64 ring_departs)
{
	struct resident_side *resident = &ring->resident;
	struct capture_side *capture = &ring->capture;
	struct kernel_side *kernel = &ring->kernel;

	if (!resident->sending || !resident->left)
		return -1;

	__u32 place = capture->next;
	const struct captured *frame = bpf_map_lookup_elem(&captured_map, &place);

	if (!frame)
		return -1;

	enum admission admission = SEND;

	if (is_timed) {
		if (capture->due >= resident->until) {
			*(volatile __u64 *)&resident->sending = 0;
			return -1;
		}
		if (ring_departs <= capture->due)
			return -1;
		admission = admit(ring, bpf_ktime_get_ns(), capture->due);
		if (admission == WAIT) {
			kernel->idle_turns++;
			return XDP_DROP;
		}
	} else if (resident->left % LIMIT_FRAMES == 0 && bpf_ktime_get_ns() >= resident->until) {
		*(volatile __u64 *)&resident->sending = 0;
		return -1;
	}

	__u64 iteration = capture->iteration;

	*(volatile __u64 *)&resident->left = resident->left - 1;
	next_captured(capture, place);
	if (admission == LEAVE_OUT) {
		kernel->unsent++;
		return XDP_DROP;
	}

	__u32 length = frame->length;
	int more = (int)length - (int)template_bytes;
	const __u8 *bytes = stored_at(frame->source);

	if (!bytes || length < 14 || length > FRAME_BYTES_MAX ||
	    (more > 0 && bpf_xdp_adjust_tail(context, more)) || fill(context, bytes, length)) {
		kernel->refused++;
		return XDP_DROP;
	}
	if (iteration && frame->flags & MOVES_ADDRESSES) {
		__u32 *source = bytes_at(context, frame->source_address, 4);
		__u32 *destination = bytes_at(context, frame->destination_address, 4);

		if (source && destination)
			move_addresses(source, destination, iteration);
		if (frame->flags & MOVES_PORTS)
			move_port(context, frame, iteration);
	}
	if (more < 0 && bpf_xdp_adjust_tail(context, more)) {
		kernel->refused++;
		return XDP_DROP;
	}
	return redirect(kernel, length);
}

#endif
