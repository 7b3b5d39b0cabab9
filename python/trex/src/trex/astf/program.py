"""Programs: the actions of a client or server in each of its flows."""

from __future__ import annotations

from typing import Any

from trex.astf.arguments import check_list, check_not_negative, check_optional, check_required
from trex.astf.commands import (
    ASTFCmd,
    ASTFCmdAddStatsVal,
    ASTFCmdAddTickStats,
    ASTFCmdAddTickVar,
    ASTFCmdAddVal,
    ASTFCmdCloseMsg,
    ASTFCmdConnect,
    ASTFCmdDelay,
    ASTFCmdDelayRnd,
    ASTFCmdExecTemplate,
    ASTFCmdJMPCMP,
    ASTFCmdJMPDP,
    ASTFCmdJMPNZ,
    ASTFCmdKeepaliveMsg,
    ASTFCmdNoClose,
    ASTFCmdRecv,
    ASTFCmdRecvMsg,
    ASTFCmdReset,
    ASTFCmdSend,
    ASTFCmdSetTemplate,
    ASTFCmdSetTickVar,
    ASTFCmdSetVal,
    ASTFCmdTxMode,
    ASTFCmdTxPkt,
)
from trex.astf.conversation import Conversation, Side, read_conversation
from trex.astf.conversation_program import Delay, program_commands
from trex.astf.errors import ASTFError

_COMPARISONS = ("lt", "gt", "eq", "ge", "le", "ne")
_COUNTERS = "ABCD"


class ASTFProgram:
    """Commands of one side, from a captured conversation or added one by one."""

    def __init__(
        self,
        file: str | None = None,
        side: Side = "c",
        commands: list[ASTFCmd] | ASTFCmd | None = None,
        stream: bool = True,
        s_delay: Delay | None = None,
        udp_mtu: int | None = None,
        addon: str | None = None,
    ) -> None:
        """:param file: capture of one conversation, relative to the profile's folder
        :param side: side of the capture to replay: `c` (client) or `s` (server)
        :param commands: initial commands, if there is no capture
        :param stream: True for TCP, False for UDP; a capture determines it itself
        :param s_delay: delay before each answer of a server from a capture
        :param udp_mtu: truncates the capture's datagrams to this length, including the Ethernet
            header
        :param addon: `latency` for measured datagrams
        """
        context = type(self).__name__
        check_optional(context, "file", file, str)
        check_optional(context, "s_delay", s_delay, ASTFCmdDelay, ASTFCmdDelayRnd)
        check_optional(context, "udp_mtu", udp_mtu, int)
        check_optional(context, "addon", addon, str)
        if side not in ("c", "s"):
            raise ASTFError(f"argument 'side' of {context} is {side!r}, not 'c' or 's'")
        self.stream = stream
        self.addon = addon
        self.commands: list[ASTFCmd] = []
        # Number of commands before each label.
        self.labels: dict[str, int] = {}
        self.vars: dict[str, int] = {}
        self.tick_vars: dict[str, int] = {}
        # Bytes or datagrams received since the counter was cleared.
        self.total_rcv_bytes = 0
        self._payload_len = 0
        if file is not None:
            self._import(read_conversation(file), side, s_delay, udp_mtu)
        elif commands is not None:
            self._extend(check_list(context, "commands", commands, ASTFCmd))

    @classmethod
    def imported(
        cls,
        conversation: Conversation,
        side: Side,
        s_delay: Delay | None = None,
        udp_mtu: int | None = None,
    ) -> ASTFProgram:
        """Creates the program of a side from a conversation."""
        program = cls(s_delay=s_delay, udp_mtu=udp_mtu)
        program._import(conversation, side, s_delay, udp_mtu)
        return program

    def _import(
        self,
        conversation: Conversation,
        side: Side,
        s_delay: Delay | None,
        udp_mtu: int | None,
    ) -> None:
        self.stream = conversation.stream
        self._payload_len = conversation.payload_len
        self._extend(program_commands(conversation, side, s_delay, udp_mtu))

    def _extend(self, commands: list[ASTFCmd]) -> None:
        for command in commands:
            self._add(command)

    def _add(self, command: ASTFCmd) -> None:
        if command.stream not in (None, self.stream):
            kind, other = ("TCP", "UDP") if self.stream else ("UDP", "TCP")
            raise ASTFError(
                f"command {len(self.commands)} ({command.name}) is of {other}, and the program "
                f"of {kind}: ASTFProgram(stream={not self.stream}) makes one of {other}"
            )
        self.commands.append(command)

    def is_stream(self) -> bool:
        """Returns whether its flows are TCP."""
        return self.stream

    @property
    def payload_len(self) -> int:
        """Bytes that both sides send in its capture; 0 without one."""
        return self._payload_len

    @property
    def total_send_bytes(self) -> int:
        """Total bytes of its send commands, each counted once."""
        sending = (ASTFCmdSend, ASTFCmdTxPkt)
        return sum(command.buf_len for command in self.commands if isinstance(command, sending))

    def update_keepalive(self, prog_s: ASTFProgram) -> None:
        """Copies the initial keepalive of this program to the other side's program."""
        if self.commands and isinstance(self.commands[0], ASTFCmdKeepaliveMsg):
            prog_s.commands.insert(0, self.commands[0])

    # TCP commands.

    def connect(self) -> None:
        """Waits until the client's connection is established. Must be the first command."""
        self._add(ASTFCmdConnect())

    def accept(self) -> None:
        """Waits until the server's connection is established, so that it can send first."""
        self._add(ASTFCmdConnect())

    def send(self, buf: str | bytes, size: int = 0, fill: str | bytes | None = None) -> None:
        """Sends data and waits for its acknowledgement.

        :param buf: bytes, or ASCII text
        :param size: total length to send, if it is longer than `buf`
        :param fill: repeated filler up to that length; ascending bytes if None
        """
        self._add(ASTFCmdSend(*self._sent("send", buf, size, fill)))

    def send_chunk(self, l7_buf: str | bytes, chunk_size: int, delay_usec: int) -> None:
        """Sends in chunks of `chunk_size` bytes, each followed by a delay in microseconds."""
        context = self._context("send_chunk")
        data = _bytes(context, "l7_buf", l7_buf)
        check_required(context, "chunk_size", chunk_size, int)
        check_required(context, "delay_usec", delay_usec, int)
        if chunk_size < 1:
            raise ASTFError(f"argument 'chunk_size' of {context} is {chunk_size}, not 1 or more")
        for start in range(0, len(data), chunk_size):
            self.send(data[start : start + chunk_size])
            if delay_usec:
                self.delay(delay_usec)

    def recv(self, bytes: int, clear: bool = False) -> None:
        """Waits for `bytes` more bytes. `clear` resets the counter, which loops require."""
        self._count("recv", "bytes", bytes, clear)
        self._add(ASTFCmdRecv(self.total_rcv_bytes, clear))
        if clear:
            self.total_rcv_bytes = 0

    def set_send_blocking(self, block: bool) -> None:
        """Sets whether `send` waits for acknowledgements, or only for space in the send buffer."""
        check_required(self._context("set_send_blocking"), "block", block, bool)
        self._add(ASTFCmdTxMode(0 if block else 1))

    def reset(self) -> None:
        """Ends the connection with RST. Must be the last command."""
        self._add(ASTFCmdReset())

    def wait_for_peer_close(self) -> None:
        """Waits until the other side closes. Must be the last command."""
        self._add(ASTFCmdNoClose())

    # UDP commands.

    def send_msg(self, buf: str | bytes, size: int = 0, fill: str | bytes | None = None) -> None:
        """Sends a datagram. The arguments are those of `send`."""
        self._add(ASTFCmdTxPkt(*self._sent("send_msg", buf, size, fill)))

    def recv_msg(self, pkts: int, clear: bool = False) -> None:
        """Waits for `pkts` more datagrams. `clear` resets the counter."""
        self._count("recv_msg", "pkts", pkts, clear)
        self._add(ASTFCmdRecvMsg(self.total_rcv_bytes, clear))
        if clear:
            self.total_rcv_bytes = 0

    def set_keepalive_msg(self, msec: int, rx_mode: bool = False) -> None:
        """Ends the flow after `msec` without datagrams; `rx_mode`: without received ones."""
        context = self._context("set_keepalive_msg")
        check_required(context, "msec", msec, int)
        check_required(context, "rx_mode", rx_mode, bool)
        self._add(ASTFCmdKeepaliveMsg(msec, rx_mode))

    def close_msg(self) -> None:
        """Ends the flow."""
        self._add(ASTFCmdCloseMsg())

    # Commands for both protocols.

    def delay(self, usec: float) -> None:
        """Waits for `usec` microseconds."""
        context = self._context("delay")
        check_required(context, "usec", usec, int, float)
        check_not_negative(context, "usec", usec)
        self._add(ASTFCmdDelay(usec))

    def delay_rand(self, min_usec: float, max_usec: float) -> None:
        """Waits for a uniformly distributed random time between two bounds in microseconds."""
        context = self._context("delay_rand")
        check_required(context, "min_usec", min_usec, int, float)
        check_required(context, "max_usec", max_usec, int, float)
        check_not_negative(context, "min_usec", min_usec)
        if min_usec > max_usec:
            raise ASTFError(f"min_usec of {context} is {min_usec}, above max_usec, {max_usec}")
        self._add(ASTFCmdDelayRnd(min_usec, max_usec))

    def set_var(self, var_id: str, val: int) -> None:
        """Sets a variable of the flow, and creates it if necessary."""
        context = self._context("set_var")
        check_required(context, "var_id", var_id, str)
        check_required(context, "val", val, int)
        self.vars.setdefault(var_id, len(self.vars))
        self._add(ASTFCmdSetVal(var_id, val))

    def add_var(self, var_id: str, val: int) -> None:
        """Adds to a variable of `set_var`."""
        context = self._context("add_var")
        check_required(context, "var_id", var_id, str)
        check_required(context, "val", val, int)
        self._add(ASTFCmdAddVal(var_id, val))

    def set_tick_var(self, var_id: str) -> None:
        """Sets a time variable to the current time."""
        check_required(self._context("set_tick_var"), "var_id", var_id, str)
        self.tick_vars.setdefault(var_id, len(self.tick_vars))
        self._add(ASTFCmdSetTickVar(var_id))

    def add_tick_var(self, var_id: str, duration: float) -> None:
        """Adds seconds to a time variable."""
        context = self._context("add_tick_var")
        check_required(context, "var_id", var_id, str)
        check_required(context, "duration", duration, int, float)
        self._add(ASTFCmdAddTickVar(var_id, duration))

    def add_stats(self, stats_id: int | str, val: int) -> None:
        """Adds to a user counter, `A` to `D` or 0 to 3."""
        context = self._context("add_stats")
        check_required(context, "val", val, int)
        self._add(ASTFCmdAddStatsVal(_counter(context, stats_id), val))

    def add_tick_stats(self, stats_id: int | str, var_id: str) -> None:
        """Adds the time since a time variable to a user counter."""
        context = self._context("add_tick_stats")
        check_required(context, "var_id", var_id, str)
        self._add(ASTFCmdAddTickStats(_counter(context, stats_id), var_id))

    def set_label(self, label: str) -> None:
        """Sets a label at the next command, for jumps."""
        check_required(self._context("set_label"), "label", label, str)
        if label in self.labels:
            raise ASTFError(
                f"label {label!r} already is at command {self.labels[label]}: use another label"
            )
        self.labels[label] = len(self.commands)

    def jmp_nz(self, var_id: str, label: str) -> None:
        """Decrements a variable, and jumps unless it becomes 0."""
        context = self._context("jmp_nz")
        check_required(context, "var_id", var_id, str)
        check_required(context, "label", label, str)
        self._add(ASTFCmdJMPNZ(var_id, 0, label))

    def jmp_dp(self, var_id: str, label: str, duration: float) -> None:
        """Jumps while less than `duration` seconds have passed since a time variable."""
        context = self._context("jmp_dp")
        check_required(context, "var_id", var_id, str)
        check_required(context, "label", label, str)
        check_required(context, "duration", duration, int, float)
        self._add(ASTFCmdJMPDP(var_id, 0, label, float(duration)))

    def jmp_cmp(self, var_id: str, label: str, cmp_op: str, cmp_val: int) -> None:
        """Jumps if a variable is `lt`, `gt`, `eq`, `ge`, `le` or `ne` a value."""
        context = self._context("jmp_cmp")
        check_required(context, "var_id", var_id, str)
        check_required(context, "label", label, str)
        check_required(context, "cmp_op", cmp_op, str)
        check_required(context, "cmp_val", cmp_val, int)
        if var_id and cmp_op not in _COMPARISONS:
            expected = ", ".join(_COMPARISONS)
            raise ASTFError(f"cmp_op of {context} is {cmp_op!r}, which is none of {expected}")
        self._add(ASTFCmdJMPCMP(var_id, 0, label, cmp_op, cmp_val))

    def jmp(self, label: str) -> None:
        """Jumps."""
        self.jmp_cmp("", label, "", 0)

    def jmp_lt(self, var_id: str, label: str, value: int) -> None:
        """Jumps if the variable is less than the value."""
        self.jmp_cmp(var_id, label, "lt", value)

    def jmp_gt(self, var_id: str, label: str, value: int) -> None:
        """Jumps if the variable is greater than the value."""
        self.jmp_cmp(var_id, label, "gt", value)

    def jmp_eq(self, var_id: str, label: str, value: int) -> None:
        """Jumps if the variable is the value."""
        self.jmp_cmp(var_id, label, "eq", value)

    def jmp_ge(self, var_id: str, label: str, value: int) -> None:
        """Jumps if the variable is the value or greater."""
        self.jmp_cmp(var_id, label, "ge", value)

    def jmp_le(self, var_id: str, label: str, value: int) -> None:
        """Jumps if the variable is the value or less."""
        self.jmp_cmp(var_id, label, "le", value)

    def jmp_ne(self, var_id: str, label: str, value: int) -> None:
        """Jumps if the variable is not the value."""
        self.jmp_cmp(var_id, label, "ne", value)

    def set_next_template(self, tg_id: str) -> None:
        """Selects the template group for `exec_template`."""
        check_required(self._context("set_next_template"), "tg_id", tg_id, str)
        self._add(ASTFCmdSetTemplate(tg_id))

    def exec_template(self) -> None:
        """Opens a flow of the selected group from the same client, and waits for its end."""
        self._add(ASTFCmdExecTemplate())

    def _context(self, method: str) -> str:
        return f"{type(self).__name__}.{method}"

    def _sent(
        self, method: str, buf: str | bytes, size: int, fill: str | bytes | None
    ) -> tuple[bytes, int, bytes | None]:
        context = self._context(method)
        check_optional(context, "size", size, int)
        filled = None if fill is None else _bytes(context, "fill", fill)
        return _bytes(context, "buf", buf), size or 0, filled

    def _count(self, method: str, name: str, count: int, clear: bool) -> None:
        context = self._context(method)
        check_required(context, name, count, int)
        check_not_negative(context, name, count)
        check_optional(context, "clear", clear, int, bool)
        self.total_rcv_bytes += count


def _bytes(context: str, name: str, value: Any) -> bytes:
    """Returns bytes, or ASCII text as bytes."""
    check_required(context, name, value, bytes, str)
    if isinstance(value, bytes):
        return value
    try:
        return value.encode("ascii")
    except UnicodeEncodeError as error:
        raise ASTFError(
            f"argument '{name}' of {context} has {value[error.start]!r} at {error.start}, which is "
            "not ASCII: give it as bytes"
        ) from error


def _counter(context: str, stats_id: int | str) -> int:
    """Returns the number of a user counter."""
    check_required(context, "stats_id", stats_id, int, str)
    number = stats_id
    if isinstance(number, str):
        number = _COUNTERS.find(number.upper()) if len(number) == 1 else -1
    if not 0 <= number < len(_COUNTERS):
        raise ASTFError(f"argument 'stats_id' of {context} is {stats_id!r}, not A to D or 0 to 3")
    return number
