"""Single clients that are switched on and off, and what is known of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Union

from trex.addresses import int2ip, ip2int, is_valid_ipv4
from trex.arguments import validate_type
from trex.astf.tunnelling import Tunnelling
from trex.client.answers import RC, RC_OK
from trex.errors import TRexArgumentError

#: An address of IPv4, as a number or as text.
Client = Union[int, str]

# Clients that are asked for at a time.
_ASKED_MAX = 1 << 20
_LAST = 0xFFFFFFFF


class Switching(Tunnelling):
    """Commands about single clients, by their addresses of IPv4.

    Over IPv6 these are the last 32 bits of an address, as in TRex.
    """

    def set_client_enable(self, client_list: Iterable[Client], is_enable: bool) -> RC:
        """Lets clients of the profiles that are running make flows, or no more.

        The flows that a client has go on. What its turn would have been is the next client's.
        """
        return self._switch(_ranges(_numbers(client_list)), is_enable)

    def set_client_enable_range(
        self, client_start: Client, client_end: Client, is_enable: bool
    ) -> RC:
        """The same for all clients from one address to another."""
        return self._switch([_range(client_start, client_end)], is_enable)

    def get_clients_info(self, client_list: Iterable[Client], timeout: float = 10) -> RC:
        """Whether addresses are clients of profiles that are running, and whether these are on.

        The answer's `data()` has for each address, as a number in text, `Found`, 1 or 0, and of a
        client its `state`, `Active` or `Inactive`, and its `tunnel_type` where it has a tunnel.
        `timeout`: no effect, for all is known at once.
        """
        return self._told(sorted(_numbers(client_list)))

    def get_clients_info_range(
        self, client_start: Client, client_end: Client, timeout: float = 10
    ) -> RC:
        """The same for all addresses from one to another."""
        first, last = _range(client_start, client_end)
        _check_count(last - first + 1)
        return self._told(list(range(first, last + 1)))

    def _switch(self, ranges: list[tuple[int, int]], is_enable: bool) -> RC:
        validate_type("is_enable", is_enable, bool)
        self._need_session()
        named = [(int2ip(first), int2ip(last)) for first, last in ranges]
        runs = self._running()
        if not runs:
            self._note("no profile is running: there are no clients to switch", "warning")
        for run in runs:
            run.switch_clients(named, is_enable)
        return RC_OK({})

    def _told(self, numbers: list[int]) -> RC:
        self._need_session()
        addresses, has_tunnel = [int2ip(number) for number in numbers], self._tunnelled()
        found: dict[str, dict[str, Any]] = {str(it): {"Found": 0} for it in numbers}
        for run in self._running():
            for number, is_on in zip(numbers, run.clients(addresses)):
                if is_on is not None:
                    state = "Active" if is_on else "Inactive"
                    found[str(number)] = {"Found": 1, "state": state}
                    if has_tunnel(number):
                        found[str(number)]["tunnel_type"] = "GTP"
        return RC_OK(found)


def _number(client: Client) -> int:
    is_number = isinstance(client, int) and not isinstance(client, bool) and 0 <= client <= _LAST
    if is_number or is_valid_ipv4(client):
        return ip2int(client) if isinstance(client, str) else int(client)
    raise TRexArgumentError("client", client, "an address of IPv4, as a number or as text")


def _numbers(clients: Iterable[Client]) -> set[int]:
    if isinstance(clients, (str, int)):
        raise TRexArgumentError("client_list", clients, "a list of addresses")
    numbers = {_number(client) for client in clients}
    _check_count(len(numbers))
    return numbers


def _check_count(count: int) -> None:
    if count > _ASKED_MAX:
        raise TRexArgumentError("clients", count, f"at most {_ASKED_MAX} at a time")


def _range(start: Client, end: Client) -> tuple[int, int]:
    first, last = _number(start), _number(end)
    if first > last:
        raise TRexArgumentError("client_end", end, f"an address from {int2ip(first)} on")
    return first, last


def _ranges(numbers: set[int]) -> list[tuple[int, int]]:
    """The fewest ranges that numbers are."""
    found: list[tuple[int, int]] = []
    for number in sorted(numbers):
        if found and number == found[-1][1] + 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return found
