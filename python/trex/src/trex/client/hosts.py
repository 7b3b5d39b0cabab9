"""Hosts on a port that answer requests: the port itself and its nodes."""

from __future__ import annotations

import struct
import threading
from collections.abc import Sequence

from trex.client import routers
from trex.client.listener import Listener
from trex.client.packet_socket import PacketSocket
from trex.client.transmission import native

# Answered protocols, with up to two VLAN tags.
_PROTOCOLS = "(arp or icmp or icmp6)"
_FILTER = f"{_PROTOCOLS} or (vlan and {_PROTOCOLS}) or (vlan and {_PROTOCOLS})"
_ADDRESSES_LENGTH = 12
_TAG = struct.Struct("!HH")
_TAG_TYPES = (0x8100, 0x88A8, 0x9100)
_KINDS: dict[int, tuple[int, ...]] = {0: (), 1: (0x8100,), 2: (0x88A8, 0x8100)}
_IDENTIFIER = 0x0FFF
_TAGS_MAX = 2
_BROADCAST = b"\xff" * 6
_ADDRESS_KINDS = ("unicast", "multicast", "broadcast")

#: VLAN tags around a host's frames: TPIDs and VLAN IDs, the outer one first.
Tags = tuple[tuple[int, int], ...]


class _Host:
    """A host, and its addresses from router advertisements if it uses them."""

    def __init__(self, mac: str, addresses: list[str], solicits_routers: bool) -> None:
        self._mac = mac
        self.solicits_routers = solicits_routers
        self.addresses = addresses
        self.native = native().Host(mac, addresses)

    def learn(self, prefix: bytes) -> bool:
        """Adds an address of an advertised network. Returns whether it is new."""
        address = routers.address(prefix, self._mac)
        if not self.solicits_routers or address in self.addresses:
            return False
        self.addresses = [*self.addresses, address]
        self.native = native().Host(self._mac, self.addresses)
        return True


class Hosts:
    """The hosts of a port.

    They announce their addresses when they are added. Then they answer ARP, neighbour discovery and
    pings. They send no requests except router solicitations.
    """

    def __init__(self, interface: str, mac: str) -> None:
        """`mac` is the interface's address."""
        self._interface = interface
        self._mac = _bytes(mac)
        self._hosts: dict[Tags, dict[bytes, _Host]] = {}
        self._lock = threading.Lock()
        self._listener: Listener | None = None
        self._port: PacketSocket | None = None
        self._counters: dict[str, int] = {}
        self.clear_counters()

    def add(
        self, mac: str, tags: Tags, addresses: list[str], solicits_routers: bool = False
    ) -> None:
        """Adds a host, or replaces the one with the same Ethernet address and tags.

        With `solicits_routers`, it also takes addresses from router advertisements.
        """
        key, host = _bytes(mac), _Host(mac, addresses, solicits_routers)
        port = self._open()
        if key == self._mac:
            port.enable_all_multicast()
        else:
            port.enable_promiscuous()
        with self._lock:
            self._hosts.setdefault(tags, {})[key] = host
            targets = [routers.solicitation(mac)] if solicits_routers else []
            for frame in [*host.native.announcements(), *targets]:
                port.send(self._count_sent(_insert_tags(tags, frame)))

    def remove(self, mac: str, tags: Tags) -> None:
        """Removes a host if it exists."""
        with self._lock:
            of_vlan = self._hosts.get(tags, {})
            of_vlan.pop(_bytes(mac), None)
            if not of_vlan:
                self._hosts.pop(tags, None)
            is_empty = not self._hosts
        if is_empty:
            self.close()

    def close(self) -> None:
        """Removes all hosts."""
        listener, self._listener, self._port = self._listener, None, None
        if listener is not None:
            listener.stop()
        with self._lock:
            self._hosts.clear()

    def counters(self) -> dict[str, int]:
        """Returns the frames and bytes to hosts (`rx`) and from hosts (`tx`)."""
        with self._lock:
            return dict(self._counters)

    def clear_counters(self) -> None:
        """Clears the counters."""
        with self._lock:
            self._counters = {
                f"{direction}_{kind}_{unit}": 0
                for unit in ("pkts", "bytes")
                for kind in _ADDRESS_KINDS
                for direction in ("rx", "tx")
            }

    def _open(self) -> PacketSocket:
        if self._port is None:
            self._port = PacketSocket(self._interface)
            self._port.filter_ignoring_tag(_FILTER)
            self._listener = Listener(self._port, self._handle_frame)
        return self._port

    def _handle_frame(self, frame: bytes) -> list[bytes]:
        tags, untagged = _strip_tags(frame)
        with self._lock:
            hosts, destination = self._hosts.get(tags, {}), frame[:6]
            # The lowest bit of the first byte marks a multicast address.
            if destination[0] & 1:
                targets = list(hosts.values())
            else:
                targets = [hosts[destination]] if destination in hosts else []
            if not targets:
                return []
            self._count("rx", frame)
            answers = [host.native.answer(untagged) for host in targets]
            for prefix in routers.prefixes(untagged):
                new = [host for host in targets if host.learn(prefix)]
                answers += [it for host in new for it in host.native.announcements()]
            return [
                self._count_sent(_insert_tags(tags, answer))
                for answer in answers
                if answer is not None
            ]

    def _count_sent(self, frame: bytes) -> bytes:
        self._count("tx", frame)
        return frame

    def _count(self, direction: str, frame: bytes) -> None:
        is_broadcast = frame[:6] == _BROADCAST
        kind = "broadcast" if is_broadcast else "multicast" if frame[0] & 1 else "unicast"
        self._counters[f"{direction}_{kind}_pkts"] += 1
        self._counters[f"{direction}_{kind}_bytes"] += len(frame)


def tags_of(vlans: Sequence[int], kinds: Sequence[int] = ()) -> Tags:
    """Builds tags with these VLAN IDs, and these TPIDs or those of IEEE 802.1Q and 802.1ad."""
    return tuple(zip(kinds or _KINDS[len(vlans)], vlans))


def _bytes(mac: str) -> bytes:
    return bytes.fromhex(mac.replace(":", ""))


def _strip_tags(frame: bytes) -> tuple[Tags, bytes]:
    """Returns the tags of a frame, and the frame without them.

    A priority tag (VLAN ID 0) does not count as a tag.
    """
    tags: list[tuple[int, int]] = []
    offset = _ADDRESSES_LENGTH
    while len(tags) < _TAGS_MAX and offset + _TAG.size <= len(frame):
        kind, control = _TAG.unpack_from(frame, offset)
        if kind not in _TAG_TYPES:
            break
        offset += _TAG.size
        if control & _IDENTIFIER:
            tags.append((kind, control & _IDENTIFIER))
    return tuple(tags), frame[:_ADDRESSES_LENGTH] + frame[offset:]


def _insert_tags(tags: Tags, frame: bytes) -> bytes:
    inserted = b"".join(_TAG.pack(kind, identifier) for kind, identifier in tags)
    return frame[:_ADDRESSES_LENGTH] + inserted + frame[_ADDRESSES_LENGTH:]
