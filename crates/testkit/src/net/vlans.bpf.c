/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Adds the VLAN tag INNER, and the service VLAN tag OUTER unless it is 0, to frames that the kernel
 * sends, and removes them on receive. Does the work of VLAN devices on kernels without them.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

SEC("tc/push")
int push(struct __sk_buff *frame)
{
	/* Frames built by a process, as with a packet socket, carry their own tags. */
	if (frame->protocol != bpf_htons(ETH_P_IP) && frame->protocol != bpf_htons(ETH_P_ARP) &&
	    frame->protocol != bpf_htons(ETH_P_IPV6))
		return TC_ACT_UNSPEC;
	if (bpf_skb_vlan_push(frame, bpf_htons(ETH_P_8021Q), INNER))
		return TC_ACT_SHOT;
	if (OUTER && bpf_skb_vlan_push(frame, bpf_htons(ETH_P_8021AD), OUTER))
		return TC_ACT_SHOT;
	return TC_ACT_UNSPEC;
}

SEC("tc/pop")
int pop(struct __sk_buff *frame)
{
	if (!frame->vlan_present || (frame->vlan_tci & 0xfff) != (OUTER ? OUTER : INNER))
		return TC_ACT_UNSPEC;
	if (bpf_skb_vlan_pop(frame))
		return TC_ACT_SHOT;
	return OUTER && bpf_skb_vlan_pop(frame) ? TC_ACT_SHOT : TC_ACT_UNSPEC;
}

char _license[] SEC("license") = "Dual MIT/GPL";
