"""File errors are TRex errors, and the name determines the format of a capture."""

from __future__ import annotations

import json
import shutil
import struct
import subprocess

import pytest
from stream_helpers import LIMIT_S, continuous
from trex_tree import SCRIPTS, needs_tree

from trex.astf.api import ASTFProfile
from trex.capture_file import read
from trex.client import configuration
from trex.stl.api import (
    IP,
    UDP,
    Ether,
    STLError,
    STLPktBuilder,
    STLProfile,
    rdpcap,
    wrpcap,
)
from trex.stl.trex_stl_hltapi import STLHltStream

FRAME = bytes(
    Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
    / IP(src="10.0.0.1", dst="10.0.0.2")
    / UDP(sport=1, dport=2)
    / bytes(18)
)
MISSING_FOLDER = "no/such/folder"


def erf(frame: bytes, time: int, interface: int = 0, captured_length: int | None = None) -> bytes:
    """Returns an Ethernet record with `captured_length` bytes of the frame."""
    stored = (frame + b"\xfc" * 4)[:captured_length]
    header = struct.pack("<Q", time) + struct.pack(
        ">BBHHH", 2, 4 | interface, 18 + len(stored), 0, len(frame) + 4
    )
    return header + bytes(2) + stored


@pytest.fixture
def captured(client):
    """A client, and a capture with one frame."""
    client.set_service_mode([0, 1])
    number = client.start_capture(rx_ports=[1])["id"]
    client.push_packets([FRAME], ports=0, force=True)
    client.wait_on_traffic(ports=0)
    return client, number


def test_unwritable_output_keeps_the_capture_running(captured, tmp_path):
    client, number = captured
    missing = tmp_path / MISSING_FOLDER / "it.pcap"
    for write in (client.stop_capture, client.fetch_capture_packets):
        with pytest.raises(
            STLError, match=rf"cannot write '{missing}': No such.*create the folder"
        ):
            write(number, str(missing))
        with pytest.raises(STLError, match="output is a list or the name of a file"):
            write(number, 7)
    assert client.get_capture_status()[number]["state"] == "ACTIVE"
    captured_length = ["what was there"]
    client.stop_capture(number, captured_length)
    assert (
        [len(one["binary"]) for one in captured_length]
        == [one["wirelen"] for one in captured_length]
        == [60]
    )


def test_suffix_pcapng_selects_pcapng(captured, tmp_path):
    client, number = captured
    file = tmp_path / "it.pcapng"
    client.fetch_capture_packets(number, str(file), snaplen=20)
    assert file.read_bytes()[:4] == b"\x0a\x0d\x0d\x0a"
    assert [record.data[12:] for record in read(str(file))] == [FRAME[12:20]]
    if shutil.which("tshark") is not None:
        fields = ["-e", "frame.len", "-e", "frame.interface_name", "-e", "frame.packet_flags"]
        command = ["tshark", "-r", str(file), "-T", "fields", *fields]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        assert done.stdout.split() == ["60", "port", "1", "0x00000001"]
    other = tmp_path / "it.pcap"
    client.push_packets([FRAME], ports=0, force=True)
    client.stop_capture(number, str(other))
    assert other.read_bytes()[:4] == b"\xd4\xc3\xb2\xa1"
    assert bytes(rdpcap(str(other))[0])[12:] == FRAME[12:]


def test_write_errors_are_reported(tmp_path):
    missing = str(tmp_path / MISSING_FOLDER / "it")
    for write in (
        STLProfile([continuous()]).dump_to_code,
        STLPktBuilder(pkt_buffer=FRAME).dump_pkt_to_pcap,
        lambda path: STLHltStream(save_to_yaml=path),
    ):
        with pytest.raises(STLError, match="cannot write .*: create the folder|create the folder"):
            write(missing)


def test_read_errors_are_reported(tmp_path, monkeypatch):
    binary = tmp_path / "profile.json"
    binary.write_bytes(b"\xff\xfe")
    for load in (STLProfile.load_json, ASTFProfile.load_json):
        with pytest.raises(STLError, match="cannot read .*expected text in UTF-8, found byte 0xff"):
            load(str(binary))
    with pytest.raises(STLError, match="cannot read '.*nowhere.pcap': No such file"):
        STLPktBuilder(pkt=str(tmp_path / "nowhere.pcap"))
    monkeypatch.delenv("WIRESTORM_TREX_PORTS", raising=False)
    monkeypatch.setenv("WIRESTORM_TREX_CFG", str(binary))
    with pytest.raises(STLError, match="cannot read"):
        configuration.load()


def test_an_erf_file_is_read(tmp_path):
    file = tmp_path / "it.erf"
    second = 1 << 32
    file.write_bytes(
        erf(FRAME, 5 * second) + erf(FRAME, 5 * second + second // 2, 1, captured_length=30)
    )
    first, cut = read(str(file))
    assert (first.data, first.time_usec, first.interface) == (FRAME, 5e6, 0)
    assert (cut.data, cut.time_usec, cut.interface) == (FRAME[:30], 5.5e6, 1)


def test_damaged_erf_file_is_rejected(tmp_path):
    file = tmp_path / "it.erf"
    ten = b"".join(erf(FRAME, number << 32) for number in range(10))
    for data, message in (
        (ten + ten[:7], "record 11 at byte 820: 7 bytes, expected a header of 16"),
        (ten[:-1], "record 10 at byte 738: a length of 82 bytes, which the file does not have"),
    ):
        file.write_bytes(data)
        with pytest.raises(STLError, match=message):
            read(str(file))
    file.write_bytes(b"neither of them, and long enough for a header")
    with pytest.raises(STLError, match="expected a pcap, pcapng or ERF file"):
        read(str(file))


@needs_tree
def test_an_erf_file_of_trex_is_read():
    found = read(str(SCRIPTS / "automation/regression/test_pcaps/pcap_dual_test.erf"))
    assert {record.interface for record in found} == {2, 3}
    assert all(Ether(record.data).type == 0x0800 for record in found)
    assert json.dumps([record.time_usec for record in found]) == json.dumps(
        sorted(record.time_usec for record in found)
    )


def test_two_ports_send_the_sides_of_an_erf_file(client, tmp_path):
    file = tmp_path / "it.erf"
    step = (1 << 32) // 1000
    file.write_bytes(b"".join(erf(FRAME, number * step, number % 3 % 2) for number in range(9)))
    client.push_remote(str(file), ports=[0], is_dual=True, src_mac_pcap=True)
    client.wait_on_traffic(timeout=LIMIT_S)
    stats = client.get_stats()
    assert (stats[0]["opackets"], stats[1]["opackets"]) == (6, 3)


def test_pushed_capture_catches_up_with_its_schedule(client, tmp_path):
    file = tmp_path / "it.pcap"
    packet = Ether(FRAME)
    wrpcap(str(file), [packet] * 10)
    client.push_remote(str(file), ports=[0], ipg_usec=100, count=200)
    client.wait_on_traffic(timeout=LIMIT_S)
    (transmission,) = client.links[0].transmissions()
    sent = transmission.report()["ports"][0]["tx"]
    # Late frames never move the schedule, however busy the machine is.
    assert (sent["packets"], sent["departures"]["schedule_shift_ns"]) == (2000, 0)
