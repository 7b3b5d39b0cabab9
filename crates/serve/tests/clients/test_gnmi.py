"""gNMI: pygnmi as it is on PyPI reads what snappi configures."""

import json
import re
import struct
import time
import urllib.request
from pathlib import Path

import grpc
import pytest
import snappi
from pygnmi.client import gNMIclient
from pygnmi.spec.v080 import gnmi_pb2 as pb
from pygnmi.spec.v080.gnmi_pb2_grpc import gNMIStub

from conftest import WAIT_S, wait_for
from test_snappi import (
    PACKETS,
    add_flow,
    all_received,
    flow_metrics,
    lag_metrics,
    port_metrics,
    set_config,
    set_link,
    transmit,
    two_ports,
    with_lags,
)

MS = 1_000_000


@pytest.fixture
def api(server):
    """A client of Open Traffic Generator of a new server."""
    location = server.url.removeprefix("http://")
    return snappi.api(location=location, transport=snappi.Transport.GRPC)


@pytest.fixture
def client(server):
    """A client of gNMI of the same server."""
    address, port = server.url.removeprefix("http://").split(":")
    with gNMIclient(target=(address, int(port)), insecure=True, gnmi_timeout=WAIT_S) as client:
        yield client


@pytest.fixture
def stub(server):
    """The RPCs of gNMI, for what pygnmi hides."""
    with grpc.insecure_channel(server.url.removeprefix("http://")) as channel:
        yield gNMIStub(channel)


def configure(api, names=("f", "g"), packets=PACKETS, pps=2_000):
    """Sets a configuration: each flow goes from p1 to p2, and the first one measures everything."""
    config = two_ports(api)
    for name in names:
        flow = add_flow(config, name, "p1", "p2", packets=packets, pps=pps)
        flow.packet.ethernet().ipv4().udp()
    flow = config.flows[0]
    flow.metrics.loss = flow.metrics.timestamps = True
    flow.metrics.latency.enable = True
    flow.metrics.latency.mode = flow.metrics.latency.CUT_THROUGH
    set_config(api, config)
    return config


def path(*elements, origin="", target=""):
    """Returns a path: `path("flows", ("flow", "f"), "state")`."""
    made = pb.Path(origin=origin, target=target)
    for element in elements:
        name, key = element if isinstance(element, tuple) else (element, None)
        key_name = "name-value-pairs" if name == "tagged-metric" else "name"
        made.elem.add(name=name, key={} if key is None else {key_name: key})
    return made


def text(path):
    keys = [[f"[{key}={value}]" for key, value in sorted(it.key.items())] for it in path.elem]
    return "".join(f"/{it.name}{''.join(key)}" for it, key in zip(path.elem, keys, strict=True))


def value(typed):
    kind = typed.WhichOneof("value")
    content = getattr(typed, kind)
    if kind == "bytes_val":
        return struct.unpack(">f", content)[0]
    return json.loads(content) if kind in ("json_val", "json_ietf_val") else content


def get(stub, *paths, encoding="PROTO", prefix=None, kind="ALL"):
    """Returns the values of Get by path."""
    request = pb.GetRequest(path=paths, encoding=encoding, prefix=prefix, type=kind)
    response = stub.Get(request, timeout=WAIT_S)
    return {text(it.path): value(it.val) for at in response.notification for it in at.update}


def subscription(
    *paths,
    mode="STREAM",
    mode_of_each="TARGET_DEFINED",
    encoding="PROTO",
    prefix=None,
    updates_only=False,
    **each,
):
    """Returns a request with the same settings for each path."""
    subscribed = [pb.Subscription(path=path, mode=mode_of_each, **each) for path in paths]
    made = pb.SubscriptionList(
        subscription=subscribed,
        mode=mode,
        encoding=encoding,
        prefix=prefix,
        updates_only=updates_only,
    )
    return pb.SubscribeRequest(subscribe=made)


def stream(stub, *requests):
    """Sends requests and closes the sending side; returns the responses."""
    return stub.Subscribe(iter(requests), timeout=WAIT_S)


def until_sync(responses):
    """Returns the values up to the synchronization, by path."""
    values = {}
    for response in responses:
        if response.sync_response:
            return values
        values |= {text(it.path): value(it.val) for it in response.update.update}
    raise AssertionError("no sync_response")


def once(stub, *paths, **options):
    responses = stream(stub, subscription(*paths, mode="ONCE", **options))
    values = until_sync(responses)
    assert list(responses) == [], "the RPC ends"
    return values


def refused(code, call):
    """Returns the message of a call that ends with an error."""
    with pytest.raises(grpc.RpcError) as error:
        call()
    assert error.value.code() == code, error.value
    return error.value.details()


def test_capabilities(client):
    found = client.capabilities()
    assert found["gnmi_version"] == "0.10.0"
    assert sorted(found["supported_encodings"]) == ["json", "json_ietf", "proto"]
    names = [(model["name"], model["version"]) for model in found["supported_models"]]
    prefix = "open-traffic-generator"
    assert names == [(f"{prefix}-{name}", "0.1.0") for name in ["port", "flow", "lag"]]


@pytest.mark.parametrize("encoding", ["PROTO", "JSON", "JSON_IETF"])
def test_values_are_those_of_get_metrics(api, stub, encoding):
    configure(api)
    transmit(api, "start")
    flows = all_received(api)
    ports = port_metrics(api)
    found = once(stub, path(), encoding=encoding)
    number = int if encoding == "JSON_IETF" else lambda it: it
    for name, flow in flows.items():
        state = f"/flows/flow[name={name}]/state"
        assert found[f"/flows/flow[name={name}]/name"] == found[f"{state}/name"] == name
        assert found[f"{state}/transmit"] is False
        counters = {
            "out-pkts": flow.frames_tx,
            "in-pkts": flow.frames_rx,
            "out-octets": flow.bytes_tx,
            "in-octets": flow.bytes_rx,
        }
        for leaf, expected in counters.items():
            assert number(found[f"{state}/counters/{leaf}"]) == expected
        for leaf in ["out-rate", "in-rate", "out-frame-rate", "in-frame-rate", "out-l1-rate"]:
            assert found[f"{state}/{leaf}"] == ("AAAAAA==" if encoding == "JSON_IETF" else 0), leaf
    latency = flows["f"].latency
    state = "/flows/flow[name=f]/state"
    assert number(found[f"{state}/minimum-latency"]) == latency.minimum_ns
    assert number(found[f"{state}/maximum-latency"]) == latency.maximum_ns
    assert number(found[f"{state}/average-latency"]) == round(latency.average_ns)
    times = flows["f"].timestamps
    assert float(found[f"{state}/first-timestamp"]) == times.first_timestamp_ns
    assert float(found[f"{state}/last-timestamp"]) == times.last_timestamp_ns
    without = {"loss-pct", "minimum-latency", "average-latency", "first-timestamp"}
    assert not any(f"/flows/flow[name=g]/state/{leaf}" in found for leaf in without)
    for name, port in ports.items():
        state = f"/ports/port[name={name}]/state"
        assert found[f"{state}/link"] == "UP"
        # veth(4) has 10 Gbit/s.
        assert number(found[f"{state}/speed"]) == 10 * 1024 * 1024 // 8
        assert number(found[f"{state}/counters/out-frames"]) == port.frames_tx
        assert number(found[f"{state}/counters/in-octets"]) == port.bytes_rx
    assert list(found) == list(once(stub, path("..."), encoding=encoding))


def test_rates_are_in_bits_a_second(api, stub):
    configure(api, names=["f"], packets=None, pps=1_000)
    transmit(api, "start")
    state = "/flows/flow[name=f]/state"

    def steady():
        found = once(stub, path())
        pps = found[f"{state}/in-frame-rate"]
        bits = found["/ports/port[name=p1]/state/out-rate"]
        return found if 900 < pps < 1_100 and 0.9e6 < bits < 1.2e6 else None

    found = wait_for("the rate is steady", steady)
    bits = found[f"{state}/in-frame-rate"] * 128 * 8
    assert found[f"{state}/in-rate"] == pytest.approx(bits, rel=1e-3)
    assert found[f"{state}/transmit"] is True
    transmit(api, "stop")


def test_groups_and_changes_of_links(start_server):
    server = start_server(ports=["left", "left2", "right", "right2"])
    location = server.url.removeprefix("http://")
    api = snappi.api(location=location, transport=snappi.Transport.GRPC)
    config = with_lags(api)
    config.flows[0].duration.fixed_packets.packets = PACKETS
    set_config(api, config)
    transmit(api, "start")
    all_received(api)
    with grpc.insecure_channel(location) as channel:
        stub = gNMIStub(channel)
        found = once(stub, path())
        state = "/lags/lag[name=b]/state"
        lag = lag_metrics(api)["b"]
        assert found["/lags/lag[name=b]/name"] == found[f"{state}/name"] == "b"
        assert found[f"{state}/oper-status"] == "UP"
        assert found[f"{state}/counters/member-ports-up"] == 2
        assert found[f"{state}/counters/in-frames"] == lag.frames_rx == PACKETS
        assert found[f"{state}/counters/in-octets"] == lag.bytes_rx
        assert found["/lags/lag[name=a]/state/counters/out-frames"] == PACKETS
        assert {f"{state}/out-rate", f"{state}/in-rate"} <= found.keys()
        changed = "/ports/port[name=left]/state/last-change"
        assert changed not in found
        set_link(api, "down", ["left", "left2"])
        found = once(stub, path())
        assert found["/lags/lag[name=a]/state/oper-status"] == "DOWN"
        assert found["/lags/lag[name=a]/state/counters/member-ports-up"] == 0
        assert 0 <= time.time_ns() - found[changed] < WAIT_S * 1_000 * MS


def test_pygnmi_reads_json(api, client):
    configure(api)
    transmit(api, "start")
    all_received(api)
    (answer,) = client.get(path=["/flows/flow[name=f]/state/counters"])["notification"]
    (update,) = answer["update"]
    octets = 128 * PACKETS
    assert update["path"] == "flows/flow[name=f]/state/counters"
    assert update["val"] == {
        "in-octets": octets,
        "in-pkts": PACKETS,
        "out-octets": octets,
        "out-pkts": PACKETS,
    }
    module = "open-traffic-generator-flow"
    (answer,) = client.get(path=[f"{module}:flows"], encoding="json_ietf")["notification"]
    flows = answer["update"][0]["val"][f"{module}:flow"]
    assert [flow["name"] for flow in flows] == ["f", "g"]
    assert flows[1]["state"]["counters"]["out-pkts"] == str(PACKETS)
    (answer,) = client.get(path=["/"], encoding="json_ietf")["notification"]
    assert sorted(answer["update"][0]["val"]) == [
        "open-traffic-generator-flow:flows",
        "open-traffic-generator-port:ports",
    ]
    leaf = "flows/flow[name=f]/state/counters/in-pkts"
    subscribe = {"subscription": [{"path": leaf}], "mode": "once", "encoding": "proto"}
    (update, sync) = client.subscribe2(subscribe)
    assert update["update"]["update"] == [{"path": leaf, "val": PACKETS}]
    assert sync == {"sync_response": True}


def test_wildcards_and_keys(api, stub):
    configure(api)
    leaves = ["/flows/flow[name=f]/state/transmit", "/flows/flow[name=g]/state/transmit"]
    for flow in ["flow", ("flow", "*"), "*"]:
        wanted = path("flows", flow, "state", "transmit")
        assert list(get(stub, wanted)) == list(once(stub, wanted)) == leaves
    assert list(get(stub, path("flows", ("flow", "g"), "state", "transmit"))) == leaves[1:]
    octets = get(stub, path("...", "out-octets"))
    assert len(octets) == 4, "of two ports and of two flows"
    ports = get(stub, path("ports", "port", "state"), encoding="JSON")
    assert list(ports) == ["/ports/port[name=p1]/state", "/ports/port[name=p2]/state"]
    assert ports["/ports/port[name=p1]/state"]["name"] == "p1"
    prefix = path("flows", ("flow", "f"), origin="openconfig", target="ate")
    request = subscription(path("state", "transmit"), mode="ONCE", prefix=prefix)
    update = next(stream(stub, request)).update
    assert (update.prefix.target, update.prefix.origin) == ("ate", "openconfig")
    assert [text(it.path) for it in update.update] == leaves[:1]
    assert get(stub, path("flows"), kind="CONFIG") == {}
    assert len(get(stub, path("flows"), kind="STATE")) > 10


@pytest.mark.parametrize("mode", ["TARGET_DEFINED", "ON_CHANGE"])
def test_changes_are_sent_until_the_flow_vanishes(api, stub, mode):
    flow = path("flows", ("flow", "f"))
    responses = stream(stub, subscription(flow, path("ports"), mode_of_each=mode))
    assert until_sync(responses) == {}, "there is no configuration yet"
    configure(api, pps=200)
    values, deleted = {}, []
    state = "/flows/flow[name=f]/state"

    def follow(is_done):
        for response in responses:
            assert not response.sync_response, "once is enough"
            new = {text(it.path): value(it.val) for it in response.update.update}
            assert all(values.get(path) != it for path, it in new.items()), "only changes"
            values.update(new)
            deleted.extend(text(it) for it in response.update.delete)
            if is_done():
                return
        raise AssertionError("the stream has ended")

    follow(lambda: f"{state}/transmit" in values and "/ports/port[name=p2]/state/link" in values)
    assert not any("[name=g]" in path for path in values)
    transmit(api, "start")
    follow(lambda: values[f"{state}/transmit"] is True)
    follow(lambda: values[f"{state}/transmit"] is False)
    follow(lambda: values[f"{state}/counters/in-pkts"] == PACKETS)
    set_config(api, api.config())
    follow(lambda: len(deleted) >= 3)
    assert deleted == ["/flows/flow[name=f]", "/ports/port[name=p1]", "/ports/port[name=p2]"]
    responses.cancel()


def configure_tags(api):
    """Sets a configuration: the flow `f` has four values of the tag `low`, `g` has no tags."""
    config = two_ports(api)
    for name in ["f", "g"]:
        flow = add_flow(config, name, "p1", "p2")
        _, ip, _ = flow.packet.ethernet().ipv4().udp()
        ip.dst.increment.start, ip.dst.increment.count = "10.0.0.8", 4
    flow = config.flows[0]
    flow.metrics.predefined_metric_tags.rx_name = True
    # The last four bits of the address.
    tag = flow.packet[1].dst.metric_tags.metrictag(name="low")[-1]
    tag.offset, tag.length = 28, 4
    set_config(api, config)


TAGGED = {
    value: ("tagged-metric", f"low={value}&rx_name=p2") for value in ["0x8", "0x9", "0xa", "0xb"]
}
TAGGED_PATHS = {
    value: f"/flows/flow[name=f]/tagged-metrics/{name}[name-value-pairs={pairs}]"
    for value, (name, pairs) in TAGGED.items()
}
# Each value has a quarter of the frames.
TAGGED_COUNTERS = {
    "in-octets": 128 * PACKETS // 4,
    "in-pkts": PACKETS // 4,
    "out-octets": 128 * PACKETS // 4,
    "out-pkts": PACKETS // 4,
}


def tags_of(low, module=""):
    low = {"value-type": "HEX", "value-as-hex": low}
    rx_name = {"value-type": "STRING", "value-as-string": "p2"}
    tags = [("low", low), ("rx_name", rx_name)]
    return [{f"{module}tag-name": name, f"{module}tag-value": value} for name, value in tags]


def test_tagged_metrics_have_the_counters_of_each_value(api, stub, client):
    configure_tags(api)
    transmit(api, "start")
    all_received(api)
    module = "open-traffic-generator-flow:"
    flow = ("flow", "f")
    container = path("flows", flow, "tagged-metrics")
    expected = {}
    for low, entry in TAGGED_PATHS.items():
        pairs = TAGGED[low][1]
        expected[f"{entry}/name-value-pairs"] = expected[f"{entry}/state/name-value-pairs"] = pairs
        for name, count in TAGGED_COUNTERS.items():
            expected[f"{entry}/state/counters/{name}"] = count
        expected[entry] = {f"{module}state": {"tags": tags_of(low)}}
    everything = path("flows", "flow", "tagged-metrics", "tagged-metric")
    for wanted in [container, everything, path("flows", flow, "tagged-metrics", "*")]:
        assert get(stub, wanted) == once(stub, wanted) == expected
    assert expected.items() <= once(stub, path()).items()
    assert not any("tagged" in it for it in once(stub, path("flows", ("flow", "g"))))
    assert not any("tagged" in it for it in once(stub, path("flows", flow, "state")))

    entry, leaf = TAGGED_PATHS["0xa"], ("state", "counters", "in-pkts")
    found = {f"{entry}/{'/'.join(leaf)}": PACKETS // 4}
    for of_flow in [flow, "flow", ("flow", "*"), "*"]:
        wanted = path("flows", of_flow, "tagged-metrics", TAGGED["0xa"], *leaf)
        assert get(stub, wanted) == once(stub, wanted) == found
    assert get(stub, path("...", TAGGED["0xa"], "...", "in-pkts")) == found
    assert len(get(stub, path("...", "tagged-metric", "...", "in-pkts"))) == 4

    # Without its entry, `tags` has an object for each tag.
    tags = path("flows", flow, "tagged-metrics", TAGGED["0x8"], "state", "tags")
    low, rx_name = tags_of("0x8", module)
    entry = f"{TAGGED_PATHS['0x8']}/state/tags"
    expected = {f"{entry}[tag-name=low]": low, f"{entry}[tag-name=rx_name]": rx_name}
    assert get(stub, tags) == once(stub, tags) == expected
    assert get(stub, tags, encoding="JSON_IETF") == {entry: [low, rx_name]}
    assert get(stub, path("...", "tags", "tag-name")) == {}

    of_json = {
        "name-value-pairs": TAGGED["0x8"][1],
        "state": {
            "name-value-pairs": TAGGED["0x8"][1],
            "tags": tags_of("0x8"),
            "counters": TAGGED_COUNTERS,
        },
    }
    flows = get(stub, path("flows"), encoding="JSON")["/flows"]["flow"]
    assert flows[0]["tagged-metrics"]["tagged-metric"][0] == of_json
    assert [len(it.get("tagged-metrics", {}).get("tagged-metric", [])) for it in flows] == [4, 0]
    # pygnmi takes no `=` in a key.
    counters = "/flows/flow[name=f]/tagged-metrics/tagged-metric/state/counters"
    (answer,) = client.get(path=[counters])["notification"]
    read = {it["path"]: it["val"] for it in answer["update"]}
    assert read == {f"{it[1:]}/state/counters": TAGGED_COUNTERS for it in TAGGED_PATHS.values()}

    missing = grpc.StatusCode.NOT_FOUND
    unknown = path("flows", flow, "tagged-metrics", ("tagged-metric", "low=0x1"))
    details = refused(missing, lambda: get(stub, unknown))
    assert details.endswith('the flow "f" has no tagged metric "low=0x1"')
    assert once(stub, unknown) == {}, "it may appear later"


@pytest.mark.parametrize("mode", ["ON_CHANGE", "SAMPLE"])
def test_changes_of_tagged_metrics_are_sent_until_they_vanish(api, stub, mode):
    configure_tags(api)
    request = subscription(
        path("flows", ("flow", "f"), "tagged-metrics"),
        path("flows", "*", "tagged-metrics", TAGGED["0xa"], "state", "counters", "in-pkts"),
        mode_of_each=mode,
        sample_interval=100 * MS if mode == "SAMPLE" else 0,
    )
    responses = stream(stub, request)
    assert until_sync(responses) == {}, "no frame has a value yet"
    values = {}

    def follow(is_done):
        for response in responses:
            for deleted in map(text, response.update.delete):
                for known in [it for it in values if it.startswith(deleted)]:
                    del values[known]
            values.update({text(it.path): value(it.val) for it in response.update.update})
            if is_done():
                return
        raise AssertionError("the stream has ended")

    transmit(api, "start")
    counters = {
        f"{entry}/state/counters/{name}": count
        for entry in TAGGED_PATHS.values()
        for name, count in TAGGED_COUNTERS.items()
    }
    follow(lambda: counters.items() <= values.items())
    tags = [tag["tag-name"] for tag in values[TAGGED_PATHS["0xa"]]["open-traffic-generator-flow:state"]["tags"]]
    assert tags == ["low", "rx_name"]
    set_config(api, api.config())
    follow(lambda: values == {})
    responses.cancel()


def test_samples(api, stub):
    configure(api, names=["f"], packets=None, pps=1_000)
    transmit(api, "start")
    leaf = path("flows", "flow", "state", "counters", "out-pkts")
    responses = stream(
        stub, subscription(leaf, mode_of_each="SAMPLE", sample_interval=50 * MS)
    )
    until_sync(responses)
    updates = [next(responses).update for _ in range(5)]
    counts = [value(update.update[0].val) for update in updates]
    assert counts == sorted(counts) and counts[0] < counts[-1]
    times = [update.timestamp for update in updates]
    assert 150 * MS < times[-1] - times[0] < WAIT_S * 1_000 * MS
    responses.cancel()
    transmit(api, "stop")


def test_redundant_samples_are_left_out_except_for_heartbeats(api, stub):
    configure(api, names=["f"])
    leaf = path("flows", "flow", "state", "transmit")
    responses = stream(
        stub,
        subscription(
            leaf,
            mode_of_each="SAMPLE",
            sample_interval=10 * MS,
            suppress_redundant=True,
            heartbeat_interval=300 * MS,
            updates_only=True,
        ),
    )
    assert until_sync(responses) == {}
    times = [next(responses).update.timestamp for _ in range(3)]
    assert all(later - earlier > 200 * MS for earlier, later in zip(times, times[1:]))
    responses.cancel()


def test_polls(api, client):
    configure(api, names=["f"])
    request = {"path": "flows/flow[name=f]/state/counters/in-pkts"}
    poll = client.subscribe2({"subscription": [request], "mode": "poll", "encoding": "proto"})
    count = lambda: poll.get_update(WAIT_S)["update"]["update"][0]["val"]  # noqa: E731
    assert count() == 0
    transmit(api, "start")
    all_received(api)
    assert count() in (0, PACKETS), "the answer to the first poll may wait"
    assert count() == PACKETS
    poll.close()


def test_errors_name_the_place(api, stub):
    configure(api)
    invalid, missing = grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND
    unsupported = grpc.StatusCode.UNIMPLEMENTED
    wrong = path("flows", ("flow", "f"), "state", "out-packets")
    expected = "/flows/flow[name=f]/state/out-packets: no such node; known there: average-latency"
    assert expected in refused(invalid, lambda: get(stub, wrong))
    assert expected in refused(invalid, lambda: once(stub, wrong))
    assert "bgp-peers" in refused(invalid, lambda: get(stub, path("bgp-peers")))
    details = refused(missing, lambda: get(stub, path("flows", ("flow", "h"))))
    assert details == "/flows/flow[name=h]: the configuration has no flow \"h\""
    assert once(stub, path("flows", ("flow", "h"))) == {}, "it may appear later"
    loss = path("flows", ("flow", "g"), "state", "loss-pct")
    assert "no value" in refused(missing, lambda: get(stub, loss))
    assert "cli" in refused(invalid, lambda: get(stub, path("flows", origin="cli")))
    assert "PROTO" in refused(unsupported, lambda: get(stub, path(), encoding="ASCII"))
    assert "SetConfig" in refused(unsupported, lambda: stub.Set(pb.SetRequest()))
    short = subscription(path(), mode_of_each="SAMPLE", sample_interval=9 * MS)
    assert "sample_interval" in refused(invalid, lambda: until_sync(stream(stub, short)))
    poll = pb.SubscribeRequest(poll=pb.Poll())
    assert "first" in refused(invalid, lambda: until_sync(stream(stub, poll)))
    many = subscription(*[path()] * 1_001, mode="ONCE")
    assert "1000" in refused(invalid, lambda: until_sync(stream(stub, many)))
    element = pb.Path(element=["flows"])
    assert "deprecated" in refused(invalid, lambda: get(stub, element))
    two = stream(stub, *[subscription(path())] * 2)
    assert "another request" in refused(invalid, lambda: list(two))


def test_users_see_their_own_flows(start_server):
    server = start_server(users={"ada": "operate", "bob": "operate", "eve": "observe"})
    location = server.url.removeprefix("http://")

    def names(user):
        metadata = [("authorization", f"Bearer {server.tokens[user]}")] if user else []
        request = pb.GetRequest(path=[path("ports", "port", "name")], encoding="PROTO")
        with grpc.insecure_channel(location) as channel:
            response = gNMIStub(channel).Get(request, metadata=metadata, timeout=WAIT_S)
        return [value(it.val) for it in response.notification[0].update]

    config = {"ports": [{"name": "p1", "location": "left"}]}
    headers = {"authorization": f"Bearer {server.tokens['ada']}"}
    post = urllib.request.Request(
        f"{server.url}/config", json.dumps(config).encode(), headers, method="POST"
    )
    urllib.request.urlopen(post, timeout=WAIT_S).close()
    assert names("ada") == ["p1"]
    assert names("bob") == []
    refused(grpc.StatusCode.UNAUTHENTICATED, lambda: names(None))
    refused(grpc.StatusCode.PERMISSION_DENIED, lambda: names("eve"))


def test_python_of_the_guide_runs(server):
    guide = Path(__file__).parents[4] / "docs/guide/otg.md"
    address, port = server.url.removeprefix("http://").split(":")
    source = "\n".join(re.findall(r"```python\n(.*?)```", guide.read_text(), re.DOTALL))
    for written, found in [
        ('"http://localhost:9410"', repr(server.url)),
        ('("localhost", 9339)', repr((address, int(port)))),
        ('"eth1"', '"left"'),
        ('"eth2"', '"right"'),
    ]:
        assert written in source
        source = source.replace(written, found)
    exec(compile(source, guide.name, "exec"), {})
