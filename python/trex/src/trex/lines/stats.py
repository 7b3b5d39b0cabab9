"""Prints counters of ports and packet groups."""

from __future__ import annotations

from typing import Any

from trex.lines.parser import LineParser, ports_of
from trex.lines.tables import table, values

#: Options that `stats` and `stats_stl` share: flags, counters, help.
PORT_SECTIONS = (
    (["-g"], "global", "all ports together"),
    (["-p"], "ports", "each port"),
    (["--ps"], "status", "port status"),
    (["-s"], "groups", "packet groups of streams"),
    (["-c"], "cpu", "CPU load"),
    (["-m"], "memory", "packet memory; there are no pools"),
    (["-x"], "kernel", "kernel counters of ports"),
    (["--xz", "--zx"], "all kernel", "kernel counters, including zeros"),
)
# Further options about packet groups.
_DELAY_SECTIONS = (
    (["-l"], "delays", "latency of packet groups"),
    (["--lh"], "histogram", "latency histogram"),
)
_GROUP = ("tx_pkts", "rx_pkts", "tx_bytes", "rx_bytes", "tx_pps", "rx_pps", "tx_bps", "rx_bps")
_DELAYS = ("average", "jitter", "total_min", "total_max", "last_max")
_LOST = ("dropped", "out_of_order", "dup", "seq_too_high", "seq_too_low")


def stats(client: Any, parser: LineParser, line: str) -> None:
    """Prints the counters that the line selects."""
    ports = parser.add_mutually_exclusive_group()
    ports.add_argument(
        "--port",
        dest="ports",
        type=int,
        nargs="+",
        action="extend",
        default=[],
        help="port numbers; default: all acquired ports",
    )
    ports.add_argument("-a", dest="all_ports", action="store_true", help="all ports")
    group = parser.add_mutually_exclusive_group()
    for flags, section, text in (*PORT_SECTIONS, *_DELAY_SECTIONS):
        group.add_argument(*flags, dest="section", action="store_const", const=section, help=text)
    args = parser.parse_line(line)
    if args is not None:
        print_ports(client, args.section, ports_of(client, args))


def print_ports(client: Any, section: str | None, ports: list[int] | None) -> None:
    """Prints one section of counters; without `section`, those of all ports and of each port."""
    stats = client.get_stats(ports)
    chosen = [number for number in stats if isinstance(number, int)]
    if section in (None, "global"):
        print(values("all ports", stats["global"]))
    if section in (None, "ports"):
        for number in chosen:
            print(values(f"port {number}", stats[number]))
    if section == "status":
        for info in client.get_port_info(chosen):
            print(values(f"port {info['index']}", info))
    if section in ("groups", "delays", "histogram"):
        _print_groups(client.get_pgid_stats(), section)
    if section == "memory":
        print("there are no pools of packet memory")
    if section == "cpu":
        for one in client.get_util_stats()["cpu"]:
            print(f"port {one['ports'][0]}: {one['history'][0]} %")
    if section in ("kernel", "all kernel"):
        for number in chosen:
            counted = client.get_xstats(number)
            nonzero = {k: v for k, v in counted.items() if v or section == "all kernel"}
            print(values(f"port {number}", nonzero))


def _print_groups(stats: dict[str, Any], section: str) -> None:
    groups = {k: v for k, v in stats["flow_stats"].items() if isinstance(k, int)}
    delays = {k: v for k, v in stats["latency"].items() if isinstance(k, int)}
    if section == "groups":
        rows = [(str(k), *(v[name]["total"] for name in _GROUP)) for k, v in groups.items()]
        print(table("packet groups", ("PG ID", *_GROUP), rows, "no packet groups"))
    elif section == "delays":
        rows = [
            (
                str(k),
                *(v["latency"][name] for name in _DELAYS),
                *(v["err_cntrs"][name] for name in _LOST),
            )
            for k, v in delays.items()
        ]
        print(table("delays, us", ("PG ID", *_DELAYS, *_LOST), rows, "no delays are measured"))
    for group, text in delays.items() if section == "histogram" else ():
        histogram = {str(k): v for k, v in sorted(text["latency"]["histogram"].items())}
        print(values(f"packet group {group}", histogram))
