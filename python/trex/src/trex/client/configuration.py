"""Interfaces of the ports, from the environment or TRex's configuration file."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

import yaml

from trex.addresses import is_valid_ipv4
from trex.client.vlan import VLAN
from trex.errors import TRexError
from trex.files import reading

PORTS = "WIRESTORM_TREX_PORTS"
FILE = "WIRESTORM_TREX_CFG"
SPEED = "WIRESTORM_TREX_SPEED"
#: Value of `PORTS` for the ports of a server; see `trex.remote.selection`.
SERVER = "server"
DEFAULT_FILE = "/etc/trex_cfg.yaml"
_DUMMY = "dummy"


@dataclass(frozen=True)
class PortConfiguration:
    """Configuration of a port: its interface, and optional Ethernet addresses.

    A port that is an IPv4 host also has an address, a gateway and VLANs, the outer one first.
    """

    interface: str
    source: str | None = None
    destination: str | None = None
    address: str | None = None
    gateway: str | None = None
    vlan: tuple[int, ...] = ()


@dataclass(frozen=True)
class Configuration:
    """Ports by number, and their speed in bits per second if it is set."""

    ports: dict[int, PortConfiguration] = field(default_factory=dict)
    speed: str | None = None


def load() -> Configuration:
    """Returns the configuration of this process.

    `WIRESTORM_TREX_PORTS` lists the interfaces of ports 0, 1, ...: `veth0,veth1`, or
    `netns/a:veth0,netns/b:veth1` in other network namespaces. As in TRex's file, `dummy` is not a
    port.

    Without it, the file in `WIRESTORM_TREX_CFG` or /etc/trex_cfg.yaml applies. It has TRex's
    format, with names of Linux interfaces in `interfaces`.

    `WIRESTORM_TREX_SPEED` (`1G`) is the line speed for percentages, by default the driver's.
    """
    speed = os.environ.get(SPEED) or None
    listed = os.environ.get(PORTS)
    if listed is not None:
        names = [name.strip() for name in listed.split(",") if name.strip()]
        if not set(names) - {_DUMMY}:
            raise TRexError(f"{PORTS} has no interface; expected for example veth0,veth1")
        ports = {n: PortConfiguration(name) for n, name in enumerate(names) if name != _DUMMY}
        return Configuration(ports, speed)
    path = os.environ.get(FILE, DEFAULT_FILE)
    if not os.path.isfile(path):
        raise TRexError(
            f"there are no ports: set {PORTS}=veth0,veth1 to the interfaces that are ports 0 and 1,"
            f" or {FILE} to a trex_cfg.yaml whose `interfaces` are such ({path} does not exist)"
        )
    with reading(path), open(path) as file:
        try:
            document = yaml.safe_load(file)
        except yaml.YAMLError as error:
            raise TRexError(f"{path}: no YAML: {error}") from error
    return _read(path, document, speed)


def _read(path: str, document: Any, speed: str | None) -> Configuration:
    if isinstance(document, list) and document:
        document = document[0]
    if not isinstance(document, dict) or not isinstance(document.get("interfaces"), list):
        raise TRexError(f"{path}: found no `interfaces`, expected a list of interfaces there")
    if speed is None and "port_bandwidth_gb" in document:
        speed = f"{document['port_bandwidth_gb']}G"
    details = document.get("port_info") or []
    ports = {}
    for number, name in enumerate(document["interfaces"][: document.get("port_limit")]):
        if name == _DUMMY:
            continue
        if _is_pci(str(name)):
            raise TRexError(
                f"{path}: interfaces[{number}] is {name}, the address of a device; Wirestorm uses "
                "Linux drivers: give the name of the Linux interface, such as eth1"
            )
        more = details[number] if number < len(details) else {}
        source, destination = _mac(more.get("src_mac")), _mac(more.get("dest_mac"))
        context = f"{path}: port_info[{number}]"
        ports[number] = PortConfiguration(
            str(name), source, destination, *_host(context, more), vlan=_vlan(context, more)
        )
    return Configuration(ports, speed)


def _host(context: str, port: dict[str, Any]) -> tuple[str | None, str | None]:
    """Returns the addresses of a port that is an IPv4 host and of its gateway: both or none."""
    found = {key: port.get(key) for key in ("ip", "default_gw")}
    for key, address in found.items():
        if address is not None and not is_valid_ipv4(address):
            raise TRexError(f"{context}.{key} is {address!r}, expected an address of IPv4")
    address, gateway = found.values()
    if (address is None) != (gateway is None):
        raise TRexError(f"{context}: ip and default_gw require each other")
    return address, gateway


def _vlan(context: str, port: dict[str, Any]) -> tuple[int, ...]:
    try:
        return VLAN(port.get("vlan")).get_tags()
    except TypeError:
        raise TRexError(f"{context}.vlan is {port['vlan']!r}, expected 1 to 4095") from None
    except TRexError as error:
        raise TRexError(f"{context}: {error}") from None


def _is_pci(name: str) -> bool:
    slot = name.rpartition("/")[0] or name
    parts = slot.split(":")
    return len(parts) in (2, 3) and "." in parts[-1] and not slot.startswith("netns")


def _mac(value: Any) -> str | None:
    """Returns a MAC address as text. TRex's file can have it as a list of six numbers."""
    if isinstance(value, list):
        return ":".join(f"{byte:02x}" for byte in value)
    return value
