"""Stateful profiles, captures and programs for comparison with TRex's own client.

As a script it is the other side: it reads a list of cases from standard input and prints the result
of each. It uses only names that both clients have, and imports no other test module.
"""

from __future__ import annotations

import contextlib
import json
import random
import sys
from typing import Any

# Fixed, so that both sides draw the same random values.
_SEED = 20


def results(cases: list[dict[str, Any]]) -> list[Any]:
    """Returns the document of each case, or None if it is rejected."""
    return [_result(case) for case in cases]


def _result(case: dict[str, Any]) -> Any:
    from trex.astf.api import ASTFProfile

    random.seed(_SEED)
    try:
        if "profile" in case:
            profile = ASTFProfile.load(case["profile"], tunables=case["tunables"])
        elif "capture" in case:
            profile = _capture_result(case["capture"], case["arguments"])
        else:
            profile = _program_result(case["client"], case["server"], case["stream"])
        # Serialises and parses it, as both clients do.
        return json.loads(json.dumps(profile.to_json()))
    except Exception:
        return None


def _addresses() -> Any:
    from trex.astf.api import ASTFIPGen, ASTFIPGenDist

    return ASTFIPGen(
        dist_client=ASTFIPGenDist(["16.0.0.1", "16.0.0.255"]),
        dist_server=ASTFIPGenDist(["48.0.0.1", "48.0.0.255"], distribution="rand"),
    )


def _capture_result(file: str, arguments: dict[str, Any]) -> Any:
    from trex.astf.api import ASTFCapInfo, ASTFCmdDelay, ASTFCmdDelayRnd, ASTFProfile

    arguments = dict(arguments)
    delay = arguments.pop("s_delay", None)
    if delay is not None:
        arguments["s_delay"] = ASTFCmdDelay(*delay) if len(delay) == 1 else ASTFCmdDelayRnd(*delay)
    capture = ASTFCapInfo(file=file, **arguments)
    return ASTFProfile(default_ip_gen=_addresses(), cap_list=[capture])


def _program_result(client: list[Any], server: list[Any], stream: bool) -> Any:
    from trex.astf.api import (
        ASTFProfile,
        ASTFProgram,
        ASTFTCPClientTemplate,
        ASTFTCPServerTemplate,
        ASTFTemplate,
    )

    programs = []
    for calls in (client, server):
        program = ASTFProgram(stream=stream)
        for method, arguments in calls:
            getattr(program, method)(**arguments)
        programs.append(program)
    template = ASTFTemplate(
        client_template=ASTFTCPClientTemplate(ip_gen=_addresses(), program=programs[0], cps=2.5),
        server_template=ASTFTCPServerTemplate(program=programs[1]),
        tg_name="one",
    )
    return ASTFProfile(default_ip_gen=_addresses(), templates=template)


def program_cases(count: int) -> list[dict[str, Any]]:
    """Returns random programs of all commands. Some use unknown names."""
    draw = random.Random(_SEED)
    cases = []
    for _ in range(count):
        stream = draw.random() < 0.6
        cases.append(
            {
                "client": _random_calls(draw, stream),
                "server": _random_calls(draw, stream),
                "stream": stream,
            }
        )
    return cases


def _random_calls(draw: random.Random, stream: bool) -> list[Any]:
    calls: list[Any] = [["set_var", {"var_id": "n", "val": 3}], ["set_tick_var", {"var_id": "t"}]]
    if draw.random() < 0.9:
        calls.append(["set_var", {"var_id": "m", "val": 0}])
    length = draw.randrange(1, 15)
    for number in range(length):
        if number == 0 or draw.random() < 0.3:
            calls.append(["set_label", {"label": f"l{number}"}])
        calls.append(_random_call(draw, stream))
    calls.append(["set_label", {"label": "end"}])
    return calls


def _random_call(draw: random.Random, stream: bool) -> Any:
    var = draw.choice(["n", "n", "n", "m"])
    label = draw.choice(["end"] * 20 + ["l0"] * 20 + ["l1"])
    size = draw.choice([0, 0, 3, 500])
    fill = draw.choice([None, None, "x", "ab"])
    message = draw.choice(["", "hello", "GET / HTTP/1.1\r\n\r\n"])
    clear = draw.random() < 0.3
    both: list[Any] = [
        ["delay", {"usec": draw.choice([0, 10, 2.5, 1e6])}],
        ["delay_rand", {"min_usec": 10, "max_usec": draw.choice([10] * 10 + [2000] * 10 + [5])}],
        ["add_var", {"var_id": var, "val": -1}],
        ["add_tick_var", {"var_id": "t", "duration": draw.choice([1, 0.5])}],
        ["add_stats", {"stats_id": draw.choice([0, 3, "A", "b"]), "val": 7}],
        ["add_tick_stats", {"stats_id": "C", "var_id": "t"}],
        ["jmp_nz", {"var_id": var, "label": label}],
        ["jmp_dp", {"var_id": "t", "label": label, "duration": draw.choice([1, 2.5])}],
        ["jmp_cmp", {"var_id": var, "label": label, "cmp_op": "ne", "cmp_val": 9}],
        ["jmp", {"label": label}],
        *(
            [f"jmp_{op}", {"var_id": "n", "label": label, "value": 4}]
            for op in ("lt", "gt", "eq", "ge", "le", "ne")
        ),
        ["set_next_template", {"tg_id": draw.choice(["one"] * 20 + ["two"])}],
        ["exec_template", {}],
        ["set_send_blocking", {"block": draw.random() < 0.5}],
    ]
    tcp: list[Any] = [
        ["connect", {}],
        ["accept", {}],
        ["send", {"buf": message, "size": size, "fill": fill}],
        ["send_chunk", {"l7_buf": message, "chunk_size": 4, "delay_usec": draw.choice([0, 9])}],
        ["recv", {"bytes": draw.choice([1, 100]), "clear": clear}],
        ["reset", {}],
        ["wait_for_peer_close", {}],
    ]
    udp: list[Any] = [
        ["send_msg", {"buf": message, "size": size, "fill": fill}],
        ["recv_msg", {"pkts": 2, "clear": clear}],
        ["set_keepalive_msg", {"msec": 5000, "rx_mode": draw.random() < 0.5}],
        ["close_msg", {}],
    ]
    own, others = (tcp, udp) if stream else (udp, tcp)
    if draw.random() < 0.02:
        return draw.choice(others)
    return draw.choice(draw.choice([both, own]))


def main() -> None:
    cases = json.load(sys.stdin)
    with contextlib.redirect_stdout(sys.stderr):
        found = results(cases)
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
