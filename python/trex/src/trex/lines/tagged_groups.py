"""Console commands for tagged packet groups."""

from __future__ import annotations

from typing import Any

from trex.errors import TRexError
from trex.lines.parser import HELP, LineParser, command
from trex.lines.tables import table
from trex.stl.tags import STLTaggedPktGroupTagConf

_STATUS = {
    "username": "Username",
    "acquired_ports": "Acquired Ports",
    "rx_ports": "Rx Ports",
    "num_tpgids": "Num TPGId",
    "num_tags": "Num Tags",
}
_SENT = {"pkts": "Packets", "bytes": "Bytes"}
_RX_COUNTERS = {
    **_SENT,
    "seq_err": "Seq Error",
    "seq_err_too_big": "Seq Too Big",
    "seq_err_too_small": "Seq Too Small",
    "dup": "Duplicates",
    "ooo": "Out of Order",
}
_NO_TYPE = "Invalidate"
# Number of VLANs in a tag of each type.
_VLANS = {"Dot1Q": 1, "QinQ": 2}


class TaggedLines:
    """Console commands for streams that are counted by VLAN tag."""

    @command("tpg_enable")
    def tpg_enable(self: Any, line: str) -> None:
        """Starts to count groups by the tags in a file."""
        parser = LineParser(self.tpg_enable)
        parser.add_argument(
            "-p",
            "--ports",
            type=int,
            nargs="+",
            action="extend",
            default=[],
            help="receiving ports; default: all acquired ports",
        )
        parser.add_argument(
            "--num-tpgids", dest="count", type=int, required=True, help="number of groups"
        )
        parser.add_argument("--tags", required=True, help="file with the tags, in Python or JSON")
        parser.add_tunables()
        args = parser.parse_line(line)
        if args is None:
            return
        tags = STLTaggedPktGroupTagConf.load(args.tags, tunables=args.tunables)
        if tags is None or any(word in args.tunables for word in HELP):
            # The file has only printed its help.
            return
        self.enable_tpg(args.count, tags, args.ports or None)

    @command("tpg_disable")
    def tpg_disable(self: Any, line: str) -> None:
        """Stops counting groups and deletes their counters."""
        if LineParser(self.tpg_disable).parse_line(line) is not None:
            self.disable_tpg()

    @command("tpg_status")
    def show_tpg_status(self: Any, line: str) -> None:
        """Prints whether groups are counted, and at which ports."""
        parser = LineParser(self.show_tpg_status)
        _add_owner(parser)
        args = parser.parse_line(line)
        if args is None:
            return
        status = self.get_tpg_status(args.username, args.port)
        print(f"Tagged Packet Group is {'enabled' if status['enabled'] else 'disabled'}")
        if status["enabled"]:
            row = [str(status["data"][name]) for name in _STATUS]
            print(table("Tagged Packet Group Data", _STATUS.values(), [row], ""))

    @command("tpg_update")
    def tpg_update(self: Any, line: str) -> None:
        """Changes a tag."""
        parser = LineParser(self.tpg_update)
        parser.add_argument(
            "--type",
            dest="kind",
            choices=[*_VLANS, _NO_TYPE],
            required=True,
            help="new type; Invalidate removes the tag",
        )
        parser.add_argument("--value", type=int, nargs="+", help="VLAN ID, or two for QinQ")
        parser.add_argument(
            "--tag_id", dest="number", type=int, required=True, help="number of the tag"
        )
        parser.add_argument("--clear", action="store_true", help="reset the counters of the tag")
        args = parser.parse_line(line)
        if args is None:
            return
        changed: dict[str, Any] = {"tag_id": args.number, "type": None}
        if args.kind != _NO_TYPE:
            vlans = args.value or []
            if len(vlans) != _VLANS[args.kind]:
                expected = "one VLAN" if args.kind == "Dot1Q" else "two VLANs"
                raise TRexError(f"tpg_update: --value {vlans}: {args.kind} has {expected}")
            value = {"vlan": vlans[0]} if args.kind == "Dot1Q" else {"vlans": vlans}
            changed.update(type=args.kind, value=value)
        self.update_tpg_tags([changed], args.clear)

    @command("tpg_tags")
    def show_tpg_tags(self: Any, line: str) -> None:
        """Prints the tags by number."""
        parser = LineParser(self.show_tpg_tags)
        _add_owner(parser)
        _add_tags(parser)
        args = parser.parse_line(line)
        if args is None:
            return
        status = self.get_tpg_status(args.username, args.port)
        end = status["data"]["num_tags"]
        end = end if args.max_tag is None else min(end, args.max_tag)
        tags = self.get_tpg_tags(args.min_tag, end, args.username, args.port)
        rows = [(str(number), _tag(tag)) for number, tag in enumerate(tags, args.min_tag)]
        title = f"Tags [{args.min_tag}-{end})"
        print(table(title, ("Tag Id", "Tag Type"), rows, "No tags found"))

    @command("tpg_stats")
    def show_tpg_stats(self: Any, line: str) -> None:
        """Prints the received counters of a group at a port, by tag."""
        parser = LineParser(self.show_tpg_stats)
        _add_group(parser)
        _add_tags(parser, is_required=True)
        _add_extra(parser)
        args = parser.parse_line(line)
        if args is None:
            return
        tags = (args.min_tag, args.max_tag)
        most = max(args.max_tag - args.min_tag, 1)
        extra = {"unknown_tag": args.unknown, "untagged": args.untagged}
        found, _ = self.get_tpg_stats(args.port, args.tpgid, *tags, max_sections=most, **extra)
        rows = [
            (name.replace("_tag", ""), *(counted.get(key, "-") for key in _RX_COUNTERS))
            for name, counted in found[str(args.port)][str(args.tpgid)].items()
        ]
        title = f"Port {args.port}, tpgid {args.tpgid}, Tags = [{tags[0]}, {tags[1]})"
        print(table(title, ("Tag Id", *_RX_COUNTERS.values()), rows, "No stats found"))

    @command("tpg_clear_stats")
    def tpg_clear_stats(self: Any, line: str) -> None:
        """Resets the received counters of a group."""
        parser = LineParser(self.tpg_clear_stats)
        _add_group(parser)
        _add_tags(parser)
        parser.add_argument(
            "--tag-list", type=int, nargs="+", help="list of tags instead of a range"
        )
        _add_extra(parser)
        args = parser.parse_line(line)
        if args is not None:
            tags = (args.min_tag, args.max_tag, args.tag_list)
            extra = (args.unknown, args.untagged)
            self.clear_tpg_stats(args.port, args.tpgid, *tags, *extra)

    @command("tpg_tx_stats")
    def show_tpg_tx_stats(self: Any, line: str) -> None:
        """Prints the sent counters of a group at a port."""
        parser = LineParser(self.show_tpg_tx_stats)
        _add_group(parser)
        args = parser.parse_line(line)
        if args is None:
            return
        found = self.get_tpg_tx_stats(args.port, args.tpgid)
        counted = found[str(args.port)][str(args.tpgid)]
        title = f"Port {args.port}, tpgid {args.tpgid}"
        print(table(title, _SENT.values(), [[counted[name] for name in _SENT]], ""))

    @command("tpg_clear_tx_stats")
    def tpg_clear_tx_stats(self: Any, line: str) -> None:
        """Resets the sent counters of a group."""
        parser = LineParser(self.tpg_clear_tx_stats)
        _add_group(parser)
        args = parser.parse_line(line)
        if args is not None:
            self.clear_tpg_tx_stats(args.port, args.tpgid)

    @command("tpg_show_unknown_tags")
    def show_tpg_unknown_stats(self: Any, line: str) -> None:
        """Prints the unknown tags that a port received."""
        parser = LineParser(self.show_tpg_unknown_stats)
        parser.add_port()
        args = parser.parse_line(line)
        if args is None:
            return
        found = self.get_tpg_unknown_tags(args.port)[str(args.port)]
        rows = [(str(it["tpgid"]), _tag(it["tag"])) for it in found]
        title = f"Port {args.port} unknown tags"
        print(table(title, ("tpgid", "Type"), rows, f"No unknown tags found in port {args.port}."))

    @command("tpg_clear_unknown_tags")
    def tpg_clear_unknown_stats(self: Any, line: str) -> None:
        """Clears the unknown tags."""
        parser = LineParser(self.tpg_clear_unknown_stats)
        parser.add_port()
        args = parser.parse_line(line)
        if args is not None:
            self.clear_tpg_unknown_tags(args.port)


def _add_owner(parser: LineParser) -> None:
    parser.add_argument("-u", "--username", help="owner of the groups; default: this session")
    parser.add_port(is_required=False)


def _add_group(parser: LineParser) -> None:
    parser.add_port()
    parser.add_argument("--tpgid", type=int, required=True, help="group ID")


def _add_tags(parser: LineParser, is_required: bool = False) -> None:
    parser.add_argument("--min-tag", type=int, default=0, help="first tag number")
    parser.add_argument("--max-tag", type=int, required=is_required, help="last tag number + 1")


def _add_extra(parser: LineParser) -> None:
    parser.add_argument("--unknown", action="store_true", help="include unknown tags")
    parser.add_argument("--untagged", action="store_true", help="include untagged frames")


def _tag(tag: dict[str, Any] | None) -> str:
    """Formats a tag: `Dot1Q(7)`, `QinQ(7, 8)`, or a dash for a removed one."""
    if tag is None:
        return "-"
    value = tag["value"]
    vlans = [value["vlan"]] if tag["type"] == "Dot1Q" else value["vlans"]
    return f"{tag['type']}({', '.join(map(str, vlans))})"
