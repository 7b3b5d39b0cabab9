"""The packet of a stream: its bytes, and the program that changes them."""

from __future__ import annotations

import base64
import binascii
import inspect
import os
from abc import ABC, abstractmethod
from typing import Any

from scapy.layers.l2 import Ether
from scapy.packet import Packet, Padding
from scapy.utils import RawPcapReader, hexdump, wrpcap

from trex.arguments import validate_type
from trex.errors import CTRexPacketBuildException, TRexError
from trex.files import reading, writing
from trex.stl.instructions import CTRexVmInsBase
from trex.stl.layout import PacketLayout
from trex.stl.variables import CTRexVmDescBase, HasLayout
from trex.stl.vm import STLScVmRaw, program_from_json


class CTrexPktBuilderInterface(ABC):
    """Interface of a packet for its stream."""

    @abstractmethod
    def compile(self) -> None:
        """Compiles the packet and the program to bytes and instructions."""

    @abstractmethod
    def dump_pkt(self, encode: bool = True) -> dict[str, Any]:
        """Returns the stream's `packet` member."""

    @abstractmethod
    def get_vm_data(self) -> dict[str, Any]:
        """Returns the stream's `vm` member."""


class STLPktBuilder(CTrexPktBuilderInterface, HasLayout):
    """A packet from scapy, a capture (its first record) or bytes, with a program.

    :param pkt: scapy packet, or path of a capture
    :param pkt_buffer: frame without FCS
    :param path_relative_to_profile: the path is relative to the profile whose `get_streams` is
        running
    :param build_raw: dissect a captured packet at once, instead of when the program uses a field
        name
    :param remove_fcs: drop the bytes behind the IP length of a dissected packet
    """

    def __init__(
        self,
        pkt: Packet | str | None = None,
        pkt_buffer: bytes | None = None,
        vm: STLScVmRaw | list[CTRexVmDescBase] | None = None,
        path_relative_to_profile: bool = False,
        build_raw: bool = False,
        remove_fcs: bool = True,
    ) -> None:
        validate_type("pkt", pkt, (type(None), str, Packet))
        validate_type("pkt_buffer", pkt_buffer, (type(None), bytes))
        if pkt is not None and pkt_buffer is not None:
            raise CTRexPacketBuildException(-15, "pkt and pkt_buffer exclude each other")
        if not isinstance(vm, (type(None), STLScVmRaw, list)):
            raise CTRexPacketBuildException(-14, f"vm is a program, not {vm!r}")
        self.pkt: Packet | None = None
        self.pkt_raw: bytes | None = pkt_buffer
        self.path_relative_to_profile = path_relative_to_profile
        self.remove_fcs = remove_fcs
        self.is_binary_source = pkt_buffer is not None
        self.vm_scripts: list[STLScVmRaw] = []
        self._instructions: list[CTRexVmInsBase] | None = None
        self._layout: PacketLayout | None = None
        if pkt is not None:
            self.set_packet(pkt)
        if vm is not None:
            self.add_command(vm if isinstance(vm, STLScVmRaw) else STLScVmRaw(vm))
        if build_raw and self.pkt_raw is not None:
            self.layout()
        if self.vm_scripts and (self.pkt is not None or self.pkt_raw is not None):
            self.compile()

    def set_packet(self, pkt: Packet | str) -> None:
        """Sets a scapy packet, or the first packet of a capture."""
        if isinstance(pkt, Packet):
            self.pkt = pkt
            self._layout = None
        elif isinstance(pkt, str):
            self.set_pcap_file(pkt)
        else:
            raise CTRexPacketBuildException(-14, f"{pkt!r} is neither a packet nor a path")

    def set_pkt_as_str(self, pkt_buffer: bytes) -> None:
        """Sets the bytes of a frame without FCS."""
        validate_type("pkt_buffer", pkt_buffer, bytes)
        self.pkt_raw = pkt_buffer
        self._layout = None

    def set_pcap_file(self, pcap_file: str) -> None:
        """Sets the first packet of a capture."""
        path = self._capture_path(pcap_file)
        with reading(path), RawPcapReader(path) as reader:
            for record, _ in reader:
                self.set_pkt_as_str(record)
                return
        raise CTRexPacketBuildException(-14, f"{path} has no packet")

    def add_command(self, script: STLScVmRaw) -> None:
        """Adds a copy of a program, so that one program can serve many packets."""
        self.vm_scripts.append(script.clone())
        self._instructions = None

    def compile(self) -> None:
        self._packet()
        self._instructions = [i for script in self.vm_scripts for i in script.instructions(self)]

    def layout(self) -> PacketLayout:
        """Layout of the packet. Dissects a packet that is given as bytes."""
        if self._layout is None:
            if self.pkt is None:
                self.pkt = Ether(self._packet())
                self.pkt_raw = None
            if self.remove_fcs and isinstance(self.pkt.lastlayer(), Padding):
                self.pkt.lastlayer().underlayer.remove_payload()
            self._layout = PacketLayout(self.pkt)
        return self._layout

    def to_json(self) -> dict[str, Any]:
        """Returns the stream's `packet` and `vm` members."""
        return {"packet": self.dump_pkt(), "vm": self.get_vm_data()}

    @staticmethod
    def from_json(json_data: dict[str, Any]) -> STLPktBuilder:
        """Creates the packet and program from a stream's document."""
        try:
            frame = base64.b64decode(json_data["packet"]["binary"], validate=True)
            return STLPktBuilder(pkt_buffer=frame, vm=program_from_json(json_data["vm"]))
        except (binascii.Error, TypeError) as error:
            raise TRexError(f"packet.binary is not base64: {error}") from error
        except KeyError as missing:
            raise TRexError(f"packet or vm has no {missing}") from missing

    def dump_pkt(self, encode: bool = True) -> dict[str, Any]:
        frame = self._bytes()
        return {"binary": base64.b64encode(frame).decode() if encode else frame, "meta": ""}

    def get_vm_data(self) -> dict[str, Any]:
        if self._instructions is None:
            self.compile()
        data: dict[str, Any] = {"instructions": [i.to_json() for i in self._instructions or ()]}
        for script in self.vm_scripts:
            if script.cache_size:
                data["cache"] = script.cache_size
        return data

    def get_pkt_len(self) -> int:
        """Returns the length of the frame without FCS."""
        return len(self._bytes())

    def is_default_src_mac(self) -> bool:
        """Returns whether the packet leaves the source MAC address to the port."""
        return self._is_unset("src")

    def is_default_dst_mac(self) -> bool:
        """Returns whether the packet leaves the destination MAC address to the port."""
        return self._is_unset("dst")

    def pkt_layers_desc(self) -> str:
        """Returns the names of the headers: `Ethernet:IP:UDP:Raw`."""
        return self.pkt_layers_desc_from_buffer(self._bytes())

    @staticmethod
    def pkt_layers_desc_from_buffer(pkt_buf: bytes) -> str:
        """Returns the names of a frame's headers."""
        return PacketLayout(Ether(pkt_buf)).description()

    def to_pkt_dump(self) -> None:
        """Prints the packet's fields and its bytes."""
        packet = self._packet()
        (packet if isinstance(packet, Packet) else Ether(packet)).show2()
        hexdump(packet)

    def dump_as_hex(self) -> None:
        """Prints the packet's bytes."""
        hexdump(self._bytes())

    def dump_pkt_to_pcap(self, file_path: str) -> None:
        """Writes the packet to a capture with one record."""
        with writing(file_path):
            wrpcap(file_path, Ether(self._bytes()))

    def dump_vm_data_as_yaml(self) -> None:
        """Prints the program."""
        import yaml

        print(yaml.safe_dump(self.get_vm_data(), default_flow_style=False))

    dump_scripts = dump_vm_data_as_yaml

    def _packet(self) -> Packet | bytes:
        packet = self.pkt if self.pkt is not None else self.pkt_raw
        if packet is None:
            raise CTRexPacketBuildException(-14, "there is no packet to build")
        return packet

    def _bytes(self) -> bytes:
        return bytes(self._packet())

    def _is_unset(self, address: str) -> bool:
        if self.is_binary_source or not isinstance(self.pkt, Ether):
            return True
        return address not in self.pkt.fields

    def _capture_path(self, path: str) -> str:
        profile = _running_profile() if self.path_relative_to_profile else None
        if profile is None or os.path.isabs(path):
            return path
        return os.path.abspath(os.path.join(os.path.dirname(profile), path))


def _running_profile() -> str | None:
    """Returns the file of the `get_streams` that is running."""
    frame = inspect.currentframe()
    while frame is not None:
        if frame.f_code.co_name == "get_streams":
            return frame.f_code.co_filename
        frame = frame.f_back
    return None
