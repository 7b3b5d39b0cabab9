"""Open Traffic Generator: snappi as it is on PyPI, by HTTP and by gRPC."""

import json
import struct
import subprocess

import pytest
import snappi

from conftest import wait_for

PACKETS = 200


def client(server, transport):
    if transport == "http":
        return snappi.api(location=server.url, verify=False)
    location = server.url.removeprefix("http://")
    return snappi.api(location=location, transport=snappi.Transport.GRPC)


@pytest.fixture(params=["http", "grpc"])
def api(request, server):
    """A client of a new server."""
    return client(server, request.param)


@pytest.fixture(params=["http", "grpc"])
def api_of_lags(request, start_server):
    """A client of a new server with two pairs of ports."""
    return client(start_server(ports=["left", "left2", "right", "right2"]), request.param)


def two_ports(api):
    config = api.config()
    config.ports.port(name="p1", location="left").port(name="p2", location="right")
    config.layer1.layer1(name="l1", port_names=["p1", "p2"], speed="speed_1_gbps")
    return config


def add_flow(config, name, tx, rx, pps=2_000, packets=PACKETS):
    flow = config.flows.flow(name=name)[-1]
    flow.tx_rx.port.tx_name, flow.tx_rx.port.rx_names = tx, [rx]
    flow.rate.pps = pps
    if packets is not None:
        flow.duration.fixed_packets.packets = packets
    flow.size.fixed = 128
    flow.metrics.enable = True
    return flow


def add_devices(config):
    """Adds the devices `d1` on `p1` and `d2` on `p2`; each is the gateway of the other."""
    for number, port in [(1, "p1"), (2, "p2")]:
        device = config.devices.device(name=f"d{number}")[-1]
        ethernet = device.ethernets.ethernet(name=f"e{number}", mac=f"02:00:00:00:01:0{number}")[-1]
        ethernet.connection.port_name = port
        ethernet.ipv4_addresses.ipv4(
            name=f"i{number}", address=f"10.9.0.{number}", gateway=f"10.9.0.{3 - number}"
        )
        ethernet.ipv6_addresses.ipv6(
            name=f"six{number}", address=f"fd00::{number}", gateway=f"fd00::{3 - number}"
        )


def set_config(api, config):
    warnings = api.set_config(config).warnings
    assert not warnings, warnings


def transmit(api, state, names=None):
    change = api.control_state()
    change.traffic.flow_transmit.state = state
    if names is not None:
        change.traffic.flow_transmit.flow_names = names
    api.set_control_state(change)


def flow_metrics(api):
    request = api.metrics_request()
    request.flow.flow_names = []
    return {metric.name: metric for metric in api.get_metrics(request).flow_metrics}


def port_metrics(api):
    request = api.metrics_request()
    request.port.port_names = []
    return {metric.name: metric for metric in api.get_metrics(request).port_metrics}


def all_received(api, packets=PACKETS):
    metrics = {}

    def found():
        metrics.update(flow_metrics(api))
        return all(
            metric.transmit == "stopped" and metric.frames_tx == metric.frames_rx == packets
            for metric in metrics.values()
        )

    try:
        wait_for("all frames have arrived", found)
    except AssertionError as error:
        states = [(it.name, it.transmit, it.frames_tx, it.frames_rx) for it in metrics.values()]
        raise AssertionError(f"{error}: {states}") from None
    return metrics


def test_flows_in_both_directions_are_counted(api):
    config = two_ports(api)
    for name, tx, rx in [("right", "p1", "p2"), ("left", "p2", "p1")]:
        flow = add_flow(config, name, tx, rx)
        ethernet, ip, udp = flow.packet.ethernet().ipv4().udp()
        ethernet.src.value, ethernet.dst.value = "02:00:00:00:00:01", "02:00:00:00:00:02"
        ip.src.increment.start, ip.src.increment.count = "10.0.0.1", 5
        ip.dst.value = "10.0.1.1"
        udp.dst_port.values = [53, 5353]
        flow.metrics.loss = True
        flow.metrics.latency.enable = True
        flow.metrics.latency.mode = flow.metrics.latency.CUT_THROUGH
        flow.metrics.timestamps = True
    set_config(api, config)
    transmit(api, "start")
    metrics = all_received(api)
    assert list(metrics) == ["right", "left"], "the order of the configuration"
    for metric in metrics.values():
        assert metric.bytes_tx == metric.bytes_rx == 128 * PACKETS
        assert metric.loss == 0
        assert 0 < metric.latency.minimum_ns <= metric.latency.average_ns
        assert metric.latency.average_ns <= metric.latency.maximum_ns
        assert metric.timestamps.first_timestamp_ns < metric.timestamps.last_timestamp_ns
    ports = port_metrics(api)
    assert ports["p1"].frames_tx == ports["p2"].frames_rx == PACKETS
    assert ports["p1"].bytes_tx == ports["p2"].bytes_rx == 128 * PACKETS


def test_requests_name_the_metrics_they_want(api):
    config = two_ports(api)
    add_flow(config, "f", "p1", "p2").packet.ethernet()
    set_config(api, config)
    transmit(api, "start")
    all_received(api)
    request = api.metrics_request()
    request.flow.metric_names = ["frames_rx"]
    (metric,) = api.get_metrics(request).flow_metrics
    assert (metric.name, metric.frames_rx, metric.frames_tx) == ("f", PACKETS, None)
    request = api.metrics_request()
    request.port.port_names = ["p2"]
    request.port.column_names = ["frames_rx", "speed"]
    (metric,) = api.get_metrics(request).port_metrics
    assert (metric.name, metric.frames_rx, metric.frames_tx) == ("p2", PACKETS, None)
    assert metric.speed == 10_000_000_000 // 8_000, "a veth pair has 10 Gb/s"


def test_captured_frames_have_the_size_of_the_flow(api):
    config = two_ports(api)
    config.captures.capture(name="c", port_names=["p2"], format="pcap")
    flow = add_flow(config, "f", "p1", "p2")
    flow.packet.ethernet().vlan().ipv6().tcp()
    flow.packet[1].id.increment.start, flow.packet[1].id.increment.count = 7, 3
    set_config(api, config)
    change = api.control_state()
    change.port.capture.state = "start"
    api.set_control_state(change)
    transmit(api, "start")
    all_received(api)
    request = api.capture_request()
    request.port_name = "p2"
    content = api.get_capture(request).read()
    assert content[:4] in [b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1"], "classic pcap"
    vlans, offset = [], 24
    while offset < len(content):
        length, original = struct.unpack("<II", content[offset + 8 : offset + 16])
        assert length == original == 128, "with FCS"
        frame = content[offset + 16 : offset + 16 + length]
        vlans.append(struct.unpack(">H", frame[14:16])[0] & 0xFFF)
        assert struct.unpack(">H", frame[22:24])[0] == 128 - 4 - 18 - 40, "payload of IPv6"
        offset += 16 + length
    assert vlans == [7 + number % 3 for number in range(PACKETS)]


def test_flows_pause_resume_and_change_their_rate(api):
    config = two_ports(api)
    for name in ["one", "two"]:
        add_flow(config, name, "p1", "p2", pps=500, packets=None).packet.ethernet().ipv4()
    set_config(api, config)
    transmit(api, "start")
    wait_for("frames arrive", lambda: flow_metrics(api)["two"].frames_rx > 50)
    transmit(api, "pause", ["one"])
    states = {name: metric.transmit for name, metric in flow_metrics(api).items()}
    assert states == {"one": "paused", "two": "started"}
    paused = flow_metrics(api)["one"].frames_tx
    transmit(api, "resume", ["one"])
    wait_for("it continues", lambda: flow_metrics(api)["one"].frames_tx > paused + 50)
    update = api.config_update()
    update.choice = update.FLOWS
    update.flows.property_names = [update.flows.RATE]
    config.flows[1].rate.pps = 5_000
    update.flows.flows.append(config.flows[1])
    api.update_config(update)
    wait_for(
        "the new rate is reached",
        lambda: 4_000 < flow_metrics(api)["two"].frames_tx_rate < 6_000,
    )
    transmit(api, "stop")
    assert {metric.transmit for metric in flow_metrics(api).values()} == {"stopped"}


def test_size_changes_while_a_flow_sends(api):
    config = two_ports(api)
    flow = add_flow(config, "f", "p1", "p2", pps=1_000, packets=2_000)
    flow.packet.ethernet().ipv4().udp()
    flow.metrics.loss = True
    set_config(api, config)
    transmit(api, "start")
    wait_for("frames arrive", lambda: flow_metrics(api)["f"].frames_rx > 200)
    update = api.config_update()
    update.choice = update.FLOWS
    update.flows.property_names = [update.flows.SIZE]
    flow.size.fixed = 1_000
    update.flows.flows.append(flow)
    assert not api.update_config(update).warnings
    flow.size.fixed = 9_000
    with pytest.raises(Exception, match="flow f: found frames of 8996 bytes, expected at most"):
        api.update_config(update)
    wait_for("the flow ends", lambda: flow_metrics(api)["f"].transmit == "stopped")
    wait_for("all frames arrive", lambda: flow_metrics(api)["f"].frames_rx == 2_000)
    metric = flow_metrics(api)["f"]
    assert (metric.frames_tx, metric.loss) == (2_000, 0)
    assert metric.bytes_rx == metric.bytes_tx
    short, long = divmod(2_000 * 1_000 - metric.bytes_rx, 1_000 - 128)
    assert long == 0 and 200 < short < 1_900, "each frame has one of the two sizes"


def test_devices_resolve_their_neighbours(api):
    config = two_ports(api)
    add_devices(config)
    flow = config.flows.flow(name="f")[-1]
    flow.tx_rx.device.tx_names, flow.tx_rx.device.rx_names = ["i1"], ["i2"]
    flow.packet.ethernet().ipv4().udp()
    flow.packet[1].src.value, flow.packet[1].dst.value = "10.9.0.1", "10.9.0.2"
    flow.rate.pps, flow.duration.fixed_packets.packets = 2_000, PACKETS
    flow.metrics.enable = True
    set_config(api, config)
    change = api.control_state()
    change.protocol.all.state = "start"
    api.set_control_state(change)

    def neighbours():
        request = api.states_request()
        request.ipv4_neighbors.ethernet_names = []
        found = api.get_states(request).ipv4_neighbors
        return {it.ethernet_name: it.link_layer_address for it in found}

    expected = {"e1": "02:00:00:00:01:02", "e2": "02:00:00:00:01:01"}
    wait_for("both have resolved the other", lambda: neighbours() == expected)
    transmit(api, "start")
    all_received(api)


def test_devices_ping_each_other(api):
    config = two_ports(api)
    add_devices(config)
    set_config(api, config)

    def ping(family, pairs):
        action = api.control_action()
        requests = getattr(action.protocol, family).ping.requests
        for source, destination in pairs:
            requests.pingrequest(src_name=source, dst_ip=destination)
        response = api.set_control_action(action).response
        return [it.result for it in getattr(response.protocol, family).ping.responses]

    pairs = [("i1", "10.9.0.2"), ("i2", "10.9.0.1"), ("i1", "10.9.0.77")]
    assert ping("ipv4", pairs) == ["succeeded", "succeeded", "failed"]
    assert ping("ipv6", [("six1", "fd00::2")]) == ["succeeded"]
    with pytest.raises(Exception, match=r"requests\[0\]\.src_name"):
        ping("ipv4", [("nobody", "10.9.0.2")])


def test_an_error_names_the_place(api):
    config = two_ports(api)
    add_flow(config, "f", "p1", "p2").packet.ethernet()
    config.flows[0].tx_rx.port.rx_names = ["p3"]
    with pytest.raises(Exception, match=r"flows\[0\]\.tx_rx\.port\.rx_names\[0\]"):
        api.set_config(config)


def test_settings_without_effect_are_warnings(api):
    config = two_ports(api)
    flow = add_flow(config, "f", "p1", "p2")
    flow.packet.ethernet()
    flow.duration.fixed_packets.gap = 24
    warnings = api.set_config(config).warnings
    assert any("flows[0].duration.fixed_packets.gap" in warning for warning in warnings), warnings


def test_tagged_metrics_count_by_bits_of_received_frames(api):
    config = two_ports(api)
    flow = add_flow(config, "f", "p1", "p2")
    flow.metrics.predefined_metric_tags.rx_name = True
    flow.metrics.timestamps = True
    _, ip, udp = flow.packet.ethernet().ipv4().udp()
    ip.dst.increment.start, ip.dst.increment.count = "10.0.0.4", 4
    udp.src_port.value = 0x1234
    tag = udp.src_port.metric_tags.metrictag(name="port")[-1]
    tag.offset, tag.length = 0, 16
    _, received = flow.egress_packet.ethernet().ipv4()
    # The last three bits of the address.
    tag = received.dst.metric_tags.metrictag(name="low")[-1]
    tag.offset, tag.length = 29, 3
    set_config(api, config)
    transmit(api, "start")
    metrics = all_received(api)["f"].tagged_metrics
    found = {}
    for metric in metrics:
        tags = {tag.name: tag.value.str or tag.value.hex for tag in metric.tags}
        assert (tags["port"], tags["rx_name"]) == ("0x1234", "p2")
        assert metric.bytes_rx == 128 * metric.frames_rx
        assert metric.frames_tx is None, "devices may change what arrives"
        assert metric.timestamps.first_timestamp_ns < metric.timestamps.last_timestamp_ns
        found[tags["low"]] = metric.frames_rx
    assert found == {f"0x{low}": PACKETS // 4 for low in [4, 5, 6, 7]}
    request = api.metrics_request()
    request.flow.tagged_metrics.filters.filter(name="low", values=["0x5"])
    (metric,) = api.get_metrics(request).flow_metrics[0].tagged_metrics
    assert metric.frames_rx == PACKETS // 4
    request.flow.tagged_metrics.include = False
    assert not api.get_metrics(request).flow_metrics[0].tagged_metrics


def with_lags(api, flows=1, pps=2_000):
    """Two link aggregation groups of two ports; each flow has 32 addresses."""
    config = api.config()
    members = {"a": ["left", "left2"], "b": ["right", "right2"]}
    for number, (name, ports) in enumerate(members.items()):
        lag = config.lags.lag(name=name)[-1]
        lag.protocol.static.lag_id = number
        for member, port in enumerate(ports):
            config.ports.port(name=port, location=port)
            lag.ports.port(port_name=port)
            ethernet = lag.ports[-1].ethernet
            ethernet.name, ethernet.mac = f"{port}.eth", f"02:00:00:00:0{number}:0{member}"
    config.layer1.layer1(name="l1", port_names=sum(members.values(), []), speed="speed_1_gbps")
    for number in range(flows):
        flow = add_flow(config, f"f{number}", "a", "b", pps=pps, packets=None)
        _, ip, _ = flow.packet.ethernet().ipv4().udp()
        ip.src.increment.start, ip.src.increment.count = "10.0.0.1", 32
        ip.dst.value = "10.0.1.1"
    return config


def lag_metrics(api):
    request = api.metrics_request()
    request.lag.lag_names = []
    return {metric.name: metric for metric in api.get_metrics(request).lag_metrics}


def set_link(api, state, ports):
    change = api.control_state()
    change.port.link.state, change.port.link.port_names = state, ports
    api.set_control_state(change)


def link_flags(interface):
    shown = subprocess.run(["ip", "-j", "link", "show", interface], capture_output=True, check=True)
    return json.loads(shown.stdout)[0]["flags"]


def sending(api, ports):
    """Returns whether exactly these ports of the first group send."""
    rates = {name: port_metrics(api)[name].frames_tx_rate for name in ["left", "left2"]}
    return {name for name, rate in rates.items() if rate > 100} == set(ports)


def test_members_of_a_lag_share_the_frames(api_of_lags):
    api = api_of_lags
    config = with_lags(api)
    config.flows[0].duration.fixed_packets.packets = 640
    set_config(api, config)
    transmit(api, "start")
    all_received(api, packets=640)
    ports = port_metrics(api)
    # Each of the 32 addresses has 20 frames, and all of them leave by one member.
    shares = [ports[name].frames_tx for name in ["left", "left2"]]
    assert sum(shares) == 640 and all(share > 0 and share % 20 == 0 for share in shares)
    assert [ports[name].frames_rx for name in ["right", "right2"]] == shares
    lags = lag_metrics(api)
    assert list(lags) == ["a", "b"]
    assert (lags["a"].frames_tx, lags["b"].frames_rx) == (640, 640)
    assert lags["a"].bytes_tx == lags["b"].bytes_rx == 128 * 640
    assert (lags["a"].oper_status, lags["a"].member_ports_up) == ("up", 2)


def test_other_members_take_over_from_one_that_is_down(api_of_lags):
    api = api_of_lags
    set_config(api, with_lags(api))
    transmit(api, "start")
    wait_for("both members send", lambda: sending(api, ["left", "left2"]))
    set_link(api, "down", ["left2"])
    assert port_metrics(api)["left2"].link == "down"
    assert "UP" not in link_flags("left2")
    wait_for("the other member sends all", lambda: sending(api, ["left"]))
    lag = lag_metrics(api)["a"]
    assert (lag.oper_status, lag.member_ports_up) == ("up", 1)
    wait_for(
        "the flow keeps its rate",
        lambda: 1_900 < flow_metrics(api)["f0"].frames_rx_rate < 2_100,
    )
    assert flow_metrics(api)["f0"].transmit == "started"
    set_link(api, "up", ["left2"])
    wait_for("both members send again", lambda: sending(api, ["left", "left2"]))
    change = api.control_state()
    change.protocol.lacp.member_ports.lag_member_names = ["left"]
    change.protocol.lacp.member_ports.state = "down"
    api.set_control_state(change)
    wait_for("the member out of the group does not send", lambda: sending(api, ["left2"]))
    assert (port_metrics(api)["left"].link, lag_metrics(api)["a"].member_ports_up) == ("up", 1)
    change.protocol.lacp.member_ports.state = "up"
    api.set_control_state(change)
    wait_for("it is back", lambda: sending(api, ["left", "left2"]))
    transmit(api, "stop")


def test_flows_survive_a_link_that_is_down(api):
    config = two_ports(api)
    for name, tx, rx in [("right", "p1", "p2"), ("left", "p2", "p1")]:
        add_flow(config, name, tx, rx, packets=None).packet.ethernet().ipv4().udp()
    set_config(api, config)
    assert port_metrics(api)["p1"].last_change is None
    transmit(api, "start")
    wait_for("frames arrive", lambda: all(it.frames_rx > 50 for it in flow_metrics(api).values()))
    set_link(api, "down", ["p1"])
    assert port_metrics(api)["p1"].link == "down"
    wait_for("the peer has no carrier", lambda: port_metrics(api)["p2"].link == "down")
    before = port_metrics(api)["p1"].last_change
    assert before > 0
    wait_for(
        "nothing is sent",
        lambda: all(it.frames_tx_rate == 0 for it in flow_metrics(api).values()),
    )
    assert {it.transmit for it in flow_metrics(api).values()} == {"started"}
    sent = {name: it.frames_rx for name, it in flow_metrics(api).items()}
    set_link(api, "up", ["p1"])
    assert "UP" in link_flags("left")
    wait_for("the link is up", lambda: port_metrics(api)["p1"].link == "up")
    assert port_metrics(api)["p1"].last_change > before
    wait_for(
        "frames arrive again",
        lambda: all(it.frames_rx > sent[name] + 50 for name, it in flow_metrics(api).items()),
    )
    transmit(api, "stop")
    with pytest.raises(Exception, match="port.link.port_names: found \"p3\""):
        set_link(api, "down", ["p3"])


def test_links_come_up_with_the_next_configuration_and_the_end_of_the_server(api, server):
    set_config(api, two_ports(api))
    set_link(api, "down", [])
    assert all("UP" not in link_flags(name) for name in ["left", "right"])
    flow = add_flow(two_ports(api), "f", "p1", "p2")
    assert flow.name == "f"
    set_config(api, two_ports(api))
    assert all("UP" in link_flags(name) for name in ["left", "right"])
    set_link(api, "down", ["p1"])
    server.stop()
    assert "UP" in link_flags("left")


def test_egress_only_tracking_counts_all_arrivals_by_bits(api):
    config = two_ports(api)
    flow = add_flow(config, "f", "p1", "p2", packets=400)
    flow.metrics.enable = False
    _, ip, _ = flow.packet.ethernet().ipv4().udp()
    ip.dst.increment.start, ip.dst.increment.count = "10.0.0.4", 4
    tracking = config.egress_only_tracking.egressonlytracking(port_name="p2")[-1]
    tracking.enable_timestamps = True
    # The last three bits of the destination, behind 14 and 16 bytes.
    tracking.metric_tags.add(name="low", rx_offset=8 * 30 + 29, length=3)
    set_config(api, config)
    transmit(api, "start")

    def metrics():
        request = api.metrics_request()
        request.egress_only_tracking.port_names = []
        return api.get_metrics(request).egress_only_tracking_metrics

    def found():
        (metric,) = metrics()
        assert metric.port_rx == "p2"
        counts = {it.tags[0].value: it.frames_rx for it in metric.tagged_metrics}
        return counts == {f"0x{low}": 100 for low in [4, 5, 6, 7]}

    wait_for("all frames are counted", found)
    first = metrics()[0].tagged_metrics[0]
    assert first.tags[0].name == "low"
    assert first.bytes_rx == 128 * 100
    assert 0 < first.timestamps.first_timestamp_ns < first.timestamps.last_timestamp_ns
    transmit(api, "start")
    wait_for("a start counts from zero", found)
    # The frames end before these bits.
    config.egress_only_tracking[0].metric_tags[0].rx_offset = 8 * 2000
    set_config(api, config)
    transmit(api, "start")

    def others():
        (metric,) = metrics()
        return [(it.tags[0].value, it.frames_rx) for it in metric.tagged_metrics]

    wait_for("frames without values are counted", lambda: others() == [(None, 400)])


def test_tagged_metrics_of_sent_frames_have_rates_and_loss(api):
    config = two_ports(api)
    flow = add_flow(config, "f", "p1", "p2", packets=None)
    flow.metrics.loss = True
    _, ip, _ = flow.packet.ethernet().ipv4().udp()
    ip.dst.values = ["10.0.0.1", "10.0.0.1", "10.0.0.1", "10.0.0.2"]
    tag = ip.dst.metric_tags.metrictag(name="dst")[-1]
    tag.offset, tag.length = 0, 32
    set_config(api, config)
    transmit(api, "start")

    def tagged():
        metrics = flow_metrics(api)["f"].tagged_metrics
        return {metric.tags[0].value.hex: metric for metric in metrics}

    def is_steady():
        found = tagged()
        expected = {"0xa000001": 1_500, "0xa000002": 500}
        return found.keys() == expected.keys() and all(
            abs(found[value].frames_rx_rate - rate) < rate / 10
            and abs(found[value].frames_tx_rate - rate) < rate / 10
            and abs(found[value].rx_rate_bps - rate * 128 * 8) < rate * 128 * 8 / 10
            for value, rate in expected.items()
        )

    wait_for("the rates are those of the values", is_steady)
    transmit(api, "stop")
    flow.duration.fixed_packets.packets = PACKETS
    set_config(api, config)
    transmit(api, "start")
    all_received(api)
    found = tagged()
    counts = {value: (it.frames_tx, it.frames_rx) for value, it in found.items()}
    assert counts == {"0xa000001": (150, 150), "0xa000002": (50, 50)}
    assert all(it.bytes_tx == it.bytes_rx == 128 * it.frames_tx for it in found.values())
    assert all(it.loss == 0 and it.frames_rx_rate == 0 for it in found.values())



def test_devices_on_lags_answer_at_all_members(api_of_lags):
    api = api_of_lags
    config = with_lags(api, flows=0)
    add_devices(config)
    for device, lag in zip(config.devices, ["a", "b"]):
        device.ethernets[0].connection.lag_name = lag
    flow = config.flows.flow(name="f")[-1]
    flow.tx_rx.device.tx_names, flow.tx_rx.device.rx_names = ["i1"], ["i2"]
    _, _, udp = flow.packet.ethernet().ipv4().udp()
    udp.src_port.increment.start, udp.src_port.increment.count = 1_024, 40
    flow.rate.pps, flow.duration.fixed_packets.packets = 2_000, PACKETS
    flow.metrics.enable = True
    set_config(api, config)
    transmit(api, "start")
    all_received(api)
    shares = [port_metrics(api)[name].frames_tx for name in ["left", "left2"]]
    assert sum(shares) == PACKETS and all(shares)
    transmit(api, "stop")
    # Without its first member, the device answers at the other one.
    set_link(api, "down", ["left"])
    action = api.control_action()
    action.protocol.ipv4.ping.requests.pingrequest(src_name="i2", dst_ip="10.9.0.1")
    response = api.set_control_action(action).response.protocol.ipv4.ping.responses
    assert [it.result for it in response] == ["succeeded"]
    transmit(api, "start")
    all_received(api)
    assert port_metrics(api)["left2"].frames_tx == PACKETS


def test_a_lag_with_too_few_members_does_not_send(api_of_lags):
    api = api_of_lags
    config = with_lags(api)
    config.lags[0].min_links = 2
    set_config(api, config)
    transmit(api, "start")
    wait_for("both members send", lambda: sending(api, ["left", "left2"]))
    set_link(api, "down", ["left2"])
    assert lag_metrics(api)["a"].oper_status == "down"
    wait_for("no member sends", lambda: sending(api, []))
    assert flow_metrics(api)["f0"].transmit == "started"
    set_link(api, "up", ["left2"])
    wait_for("both members send again", lambda: sending(api, ["left", "left2"]))
    transmit(api, "stop")


def test_a_flow_of_a_port_that_is_down_does_not_start(api):
    config = two_ports(api)
    add_flow(config, "f", "p1", "p2").packet.ethernet()
    set_config(api, config)
    set_link(api, "down", ["p1"])
    with pytest.raises(Exception, match="flow f: port p1 is down"):
        transmit(api, "start")
