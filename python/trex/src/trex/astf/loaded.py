"""A profile by its identifier: what is loaded, what its run has counted."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from trex.addresses import ip2int
from trex.astf.counters import SECTIONS, Counts, counts_of
from trex.astf.running import StatefulRun
from trex.client.counters import Rates
from trex.errors import TRexError

STATE_NAMES = (
    "STATE_IDLE",
    "STATE_ASTF_LOADED",
    "STATE_ASTF_PARSE",
    "STATE_ASTF_BUILD",
    "STATE_TX",
    "STATE_ASTF_CLEANUP",
    "STATE_ASTF_DELETE",
)


class Asked(NamedTuple):
    """What a profile asks for."""

    flows_per_second: float
    clients: int
    servers: int


class Profile:
    """A profile by its identifier: what is loaded, its last run, and where its counters began."""

    def __init__(self, pid: str) -> None:
        self.pid = pid
        self.document: str | None = None
        self.groups: list[str] = []
        self.run: StatefulRun | None = None
        self.base: dict[str, Counts] = {}
        #: The same of the sum of all profiles, which is cleared by itself.
        self.base_of_sum: dict[str, Counts] = {}
        self.rates = Rates()
        self._cps_and_pools: tuple[float, dict[str, int]] = (0.0, dict.fromkeys(SECTIONS, 0))

    def begin(self, run: StatefulRun) -> None:
        """Notes that it is on its way, and counts from now on."""
        self.run, self.base, self.base_of_sum, self.rates = run, {}, {}, Rates()
        self._cps_and_pools = self._read_cps_and_pools()

    @property
    def is_running(self) -> bool:
        """Whether it is on its way."""
        return self.run is not None and not self.run.is_done()

    @property
    def state(self) -> int:
        """What it is doing, as a number of TRex's."""
        if self.is_running:
            return STATE_NAMES.index("STATE_TX")
        return STATE_NAMES.index("STATE_IDLE" if self.document is None else "STATE_ASTF_LOADED")

    def servers(self) -> set[tuple[str, int]]:
        """Where its servers wait: `TCP` or `UDP`, and a port."""
        document = json.loads(self.document or "{}")
        found = set()
        try:
            for template in document["templates"]:
                server = template["server_template"]
                program = document["program_list"][server["program_index"]]
                kind = "TCP" if program.get("stream", True) else "UDP"
                found.add((kind, int(server["assoc"][0]["port"])))
        except (LookupError, TypeError, ValueError, AttributeError):
            # A document that was written by hand: the engine says what is wrong with it.
            pass
        return found

    def first_addresses(self) -> tuple[tuple[str, str], tuple[str, str]]:
        """The first client and server, and what is added to each for a further pair of ports.

        Raises `TRexError` where a document that was written by hand has none.
        """
        document = json.loads(self.document or "{}")
        try:
            ip_gen = document["templates"][0]["client_template"]["ip_gen"]
            pools = [
                document["ip_gen_dist_list"][ip_gen[side]["index"]]
                for side in ("dist_client", "dist_server")
            ]
            client, server = ((it["ip_start"], it.get("ip_offset", "1.0.0.0")) for it in pools)
        except (LookupError, TypeError, AttributeError) as error:
            raise TRexError(
                f"profile {self.pid}: its first template has no pools of addresses that latency "
                "traffic could have: start_latency() takes addresses"
            ) from error
        return (client[0], server[0]), (client[1], server[1])

    def asked(self) -> Asked:
        """The flows a second that its run is to make, and how many addresses are in its pools, on
        all ports."""
        run = self.run
        if run is None:
            return Asked(0.0, 0, 0)
        names = run.ports()
        pairs = {side: sum(it.startswith(f"{side}s") for it in names) for side in SECTIONS}
        cps, sizes = self._cps_and_pools
        # Each pair of ports has its share of the flows, and addresses of its own.
        share = pairs["client"] / max(run.pairs, 1)
        clients, servers = (pairs[side] * sizes[side] for side in SECTIONS)
        return Asked(cps * run.load * share, clients, servers)

    def _read_cps_and_pools(self) -> tuple[float, dict[str, int]]:
        """The flows a second of the templates, and the addresses of each side's pools."""
        document = json.loads(self.document or "{}")
        cps = 0.0
        pools: dict[str, set[tuple[int, int]]] = {side: set() for side in SECTIONS}
        try:
            for template in document["templates"]:
                client = template["client_template"]
                cps += client.get("cps", 0)
                for side in SECTIONS:
                    index = client["ip_gen"][f"dist_{side}"]["index"]
                    pool = document["ip_gen_dist_list"][index]
                    pools[side].add((ip2int(pool["ip_start"]), ip2int(pool["ip_end"])))
        except (LookupError, TypeError, ValueError, AttributeError):
            # A document that was written by hand, and has less than one of a profile's.
            pass
        return cps, {side: sum(b - a + 1 for a, b in pools[side]) for side in SECTIONS}

    def counts(self) -> dict[str, Counts]:
        """What each section has counted since the start."""
        ports = {} if self.run is None else self.run.ports()
        return {
            side: counts_of(
                (
                    {"side": side, **port["connections"]}
                    for name, port in ports.items()
                    if name.startswith(f"{side}s")
                ),
                not self.is_running,
            )
            for side in SECTIONS
        }

    def group_counts(self) -> dict[tuple[str, str], Counts]:
        """The same of each group's templates, by the group and the section."""
        ports = {} if self.run is None else self.run.ports(with_templates=True)
        templates: dict[tuple[str, str], list[Any]] = {}
        for template in (it for port in ports.values() for it in port["templates"]):
            templates.setdefault((template["group"], template["side"]), []).append(template)
        is_over = not self.is_running
        return {
            (group, side): counts_of(templates.get((group, side), []), is_over)
            for group in self.groups
            for side in SECTIONS
        }


def sum_of(counts: Iterable[dict[str, Counts]]) -> dict[str, Counts]:
    """What several have counted together, by section."""
    sums: dict[str, Counts] = {side: counts_of([], False) for side in SECTIONS}
    for sections in counts:
        for side, values in sections.items():
            for name, value in values.items():
                sums[side][name] = sums[side].get(name, 0) + value
    return sums
