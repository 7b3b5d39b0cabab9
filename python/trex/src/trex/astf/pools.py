"""Address pools of clients and servers."""

from __future__ import annotations

from typing import Any, Literal

from trex.addresses import ip2int
from trex.astf.arguments import check_ipv4, check_ipv4_range, check_required
from trex.astf.errors import ASTFError

_DISTRIBUTIONS = ("seq", "rand")
_PER_CORE_DISTRIBUTIONS = ("default", "seq")


class ASTFIPGenDist:
    """A range of IPv4 addresses."""

    def __init__(
        self,
        ip_range: tuple[str, str] | list[str],
        distribution: str = "seq",
        per_core_distribution: str | None = None,
    ) -> None:
        """:param ip_range: first and last address
        :param distribution: `seq` (round robin) or `rand`
        :param per_core_distribution: `seq` gives each core consecutive addresses; or `default`
        """
        context = type(self).__name__
        self.ip_start, self.ip_end = check_ipv4_range(context, "ip_range", ip_range)
        _check_choice(context, "distribution", distribution, _DISTRIBUTIONS)
        if per_core_distribution:
            _check_choice(
                context, "per_core_distribution", per_core_distribution, _PER_CORE_DISTRIBUTIONS
            )
        self.distribution = distribution
        self.per_core_distribution = per_core_distribution
        # `c` for clients or `s` for servers, set by an `ASTFIPGen`.
        self.direction: Literal["c", "s"] | None = None

    def overlaps(self, other: ASTFIPGenDist) -> bool:
        """Returns whether the ranges have a common address."""
        return ip2int(self.ip_start) <= ip2int(other.ip_end) and ip2int(other.ip_start) <= ip2int(
            self.ip_end
        )

    def to_json(self) -> dict[str, Any]:
        """Returns the range. Its `ASTFIPGen` adds the direction."""
        document = {
            "ip_start": self.ip_start,
            "ip_end": self.ip_end,
            "distribution": self.distribution,
        }
        if self.per_core_distribution:
            document["per_core_distribution"] = self.per_core_distribution
        return document


class ASTFIPGenGlobal:
    """Address offsets between consecutive pairs of ports."""

    def __init__(self, ip_offset: str = "1.0.0.0", ip_offset_server: str | None = None) -> None:
        """:param ip_offset: offset of clients and servers, as an address
        :param ip_offset_server: offset of servers, if it differs
        """
        context = type(self).__name__
        check_ipv4(context, "ip_offset", ip_offset)
        if ip_offset_server is not None:
            check_ipv4(context, "ip_offset_server", ip_offset_server)
        self.ip_offset = ip_offset
        self.ip_offset_server = ip_offset_server or ip_offset


class ASTFIPGen:
    """Addresses of clients and of their servers."""

    def __init__(
        self,
        dist_client: ASTFIPGenDist,
        dist_server: ASTFIPGenDist,
        glob: ASTFIPGenGlobal | None = None,
    ) -> None:
        """:param dist_client: range of clients
        :param dist_server: range of servers
        :param glob: offsets between pairs of ports; default 1.0.0.0
        """
        context = type(self).__name__
        check_required(context, "dist_client", dist_client, ASTFIPGenDist)
        check_required(context, "dist_server", dist_server, ASTFIPGenDist)
        if glob is None:
            glob = ASTFIPGenGlobal()
        check_required(context, "glob", glob, ASTFIPGenGlobal)
        if dist_client.direction == "s":
            raise ASTFError(f"dist_client of {context} is a pool of servers already: make another")
        dist_client.direction = "c"
        if dist_server.direction == "c":
            raise ASTFError(f"dist_server of {context} is a pool of clients already: make another")
        dist_server.direction = "s"
        self.dist_client = dist_client
        self.dist_server = dist_server
        self.glob = glob

    def client_pool(self) -> dict[str, Any]:
        """Returns the pool of clients in the format of documents."""
        return {**self.dist_client.to_json(), "dir": "c", "ip_offset": self.glob.ip_offset}

    def server_pool(self) -> dict[str, Any]:
        """Returns the pool of servers in the format of documents."""
        return {**self.dist_server.to_json(), "dir": "s", "ip_offset": self.glob.ip_offset_server}


def _check_choice(context: str, name: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        expected = " or ".join(map(repr, allowed))
        raise ASTFError(f"argument '{name}' of {context} is {value!r}, not {expected}")
