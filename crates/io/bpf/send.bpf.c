/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * The in-kernel sender. It runs inside one long BPF_PROG_TEST_RUN with live frames: the kernel
 * passes it recycled frames as fast as it returns them. Each iteration makes the next frame of a
 * resident stream or capture, or fills a frame from the ring, and redirects it to the interface. If no frame
 * is due, it returns XDP_DROP.
 */
#include <linux/bpf.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "departure.h"
#include "ring.h"

/* Set before loading. */
const volatile __u32 template_bytes = 0;
const volatile __u32 sender_thread = 0;
/* Distance in bytes between the starts of two buffers. */
const volatile __u32 buffer_distance = 0;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ring);
} ring_map SEC(".maps");

/* The interface. A lookup by its index would take 3 ns a frame more. */
struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} interface_map SEC(".maps");

/* The process sets the number of slabs before loading. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, SLAB_DISTANCE);
} store_map SEC(".maps");

enum { PREFETCH_FRAMES = 16, DESCRIPTORS_PER_LINE = 4, STAMP_BYTES = 8 };

/* Returns the address of a frame in the store; FRAME_BYTES_MAX bytes are readable there. */
static __always_inline const __u8 *stored_at(__u32 source)
{
	__u32 slab = source >> SLAB_SHIFT & (SLABS_MAX - 1);
	const __u8 *bytes = bpf_map_lookup_elem(&store_map, &slab);

	if (!bytes)
		return 0;
	/* Keeps the compiler from adding before the check, which the verifier would reject. */
	asm volatile("" : "+r"(bytes));
	return bytes + (source & (SLAB_BYTES - 1));
}

/* Returns the address of a descriptor's frame; FRAME_BYTES_MAX bytes are readable there. */
static __always_inline const __u8 *source_of(struct ring *ring, const struct descriptor *descriptor)
{
	__u32 source = descriptor->source;

	if (source & STORED)
		return stored_at(source);

	__u64 start = (__u64)descriptor->buffer * buffer_distance;

	if (start >= BUFFERS_BYTES)
		return 0;
	asm volatile("" : "+r"(start));
	return ring->buffers + start;
}

/* Prefetches the first words of the frames from a position on, and of the descriptors behind
 * theirs. The process wrote these cache lines on another core. Loads issued back to back overlap;
 * with one load an iteration, every iteration would wait for its own. The values are not used. */
static __always_inline void prefetch(struct ring *ring, __u64 position)
{
	for (int ahead = 0; ahead < PREFETCH_FRAMES; ahead += DESCRIPTORS_PER_LINE) {
		__u64 place = (position + PREFETCH_FRAMES + ahead) & (RING_DESCRIPTORS - 1);

		(void)*(const volatile __u64 *)&ring->descriptors[place];
	}
#pragma unroll
	for (int ahead = 0; ahead < PREFETCH_FRAMES; ahead++) {
		__u64 place = (position + ahead) & (RING_DESCRIPTORS - 1);
		const volatile __u64 *line =
			(const volatile __u64 *)source_of(ring, &ring->descriptors[place]);

		if (line)
			(void)*line;
	}
}

/* Copies a frame into the page. The page is longer than any frame at this point. So short frames
 * are copied in whole cache lines, several times as fast as by the helper. */
static __always_inline int fill(struct xdp_md *context, const __u8 *buffer, __u32 length)
{
	__u64 *to = (__u64 *)(long)context->data;
	__u64 *end = (__u64 *)(long)context->data_end;
	const __u64 *from = (const __u64 *)buffer;

	if (length > 128 || to + 16 > end)
		return bpf_xdp_store_bytes(context, 0, (void *)buffer, length);
#pragma unroll
	for (int word = 0; word < 8; word++)
		to[word] = from[word];
	if (length > 64) {
#pragma unroll
		for (int word = 8; word < 16; word++)
			to[word] = from[word];
	}
	return 0;
}

/* Writes the departure time into the last 8 bytes of a frame: 48 bits, then a word that keeps the
 * checksum unchanged (RFC 1624), whatever the byte order of the sum. The page is still longer than
 * the frame. */
static __always_inline void stamp(struct xdp_md *context, __u32 length)
{
	__u8 *data = (__u8 *)(long)context->data;
	__u8 *end = (__u8 *)(long)context->data_end;
	__u32 offset = (length - STAMP_BYTES) & 0xfff;
	__u16 *words = (__u16 *)(data + offset);
	__u64 now = bpf_ktime_get_ns();
	__u16 high = bpf_htons((__u16)(now >> 32));
	__u16 middle = bpf_htons((__u16)(now >> 16));
	__u16 low = bpf_htons((__u16)now);
	__u32 sum;

	if ((__u8 *)(words + STAMP_BYTES / 2) > end)
		return;
	/* Add the old values of the first three words to the last word, and subtract the new
	 * values. */
	sum = (__u32)words[3] + words[0] + words[1] + words[2];
	sum += (__u16)~high + (__u16)~middle + (__u16)~low;
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	words[0] = high;
	words[1] = middle;
	words[2] = low;
	words[3] = sum;
}

/* Redirects a frame to the interface. */
static __always_inline int redirect(struct kernel_side *kernel, __u32 length)
{
	int action = bpf_redirect_map(&interface_map, 0, XDP_ABORTED);

	if (action == XDP_REDIRECT) {
		kernel->redirected++;
		kernel->redirected_bytes += length;
	} else {
		kernel->refused++;
	}
	return action;
}

#include "resident_send.h"
#include "captured_send.h"

SEC("xdp")
int send(struct xdp_md *context)
{
	__u32 zero = 0;
	struct ring *ring = bpf_map_lookup_elem(&ring_map, &zero);

	if (!ring)
		return XDP_ABORTED;

	struct kernel_side *kernel = &ring->kernel;
	__u64 consumed = kernel->consumed;

	__u64 queued = *(volatile __u64 *)&ring->user.produced - consumed;
	struct descriptor *descriptor = &ring->descriptors[consumed & (RING_DESCRIPTORS - 1)];

	if ((shapes_count || has_capture) && *(volatile __u64 *)&ring->user.resident) {
		__u64 ring_departs = queued ? descriptor->departure : -1ull;
		int action = has_capture ? send_captured(context, ring, ring_departs) :
					   send_resident(context, ring, ring_departs);

		if (action >= 0)
			return action;
	}
	if (!queued) {
		kernel->idle_turns++;
		return XDP_DROP;
	}

	__u64 departure = descriptor->departure;
	__u32 stamped = descriptor->length & STAMPED;
	__u32 length = descriptor->length & ~STAMPED;
	int action = XDP_DROP;

	if (*(volatile __u64 *)&ring->user.abort) {
		kernel->unsent++;
		goto consume;
	}
	if (departure) {
		enum admission admission = admit(ring, bpf_ktime_get_ns(), departure);

		if (admission == WAIT)
			return XDP_DROP;
		if (admission == LEAVE_OUT) {
			kernel->unsent++;
			goto consume;
		}
	}
	if (consumed % PREFETCH_FRAMES == 0 && queued >= 2 * PREFETCH_FRAMES)
		prefetch(ring, consumed + PREFETCH_FRAMES);

	const __u8 *frame = source_of(ring, descriptor);
	int more = (int)length - (int)template_bytes;

	if (!frame || length < 14 || length > FRAME_BYTES_MAX ||
	    (more > 0 && bpf_xdp_adjust_tail(context, more)) || fill(context, frame, length)) {
		kernel->refused++;
		goto consume;
	}
	if (stamped)
		stamp(context, length);
	if (more < 0 && bpf_xdp_adjust_tail(context, more)) {
		kernel->refused++;
		goto consume;
	}
	action = redirect(kernel, length);
consume:
	*(volatile __u64 *)&kernel->consumed = consumed + 1;
	return action;
}

/* Counts what the interface's driver did with redirected frames. It runs in the sender's own
 * thread, once for each bulk of at most 16. Arguments: from_dev, to_dev, sent, drops, err. */
SEC("raw_tp/xdp_devmap_xmit")
int device_transmit(struct bpf_raw_tracepoint_args *context)
{
	__u32 zero = 0;
	struct ring *ring;

	if ((__u32)bpf_get_current_pid_tgid() != sender_thread)
		return 0;
	ring = bpf_map_lookup_elem(&ring_map, &zero);
	if (!ring)
		return 0;
	ring->device.sent += (__s32)context->args[2];
	ring->device.dropped += (__s32)context->args[3];
	if ((__s32)context->args[4])
		ring->device.last_error = (__u64)-(__s64)(__s32)context->args[4];
	return 0;
}

char _license[] SEC("license") = "Dual MIT/GPL";
