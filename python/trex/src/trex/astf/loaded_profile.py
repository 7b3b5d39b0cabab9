"""A loaded profile: its document, run and counters."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from trex.addresses import ip2int
from trex.astf.counters import SECTIONS, Counts, total_counts
from trex.astf.stateful_run import StatefulRun
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


class TargetLoad(NamedTuple):
    """Target rate and pool sizes of a profile."""

    flows_per_second: float
    clients: int
    servers: int


class Profile:
    """A profile by ID: its document, last run, and the base of its counters."""

    def __init__(self, pid: str) -> None:
        self.pid = pid
        self.document: str | None = None
        self.groups: list[str] = []
        self.run: StatefulRun | None = None
        self.base: dict[str, Counts] = {}
        #: Base of the sum of all profiles, which is cleared separately.
        self.sum_base: dict[str, Counts] = {}
        self.rates = Rates()
        self._cps_and_pools: tuple[float, dict[str, int]] = (0.0, dict.fromkeys(SECTIONS, 0))

    def begin(self, run: StatefulRun) -> None:
        """Marks the profile as started and clears its counters."""
        self.run, self.base, self.sum_base, self.rates = run, {}, {}, Rates()
        self._cps_and_pools = self._read_cps_and_pools()

    @property
    def is_running(self) -> bool:
        """Whether it is running."""
        return self.run is not None and not self.run.is_done()

    @property
    def state(self) -> int:
        """State as TRex's number."""
        if self.is_running:
            return STATE_NAMES.index("STATE_TX")
        return STATE_NAMES.index("STATE_IDLE" if self.document is None else "STATE_ASTF_LOADED")

    def servers(self) -> set[tuple[str, int]]:
        """Returns the ports of its servers: `TCP` or `UDP`, and a port number."""
        document = json.loads(self.document or "{}")
        found = set()
        try:
            for template in document["templates"]:
                server = template["server_template"]
                program = document["program_list"][server["program_index"]]
                kind = "TCP" if program.get("stream", True) else "UDP"
                found.add((kind, int(server["assoc"][0]["port"])))
        except (LookupError, TypeError, ValueError, AttributeError):
            # The engine reports errors in a hand-written document.
            pass
        return found

    def first_addresses(self) -> tuple[tuple[str, str], tuple[str, str]]:
        """Returns the first client and server, and their offsets for each further pair of ports.

        Raises `TRexError` if a hand-written document has none.
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

    def target_load(self) -> TargetLoad:
        """Returns the target flows per second and the sizes of the pools on all ports."""
        run = self.run
        if run is None:
            return TargetLoad(0.0, 0, 0)
        names = run.ports()
        pairs = {side: sum(it.startswith(f"{side}s") for it in names) for side in SECTIONS}
        cps, sizes = self._cps_and_pools
        # Each pair of ports has a share of the flows, and its own addresses.
        share = pairs["client"] / max(run.pairs, 1)
        clients, servers = (pairs[side] * sizes[side] for side in SECTIONS)
        return TargetLoad(cps * run.load * share, clients, servers)

    def _read_cps_and_pools(self) -> tuple[float, dict[str, int]]:
        """Returns the flows per second of the templates, and the sizes of each side's pools."""
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
            # A hand-written document can lack parts of a profile.
            pass
        return cps, {side: sum(b - a + 1 for a, b in pools[side]) for side in SECTIONS}

    def counts(self) -> dict[str, Counts]:
        """Returns the counters of each section since the start."""
        ports = {} if self.run is None else self.run.ports()
        return {
            side: total_counts(
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
        """Returns the counters of template groups, by group and section."""
        ports = {} if self.run is None else self.run.ports(with_templates=True)
        templates: dict[tuple[str, str], list[Any]] = {}
        for template in (it for port in ports.values() for it in port["templates"]):
            templates.setdefault((template["group"], template["side"]), []).append(template)
        is_over = not self.is_running
        return {
            (group, side): total_counts(templates.get((group, side), []), is_over)
            for group in self.groups
            for side in SECTIONS
        }


def sum_counts(counts: Iterable[dict[str, Counts]]) -> dict[str, Counts]:
    """Returns the sums of counters by section."""
    sums: dict[str, Counts] = {side: total_counts([], False) for side in SECTIONS}
    for sections in counts:
        for side, values in sections.items():
            for name, value in values.items():
                sums[side][name] = sums[side].get(name, 0) + value
    return sums
