"""A profile: the streams of a port, and the files that they are loaded from."""

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
from trex.loader import function_of, registered
from trex.stl.modes import STLTXCont, STLTXSingleBurst
from trex.stl.packet_builder import STLPktBuilder
from trex.stl.pcap import PCAPReader
from trex.stl.streams import STLStream, STLStreamDstMAC_CFG_FILE, STLStreamDstMAC_PKT
from trex.tunables import call_with_tunables, defaults_of

PacketHook = Callable[[bytes], bytes]

_IPG_USEC_MIN = 0.001
# How long a side of a parted capture waits before its first packet, so that both are ready.
_START_DELAY_USEC = 1000.0
_DELAY_STREAM = "delay_stream"


class STLProfile:
    """Streams that are loaded together. `meta` says what they came from."""

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
        """The streams."""
        return self.streams

    def is_pauseable(self) -> bool:
        """Whether all streams are continuous."""
        continuous = str(STLTXCont())
        return all(stream.get_mode() == continuous for stream in self.streams)

    def has_custom_mac_addr(self) -> bool:
        """Whether a stream has a MAC address that is not the port's."""
        return any(stream.has_custom_mac_addr() for stream in self.streams)

    def has_flow_stats(self) -> bool:
        """Whether a stream is measured."""
        return any(stream.has_flow_stats() for stream in self.streams)

    @staticmethod
    def load(
        filename: str, direction: int = 0, port_id: int = 0, **kwargs: Any
    ) -> STLProfile | None:
        """Loads a file by its suffix: `.py`, `.json`, `.yaml`, `.pcap` or `.cap`.

        A capture is replayed with a second between its packets; `load_pcap` can do more.
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
            # It is two profiles only when it is split.
            profile = cast(STLProfile, STLProfile.load_pcap(filename, ipg_usec=1e6))
        else:
            raise TRexError(
                f"'{filename}' is no profile: it ends in none of .py, .json, .yaml, .pcap, .cap"
            )
        if profile is not None:
            profile.meta = {**(profile.meta or {}), "stream_count": len(profile)}
        return profile

    @staticmethod
    def load_py(
        python_file: str, direction: int = 0, port_id: int = 0, **kwargs: Any
    ) -> STLProfile | None:
        """Calls a Python file's `register().get_streams(direction, port_id, tunables, ...)`.

        Keyword arguments reach it as they are and, unless `tunables` (a list of arguments) is among
        them, as a command line too. None if all the profile did was print its help.
        """
        with registered(python_file) as described:
            get_streams = function_of(described, "get_streams", "stateless")
            here = partial(get_streams, direction=direction, port_id=port_id)
            streams = call_with_tunables(here, kwargs, "get_streams", "a list of streams")
            if streams is None:
                return None
            profile = STLProfile(streams)
            profile.meta = {"type": "python", "tunables": defaults_of(get_streams)}
            return profile

    @staticmethod
    def get_module_tunables(module: Any) -> dict[str, Any]:
        """The arguments of a module's `get_streams` and their defaults."""
        return defaults_of(module.register().get_streams)

    @staticmethod
    def load_json(json_file: str) -> STLProfile:
        """Loads what `to_json` made."""
        return _load_document(json_file, "JSON", json.load, json.JSONDecodeError)

    @staticmethod
    def load_yaml(yaml_file: str) -> STLProfile:
        """Loads the same as YAML."""
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
        """Makes each packet of a capture a stream that runs after the one before.

        :param ipg_usec: microseconds between packets, as captured if None
        :param speedup: divides them
        :param loop_count: how often the capture is sent, 0 for ever
        :param vm: a program for every packet
        :param packet_hook: changes the bytes of every packet
        :param split_mode: `MAC` or `IP`: two profiles, one a direction, told by these addresses;
            `INTERFACE`: by the interface that an ERF file has of each packet
        :param min_ipg_usec: microseconds that are between packets at least
        :param src_mac_pcap: source MAC addresses are the capture's rather than the port's
        :param dst_mac_pcap: so are destination MAC addresses
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
            chain = _Chain(vm, packet_hook, loop_count, src_mac_pcap, dst_mac_pcap)
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
        """What `load` would find: the kind of file, its tunables, its number of streams."""
        profile = STLProfile.load(filename)
        return None if profile is None else profile.meta

    def to_json(self) -> list[dict[str, Any]]:
        """The streams as their server reads them."""
        return [stream.to_json() for stream in self.streams]

    @staticmethod
    def from_json(json_data: list[dict[str, Any]]) -> STLProfile:
        """The profile of a document that `to_json` made, or TRex."""
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
        """A Python profile that makes the same streams, written to the file if one is named."""
        from trex.stl.code import profile_code

        text = profile_code(self.streams)
        if profile_file is not None:
            with writing(profile_file), open(profile_file, "w") as file:
                file.write(text)
        return text


class _Chain:
    """Turns packets into streams that start each other."""

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
        """Streams named 1, 2, ...; the last leads back to the first.

        When there is time to wait at the end, a stream that sends nothing waits.
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
        raise TRexError(f"there is no file '{path}'")
    with reading(path), open(path) as file:
        try:
            document = parse(file)
        except bad as error:
            raise TRexError(f"'{path}' is no {kind} file: {error}") from error
    if isinstance(document, list):
        # Some tools store a stream with its members inside another one, `stream`.
        document = [
            {**{k: v for k, v in entry.items() if k != "stream"}, **entry["stream"]}
            if isinstance(entry, dict) and isinstance(entry.get("stream"), dict)
            else entry
            for entry in document
        ]
    return STLProfile.from_json(document)
