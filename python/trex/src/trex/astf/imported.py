"""The commands by which a side plays its part of a captured conversation."""

from __future__ import annotations

from typing import Union

from trex.astf.commands import (
    ASTFCmd,
    ASTFCmdConnect,
    ASTFCmdDelay,
    ASTFCmdDelayRnd,
    ASTFCmdKeepaliveMsg,
    ASTFCmdRecv,
    ASTFCmdRecvMsg,
    ASTFCmdSend,
    ASTFCmdTxPkt,
)
from trex.astf.conversation import Conversation, Side
from trex.astf.errors import ASTFError

Delay = Union[ASTFCmdDelay, ASTFCmdDelayRnd]

# Shorter pauses between datagrams are left out, longer ones cut to this.
_DELAY_USEC_MIN = 50
_DELAY_USEC_MAX = 700_000
# From these delays on a flow could end while it waits.
_KEEPALIVE_FROM_USEC = 500_000
_KEEPALIVE_FROM_SERVER_DELAY_USEC = 900_000
# Ethernet, IPv4 and UDP, which an MTU of datagrams counts here.
_HEADERS_LEN = 14 + 20 + 8


def commands_of(
    conversation: Conversation, side: Side, s_delay: Delay | None, udp_mtu: int | None
) -> list[ASTFCmd]:
    """The commands of a side.

    :param s_delay: before each answer of the server; of no effect on the client's side
    :param udp_mtu: datagrams are cut to this length, from the Ethernet header on
    """
    if conversation.stream:
        commands = _of_connection(conversation, side)
    else:
        commands = _of_datagrams(conversation, side, udp_mtu)
    if s_delay is not None and side == "s":
        commands = _with_server_delay(commands, s_delay)
    if not conversation.stream:
        longest = max((_usec(command) for command in commands), default=0)
        if longest >= _KEEPALIVE_FROM_SERVER_DELAY_USEC:
            commands.insert(0, ASTFCmdKeepaliveMsg(int(longest / 1000 * 1.5)))
    return commands


def _of_connection(conversation: Conversation, side: Side) -> list[ASTFCmd]:
    commands: list[ASTFCmd] = []
    if side == "s" and conversation.messages[0].side == "s":
        # A server that speaks first has to wait for the client to be there.
        commands.append(ASTFCmdConnect())
    received = 0
    for message in conversation.messages:
        if message.side == side:
            commands.append(ASTFCmdSend(message.payload))
        else:
            received += len(message.payload)
            commands.append(ASTFCmdRecv(received))
    return commands


def _of_datagrams(conversation: Conversation, side: Side, udp_mtu: int | None) -> list[ASTFCmd]:
    if udp_mtu is not None and udp_mtu <= _HEADERS_LEN:
        raise ASTFError(
            f"udp_mtu is {udp_mtu}, which leaves no payload behind {_HEADERS_LEN} bytes of headers"
        )
    payload_len_max = None if udp_mtu is None else udp_mtu - _HEADERS_LEN
    commands: list[ASTFCmd] = []
    received = waited_for = longest = 0
    last_side: Side | None = None
    for message in conversation.messages:
        if message.side != side:
            received += 1
        else:
            if received > waited_for:
                commands.append(ASTFCmdRecvMsg(received))
                waited_for = received
            elif last_side == side:
                usec = min(int(message.gap_sec * 1_000_000), _DELAY_USEC_MAX)
                if usec > _DELAY_USEC_MIN:
                    commands.append(ASTFCmdDelay(usec))
                    longest = max(longest, usec)
            commands.append(ASTFCmdTxPkt(message.payload[:payload_len_max]))
        last_side = message.side
    if received > waited_for:
        commands.append(ASTFCmdRecvMsg(received))
    if longest > _KEEPALIVE_FROM_USEC:
        # TRex's figure: milliseconds that are twice the delay's microseconds, so never too few.
        commands.insert(0, ASTFCmdKeepaliveMsg(longest * 2))
    return commands


def _with_server_delay(commands: list[ASTFCmd], s_delay: Delay) -> list[ASTFCmd]:
    """The delay before each first answer to what was received."""
    delayed: list[ASTFCmd] = []
    is_asked = False
    for command in commands:
        if isinstance(command, (ASTFCmdRecv, ASTFCmdRecvMsg)):
            is_asked = True
        elif is_asked and isinstance(command, (ASTFCmdSend, ASTFCmdTxPkt)):
            delayed.append(s_delay)
            is_asked = False
        delayed.append(command)
    return delayed


def _usec(command: ASTFCmd) -> float:
    """How long a command waits at most; 0 if it is no delay."""
    if isinstance(command, ASTFCmdDelay):
        return command.fields["usec"]
    if isinstance(command, ASTFCmdDelayRnd):
        return command.fields["max_usec"]
    return 0
