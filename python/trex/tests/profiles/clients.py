from trex.stl.api import *


class Clients:
    """A burst from many clients, then one from a few, measured."""

    def get_streams(self, direction=0, port_id=0, **kwargs):
        base = Ether(src="02:00:00:00:00:01") / Dot1Q(vlan=100) / IP() / UDP(sport=5000, dport=9)
        many = STLVM()
        many.var("client", "16.0.0.10", "16.0.0.19", size=4, op="inc", step=2)
        many.var("port", None, None, size=2, op="dec", value_list=[7, 9, 11])
        many.write("client", "IP.src")
        many.write("client", "Ether.src", offset_fixup=2)
        many.write("port", "UDP.sport", add_val=1000)
        many.write_mask("port", "802|1Q.vlan", pkt_cast_size=2, mask=0x0FFF)
        many.fix_chksum()
        few = STLScVmRaw(
            [
                STLVmTupleGen("pair", "16.0.1.1", "16.0.1.4", 2000, 2009, limit_flows=40),
                STLVmWrFlowVar("pair.ip", "IP.src"),
                STLVmWrFlowVar("pair.port", "UDP.sport"),
                STLVmFixChecksumHw("IP", "UDP", CTRexVmInsFixHwCs.L4_TYPE_UDP),
            ],
            cache_size=20,
        )
        return [
            STLStream(
                name="many",
                next="few",
                packet=STLPktBuilder(pkt=base, vm=many),
                mode=STLTXSingleBurst(total_pkts=30, percentage=10),
            ),
            STLStream(
                name="few",
                self_start=False,
                isg=12.5,
                packet=STLPktBuilder(pkt=base / ("x" * 20), vm=few),
                mode=STLTXMultiBurst(pkts_per_burst=5, ibg=100.0, count=3, pps=50),
                flow_stats=STLFlowStats(pg_id=40 + port_id),
            ),
        ]


def register():
    return Clients()
