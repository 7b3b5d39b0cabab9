"""A user's script for TRex: both directions between two ports, and the lost frames."""

import sys

from trex_stl_lib.api import *


def packet(size, src, dst):
    base = Ether() / IP(src=src, dst=dst) / UDP(dport=12, sport=1025)
    vm = [
        STLVmFlowVar(name="src", min_value=src, max_value="10.0.0.254", size=4, op="inc"),
        STLVmWrFlowVar(fv_name="src", pkt_offset="IP.src"),
        STLVmFixIpv4(offset="IP"),
    ]
    return STLPktBuilder(pkt=base / (max(0, size - len(base)) * "x"), vm=vm)


def main():
    client = STLClient()
    try:
        client.connect()
        client.reset(ports=[0, 1])
        there = STLStream(packet=packet(64, "10.0.0.1", "10.0.1.1"), mode=STLTXCont(pps=100))
        back = STLStream(
            packet=packet(64, "10.0.0.2", "10.0.1.2"), isg=1000, mode=STLTXCont(pps=100)
        )
        client.add_streams(there, ports=[0])
        client.add_streams(back, ports=[1])
        client.clear_stats()
        client.start(ports=[0, 1], mult="5kpps", duration=1)
        client.wait_on_traffic(ports=[0, 1])
        stats = client.get_stats()
        print(json.dumps({"warnings": [str(one) for one in client.get_warnings()], **stats[0]}))
        print("lost", stats[0]["opackets"] - stats[1]["ipackets"])
        print("lost", stats[1]["opackets"] - stats[0]["ipackets"])
        return 0
    except STLError as error:
        print(error)
        return 1
    finally:
        client.disconnect()


if __name__ == "__main__":
    sys.exit(main())
