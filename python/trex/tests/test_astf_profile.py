"""Stateful profiles and their documents."""

from __future__ import annotations

import base64
import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

import trex
from trex.astf.api import (
    ASTFAssociation,
    ASTFAssociationRule,
    ASTFCapInfo,
    ASTFCluster,
    ASTFError,
    ASTFErrorBadIp,
    ASTFErrorBadIpRange,
    ASTFErrorBadParamCombination,
    ASTFErrorMissingParam,
    ASTFErrorWrongType,
    ASTFGlobalInfo,
    ASTFGlobalInfoPerTemplate,
    ASTFIPGen,
    ASTFIPGenDist,
    ASTFIPGenGlobal,
    ASTFProfile,
    ASTFProfileLight,
    ASTFProgram,
    ASTFTCPClientTemplate,
    ASTFTCPOptions,
    ASTFTCPServerTemplate,
    ASTFTemplate,
    TRexError,
)


def addresses(clients=("16.0.0.1", "16.0.0.9"), servers=("48.0.0.1", "48.0.0.9")):
    return ASTFIPGen(ASTFIPGenDist(clients), ASTFIPGenDist(servers))


def template(ip_gen=None, stream=True, rule=None, tg_name=None, client=None, **arguments):
    server = ASTFProgram(stream=stream)
    return ASTFTemplate(
        ASTFTCPClientTemplate(
            ip_gen or addresses(), program=client or ASTFProgram(stream=stream), **arguments
        ),
        ASTFTCPServerTemplate(program=server, assoc=rule),
        tg_name=tg_name,
    )


def document(*templates):
    return ASTFProfile(addresses(), templates=list(templates)).to_json()


def base64_of(data: bytes) -> str:
    return base64.b64encode(data).decode()


def test_profile_becomes_the_document_of_trex(profiles):
    profile = ASTFProfile.load(str(profiles / "stateful_pages.py"), tunables=["--pages", "7"])
    clients = {"index": 0}
    servers = {"index": 1}
    assert profile.to_json() == {
        "buf_list": [
            base64_of(b"GET / HTTP/1.1\r\n\r\n"),
            {"base": "", "size": 32000, "fill": base64_of(b"*")},
            base64_of(b"\x12\x34 who?"),
        ],
        "ip_gen_dist_list": [
            {
                "ip_start": "16.0.0.1",
                "ip_end": "16.0.0.200",
                "distribution": "seq",
                "dir": "c",
                "ip_offset": "2.0.0.0",
            },
            {
                "ip_start": "48.0.0.1",
                "ip_end": "48.0.0.10",
                "distribution": "rand",
                "dir": "s",
                "ip_offset": "3.0.0.0",
            },
        ],
        "program_list": [
            {
                "commands": [
                    {"name": "set_var", "id": 0, "val": 7},
                    {"name": "tx", "buf_index": 0},
                    {"name": "rx", "min_bytes": 32000, "clear": True},
                    {"name": "jmp_nz", "id": 0, "offset": -2},
                ]
            },
            {
                "commands": [
                    {"name": "set_var", "id": 0, "val": 7},
                    {"name": "rx", "min_bytes": 18, "clear": True},
                    {"name": "tx", "buf_index": 1},
                    {"name": "jmp_nz", "id": 0, "offset": -2},
                ]
            },
            {
                "commands": [
                    {"name": "tx_msg", "buf_index": 2},
                    {"name": "rx_msg", "min_pkts": 1},
                ],
                "stream": False,
            },
            {
                "commands": [
                    {"name": "rx_msg", "min_pkts": 1},
                    {"name": "tx_msg", "buf_index": 2},
                ],
                "stream": False,
            },
        ],
        "c_glob_info": {
            "tcp": {"mss": 1400},
            "ipv6": {"src_msb": [0x20, 0x01, 0x0D, 0xB8, *[0] * 12]},
        },
        "templates": [
            {
                "client_template": {
                    "program_index": 0,
                    "ip_gen": {"dist_client": clients, "dist_server": servers},
                    "cluster": {},
                    "port": 80,
                    "cps": 2.5,
                    "limit": 10,
                    "cont": True,
                },
                "server_template": {"program_index": 1, "assoc": [{"port": 80}]},
                "tg_id": 1,
            },
            {
                "client_template": {
                    "program_index": 2,
                    "ip_gen": {"dist_client": clients, "dist_server": servers},
                    "cluster": {},
                    "port": 80,
                    "cps": 1,
                    "glob_info": {"ip": {"tos": 8}},
                },
                "server_template": {"program_index": 3, "assoc": [{"port": 80}]},
            },
        ],
        "tg_names": ["pages"],
    }


def test_document_is_reproducible_and_matches_its_text(profiles):
    profile = ASTFProfile.load(str(profiles / "stateful_pages.py"))
    first = profile.to_json()
    assert profile.to_json() == first
    for pretty in (True, False):
        assert json.loads(profile.to_json_str(pretty=pretty)) == first


def test_keyword_arguments_become_tunables(profiles):
    path = str(profiles / "stateful_pages.py")
    found = ASTFProfile.load(path, pages=9).to_json()
    assert found["program_list"][0]["commands"][0]["val"] == 9
    assert ASTFProfile.load(path).meta == {"type": "python", "tunables": {}}


def test_json_loads_unchanged(profiles, tmp_path):
    path = tmp_path / "pages.json"
    profile = ASTFProfile.load(str(profiles / "stateful_pages.py"))
    path.write_text(profile.to_json_str())
    loaded = ASTFProfile.load(str(path))
    assert isinstance(loaded, ASTFProfileLight)
    assert loaded.to_json() == json.loads(loaded.to_json_str()) == profile.to_json()


def test_profile_that_prints_its_help_is_none(profiles, capsys):
    assert ASTFProfile.load(str(profiles / "stateful_pages.py"), tunables=["--help"]) is None
    assert "--page-size" in capsys.readouterr().out


def test_invalid_profiles_are_rejected(profiles, tmp_path):
    for name, text, reason in (
        ("a.txt", "", "expected a name that ends with .py or .json"),
        ("a.json", "{", "is no JSON file"),
        ("b.json", "[]", "a profile is a JSON object, not list"),
        ("a.py", "", r"a\.py.*the profile has no function register\(\)"),
        (
            "b.py",
            "class P:\n  def get_profile(self, tunables): return 5\nregister = P\n",
            "get_profile returned int, not an ASTFProfile",
        ),
        (
            "c.py",
            "from trex.astf.api import *\n\n\nclass P:\n  def get_profile(self, tunables):\n"
            "    ASTFIPGenDist(['1.2.3.4', '1.2.3'])\nregister = P\n",
            r"c\.py, line 6: .*'1\.2\.3' is no IPv4 address",
        ),
        (
            "d.py",
            "class P:\n  def get_profile(self, tunables): pass\nregister = P\n",
            r"d\.py: get_profile\(\) returned None, expected an ASTFProfile",
        ),
        (
            "e.py",
            "import sys\nclass P:\n  def get_profile(self, tunables): sys.exit('no captures')\n"
            "register = P\n",
            r"e\.py: get_profile\(\) exits the process: no captures",
        ),
        ("f.py", "import sys\nsys.exit('no key')\n", r"f\.py, line 2: .*the process: no key"),
    ):
        (tmp_path / name).write_text(text)
        with pytest.raises(TRexError, match=reason):
            ASTFProfile.load(str(tmp_path / name))
    with pytest.raises(TRexError, match=r"has no get_profile\(\), which stateful profiles have"):
        ASTFProfile.load(str(profiles / "udp_sizes.py"))
    with pytest.raises(TRexError, match="no such file"):
        ASTFProfile.load(str(tmp_path / "absent.py"))
    with pytest.raises(TRexError, match=r"rejects its tunables: --colour red"):
        ASTFProfile.load(str(profiles / "stateful_pages.py"), tunables=["--colour", "red"])


def test_templates_share_programs_and_pools():
    found = document(
        template(rule=ASTFAssociationRule(port=80)),
        template(rule=ASTFAssociationRule(port=81), port=81),
        template(addresses(servers=("49.0.0.1", "49.0.0.9")), rule=ASTFAssociationRule(port=82)),
    )
    assert found["program_list"] == [{"commands": []}]
    assert [pool["ip_start"] for pool in found["ip_gen_dist_list"]] == [
        "16.0.0.1",
        "48.0.0.1",
        "49.0.0.1",
    ]
    assert [t["client_template"]["ip_gen"] for t in found["templates"]] == [
        {"dist_client": {"index": 0}, "dist_server": {"index": server}} for server in (1, 1, 2)
    ]


def test_values_of_other_types_are_not_shared():
    def program(usec):
        made = ASTFProgram()
        made.delay(usec)
        return made

    whole, real = program(1), program(1.0)
    found = document(
        template(client=whole, rule=ASTFAssociationRule(port=1)),
        template(client=real, rule=ASTFAssociationRule(port=2)),
    )
    delays = [p["commands"][0]["usec"] for p in found["program_list"] if p["commands"]]
    assert list(map(repr, delays)) == ["1", "1.0"]


def test_groups_have_numbers_in_template_order():
    caller = ASTFProgram()
    caller.set_next_template("b")
    caller.exec_template()
    found = document(
        template(client=caller, rule=ASTFAssociationRule(port=1)),
        template(tg_name="a", rule=ASTFAssociationRule(port=2)),
        template(tg_name="b", rule=ASTFAssociationRule(port=3), cps=0),
        template(tg_name="a", rule=ASTFAssociationRule(port=4)),
    )
    assert found["tg_names"] == ["a", "b"]
    assert [t.get("tg_id") for t in found["templates"]] == [None, 1, 2, 1]
    assert found["program_list"][0]["commands"] == [
        {"name": "set_template", "tg_id": 2},
        {"name": "exec_template"},
    ]
    assert "cps" not in found["templates"][2]["client_template"]


def test_program_can_be_in_two_profiles_with_different_groups():
    caller = ASTFProgram()
    caller.set_next_template("last")
    for groups in (["last"], ["first", "last"]):
        templates = [
            template(client=caller, tg_name=name, rule=ASTFAssociationRule(port=port))
            for port, name in enumerate(groups)
        ]
        commands = document(*templates)["program_list"][0]["commands"]
        assert commands == [{"name": "set_template", "tg_id": len(groups)}]


def test_unknown_group_error_lists_the_known_ones():
    caller = ASTFProgram()
    caller.connect()
    caller.set_next_template("absent")
    with pytest.raises(
        ASTFError,
        match=r"template 0: program of the client, command 1 \(set_template\): no template has "
        r"tg_name='absent'; known groups: 'there'",
    ):
        document(template(client=caller, tg_name="there"))


@pytest.mark.parametrize("name", ["", "x" * 21])
def test_group_names_have_1_to_20_characters(name):
    with pytest.raises(ASTFError, match=f"has {len(name)} characters"):
        template(tg_name=name)
    with pytest.raises(ASTFError, match=f"has {len(name)} characters"):
        ASTFCapInfo(file="a.pcap", tg_name=name)


def test_client_pools_must_be_equal_or_disjoint():
    first = template(rule=ASTFAssociationRule(port=1))
    for clients, servers in (
        (("16.0.0.9", "16.0.0.20"), ("48.0.0.1", "48.0.0.9")),
        # Clients within the servers of another template.
        (("48.0.0.9", "48.0.0.20"), ("50.0.0.1", "50.0.0.9")),
    ):
        overlapping = template(addresses(clients, servers), rule=ASTFAssociationRule(port=2))
        with pytest.raises(ASTFError, match=rf"template 1: the addresses {clients[0]} to .* overl"):
            document(first, overlapping)
    servers_alone = addresses(("16.0.0.10", "16.0.0.20"), ("48.0.0.5", "48.0.0.20"))
    assert document(first, template(servers_alone, rule=ASTFAssociationRule(port=2)))


def test_port_has_one_server_of_each_protocol():
    # TRex rejects TCP and UDP at the same port, although they are not ambiguous.
    assert document(template(), template(stream=False))
    with pytest.raises(ASTFError, match="templates 0 and 2 both have a server at TCP port 80"):
        document(template(), template(stream=False), template())
    by_address = ASTFAssociationRule(port=80, ip_start="48.0.0.1", ip_end="48.0.0.4")
    by_bytes = ASTFAssociationRule(port=80, l7_map=[0, 1])
    found = document(template(), template(rule=by_address), template(rule=by_bytes))
    assert [t["server_template"]["assoc"] for t in found["templates"]] == [
        [{"port": 80}],
        [{"port": 80, "ip_start": "48.0.0.1", "ip_end": "48.0.0.4"}],
        [{"port": 80, "l7_map": {"offset": [0, 1]}}],
    ]


def test_core_base_is_in_the_document():
    # TRex accepts `core_base` and omits it.
    (found,) = document(template(limit=1, core_base=0))["templates"]
    assert found["client_template"]["core_base"] == 0
    (found,) = document(template(core_base=3))["templates"]
    assert "core_base" not in found["client_template"]


def test_associations():
    rule = ASTFAssociationRule(port=9, l7_map={"offset": [0, 4], "mask": [1, 2], "value": [3, 4]})
    assert rule.to_json() == {
        "port": 9,
        "l7_map": {"offset": [0, 4], "mask": [1, 2], "value": [3, 4]},
    }
    assert ASTFAssociationRule(port=9, assoc_id=5).to_json() == {"port": 9, "assoc_id": 5}
    both = ASTFAssociation([rule, ASTFAssociationRule()])
    assert both.to_json() == [rule.to_json(), {"port": 80}]
    assert (both.port, both.is_port_only(), ASTFAssociation().is_port_only()) == (9, False, True)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"port": 65536}, "'port' of ASTFAssociationRule is 65536, not from 0 to 65535"),
        ({"port": "80"}, "'port' of ASTFAssociationRule is of type str"),
        ({"ip_start": "1.2.3"}, "is '1.2.3', which is no IPv4 address"),
        ({"l7_map": []}, "not 1 to 8 offsets that rise"),
        ({"l7_map": [2, 1]}, "not 1 to 8 offsets that rise"),
        ({"l7_map": list(range(9))}, "not 1 to 8 offsets that rise"),
        ({"l7_map": [256]}, "is 256, not from 0 to 255"),
        ({"l7_map": {"value": [1]}}, "'offset' is needed"),
        ({"l7_map": {"offset": [1], "values": [1]}}, "'mask' and 'value' are possible"),
        ({"l7_map": {"offset": [1, 2], "value": [1]}}, "2 offsets and 1 values"),
        ({"l7_map": 5}, "neither a list of offsets nor a dict"),
    ],
)
def test_invalid_associations_are_rejected(arguments, reason):
    with pytest.raises(ASTFError, match=reason):
        ASTFAssociationRule(**arguments)


def test_pools():
    pool = ASTFIPGenDist(["1.0.0.1", "1.0.0.1"], "rand", per_core_distribution="seq")
    assert pool.to_json() == {
        "ip_start": "1.0.0.1",
        "ip_end": "1.0.0.1",
        "distribution": "rand",
        "per_core_distribution": "seq",
    }
    both = ASTFIPGen(pool, ASTFIPGenDist(["2.0.0.1", "2.0.0.2"]), ASTFIPGenGlobal("0.0.1.0"))
    assert both.client_pool()["ip_offset"] == both.server_pool()["ip_offset"] == "0.0.1.0"
    for clients, servers in ((both.dist_server, pool), (pool, pool)):
        with pytest.raises(ASTFError, match="already: make another"):
            ASTFIPGen(clients, servers)


@pytest.mark.parametrize(
    ("ip_range", "reason"),
    [
        (["1.0.0.2", "1.0.0.1"], "the first address is above the last"),
        (["1.0.0.2"], "a range is a first and a last"),
        (["1.0.0.2", "2001::1"], "'2001::1' is no IPv4 address"),
        ("1.0.0.2", "a range is a first and a last"),
    ],
)
def test_invalid_ranges_are_rejected(ip_range, reason):
    with pytest.raises(ASTFErrorBadIpRange, match=reason):
        ASTFIPGenDist(ip_range)


def test_topology_is_not_a_profile(tmp_path):
    file = tmp_path / "udp_topo.py"
    file.write_text("def get_topo():\n    return None\n")
    with pytest.raises(
        TRexError, match=r"a topology, not a profile.*; load it with topo_load\(\) or tunnels"
    ):
        ASTFProfile.load(str(file))


def test_arguments_are_checked():
    program, ip_gen = ASTFProgram(), addresses()
    for error, reason, make in (
        (ASTFErrorMissingParam, "needs 'program'", lambda: ASTFTCPClientTemplate(ip_gen)),
        (ASTFErrorMissingParam, "needs 'program'", ASTFTCPServerTemplate),
        (ASTFErrorMissingParam, "needs 'ip_range'", lambda: ASTFIPGenDist(None)),
        (
            ASTFErrorBadParamCombination,
            "needs 'templates' or 'cap_list', and neither is given",
            lambda: ASTFProfile(ip_gen),
        ),
        (ASTFErrorMissingParam, "needs 'file'", ASTFCapInfo),
        (ASTFErrorMissingParam, "needs 'client_template'", ASTFTemplate),
        (ASTFErrorMissingParam, "'templates'", lambda: ASTFProfile(ip_gen, templates=[])),
        (
            ASTFErrorWrongType,
            r"is of type int, expected type ASTFTemplate, or a list of such",
            lambda: ASTFProfile(ip_gen, templates=[template(), 5]),
        ),
        (
            ASTFErrorWrongType,
            "'ip_gen' of ASTFTCPClientTemplate is of type str",
            lambda: ASTFTCPClientTemplate("16.0.0.1", program=program),
        ),
        (ASTFErrorBadIp, "'ip_offset'", lambda: ASTFIPGenGlobal("1")),
        (
            ASTFErrorBadParamCombination,
            "either 'cps' or 'l7_percent'",
            lambda: ASTFCapInfo(file="a", cps=1, l7_percent=2),
        ),
        (
            ASTFErrorBadParamCombination,
            "either 'port' or 'assoc'",
            lambda: ASTFCapInfo(file="a", port=1, assoc=ASTFAssociationRule()),
        ),
        (ASTFError, "'cps' .* is -1, not 0 or more", lambda: template(cps=-1)),
        (ASTFError, "'distribution' .* 'normal'", lambda: ASTFIPGenDist(["1.1.1.1"] * 2, "normal")),
        (
            ASTFError,
            "the client's program is of TCP, the server's of UDP",
            lambda: ASTFTemplate(
                ASTFTCPClientTemplate(ip_gen, program=program),
                ASTFTCPServerTemplate(program=ASTFProgram(stream=False)),
            ),
        ),
    ):
        with pytest.raises(error, match=reason):
            make()


def test_tunables_are_checked_when_they_are_set():
    info = ASTFGlobalInfo()
    info.scheduler.rampup_sec = 5
    info.tcp.do_sack = 0
    info.ipv6.enable = 1
    assert info.tcp.do_sack == 0
    assert info.to_json() == {
        "scheduler": {"rampup_sec": 5},
        "tcp": {"do_sack": 0},
        "ipv6": {"enable": 1},
    }
    of_template = ASTFGlobalInfoPerTemplate()
    assert of_template.ip.to_json() == {}
    assert of_template.to_json() == {"ip": {}}
    for place, name, value, reason in (
        (info, "tcp_mss", 1, "ASTFGlobalInfo has no 'tcp_mss'; it has scheduler, ipv6, tcp, ip"),
        (info, "tcp", 1, "'tcp' is a group of tunables and cannot be set; set tcp.blackhole"),
        (info.tcp, "msss", 1, "ASTFGlobalInfo.tcp has no 'msss'; it has blackhole"),
        (info.tcp, "mss", "1", "ASTFGlobalInfo.tcp.mss cannot be '1': it is a whole number"),
        (info.tcp, "no_delay", True, "cannot be True: it is a whole number"),
        (info.ipv6, "src_msb", "2001", "cannot be '2001': it is an IPv6 address as text"),
        (info.ipv6, "dst_msb", 5, "cannot be 5: it is an IPv6 address as text"),
        (of_template.tcp, "do_sack", 1, "ASTFGlobalInfoPerTemplate.tcp has no 'do_sack'"),
    ):
        with pytest.raises(AttributeError, match=reason):
            setattr(place, name, value)
    with pytest.raises(AttributeError, match=r"tcp\.mss was not set"):
        _ = info.tcp.mss
    with pytest.raises(AttributeError, match="has no 'scheduler'"):
        _ = of_template.scheduler


def test_tcp_options_and_clusters_keep_their_values():
    options = ASTFTCPOptions([("MSS", 1400), ("WS", 7)])
    assert options.mss == 1400
    options.mss = 900
    assert options.to_json() == {"MSS": 900, "WS": 7}
    assert options == ASTFTCPOptions([("WS", 7), ("MSS", 900)])
    assert options != ASTFTCPOptions([("MSS", 900)])
    assert ASTFCluster().to_json() == {}


def test_statistics_of_templates(profiles, capsys):
    ASTFProfile.load(str(profiles / "stateful_pages.py")).print_stats()
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    rows = [line.split() for line in lines]
    # A page's flow has 18 + 32,000 bytes, a name's 2 x 7; 2.5 and 1 per second.
    assert rows[1:4] == [
        ["0", "pages", "80/tcp", "32,018", "2.500", "640,360"],
        ["1", "80/udp", "14", "1.000", "112"],
        ["all", "3.500", "640,472"],
    ]
    assert lines[4] == "4 programs, 3 buffers, 2 address pools"


def test_executed_templates_have_statistics(capsys):
    ASTFProfile(addresses(), templates=template(cps=0)).print_stats()
    assert capsys.readouterr().out.splitlines()[1].split() == ["0", "80/tcp", "0", "0.000", "0"]


def dump(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "trex.astf.dump", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=Path(trex.__file__).parents[1],
    )


@pytest.mark.parametrize("tunables", [["--pages", "7"], ["pages=7"]])
def test_dump_prints_the_document(profiles, tunables):
    path = profiles / "stateful_pages.py"
    found = dump(str(path), "-t", *tunables)
    assert found.returncode == 0, found.stderr
    expected = ASTFProfile.load(str(path), tunables=["--pages", "7"]).to_json()
    assert json.loads(found.stdout) == expected


def test_dump_prints_statistics_and_errors(profiles, tmp_path):
    stat = dump("--stat", str(profiles / "stateful_pages.py"))
    assert stat.stdout.startswith("template ")
    absent = dump(str(tmp_path / "absent.py"))
    assert absent.returncode == 1
    assert absent.stdout == ""
    assert absent.stderr.startswith("error: no such file")


def test_star_import_has_the_names_of_profiles():
    names: dict = {}
    exec("from trex_astf_lib.api import *", names)
    for name in (
        "ASTFProfile ASTFProfileLight ASTFTemplate ASTFTCPClientTemplate ASTFTCPServerTemplate "
        "ASTFAssociation ASTFAssociationRule ASTFProgram ASTFCapInfo ASTFIPGen ASTFIPGenDist "
        "ASTFIPGenGlobal ASTFGlobalInfo ASTFGlobalInfoPerTemplate ASTFCluster ASTFTCPOptions "
        "ASTFCmd ASTFCmdSend ASTFCmdTxPkt ASTFCmdDelay ASTFCmdDelayRnd ASTFCmdExecTemplate "
        "ASTFError ASTFErrorOverlapIP TRexError os sys json random struct ip2int int2ip listify"
    ).split():
        assert name in names, name
    # A script can use both modes.
    exec("from trex.stl.api import *", names)
    assert "STLStream" in names


@pytest.mark.parametrize(
    "module", ["trex_astf_profile", "trex_astf_global_info", "trex_astf_exceptions"]
)
def test_older_locations_have_the_same_names(module):
    place = importlib.import_module(f"trex.astf.{module}")
    assert place.ASTFProfile is ASTFProfile
    assert place.ASTFGlobalInfo is ASTFGlobalInfo
    assert place.ASTFError is ASTFError
