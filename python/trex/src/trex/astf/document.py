"""The document of a profile: its templates, and their shared parts by number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from trex.astf.commands import Buffer
from trex.astf.errors import ASTFError, ASTFErrorBadTG, ASTFErrorOverlapIP
from trex.astf.pools import ASTFIPGen, ASTFIPGenDist
from trex.astf.program import ASTFProgram
from trex.astf.templates import ASTFTemplate

Entry = TypeVar("Entry")


class Table(Generic[Entry]):
    """A list of distinct entries in the order of their first use."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self._numbers: dict[str, int] = {}

    def number(self, entry: Entry) -> int:
        """Returns the number of an entry, and adds a new one."""
        # The text is the key, because 1, 1.0 and True are equal but differ in a document.
        key = entry if isinstance(entry, str) else repr(entry)
        number = self._numbers.setdefault(key, len(self.entries))
        if number == len(self.entries):
            self.entries.append(entry)
        return number


class Document:
    """Data for `ASTFProfile.to_json`."""

    def __init__(self, templates: list[ASTFTemplate]) -> None:
        """Assigns all numbers. Raises `ASTFError` for unknown names or overlapping clients."""
        self.buffers: Table[Buffer] = Table()
        self.programs: Table[dict[str, Any]] = Table()
        self.pools: Table[dict[str, Any]] = Table()
        self._ranges: list[ASTFIPGenDist] = []
        # Groups have numbers from 1; templates without a group have none.
        names = dict.fromkeys(t.tg_name for t in templates if t.tg_name is not None)
        self.groups = {name: number for number, name in enumerate(names, start=1)}
        self.templates = []
        for number, template in enumerate(templates):
            try:
                self.templates.append(self._template(template))
            except ASTFError as error:
                raise ASTFError(f"template {number}: {error}") from error

    def _template(self, template: ASTFTemplate) -> dict[str, Any]:
        client, server = template.client_template, template.server_template
        document: dict[str, Any] = {
            "client_template": {
                "program_index": self._program("client", client.program),
                **client.to_json(),
            },
            "server_template": {
                "program_index": self._program("server", server.program),
                **server.to_json(),
            },
        }
        document["client_template"]["ip_gen"] = self._ip_gen(client.ip_gen)
        if template.tg_name is not None:
            document["tg_id"] = self.groups[template.tg_name]
        return document

    def _program(self, side: str, program: ASTFProgram) -> int:
        commands = []
        for position, command in enumerate(program.commands):
            at = _CommandPosition(position, program, self.groups, self.buffers)
            try:
                commands.append(command.at(at))
            except ASTFError as error:
                raise ASTFError(
                    f"program of the {side}, command {position} ({command.name}): {error}"
                ) from error
        document: dict[str, Any] = {"commands": commands}
        if not program.stream:
            document["stream"] = False
        if program.addon:
            document["addon"] = program.addon
        return self.programs.number(document)

    def _ip_gen(self, ip_gen: ASTFIPGen) -> dict[str, Any]:
        client = self._pool(ip_gen.dist_client, ip_gen.client_pool(), may_overlap=False)
        server = self._pool(ip_gen.dist_server, ip_gen.server_pool(), may_overlap=True)
        return {"dist_client": {"index": client}, "dist_server": {"index": server}}

    def _pool(self, pool: ASTFIPGenDist, document: dict[str, Any], may_overlap: bool) -> int:
        number = self.pools.number(document)
        if number == len(self._ranges):
            for other in self._ranges if not may_overlap else []:
                if pool.overlaps(other):
                    raise ASTFErrorOverlapIP(
                        (pool.ip_start, pool.ip_end), (other.ip_start, other.ip_end)
                    )
            self._ranges.append(pool)
        return number


@dataclass(frozen=True)
class _CommandPosition:
    """Position of a command in its program."""

    position: int
    program: ASTFProgram
    groups: Mapping[str, int]
    buffers: Table[Buffer]

    def buffer(self, buffer: Buffer) -> int:
        return self.buffers.number(buffer)

    def offset(self, label: str) -> int:
        if label not in self.program.labels:
            raise ASTFError(f"no set_label({label!r}) sets the label")
        return self.program.labels[label] - self.position

    def variable(self, name: Any) -> int:
        return _number(name, self.program.vars, "set_var")

    def tick_variable(self, name: Any) -> int:
        return _number(name, self.program.tick_vars, "set_tick_var")

    def group(self, name: Any) -> int:
        if not isinstance(name, str):
            return name
        if name not in self.groups:
            groups = ", ".join(map(repr, self.groups)) or "none"
            raise ASTFErrorBadTG(f"no template has tg_name={name!r}; known groups: {groups}")
        return self.groups[name]


def _number(name: Any, numbers: Mapping[str, int], setter: str) -> int:
    if not isinstance(name, str):
        return name
    if name not in numbers:
        raise ASTFError(f"no {setter}({name!r}, ...) of the program sets the variable")
    return numbers[name]
