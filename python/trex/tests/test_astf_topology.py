"""Topologies: files and errors."""

from __future__ import annotations

import pytest

from trex.astf import topo
from trex.astf.api import ASTFTopology, TopoGW, TopoVIF, TRexError

MAC, OTHER = "02:00:00:00:00:01", "02:00:00:00:00:02"


def topology() -> ASTFTopology:
    """Returns a topology with two virtual interfaces and three gateways."""
    return ASTFTopology(
        [TopoVIF("0.1", MAC, "5.5.5.5", vlan=30), TopoVIF("0.2", OTHER, "", "2001:db8::1")],
        [
            TopoGW("0.1", "16.0.0.1", "16.0.0.2", OTHER),
            TopoGW("0", "16.0.0.3", "16.0.0.4", "1.1.1.1"),
            TopoGW("0.2", "16.0.0.5", "16.0.0.5", OTHER, OTHER),
        ],
    )


@pytest.mark.parametrize(
    ("suffix", "text"),
    [
        ("py", lambda it: it.to_code()),
        ("json", lambda it: it.to_json()),
        ("json", lambda it: it.to_json(to_server=True)),
        ("yaml", lambda it: it.to_yaml()),
    ],
)
def test_saved_topology_loads_again(tmp_path, suffix, text):
    file = tmp_path / f"topology.{suffix}"
    file.write_text(text(topology()))
    assert topo.load(str(file)).get_data() == topology().get_data()


def test_python_topology_has_tunables_and_a_folder(tmp_path):
    (tmp_path / "addresses_of_it.py").write_text(f"GATEWAY = {OTHER!r}\n")
    file = tmp_path / "made.topology.py"
    file.write_text(
        "from trex.astf.api import *\nimport addresses_of_it\n\n"
        "def get_topo(first='16.0.0.1'):\n"
        "    found = ASTFTopology()\n"
        "    found.add_gw(trex_port=0, sub_if=0, src_start=first, src_end='16.0.0.9',\n"
        "                 dst=addresses_of_it.GATEWAY)\n"
        "    return found\n"
    )
    (gw,) = topo.load(str(file), {"first": "16.0.0.7"}).gws
    assert (gw.port_id, gw.src_start, gw.dst_mac) == ("0", "16.0.0.7", OTHER)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("nowhere.py", None, "no such file"),
        ("topology", "", "ends in none of .py, .json, .yaml"),
        ("no.py", "pass", "there is no function get_topo"),
        ("other.py", "def get_topo(): return 7", "returned int, which is no ASTFTopology"),
        ("broken.py", "def get_topo(): return 1 / 0", "ZeroDivisionError"),
        ("text.json", "7", "topology"),
        ("list.json", '{"gws": 1}', "gws"),
        ("entry.yaml", "vifs: [1]", "an entry of vifs"),
        ("field.yaml", "vifs: [{port_id: '0.1', mac: 1}]", "mac"),
    ],
)
def test_invalid_files_are_rejected(tmp_path, name, text, message):
    file = tmp_path / name
    if text is not None:
        file.write_text(text)
    with pytest.raises(TRexError, match=message):
        topo.load(str(file))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TopoVIF("0", MAC), "its number is 1 or more"),
        (lambda: TopoVIF("0.1.2", MAC), "port_id '0.1.2'"),
        (lambda: TopoVIF("0.1", "02"), "no MAC address"),
        (lambda: TopoVIF("0.1", MAC, "5.5.5"), "no IPv4 address"),
        (lambda: TopoVIF("0.1", MAC, vlan=4096), "vlan 4096"),
        (lambda: TopoGW("1", "1.0.0.0", "1.0.0.1", MAC), "clients are on even ports"),
        (lambda: TopoGW("0", "1.0.0", "1.0.0.1", MAC), "src_start '1.0.0'"),
        (lambda: TopoGW("0", "1.0.0.0", "1.0.0.1", "me"), "dst 'me'"),
        (lambda: TopoGW("0", "1.0.0.0", "1.0.0.1", MAC, OTHER), "dst_mac another one"),
    ],
)
def test_invalid_parts_are_rejected(make, message):
    with pytest.raises(TRexError, match=message):
        make()


@pytest.mark.parametrize(
    ("vifs", "gws", "message"),
    [
        ([("0.1", MAC), ("0.1", OTHER)], [], "0.1 exists twice"),
        ([("0.1", MAC), ("0.2", MAC)], [], f"both have the address {MAC}"),
        ([], [("0", "1.0.0.2", "1.0.0.1", MAC)], "src_start 1.0.0.2 is above"),
        ([], [("0", "1.0.0.1", "1.0.0.2", MAC), ("0", "1.0.0.2", "1.0.0.3", MAC)], "in common"),
        ([], [("0.1", "1.0.0.1", "1.0.0.2", MAC)], "there is no virtual interface 0.1"),
    ],
)
def test_inconsistent_topologies_are_rejected(vifs, gws, message):
    found = ASTFTopology([TopoVIF(*it) for it in vifs], [TopoGW(*it) for it in gws])
    with pytest.raises(TRexError, match=message):
        found.check()
