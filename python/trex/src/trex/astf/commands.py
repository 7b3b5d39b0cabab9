"""Commands of programs, as objects that scripts can create.

A command refers to variables, labels, buffers and template groups by name. A `ProgramPosition`
converts the names to the numbers of the document.
"""

from __future__ import annotations

import base64
from typing import Any, ClassVar, Protocol, Union

# Base64 of all bytes, or of the first bytes with a total size and repeated filler.
Buffer = Union[str, dict[str, Any]]


class ProgramPosition(Protocol):
    """Position of a command in its program, which resolves names."""

    def buffer(self, buffer: Buffer) -> int:
        """Returns the number of a buffer."""

    def offset(self, label: str) -> int:
        """Returns the distance to a label in commands."""

    def variable(self, name: Any) -> int:
        """Returns the number of a variable. A number is its own."""

    def tick_variable(self, name: Any) -> int:
        """Returns the number of a time variable. A number is its own."""

    def group(self, name: Any) -> int:
        """Returns the number of a template group. A number is its own."""


class ASTFCmd:
    """A command. `fields` has its arguments, with the names of the profile."""

    name: ClassVar[str]
    # True for TCP commands, False for UDP commands, None for both.
    stream: ClassVar[bool | None] = None

    def __init__(self, **fields: Any) -> None:
        self.fields: dict[str, Any] = {"name": self.name, **fields}

    def to_json(self) -> dict[str, Any]:
        """Returns the fields with their names."""
        return dict(self.fields)

    def at(self, position: ProgramPosition) -> dict[str, Any]:
        """Returns the command in the format of documents."""
        return self.to_json()


class _SendCommand(ASTFCmd):
    def __init__(self, buf: bytes, size: int = 0, fill: str | bytes | None = None) -> None:
        """:param size: total length to send, if it is longer than `buf`
        :param fill: repeated filler up to that length; ascending bytes if None
        """
        super().__init__()
        self.buf_len = max(size, len(buf))
        self.buf: Buffer = _base64(buf)
        if size > len(buf):
            self.buf = {"base": self.buf, "size": size}
            if fill is not None:
                self.buf["fill"] = _base64(fill.encode() if isinstance(fill, str) else fill)

    def at(self, position: ProgramPosition) -> dict[str, Any]:
        return {**self.fields, "buf_index": position.buffer(self.buf)}


class ASTFCmdSend(_SendCommand):
    """Sends data on a connection, and waits for its acknowledgement."""

    name = "tx"
    stream = True


class ASTFCmdTxPkt(_SendCommand):
    """Sends a datagram."""

    name = "tx_msg"
    stream = False


class ASTFCmdTxMode(ASTFCmd):
    """Sets the wait of `ASTFCmdSend`: with flag 1, only until the data is in the send buffer."""

    name = "tx_mode"

    def __init__(self, flags: int) -> None:
        super().__init__(flags=flags)


class ASTFCmdRecv(ASTFCmd):
    """Waits until `bytes` have arrived since the counter was cleared."""

    name = "rx"
    stream = True

    def __init__(self, min_bytes: int, clear: bool = False) -> None:
        super().__init__(min_bytes=min_bytes, **({"clear": True} if clear else {}))


class ASTFCmdRecvMsg(ASTFCmd):
    """Waits until a number of datagrams has arrived since the counter was cleared."""

    name = "rx_msg"
    stream = False

    def __init__(self, min_pkts: int, clear: bool = False) -> None:
        super().__init__(min_pkts=min_pkts, **({"clear": True} if clear else {}))


class ASTFCmdKeepaliveMsg(ASTFCmd):
    """Sets the idle timeout of a UDP flow in milliseconds."""

    name = "keepalive"
    stream = False

    def __init__(self, msec: int, rx_mode: bool = False) -> None:
        super().__init__(msec=msec, **({"rx_mode": True} if rx_mode else {}))


class ASTFCmdCloseMsg(ASTFCmd):
    """Ends a UDP flow."""

    name = "close_msg"
    stream = False


class ASTFCmdConnect(ASTFCmd):
    """Waits until the connection is established, on either side."""

    name = "connect"
    stream = True


class ASTFCmdReset(ASTFCmd):
    """Ends the connection with RST."""

    name = "reset"
    stream = True


class ASTFCmdNoClose(ASTFCmd):
    """Leaves the close of the connection to the other side."""

    name = "nc"
    stream = True


class ASTFCmdDelay(ASTFCmd):
    """Waits for a time in microseconds."""

    name = "delay"

    def __init__(self, usec: float) -> None:
        super().__init__(usec=usec)


class ASTFCmdDelayRnd(ASTFCmd):
    """Waits for a random time between two bounds in microseconds."""

    name = "delay_rnd"

    def __init__(self, min_usec: float, max_usec: float) -> None:
        super().__init__(min_usec=min_usec, max_usec=max_usec)


class ASTFCmdSetValBase(ASTFCmd):
    """Changes a variable."""

    def __init__(self, id_val: int | str, **fields: Any) -> None:
        super().__init__(id=id_val, **fields)

    def at(self, position: ProgramPosition) -> dict[str, Any]:
        return {**self.fields, "id": position.variable(self.fields["id"])}


class ASTFCmdSetVal(ASTFCmdSetValBase):
    """Sets a variable."""

    name = "set_var"

    def __init__(self, id_val: int | str, val: int) -> None:
        super().__init__(id_val, val=val)


class ASTFCmdAddVal(ASTFCmdSetValBase):
    """Adds to a variable."""

    name = "add_var"

    def __init__(self, id_val: int | str, val: int) -> None:
        super().__init__(id_val, val=val)


class ASTFCmdSetTickValBase(ASTFCmd):
    """Changes a time variable."""

    def __init__(self, id_val: int | str, **fields: Any) -> None:
        super().__init__(id=id_val, **fields)

    def at(self, position: ProgramPosition) -> dict[str, Any]:
        return {**self.fields, "id": position.tick_variable(self.fields["id"])}


class ASTFCmdSetTickVar(ASTFCmdSetTickValBase):
    """Sets a time variable to the current time."""

    name = "set_tick_var"


class ASTFCmdAddTickVar(ASTFCmdSetTickValBase):
    """Adds seconds to a time variable."""

    name = "add_tick_var"

    def __init__(self, id_val: int | str, duration: float) -> None:
        super().__init__(id_val, duration=duration)


class ASTFCmdAddStatsBase(ASTFCmd):
    """Changes a user counter, 0 to 3."""

    def __init__(self, id_val: int, **fields: Any) -> None:
        super().__init__(stats_id=id_val, **fields)


class ASTFCmdAddStatsVal(ASTFCmdAddStatsBase):
    """Adds a value to a user counter."""

    name = "add_stats"

    def __init__(self, id_val: int, val: int) -> None:
        super().__init__(id_val, val=val)


class ASTFCmdAddTickStats(ASTFCmdAddStatsBase):
    """Adds the time since a time variable to a user counter."""

    name = "add_tick_stats"

    def __init__(self, id_val: int, tick_var: int | str) -> None:
        super().__init__(id_val, var_id=tick_var)

    def at(self, position: ProgramPosition) -> dict[str, Any]:
        return {**self.fields, "var_id": position.tick_variable(self.fields["var_id"])}


class ASTFCmdJMPBase(ASTFCmd):
    """Jumps to a label. The label determines the offset; the given one has no effect."""

    def __init__(self, id_val: int | str, offset: int, label: str, **fields: Any) -> None:
        super().__init__(id=id_val, offset=offset, **fields)
        self.label = label

    def at(self, position: ProgramPosition) -> dict[str, Any]:
        return {
            **self.fields,
            "id": position.variable(self.fields["id"]),
            "offset": position.offset(self.label),
        }


class ASTFCmdJMPNZ(ASTFCmdJMPBase):
    """Decrements a variable, and jumps unless it becomes 0."""

    name = "jmp_nz"


class ASTFCmdJMPDP(ASTFCmdJMPBase):
    """Jumps while fewer seconds than the duration have passed since a time variable."""

    name = "jmp_dp"

    def __init__(self, id_val: int | str, offset: int, label: str, duration: float) -> None:
        super().__init__(id_val, offset, label, duration=duration)

    def at(self, position: ProgramPosition) -> dict[str, Any]:
        return {
            **self.fields,
            "id": position.tick_variable(self.fields["id"]),
            "offset": position.offset(self.label),
        }


class ASTFCmdJMPCMP(ASTFCmdJMPBase):
    """Jumps if a variable compares with a value; without a variable, always."""

    name = "jmp_cmp"

    def __init__(
        self, id_val: int | str, offset: int, label: str, cmp_op: str, cmp_val: int
    ) -> None:
        self._is_unconditional = id_val == ""
        condition = {} if self._is_unconditional else {"cmp_op": cmp_op, "cmp_val": cmp_val}
        super().__init__(id_val, offset, label, **condition)
        if self._is_unconditional:
            del self.fields["id"]

    def at(self, position: ProgramPosition) -> dict[str, Any]:
        if self._is_unconditional:
            return {**self.fields, "offset": position.offset(self.label)}
        return super().at(position)


class ASTFCmdSetTemplate(ASTFCmd):
    """Selects the template group for `ASTFCmdExecTemplate`."""

    name = "set_template"

    def __init__(self, id_val: str) -> None:
        super().__init__(tg_id=id_val)

    def at(self, position: ProgramPosition) -> dict[str, Any]:
        return {**self.fields, "tg_id": position.group(self.fields["tg_id"])}


class ASTFCmdExecTemplate(ASTFCmd):
    """Opens a flow of the selected template group, and waits for its end."""

    name = "exec_template"


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
