/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Copies frames that arrive on an interface into a ring that a process reads: short frames whole,
 * long frames only the beginning. It runs where the veth's sender or the driver delivers frames.
 * The reader is not woken for a frame while another one waits.
 */
#include <stddef.h>
#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

/* Set before loading: longest frame that is copied whole. */
const volatile __u32 whole_max = 1518;
/* Set before loading: 1 to drop TCP and UDP after copying. The host then has no address on this
 * interface, so no socket could receive them. */
const volatile __u32 ends_here = 0;

enum {
	ETHERNET_BYTES = 14,
	ETHERTYPE_IPV4 = 0x0800,
	ETHERTYPE_IPV6 = 0x86dd,
	PROTOCOL_OFFSET = ETHERNET_BYTES + 9,
	NEXT_HEADER_OFFSET = ETHERNET_BYTES + 6,
	TCP = 6,
	UDP = 17,
	CHECKSUM_NONE = 0,
};

/* Return codes of the program (`enum tcx_action_base`, which headers before Linux 6.6 lack). */
enum { PASSES_ON = -1, ENDS = 2 };

/* Bytes copied of a longer frame, enough for all headers. Most frames are no longer than this. */
enum { BEGINNING_BYTES = 240 };

/* Header of each frame in the ring; `Arrived` in src/af_packet/offload/ingress.rs. */
struct arrival {
	__u32 length;
	__u16 present; /* bytes of the frame that follow */
	__u16 segment_data;
	__u16 tag_kind; /* TPID of the VLAN tag that the kernel removed; 0: none */
	__u16 tag;
	__u8 is_verified;
	__u8 padding[3];
};

struct short_record {
	struct arrival arrival;
	__u8 frame[BEGINNING_BYTES];
};

/* The only field that this program reads of the kernel's struct. */
struct sk_buff {
	__u8 ip_summed : 2;
} __attribute__((preserve_access_index));

/* The process sets the size before loading. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 22);
} arrivals SEC(".maps");

/* Frames that did not fit into the ring. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} missed SEC(".maps");

static __always_inline void describe(struct __sk_buff *context, struct arrival *arrival,
				     __u32 present)
{
	struct sk_buff *buffer = (void *)context;

	arrival->length = context->len;
	arrival->present = present;
	arrival->segment_data = context->gso_size;
	arrival->tag_kind = context->vlan_present ? bpf_ntohs(context->vlan_proto) : 0;
	arrival->tag = context->vlan_tci;
	arrival->is_verified = BPF_CORE_READ_BITFIELD_PROBED(buffer, ip_summed) != CHECKSUM_NONE;
}

static __always_inline int put(struct __sk_buff *context)
{
	__u32 length = context->len;

	if (length == 0)
		return 0;
	if (length <= BEGINNING_BYTES || length > whole_max) {
		__u32 present = length < BEGINNING_BYTES ? length : BEGINNING_BYTES;
		struct short_record *record = bpf_ringbuf_reserve(&arrivals, sizeof(*record), 0);

		if (!record)
			return -1;
		describe(context, &record->arrival, present);
		if (bpf_skb_load_bytes(context, 0, record->frame, present)) {
			bpf_ringbuf_discard(record, 0);
			return -1;
		}
		bpf_ringbuf_submit(record, 0);
		return 0;
	}

	struct arrival *record = bpf_ringbuf_reserve(&arrivals, sizeof(*record) + whole_max, 0);

	if (!record)
		return -1;
	describe(context, record, length);
	if (bpf_skb_load_bytes(context, 0, record + 1, length)) {
		bpf_ringbuf_discard(record, 0);
		return -1;
	}
	bpf_ringbuf_submit(record, 0);
	return 0;
}

static __always_inline int is_for_ports(struct __sk_buff *context)
{
	__u32 protocol = bpf_ntohs(context->protocol);
	__u8 next = 0;

	if (protocol == ETHERTYPE_IPV4)
		bpf_skb_load_bytes(context, PROTOCOL_OFFSET, &next, 1);
	else if (protocol == ETHERTYPE_IPV6)
		bpf_skb_load_bytes(context, NEXT_HEADER_OFFSET, &next, 1);
	return next == TCP || next == UDP;
}

SEC("classifier")
int ingress(struct __sk_buff *context)
{
	if (put(context)) {
		__u32 zero = 0;
		__u64 *count = bpf_map_lookup_elem(&missed, &zero);

		if (count)
			__sync_fetch_and_add(count, 1);
	}
	return ends_here && is_for_ports(context) ? ENDS : PASSES_ON;
}

char _license[] SEC("license") = "Dual MIT/GPL";
