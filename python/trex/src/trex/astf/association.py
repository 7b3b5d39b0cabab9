"""Associations: rules that assign flows to the server of a template."""

from __future__ import annotations

from typing import Any

from trex.astf.arguments import check_ipv4, check_list, check_optional, check_range
from trex.astf.errors import ASTFError

_L7_MAP_KEYS = ("offset", "mask", "value")
_L7_MAP_LEN_MAX = 8


class ASTFAssociationRule:
    """A destination port, with optional destination addresses or first bytes of the flows."""

    def __init__(
        self,
        port: int = 80,
        ip_start: str | None = None,
        ip_end: str | None = None,
        l7_map: list[int] | tuple[int, ...] | dict[str, list[int]] | None = None,
        assoc_id: int | None = None,
    ) -> None:
        """:param port: destination port
        :param ip_start: first destination address; any if None
        :param ip_end: last destination address
        :param l7_map: offsets of payload bytes that must match what the client's program sends, or
            `{"offset": [...], "value": [...], "mask": [...]}`
        :param assoc_id: number that identifies programs with an add-on
        """
        context = type(self).__name__
        check_range(context, "port", port, 0, 65535)
        self.fields: dict[str, Any] = {"port": port}
        for name, address in (("ip_start", ip_start), ("ip_end", ip_end)):
            if address is not None:
                check_ipv4(context, name, address)
                self.fields[name] = address
        if l7_map is not None:
            self.fields["l7_map"] = _check_l7_map(context, l7_map)
        if assoc_id is not None:
            check_optional(context, "assoc_id", assoc_id, int)
            self.fields["assoc_id"] = assoc_id

    @property
    def port(self) -> int:
        """The destination port."""
        return self.fields["port"]

    def to_json(self) -> dict[str, Any]:
        """Returns the rule in the format of documents."""
        return dict(self.fields)


class ASTFAssociation:
    """The rules of a server. TRex's server reads only the first one."""

    def __init__(
        self, rules: ASTFAssociationRule | list[ASTFAssociationRule] | None = None
    ) -> None:
        """:param rules: one or several rules; port 80 if None"""
        context = type(self).__name__
        rules = ASTFAssociationRule() if rules is None else rules
        self.rules = check_list(context, "rules", rules, ASTFAssociationRule)

    @property
    def port(self) -> int:
        """The destination port of the first rule."""
        return self.rules[0].port

    def is_port_only(self) -> bool:
        """Returns whether the rule matches all flows to the port."""
        return set(self.rules[0].fields) == {"port"}

    def to_json(self) -> list[dict[str, Any]]:
        """Returns the rules in the format of documents."""
        return [rule.to_json() for rule in self.rules]


def _check_l7_map(context: str, l7_map: Any) -> dict[str, Any]:
    if isinstance(l7_map, (list, tuple)):
        l7_map = {"offset": list(l7_map)}
    if not isinstance(l7_map, dict):
        raise ASTFError(
            f"argument 'l7_map' of {context} is {l7_map!r}, neither a list of offsets nor a dict"
        )
    unknown = sorted(set(l7_map) - set(_L7_MAP_KEYS))
    if unknown or "offset" not in l7_map:
        raise ASTFError(
            f"l7_map of {context} has {', '.join(map(str, l7_map)) or 'nothing'}: 'offset' is "
            "needed, 'mask' and 'value' are possible"
        )
    for key, numbers in l7_map.items():
        name = f"l7_map[{key!r}]"
        if not isinstance(numbers, (list, tuple)):
            raise ASTFError(f"{name} of {context} is {numbers!r}, not a list of numbers")
        for number in numbers:
            check_range(context, name, number, 0, 255)
    offsets = l7_map["offset"]
    if not 1 <= len(offsets) <= _L7_MAP_LEN_MAX or list(offsets) != sorted(set(offsets)):
        raise ASTFError(
            f"l7_map['offset'] of {context} is {offsets}, not 1 to {_L7_MAP_LEN_MAX} offsets that "
            "rise"
        )
    if "value" in l7_map and len(l7_map["value"]) != len(offsets):
        raise ASTFError(
            f"l7_map of {context} has {len(offsets)} offsets and {len(l7_map['value'])} values: "
            "each offset needs one"
        )
    return {key: list(numbers) for key, numbers in l7_map.items()}
