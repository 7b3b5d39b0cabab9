"""Commands that replay one side of a captured conversation."""

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

# Shorter pauses between datagrams are dropped, longer ones are limited to this.
_DELAY_USEC_MIN = 50
_DELAY_USEC_MAX = 700_000
# From these delays on, a flow could time out while it waits.
_KEEPALIVE_FROM_USEC = 500_000
_KEEPALIVE_FROM_SERVER_DELAY_USEC = 900_000
# Ethernet, IPv4 and UDP headers, which an MTU of datagrams includes here.
_HEADERS_LEN = 14 + 20 + 8


def program_commands(
    conversation: Conversation, side: Side, s_delay: Delay | None, udp_mtu: int | None
) -> list[ASTFCmd]:
    """Returns the commands of a side.

    :param s_delay: delay before each answer of the server; no effect for the client
    :param udp_mtu: truncates datagrams to this length, including the Ethernet header
    """
    if conversation.stream:
        commands = _tcp_commands(conversation, side)
    else:
        commands = _udp_commands(conversation, side, udp_mtu)
    if s_delay is not None and side == "s":
        commands = _with_server_delay(commands, s_delay)
    if not conversation.stream:
        delay_max = max((_usec(command) for command in commands), default=0)
        if delay_max >= _KEEPALIVE_FROM_SERVER_DELAY_USEC:
            commands.insert(0, ASTFCmdKeepaliveMsg(int(delay_max / 1000 * 1.5)))
    return commands


def _tcp_commands(conversation: Conversation, side: Side) -> list[ASTFCmd]:
    commands: list[ASTFCmd] = []
    if side == "s" and conversation.messages[0].side == "s":
        # A server that sends first must wait for the connection.
        commands.append(ASTFCmdConnect())
    received = 0
    for message in conversation.messages:
        if message.side == side:
            commands.append(ASTFCmdSend(message.payload))
        else:
            received += len(message.payload)
            commands.append(ASTFCmdRecv(received))
    return commands


def _udp_commands(conversation: Conversation, side: Side, udp_mtu: int | None) -> list[ASTFCmd]:
    if udp_mtu is not None and udp_mtu <= _HEADERS_LEN:
        raise ASTFError(
            f"udp_mtu is {udp_mtu}, which leaves no payload behind {_HEADERS_LEN} bytes of headers"
        )
    payload_len_max = None if udp_mtu is None else udp_mtu - _HEADERS_LEN
    commands: list[ASTFCmd] = []
    received = awaited = delay_max = 0
    last_side: Side | None = None
    for message in conversation.messages:
        if message.side != side:
            received += 1
        else:
            if received > awaited:
                commands.append(ASTFCmdRecvMsg(received))
                awaited = received
            elif last_side == side:
                usec = min(int(message.gap_sec * 1_000_000), _DELAY_USEC_MAX)
                if usec > _DELAY_USEC_MIN:
                    commands.append(ASTFCmdDelay(usec))
                    delay_max = max(delay_max, usec)
            commands.append(ASTFCmdTxPkt(message.payload[:payload_len_max]))
        last_side = message.side
    if received > awaited:
        commands.append(ASTFCmdRecvMsg(received))
    if delay_max > _KEEPALIVE_FROM_USEC:
        # TRex's value in milliseconds: twice the number of the delay's microseconds, so never too
        # short.
        commands.insert(0, ASTFCmdKeepaliveMsg(delay_max * 2))
    return commands


def _with_server_delay(commands: list[ASTFCmd], s_delay: Delay) -> list[ASTFCmd]:
    """Inserts the delay before each first answer to received data."""
    delayed: list[ASTFCmd] = []
    has_request = False
    for command in commands:
        if isinstance(command, (ASTFCmdRecv, ASTFCmdRecvMsg)):
            has_request = True
        elif has_request and isinstance(command, (ASTFCmdSend, ASTFCmdTxPkt)):
            delayed.append(s_delay)
            has_request = False
        delayed.append(command)
    return delayed


def _usec(command: ASTFCmd) -> float:
    """Returns the maximum delay of a command in microseconds; 0 for other commands."""
    if isinstance(command, ASTFCmdDelay):
        return command.fields["usec"]
    if isinstance(command, ASTFCmdDelayRnd):
        return command.fields["max_usec"]
    return 0
