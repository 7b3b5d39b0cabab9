from trex.stl.trex_stl_hltapi import STLHltStream


class Ranges:
    def get_streams(self, direction=0, **kwargs):
        return STLHltStream(
            l3_protocol="ipv4",
            ip_src_addr="10.0.0.1",
            ip_src_mode="increment",
            ip_src_count=4,
            ip_dst_addr="10.9.0.1",
            vlan_id="5 6",
            l4_protocol="tcp",
            tcp_syn_flag=1,
            tcp_ack_flag=1,
            tcp_dst_port_mode="decrement",
            tcp_dst_port_count=3,
            frame_size=100,
            rate_pps=10,
            direction=direction,
        )


def register():
    return Ranges()
