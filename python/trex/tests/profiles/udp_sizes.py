import argparse

from trex_stl_lib.api import *


class UdpSizes:
    """A stream for each size. The direction exchanges the ends."""

    def get_streams(self, direction, tunables, **kwargs):
        parser = argparse.ArgumentParser()
        parser.add_argument("--sizes", default="60,1514")
        arguments = parser.parse_args(tunables)
        ends = ("10.1.0.1", "10.2.0.1")
        streams = []
        for size in map(int, arguments.sizes.split(",")):
            packet = Ether() / IP(src=ends[direction], dst=ends[1 - direction]) / UDP(dport=9)
            packet = packet / (b"w" * (size - len(packet)))
            streams.append(STLStream(packet=STLPktBuilder(pkt=packet), mode=STLTXCont(pps=size)))
        return streams


def register():
    return UdpSizes()
