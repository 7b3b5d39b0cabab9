"""Profiles: the streams of a port, and the files that define them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import yaml

from trex.capture_file import TimedPacket
from trex.errors import TRexArgumentError, TRexError
from trex.files import reading, writing
from trex.loader import find_function, registered
from trex.stl.modes import STLTXCont, STLTXSingleBurst
from trex.stl.packet_builder import STLPktBuilder
from trex.stl.pcap import PCAPReader
from trex.stl.streams import STLStream, STLStreamDstMAC_CFG_FILE, STLStreamDstMAC_PKT
from trex.tunables import call_with_tunables, defaults_of

PacketHook = Callable[[bytes], bytes]

_IPG_USEC_MIN = 0.001
# Delay in microseconds before the first packet of a split capture, so that both sides are ready.
_START_DELAY_USEC = 1000.0
_DELAY_STREAM = "delay_stream"


class STLProfile:
    """Streams that are loaded together. `meta` describes their origin."""

    def __init__(self, streams: list[STLStream] | STLStream | None = None) -> None:
        if streams is None:
            streams = []
        if not isinstance(streams, (list, tuple)):
            streams = [streams]
        for stream in streams:
            if not isinstance(stream, STLStream):
                raise TRexArgumentError("streams", stream, "an STLStream or a list of them")
        self.streams = list(streams)
        self.meta: dict[str, Any] | None = None

    def __len__(self) -> int:
        return len(self.streams)

    def __str__(self) -> str:
        return "\n".join(map(str, self.streams))

    def get_streams(self) -> list[STLStream]:
        """Returns the streams."""
        return self.streams

    def is_pauseable(self) -> bool:
        """Returns whether all streams are continuous."""
        continuous = str(STLTXCont())
        return all(stream.get_mode() == continuous for stream in self.streams)

    def has_custom_mac_addr(self) -> bool:
        """Returns whether a stream has a MAC address other than the port's."""
        return any(stream.has_custom_mac_addr() for stream in self.streams)

    def has_flow_stats(self) -> bool:
        """Returns whether a stream is measured."""
        return any(stream.has_flow_stats() for stream in self.streams)

    @staticmethod
    def load(
        filename: str, direction: int = 0, port_id: int = 0, **kwargs: Any
    ) -> STLProfile | None:
        """Loads a file by its suffix: `.py`, `.json`, `.yaml`, `.pcap` or `.cap`.

        A capture is replayed with one second between packets. `load_pcap` has more options.
        """
        suffix = os.path.splitext(filename)[1]
        profile: STLProfile | None
        if suffix == ".py":
            profile = STLProfile.load_py(filename, direction, port_id, **kwargs)
        elif suffix == ".json":
            profile = STLProfile.load_json(filename)
        elif suffix in (".yaml", ".yml"):
            profile = STLProfile.load_yaml(filename)
        elif suffix in (".pcap", ".cap"):
            # Without a split it is a single profile.
            profile = cast(STLProfile, STLProfile.load_pcap(filename, ipg_usec=1e6))
        else:
            raise TRexError(
                f"'{filename}' is not a profile: expected .py, .json, .yaml, .pcap or .cap"
            )
        if profile is not None:
            profile.meta = {**(profile.meta or {}), "stream_count": len(profile)}
        return profile

    @staticmethod
    def load_py(
        python_file: str, direction: int = 0, port_id: int = 0, **kwargs: Any
    ) -> STLProfile | None:
        """Calls `register().get_streams(direction, port_id, tunables, ...)` of a Python file.

        Keyword arguments are passed on. Unless they include `tunables` (a list of arguments), they
        also become a command line. Returns None if the profile only printed its help.
        """
        with registered(python_file) as described:
            get_streams = find_function(described, "get_streams", "stateless")
            here = partial(get_streams, direction=direction, port_id=port_id)
            streams = call_with_tunables(here, kwargs, "get_streams", "a list of streams")
            if streams is None:
                return None
            profile = STLProfile(streams)
            profile.meta = {"type": "python", "tunables": defaults_of(get_streams)}
            return profile

    @staticmethod
    def get_module_tunables(module: Any) -> dict[str, Any]:
        """Returns the arguments of a module's `get_streams` with their defaults."""
        return defaults_of(module.register().get_streams)

    @staticmethod
    def load_json(json_file: str) -> STLProfile:
        """Loads a document of `to_json`."""
        return _load_document(json_file, "JSON", json.load, json.JSONDecodeError)

    @staticmethod
    def load_yaml(yaml_file: str) -> STLProfile:
        """Loads a document of `to_json` in YAML."""
        return _load_document(yaml_file, "YAML", yaml.safe_load, yaml.YAMLError)

    @staticmethod
    def load_pcap(
        pcap_file: str,
        ipg_usec: float | None = None,
        speedup: float = 1.0,
        loop_count: int = 1,
        vm: Any = None,
        packet_hook: PacketHook | None = None,
        split_mode: str | None = None,
        min_ipg_usec: float | None = None,
        src_mac_pcap: bool = False,
        dst_mac_pcap: bool = False,
    ) -> STLProfile | tuple[STLProfile, STLProfile]:
        """Converts each packet of a capture to a stream that runs after the previous one.

        :param ipg_usec: microseconds between packets, as captured if None
        :param speedup: divisor of these times
        :param loop_count: number of passes, 0 for endless
        :param vm: program for every packet
        :param packet_hook: function that changes the bytes of every packet
        :param split_mode: `MAC` or `IP`: two profiles, one for each direction, by these addresses;
            `INTERFACE`: by the interface of each packet in an ERF file
        :param min_ipg_usec: minimum microseconds between packets
        :param src_mac_pcap: keep the capture's source MAC addresses instead of the port's
        :param dst_mac_pcap: keep the capture's destination MAC addresses
        """
        if speedup <= 0:
            raise TRexArgumentError("speedup", speedup, "anything above 0")
        if loop_count < 0:
            raise TRexArgumentError("loop_count", loop_count, "0 or more")
        if min_ipg_usec is not None and min_ipg_usec < 0:
            raise TRexArgumentError("min_ipg_usec", min_ipg_usec, "0 or more")
        if (
            ipg_usec is not None
            and ipg_usec < _IPG_USEC_MIN * speedup
            and (min_ipg_usec or 0) < _IPG_USEC_MIN
        ):
            raise TRexArgumentError("ipg_usec", ipg_usec, f"{_IPG_USEC_MIN} after speedup, or more")

        def profile(packets: list[TimedPacket], start_usec: float, end_usec: float) -> STLProfile:
            chain = _StreamChain(vm, packet_hook, loop_count, src_mac_pcap, dst_mac_pcap)
            chained = STLProfile(chain.streams(packets, start_usec, end_usec))
            chained.meta = {"type": "pcap"}
            return chained

        packets = PCAPReader(pcap_file).read_all(ipg_usec, min_ipg_usec, speedup, split_mode)
        if split_mode is None:
            return profile(packets, 0, 0)
        if not all(packets):
            raise TRexError(f"all packets of '{pcap_file}' go in one direction")
        first, second = sorted(packets, key=lambda side: side[0][1])
        delay_usec = ipg_usec / speedup if ipg_usec else _START_DELAY_USEC
        delay_usec = max(delay_usec, min_ipg_usec or 0)
        end_usec = max(first[-1][1], second[-1][1])
        return (
            profile(first, delay_usec, end_usec - first[-1][1]),
            profile(second, delay_usec, end_usec - second[-1][1]),
        )

    @staticmethod
    def get_info(filename: str) -> dict[str, Any] | None:
        """Returns what `load` finds: kind of file, tunables, number of streams."""
        profile = STLProfile.load(filename)
        return None if profile is None else profile.meta

    def to_json(self) -> list[dict[str, Any]]:
        """Returns the streams in the format of TRex's server."""
        return [stream.to_json() for stream in self.streams]

    @staticmethod
    def from_json(json_data: list[dict[str, Any]]) -> STLProfile:
        """Creates a profile from a document of `to_json` or TRex."""
        if not isinstance(json_data, list):
            raise TRexError("a profile is a list of streams")
        streams = []
        for number, document in enumerate(json_data):
            try:
                streams.append(STLStream.from_json(document))
            except TRexError as error:
                raise TRexError(f"stream {number}: {error}") from error
        profile = STLProfile(streams)
        profile.meta = {"type": "json"}
        return profile

    def dump_as_pkt(self) -> None:
        """Prints the packet of each stream."""
        for number, stream in enumerate(self.streams):
            print(f"Stream {number}")
            stream.to_pkt_dump()

    def dump_to_code(self, profile_file: str | None = None) -> str:
        """Returns a Python profile of the streams, and writes it to a file if one is given."""
        from trex.stl.code import profile_code

        text = profile_code(self.streams)
        if profile_file is not None:
            with writing(profile_file), open(profile_file, "w") as file:
                file.write(text)
        return text


class _StreamChain:
    """Converts packets to streams that start each other."""

    def __init__(
        self,
        vm: Any,
        packet_hook: PacketHook | None,
        loop_count: int,
        src_mac_pcap: bool,
        dst_mac_pcap: bool,
    ) -> None:
        self._vm = vm
        self._hook = packet_hook or bytes
        self._loop_count = loop_count
        self._src_mac = src_mac_pcap
        self._dst_mac = STLStreamDstMAC_PKT if dst_mac_pcap else STLStreamDstMAC_CFG_FILE

    def streams(
        self, packets: list[TimedPacket], start_usec: float, end_usec: float
    ) -> list[STLStream]:
        """Returns streams named 1, 2, ...; the last one starts the first one.

        A stream without frames fills a pause at the end.
        """
        streams = []
        before_usec = -start_usec
        for number, (data, time_usec) in enumerate(packets, start=1):
            last = number == len(packets)
            closes = last and not end_usec
            following: int | str = number + 1
            if last:
                following = 1 if closes else _DELAY_STREAM
            streams.append(
                self._stream(
                    name=number,
                    packet=STLPktBuilder(pkt_buffer=self._hook(data), vm=self._vm),
                    self_start=number == 1,
                    isg=time_usec - before_usec,
                    next=following,
                    action_count=self._loop_count if closes else 0,
                )
            )
            before_usec = time_usec
        if end_usec:
            wait = self._stream(
                name=_DELAY_STREAM,
                self_start=False,
                isg=end_usec,
                next=1,
                action_count=self._loop_count,
                dummy_stream=True,
            )
            streams.insert(len(streams) - 1, wait)
        return streams

    def _stream(self, **arguments: Any) -> STLStream:
        return STLStream(
            mode=STLTXSingleBurst(total_pkts=1, percentage=100),
            mac_src_override_by_pkt=self._src_mac,
            mac_dst_override_mode=self._dst_mac,
            **arguments,
        )


def _load_document(
    path: str, kind: str, parse: Callable[[Any], Any], bad: type[Exception]
) -> STLProfile:
    if not os.path.isfile(path):
        raise TRexError(f"no such file: '{path}'")
    with reading(path), open(path) as file:
        try:
            document = parse(file)
        except bad as error:
            raise TRexError(f"'{path}' is no {kind} file: {error}") from error
    if isinstance(document, list):
        # Some tools nest the members of a stream in `stream`.
        document = [
            {**{k: v for k, v in entry.items() if k != "stream"}, **entry["stream"]}
            if isinstance(entry, dict) and isinstance(entry.get("stream"), dict)
            else entry
            for entry in document
        ]
    return STLProfile.from_json(document)
