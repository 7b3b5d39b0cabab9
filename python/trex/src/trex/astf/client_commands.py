"""Commands for single clients, and queries of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Union

from trex.addresses import int2ip, ip2int, is_valid_ipv4
from trex.arguments import validate_type
from trex.astf.tunnel_commands import TunnelCommands
from trex.client.rc import RC, RC_OK
from trex.errors import TRexArgumentError

#: An IPv4 address as an integer or as text.
Client = Union[int, str]

# Maximum number of clients in a query.
_CLIENTS_MAX = 1 << 20
_LAST = 0xFFFFFFFF


class ClientCommands(TunnelCommands):
    """Commands for single clients by IPv4 address.

    Over IPv6, as in TRex, it is the last 32 bits of an address.
    """

    def set_client_enable(self, client_list: Iterable[Client], is_enable: bool) -> RC:
        """Switches clients of the running profiles on or off.

        The open flows of a client continue. The next client opens the flows of a client that is
        off.
        """
        return self._switch(_ranges(_numbers(client_list)), is_enable)

    def set_client_enable_range(
        self, client_start: Client, client_end: Client, is_enable: bool
    ) -> RC:
        """Switches all clients in a range of addresses on or off."""
        return self._switch([_range(client_start, client_end)], is_enable)

    def get_clients_info(self, client_list: Iterable[Client], timeout: float = 10) -> RC:
        """Returns whether addresses are clients of running profiles, and whether these are on.

        `data()` of the result has for each address, an integer as text, `Found` (1 or 0), and for a
        client its `state` (`Active` or `Inactive`) and its `tunnel_type` if it has a tunnel.
        `timeout` has no effect, because the answer is immediate.
        """
        return self._query(sorted(_numbers(client_list)))

    def get_clients_info_range(
        self, client_start: Client, client_end: Client, timeout: float = 10
    ) -> RC:
        """Like `get_clients_info`, for a range of addresses."""
        first, last = _range(client_start, client_end)
        _check_count(last - first + 1)
        return self._query(list(range(first, last + 1)))

    def _switch(self, ranges: list[tuple[int, int]], is_enable: bool) -> RC:
        validate_type("is_enable", is_enable, bool)
        self._require_session()
        ranges_text = [(int2ip(first), int2ip(last)) for first, last in ranges]
        runs = self._running()
        if not runs:
            self._log_event("no profile is running: there are no clients to switch", "warning")
        for run in runs:
            run.switch_clients(ranges_text, is_enable)
        return RC_OK({})

    def _query(self, numbers: list[int]) -> RC:
        self._require_session()
        addresses, has_tunnel = [int2ip(number) for number in numbers], self._tunnel_lookup()
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
    if count > _CLIENTS_MAX:
        raise TRexArgumentError("clients", count, f"at most {_CLIENTS_MAX} at a time")


def _range(start: Client, end: Client) -> tuple[int, int]:
    first, last = _number(start), _number(end)
    if first > last:
        raise TRexArgumentError("client_end", end, f"an address from {int2ip(first)} on")
    return first, last


def _ranges(numbers: set[int]) -> list[tuple[int, int]]:
    """Merges integers into ranges."""
    found: list[tuple[int, int]] = []
    for number in sorted(numbers):
        if found and number == found[-1][1] + 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return found
