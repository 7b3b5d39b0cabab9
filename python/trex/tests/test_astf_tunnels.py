"""Tunnels of clients: errors, time and memory. Sends nothing."""

from __future__ import annotations

import tracemalloc

import pytest

from trex.addresses import int2ip, ip2int
from trex.astf import console, tunnel_commands
from trex.astf.api import ASTFClient, TRexError
from trex.astf.trex_astf_client import Tunnel
from trex.astf.tunnels_topo import TopoTunnelCtx, TopoTunnelLatency, TunnelsTopo

FIRST = ip2int("16.0.0.0")
ENDS = ("1.1.1.11", "12.2.2.2", 5000)


class FakeRun:
    """A running profile in which every address is a client."""

    def is_done(self) -> bool:
        return False

    def clients(self, addresses: list[str]) -> list[bool]:
        return [True] * len(addresses)

    def change_tunnels(self, tunnels: list) -> None:
        pass


@pytest.fixture
def client(monkeypatch) -> ASTFClient:
    """A client with a session but without ports, with tunnels on."""
    found = ASTFClient()
    found._is_connected = True
    found.activate_tunnel(1, True)
    found._profiles_by_id["_"].run = FakeRun()
    return found


def context(first: int, last: int) -> TopoTunnelCtx:
    """Returns tunnels of clients by index."""
    ends = (int2ip(FIRST + first), int2ip(FIRST + last))
    return TopoTunnelCtx(*ends, 1, 1, ENDS[2], 4, 1, ENDS[0], ENDS[1], True)


def have_tunnels(client: ASTFClient, *places: int) -> list[bool]:
    """Returns whether clients have tunnels."""
    info = client.get_clients_info([FIRST + place for place in places]).data()
    return ["tunnel_type" in info[str(FIRST + place)] for place in places]


def test_record_limit_is_checked_first(client, monkeypatch):
    def create(*arguments: object) -> None:
        pytest.fail("a record was made")

    monkeypatch.setattr(console, "Tunnel", create)
    ends = "--teid 1 --sport 1 --src_ip 1.1.1.1 --dst_ip 2.2.2.2"
    for last, count in (("255.255.255.255", "4,294,967,296"), ("0.16.0.0", "1,048,577")):
        with pytest.raises(TRexError, match=f"--c_end {last}: {count} clients, expected 1,048,576"):
            client.update_clients_tunnel(f"--c_start 0.0.0.0 --c_end {last} {ends}")


def test_replaced_records_count_once(client, monkeypatch):
    monkeypatch.setattr(tunnel_commands, "RECORDS_MAX", 3)
    records = {FIRST + place: Tunnel(*ENDS, 7 + place, 4) for place in range(4)}
    with pytest.raises(TRexError, match="more than 3 clients"):
        client.update_tunnel_client_record(records, 1)
    del records[FIRST + 3]
    client.update_tunnel_client_record(records, 1)
    client.update_tunnel_client_record(records, 1)
    with pytest.raises(TRexError, match="more than 3 clients"):
        client.update_tunnel_client_record({FIRST + 3: Tunnel(*ENDS, 1, 4)}, 1)
    assert have_tunnels(client, 2, 3) == [True, False]


def test_new_record_does_not_copy_the_others(client):
    tunnel = Tunnel(*ENDS, 7, 4)
    client._records = dict.fromkeys(range(FIRST, FIRST + 100_000), tunnel)
    # The dictionary has its final size.
    changed = {FIRST: tunnel}
    tracemalloc.start()
    try:
        client.update_tunnel_client_record(changed, 1)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100_000


def test_tunnels_come_from_topologies_and_records(client):
    client.tunnels_topo.add_tunnel_ctx_obj(context(20, 29))
    # `tunnels_topo_load` would reject these.
    for first, last in ((4, 5), (2, 8)):
        client.tunnels_topo.add_tunnel_ctx_obj(context(first, last))
    client.update_tunnel_client_record({FIRST + 40: Tunnel(*ENDS, 7, 4)}, 1)
    with_tunnels = {*range(2, 9), *range(20, 30), 40}
    assert have_tunnels(client, *range(50)) == [place in with_tunnels for place in range(50)]
    client._has_tunnels = False
    assert have_tunnels(client, 2, 40) == [False, False]


def test_each_range_is_checked_once_for_all_clients(client, monkeypatch):
    for place in range(500):
        client.tunnels_topo.add_tunnel_ctx_obj(context(2 * place, 2 * place))
    lookups = []

    def counting_ip2int(address: str) -> int:
        lookups.append(address)
        return ip2int(address)

    monkeypatch.setattr(tunnel_commands, "ip2int", counting_ip2int)
    last = int2ip(FIRST + 1000)
    info = client.get_clients_info_range(int2ip(FIRST), last).data()
    assert sum("tunnel_type" in it for it in info.values()) == 500
    assert len(lookups) <= 2 * 500


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"initial_teid": True}, "initial_teid True is not a number from 0 to 4294967295"),
        ({"teid_jump": "1"}, "teid_jump '1' is not a number"),
        ({"sport": False}, "sport False is not a number from 0 to 65535"),
        ({"sport": 65_536}, "sport 65536 is not a number"),
        ({"tunnel_type": True}, "Invalid Tunnel Type: True"),
        ({"version": 5}, "version 5 is neither 4 nor 6"),
        ({"src_ip": 9}, "9 is no IPv4 address"),
        ({"src_start": 9}, "src_start 9 is no IPv4 address"),
        ({"activate": 1}, "'activate' is of type int"),
    ],
)
def test_invalid_tunnel_fields_are_rejected(change, message):
    with pytest.raises(TRexError, match=message):
        TopoTunnelCtx(**{**context(0, 1).get_data(), **change})


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (("0", "16.0.0.1", "48.0.0.1"), "'client_port_id' is of type str, not int"),
        ((True, "16.0.0.1", "48.0.0.1"), "client_port_id True: clients are on even ports"),
        ((-2, "16.0.0.1", "48.0.0.1"), "client_port_id -2: clients are on even ports"),
        ((1, "16.0.0.1", "48.0.0.1"), "client_port_id 1: clients are on even ports"),
        ((0, "16.0.0.1", 48), "server_ip 48 is no IPv4 address"),
    ],
)
def test_invalid_latency_fields_are_rejected(fields, message):
    with pytest.raises(TRexError, match=message):
        TopoTunnelLatency(*fields)
    record = TopoTunnelLatency(0, "16.0.0.1", "48.0.0.1")
    topology = TunnelsTopo(None, [context(0, 1)], [record])
    topology.check()
