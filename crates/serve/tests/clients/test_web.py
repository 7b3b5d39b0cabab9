"""The web page of a server: whole sessions, users, sign-in, captures, themes, widths."""

import json
import re
import struct
import subprocess
import threading
from pathlib import Path

import pytest
from playwright.sync_api import expect

from conftest import wait_for
from web import (
    CANVAS_COLORS,
    FOCUSED,
    LOW_CONTRAST,
    ROOT,
    VIEWS,
    chart,
    flow,
    go,
    plan,
    set_text,
    start_run,
    tile,
    verdict,
    wait_for_points,
    wait_for_state,
)

# Whole sessions


def test_session_by_mouse(server, open_page):
    page = open_page(server, "#/plan")
    # A plan by forms: another flow in the other direction, at another rate and size.
    page.get_by_role("button", name="Add flow").click()
    page.get_by_label("Name").nth(1).fill("back")
    page.get_by_label("Tx port").select_option("right")
    rx = page.get_by_role("group", name="Rx ports")
    rx.get_by_label("right").uncheck()
    rx.get_by_label("left").check()
    page.get_by_role("textbox", name="Rate").fill("2")
    page.get_by_label("Unit of the rate").select_option("kpps")
    page.get_by_label("Size", exact=True).select_option(label="imix")
    page.get_by_label("dst port", exact=True).nth(0).select_option("increment")
    page.get_by_label("dst port: count").fill("4")
    expect(verdict(page)).to_have_text("The plan has no errors: 2 flows, 2 ports.")
    expect(page.locator(".preview")).to_have_attribute("data-frames", "8")

    page.get_by_role("button", name="Run…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("by mouse")
    dialog.get_by_role("button", name="Run", exact=True).click()

    expect(page.get_by_role("heading", level=1)).to_have_text("by mouse")
    for title in ("Frame rate", "Bit rate", "Mean delay"):
        figure = wait_for_points(page, title)
        assert figure.evaluate(CANVAS_COLORS) > 10, title
    expect(tile(page, "Sent")).to_contain_text("kpps")

    # The rate of one flow.
    page.get_by_label("back", exact=True).check()
    page.get_by_label("Rate", exact=True).fill("500pps")
    page.get_by_role("button", name="Set rate").click()
    row = page.locator("tr[data-row='back']")
    expect(row.locator("td[data-label='Tx rate']")).to_have_text(
        re.compile(r"^(4\d\d|5[0-4]\d)(\.\d+)? pps$")
    )
    other = page.locator("tr[data-row='flow 1']").locator("td[data-label='Tx rate']")
    expect(other).to_have_text(re.compile(r"^(1(\.0\d*)? kpps|9\d\d(\.\d+)? pps)$"))

    page.get_by_role("button", name="Stop", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Stop the run").click()
    expect(page.locator(".run-head .badge")).to_contain_text("interrupted")
    expect(page.locator(".result .tiles")).to_contain_text("Verdict")
    assert chart(page, "Distribution of the delay").evaluate(CANVAS_COLORS) > 5
    variation = chart(page, "Delay variation over time")
    assert int(variation.get_attribute("data-points")) > 10
    assert chart(page, "Reordered and duplicated frames over time").count() == 0

    open_report(page)


def open_report(page):
    """Opens the report, and checks that it is complete and cannot reach the page."""
    with page.context.expect_page() as opened:
        page.get_by_role("button", name="Open the report").click()
    frame = frame_of(opened.value)
    assert frame.evaluate("location.origin") == "null"
    figure = frame.query_selector("figure")
    assert int(figure.get_attribute("data-points")) > 0
    assert frame.evaluate("getComputedStyle(document.body).maxWidth") == "1240px"
    return frame


def frame_of(report):
    report.frame_locator("iframe").locator(":root[data-ready]").wait_for(state="attached")
    return report.frames[1]


class Keyboard:
    """A user without a mouse."""

    def __init__(self, page):
        self.page = page
        self.unseen = []

    def focus(self, name, tag=None, back=False):
        """Presses Tab until an element has the focus whose name begins so."""
        for _ in range(150):
            it = self.page.evaluate(FOCUSED)
            if it["name"].startswith(name) and tag in (None, it["tag"]):
                return
            self.page.keyboard.press("Shift+Tab" if back else "Tab")
            it = self.page.evaluate(FOCUSED)
            if it["tag"] != "BODY" and not it["outline"]:
                self.unseen.append(it)
        raise AssertionError(f"Tab does not reach {name!r}")

    def press(self, *keys):
        for key in keys:
            self.page.keyboard.press(key)

    def type(self, text):
        self.press("Control+a")
        self.page.keyboard.type(text)


def test_session_by_keyboard_alone(server, open_page):
    page = open_page(server)
    page.get_by_role("heading", level=1).wait_for()
    keys = Keyboard(page)
    keys.focus("Skip to the content")
    keys.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    keys.focus("Acquire port left", back=False)
    keys.press("Enter")
    expect(page.locator("tr[data-row='left'] td[data-label='Lease']")).to_contain_text("local")
    # The button has become another one, and keeps the focus.
    keys.focus("Release port left")

    keys.focus("Plan", "A", back=True)
    keys.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Plan")
    verdict(page).get_by_text("no errors").wait_for()
    keys.focus("Forms", "BUTTON")
    keys.press("ArrowRight")
    assert page.evaluate(FOCUSED)["name"] == "Text"
    keys.press("ArrowLeft")
    keys.focus("Add flow")
    keys.press("Enter")
    # The new flow is chosen; its second header moves up and down again, and a third one is copied.
    keys.focus("Move header 2, ipv4 down")
    keys.press("Enter")
    assert page.evaluate(FOCUSED)["name"] == "Move header 3, ipv4 up"
    keys.press("Enter")
    keys.focus("Rate", "INPUT")
    keys.type("3")
    expect(verdict(page)).to_have_text("The plan has no errors: 2 flows, 2 ports.")
    keys.focus("Bytes of the frame")
    keys.press(
        "ArrowDown",
        "ArrowDown",
        "ArrowRight",
        "ArrowRight",
        "ArrowRight",
        "ArrowRight",
        "ArrowRight",
    )
    expect(page.locator(".preview .readout")).to_contain_text("Byte 37")
    keys.focus("ethernet", "LI")
    keys.press("ArrowDown")
    expect(page.locator(".preview .readout")).to_have_text(
        "Bytes 0 to 5: ethernet dst 02:00:00:00:00:02"
    )
    keys.press("Enter")
    page.wait_for_function(
        "() => document.activeElement.dataset.path === 'flows[1].packet[0].ethernet.dst'"
    )

    keys.focus("Run…", back=True)
    keys.press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    keys.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    # The focus is where it was.
    assert page.evaluate(FOCUSED)["name"] == "Run…"
    keys.press("Enter")
    keys.focus("Name", "INPUT")
    keys.type("by keyboard")
    keys.press("Enter")

    expect(page.get_by_role("heading", level=1)).to_have_text("by keyboard")
    wait_for_points(page, "Frame rate")
    keys.focus("Frame rate", "DIV")
    keys.press("ArrowRight")
    expect(chart(page, "Frame rate").locator(".readout")).to_contain_text("left tx")
    keys.focus("Factor", "INPUT", back=True)
    keys.type("200%")
    keys.press("Enter")
    expect(tile(page, "Sent")).to_have_text(re.compile(r"^(7\.[5-9]|8(\.[0-4])?)\d* kpps$"))
    keys.focus("Stop", "BUTTON", back=True)
    keys.press("Enter")
    keys.focus("Stop the run")
    keys.press("Enter")
    expect(page.locator(".run-head .badge")).to_contain_text("interrupted")
    expect(page.locator(".result .tiles")).to_contain_text("Verdict")
    keys.focus("Open the report")
    with page.context.expect_page() as opened:
        keys.press("Enter")
    frame_of(opened.value)
    assert keys.unseen == []


def test_two_users_at_once(start_server, open_page):
    server = start_server(users={"ada": "operate", "bob": "observe"})
    ada = open_page(server, user="ada", failures=True)
    bob = open_page(server, user="bob", failures=True)
    expect(ada.locator("#account")).to_have_text("ada (operate)")
    expect(bob.locator("#account")).to_have_text("bob (observe)")
    assert ada.get_by_role("link", name="Users").count() == 0

    # Bob sees what Ada does, without a reload.
    go(ada, server, "#/ports")
    ada.get_by_role("button", name="Acquire port left").click()
    expect(bob.locator("tr[data-row='left'] td[data-label='Lease']")).to_contain_text("ada")
    run = start_run(server, "of ada", user="ada")
    link = bob.locator("tr[data-row='right']").get_by_role("link", name="of ada")
    link.click()
    wait_for_points(bob, "Frame rate")
    first = tile(bob, "Time").inner_text()
    expect(tile(bob, "Time")).not_to_have_text(first)
    expect(bob.locator("dl.facts")).to_contain_text("ada")

    # He cannot change anything: each control is disabled and says why.
    for name in ("Pause", "Resume", "Stop", "Set rate", "Scale"):
        button = bob.get_by_role("button", name=name, exact=True)
        expect(button).to_be_disabled()
    expect(bob.get_by_text("Your role is observe; this needs operate.")).to_be_visible()
    assert bob.locator("tr[data-row='one'] input").count() == 0
    go(bob, server, "#/ports")
    for name in ("Take port left", "Acquire port right", "Capture port left", "Capture port right"):
        expect(bob.get_by_role("button", name=name)).to_be_disabled()
    go(bob, server, "#/plan")
    verdict(bob).get_by_text("no errors").wait_for()
    for name in ("Save", "Run…"):
        expect(bob.get_by_role("button", name=name)).to_be_disabled()
    go(bob, server, "#/captures")
    expect(bob.locator("input[type=file]")).to_be_disabled()
    go(bob, server, "#/runs")
    expect(bob.get_by_role("button", name="Delete of ada")).to_be_disabled()
    go(bob, server, "#/users")
    expect(bob.get_by_text("Your role is observe; this needs administer.")).to_be_visible()

    # The server refuses what a changed page would send.
    status = bob.evaluate(
        """async ([run, token]) => (await fetch(`/api/v1/runs/${run}/commands`, {
          method: 'POST', body: '{"command": "stop"}',
          headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        })).status""",
        [run, server.tokens["bob"]],
    )
    assert status == 403

    # Both see the end.
    go(bob, server, f"#/runs/{run}")
    go(ada, server, f"#/runs/{run}")
    wait_for_points(ada, "Frame rate")
    ada.get_by_role("button", name="Stop", exact=True).click()
    ada.get_by_role("button", name="Stop the run").click()
    for page in (ada, bob):
        expect(page.locator(".run-head .badge")).to_contain_text("interrupted")
    expect(bob.get_by_role("button", name="Open the report")).to_be_visible()


# Sign-in


def test_sign_in(start_server, open_page):
    server = start_server(users={"ada": "administer"})
    page = open_page(server, "#/runs", failures=True)
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
    assert page.get_by_role("navigation").get_by_role("link").count() == 0
    page.get_by_label("Token").fill("wirestorm_wrong")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert").get_by_text("No user has this token.")).to_be_visible()
    page.get_by_label("Token").fill("not a token")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert").get_by_text("Enter a token")).to_be_visible()
    page.get_by_label("Token").fill(server.tokens["ada"])
    page.keyboard.press("Enter")
    # The view of the address.
    expect(page.get_by_role("heading", level=1)).to_have_text("Runs")
    expect(page.locator("#account")).to_have_text("ada (administer)")
    assert server.tokens["ada"] not in page.url
    assert server.tokens["ada"] not in page.evaluate("JSON.stringify(localStorage)")
    assert page.evaluate("document.cookie") == ""
    page.reload()
    expect(page.locator("#account")).to_have_text("ada (administer)")
    # Another tab has its own session storage.
    other = page.context.new_page()
    other.goto(f"{server.url}/#/runs")
    expect(other.get_by_role("heading", level=1)).to_have_text("Sign in")
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
    assert page.evaluate("sessionStorage.getItem('wirestorm-credentials')").find("wirestorm_") < 0


def test_a_token_that_ends_leads_back_to_the_form(start_server, open_page):
    server = start_server(users={"ada": "operate", "root": "administer"})
    page = open_page(server, user="ada", failures=True)
    page.get_by_role("button", name="Acquire port left").wait_for()
    server.call("DELETE", "/users/ada", user="root")
    page.get_by_role("button", name="Acquire port left").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
    expect(page.get_by_text("The server does not accept the token any longer.")).to_be_visible()


def test_servers_without_users_show_no_form(server, open_page):
    page = open_page(server)
    expect(page.get_by_role("heading", level=1)).to_have_text("Ports")
    expect(page.locator("#account")).to_have_text("local (administer)")
    assert page.get_by_role("button", name="Sign out").count() == 0


def test_users_are_added_and_removed(start_server, open_page):
    server = start_server(users={"root": "administer"})
    page = open_page(server, "#/users", user="root", failures=True)
    page.get_by_role("button", name="Add a user").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name", exact=True).fill("cy")
    dialog.get_by_label("Role").select_option("observe")
    dialog.get_by_text("Limits and certificate").click()
    dialog.get_by_label("Frames/s of a port").fill("a lot")
    dialog.get_by_role("button", name="Add the user").click()
    expect(dialog.get_by_role("alert")).to_contain_text('found "a lot", expected a whole number')
    dialog.get_by_label("Frames/s of a port").fill("5,000")
    dialog.get_by_role("button", name="Add the user").click()
    token = page.get_by_label("Token", exact=True).inner_text()
    server.tokens["cy"] = token
    assert server.call("GET", "/session", user="cy")["role"] == "observe"
    page.get_by_role("dialog").get_by_role("button", name="Close").click()
    expect(page.locator("tr[data-row='cy']")).to_contain_text("5,000 frames/s")
    expect(page.locator("dialog")).to_have_count(0)
    assert token not in page.content()
    page.get_by_role("button", name="Remove cy").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove the user").click()
    expect(page.locator("tr[data-row='cy']")).to_have_count(0)


# Ports


def test_ports_are_leased_and_taken(server, open_page):
    page = open_page(server)
    other = open_page(server)
    other.locator("#account").click()
    dialog = other.get_by_role("dialog")
    dialog.get_by_label("Session").fill("lab 2")
    dialog.get_by_role("button", name="Apply").click()
    expect(other.locator("#account")).to_have_text("local / lab 2 (administer)")

    page.get_by_role("button", name="Acquire port left").click()
    lease = "tr[data-row='left'] td[data-label='Lease']"
    expect(other.locator(lease)).to_contain_text("local")
    other.get_by_role("button", name="Take port left").click()
    other.get_by_role("dialog").get_by_role("button", name="Take the port").click()
    expect(page.locator(lease)).to_contain_text("lab 2")
    expect(page.get_by_role("button", name="Take port left")).to_be_visible()
    other.get_by_role("button", name="Release port left").click()
    expect(page.locator(lease)).to_have_text("free")


def test_taking_a_port_stops_the_run_of_its_owner(server, open_page):
    server.call("PUT", "/ports/left/lease", {})
    run = start_run(server, "held", when_lease_ends="stop")
    # The server may refuse the lease while the run still frees its ports; the dialog then says so.
    page = open_page(server, failures=True)
    page.evaluate(
        "sessionStorage.setItem('wirestorm-credentials',"
        " JSON.stringify({ token: null, user: null, session: 'lab 2' }))"
    )
    page.reload()
    expect(page.locator("#account")).to_have_text("local / lab 2 (administer)")
    expect(page.locator("tr[data-row='left']").get_by_role("link", name="held")).to_be_visible()
    wait_for_state(server, run, "running")
    page.get_by_role("button", name="Take port left").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("All runs of the owner on this port stop.")
    dialog.get_by_role("button", name="Take the port").click()
    expect(page.locator("tr[data-row='left'] td[data-label='Runs']")).to_have_text("–")
    wait_for_state(server, run, "interrupted")


def test_links_that_go_down_are_shown(server, open_page):
    page = open_page(server)
    badge = page.locator("tr[data-row='right'] td[data-label='Link'] .badge")
    expect(badge).to_have_text("up")
    try:
        subprocess.run(["ip", "link", "set", "right", "down"], check=True)
        expect(badge).to_have_text("down")
    finally:
        subprocess.run(["ip", "link", "set", "right", "up"], check=True)
    expect(badge).to_have_text("up")


def test_frames_of_a_port_are_captured(server, open_page, tmp_path):
    page = open_page(server)
    page.get_by_role("button", name="Capture port right").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Filter").fill("no such filter")
    dialog.get_by_role("button", name="Capture", exact=True).click()
    expect(dialog.locator(".problem")).not_to_be_empty()
    # Chromium reports the refused request in the console.
    open_page.problems.clear()
    dialog.get_by_label("Filter").fill("udp port 7")
    dialog.get_by_label("Packets").fill("20")
    dialog.get_by_label("Duration").fill("10s")
    with page.expect_download() as download:
        dialog.get_by_role("button", name="Capture", exact=True).click()
        expect(dialog.get_by_role("button", name="Stop and save")).to_be_visible()
        # Other pages see who captures.
        runs = page.locator("tr[data-row='right'] td[data-label='Runs']")
        expect(runs).to_contain_text("captured by local")
        sender = threading.Thread(target=send_datagrams)
        sender.start()
    sender.join()
    data = Path(download.value.path()).read_bytes()
    assert download.value.suggested_filename == "right.pcapng"
    assert packets_of_pcapng(data) == 20


def send_datagrams():
    """Sends 30 frames of UDP to port 7 on the interface left, with time for the capture."""
    import socket
    import time

    header = bytes.fromhex("020000000002 020000000001 0800")
    ipv4 = bytearray(bytes.fromhex("4500002000000000401100000a0000010a000002"))
    checksum = sum(struct.unpack("!10H", ipv4))
    checksum = ~((checksum & 0xFFFF) + (checksum >> 16)) & 0xFFFF
    ipv4[10:12] = checksum.to_bytes(2, "big")
    frame = header + bytes(ipv4) + struct.pack("!4H", 1024, 7, 12, 0) + bytes(18)
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as it:
        it.bind(("left", 0))
        for _ in range(30):
            it.send(frame)
            time.sleep(0.02)


def packets_of_pcapng(data):
    """Returns the number of enhanced packet blocks."""
    assert data[:4] == b"\x0a\x0d\x0d\x0a"
    at, packets = 0, 0
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        packets += kind == 6
        at += length
    return packets


# Plans


def test_errors_are_at_their_fields(server, open_page):
    page = open_page(server, "#/plan")
    verdict(page).get_by_text("no errors").wait_for()
    page.get_by_role("textbox", name="Rate").fill("fast")
    row = page.locator(".value-form[data-path='flows[0].rate']")
    expect(row.locator(".problem")).to_contain_text('found "fast", expected a rate')
    expect(page.get_by_role("textbox", name="Rate")).to_have_attribute("aria-invalid", "true")
    page.get_by_label("dst: value").first.fill("02:00")
    field = page.locator(".field[data-path='flows[0].packet[0].ethernet.dst']")
    expect(field.locator(".problem")).to_contain_text("expected an Ethernet address")
    expect(verdict(page)).to_contain_text("The plan has 2 errors")
    expect(page.locator(".flows .badge")).to_have_text("2 errors")
    # The list leads to the field, also in a flow that is not shown.
    page.get_by_role("button", name="Add flow").click()
    expect(page.locator(".flows li")).to_have_count(2)
    expect(page.locator(".field .problem.placed")).to_have_count(0)
    verdict(page).get_by_role("button", name="flows[0].packet[0].ethernet.dst").click()
    expect(page.get_by_label("dst: value").first).to_be_focused()
    page.get_by_label("dst: value").first.fill("02:00:00:00:00:05")
    page.get_by_role("textbox", name="Rate").fill("10")
    expect(verdict(page)).to_have_text("The plan has no errors: 2 flows, 2 ports.")
    expect(page.locator("[aria-invalid]")).to_have_count(0)


def test_fields_and_bytes_highlight_each_other(server, open_page):
    page = open_page(server, "#/plan")
    verdict(page).get_by_text("no errors").wait_for()
    on = page.locator(".hex .bytes .on")
    page.get_by_label("dst: value").nth(1).focus()
    expect(on).to_have_text(["0a", "00", "00", "02"])
    page.locator(".tree-field", has_text="time to live").hover()
    expect(on).to_have_text(["40"])
    page.locator(".hex .bytes span[data-at='36']").hover()
    expect(page.locator(".tree .on")).to_contain_text("dst port")
    expect(on).to_have_count(2)
    # A click leads to the form of the field, even of one that is not shown yet.
    page.locator(".tree-field", has_text="identification").click()
    page.wait_for_function(
        "() => document.activeElement.closest('.field')?.dataset.path"
        " === 'flows[0].packet[1].ipv4.identification'"
    )


def test_headers_are_added_moved_and_removed(server, open_page):
    page = open_page(server, "#/plan")
    verdict(page).get_by_text("no errors").wait_for()
    headers = page.locator(".tree-header")

    def protocols():
        return [it.split()[0] for it in headers.all_inner_texts()]

    page.get_by_label("Kind of the new header").select_option("vlan")
    page.get_by_role("button", name="Add header").click()
    page.get_by_role("button", name="Move header 4, vlan up").click()
    page.get_by_role("button", name="Move header 3, vlan up").click()
    page.get_by_label("id", exact=True).select_option("value")
    page.get_by_label("id: value").fill("42")
    wait_for(
        "the tag is in the frame",
        lambda: protocols() == ["ethernet", "vlan", "ipv4", "udp", "payload"],
    )
    expect(page.locator(".tree-field", has_text=re.compile("^id42$"))).to_be_visible()
    page.get_by_role("button", name="Remove header 4, udp").click()
    page.get_by_label("Kind of the new header").select_option("tcp")
    page.get_by_role("button", name="Add header").click()
    tcp = page.locator(".header", has=page.locator(":scope > .header-head strong:text-is('tcp')"))
    tcp.get_by_text("more fields").click()
    tcp.get_by_label("Kind of the new option").select_option("mss")
    tcp.get_by_role("button", name="Add option").click()
    wait_for("TCP is in the frame", lambda: "tcp" in protocols())
    expect(verdict(page)).to_contain_text("no errors")
    page.get_by_role("tab", name="Text").click()
    document = json.loads(page.get_by_label("Text of the plan").input_value())
    packet = document["flows"][0]["packet"]
    assert [next(iter(it)) for it in packet] == ["ethernet", "vlan", "ipv4", "tcp"]
    assert packet[1] == {"vlan": {"id": 42}}
    assert packet[3] == {"tcp": {"options": [{"mss": {}}]}}


@pytest.mark.parametrize(
    ("form", "inputs", "expected"),
    [
        ("values", {"values, with commas": "80, 443, 0x1bb"}, {"values": [80, 443, "0x1bb"]}),
        (
            "increment",
            {"start": "5", "step": "2", "count": "3"},
            {"increment": {"start": 5, "step": 2, "count": 3}},
        ),
        (
            "decrement",
            {"start": "9", "count": "4"},
            {"decrement": {"start": 9, "step": 1, "count": 4}},
        ),
        (
            "random",
            {"min": "1024", "max": "65535", "seed": "7"},
            {"random": {"min": 1024, "max": 65535, "seed": 7}},
        ),
        (
            "weighted",
            {"value = weight, with commas": "443 = 8, 80 = 2"},
            {"weighted": [[443, 8], [80, 2]]},
        ),
        ("value", {"value": "53"}, 53),
        ("", {}, None),
    ],
)
def test_forms_of_a_field(server, open_page, form, inputs, expected):
    page = open_page(server, "#/plan")
    verdict(page).get_by_text("no errors").wait_for()
    page.get_by_label("dst port", exact=True).select_option(form)
    for name, text in inputs.items():
        page.get_by_label(f"dst port: {name}", exact=True).fill(text)
    page.get_by_role("tab", name="Text").click()
    document = json.loads(page.get_by_label("Text of the plan").input_value())
    assert document["flows"][0]["packet"][2]["udp"].get("dst_port") == expected
    # The forms show the same after a reload.
    page.reload()
    page.get_by_label("dst port", exact=True).wait_for()
    expect(page.get_by_label("dst port", exact=True)).to_have_value(form)
    for name, text in inputs.items():
        expect(page.get_by_label(f"dst port: {name}", exact=True)).to_have_value(text)
    expect(verdict(page)).to_contain_text("no errors")


@pytest.mark.parametrize(
    ("label", "choice", "expected"),
    [
        ("Size", "imix", "imix"),
        ("Size", "random range", {"random": {"min": 64, "max": 1518}}),
        (
            "Size",
            "weights",
            {
                "weight_pairs": {
                    "custom": [
                        {"size": 64, "weight": 7},
                        {"size": 594, "weight": 4},
                        {"size": 1518, "weight": 1},
                    ]
                }
            },
        ),
        ("Size", "shortest that holds the packet", None),
        ("Duration", "number of frames", {"fixed_packets": 1000}),
        ("Duration", "bursts", {"burst": {"packets": 100, "inter_burst_gap": "1ms"}}),
    ],
)
def test_forms_of_size_and_duration(server, open_page, label, choice, expected):
    page = open_page(server, "#/plan")
    verdict(page).get_by_text("no errors").wait_for()
    page.get_by_label(label, exact=True).select_option(label=choice)
    page.get_by_role("tab", name="Text").click()
    document = json.loads(page.get_by_label("Text of the plan").input_value())
    assert document["flows"][0].get(label.lower()) == expected
    expect(verdict(page)).to_contain_text("no errors")


def test_text_and_forms_follow_each_other(server, open_page):
    page = open_page(server, "#/plan")
    verdict(page).get_by_text("no errors").wait_for()
    set_text(page, plan(flow("from text", rate="7kpps"), flow("second")))
    expect(verdict(page)).to_have_text("The plan has no errors: 2 flows, 2 ports.")
    page.get_by_role("tab", name="Forms").click()
    expect(page.locator(".flows li")).to_have_text(["from text", "second"])
    expect(page.get_by_role("textbox", name="Rate")).to_have_value("7")
    page.get_by_role("textbox", name="Rate").fill("8")
    page.get_by_role("tab", name="Text").click()
    assert '"rate": "8kpps"' in page.get_by_label("Text of the plan").input_value()
    # A port that gets another name keeps its flows.
    page.get_by_role("tab", name="Forms").click()
    page.get_by_label("Port", exact=True).first.fill("west")
    expect(page.get_by_label("Tx port")).to_have_value("west")
    expect(verdict(page)).to_contain_text("no errors")


def test_yaml_runs_without_forms(server, open_page):
    page = open_page(server, "#/plan")
    verdict(page).get_by_text("no errors").wait_for()
    text = (ROOT / "examples/measured.yaml").read_text()
    set_text(page, text)
    expect(
        page.get_by_text(
            "The text is YAML. The server checks and runs it as it is. Forms need JSON."
        )
    ).to_be_visible()
    expect(verdict(page)).to_contain_text("The plan has no errors")
    expect(page.locator(".preview")).not_to_have_attribute("data-frames", "0")
    page.get_by_role("tab", name="Forms").click()
    expect(page.get_by_text("Forms need the JSON of a plan of streams")).to_be_visible()
    page.get_by_role("button", name="Run…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Duration").fill("1s")
    dialog.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator(".run-head .badge")).to_contain_text("finished")


def test_plans_are_stored_opened_and_deleted(server, open_page):
    page = open_page(server, "#/plan")
    verdict(page).get_by_text("no errors").wait_for()
    page.get_by_label("Name").first.fill("mine.json")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved plan mine.json.")).to_be_visible()
    assert [it["name"] for it in server.call("GET", "/plans")] == ["mine.json"]
    page.get_by_role("button", name="New").click()
    page.get_by_role("button", name="New plan").click()
    page.get_by_label("Name").nth(1).fill("other flow")
    page.get_by_role("button", name="Open…").click()
    page.get_by_role("dialog").get_by_role("button", name="Open mine.json").click()
    expect(page.locator(".flows li")).to_have_text(["flow 1"])
    expect(page.get_by_label("Name").first).to_have_value("mine.json")
    page.get_by_role("button", name="Open…").click()
    delete = page.get_by_role("dialog").get_by_role("button", name="Delete mine.json")
    delete.click()
    expect(delete).to_have_text("Really delete")
    delete.click()
    expect(page.get_by_text("No stored plans yet.")).to_be_visible()
    assert server.call("GET", "/plans") == []


def test_a_run_that_is_refused_shows_the_message_of_the_server(server, open_page):
    page = open_page(server, "#/plan", failures=True)
    verdict(page).get_by_text("no errors").wait_for()
    page.get_by_role("button", name="Run…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Duration").fill("soon")
    dialog.get_by_role("button", name="Run", exact=True).click()
    expect(dialog.locator("> form > .problem")).to_contain_text('"soon"')
    assert server.runs() == []


# Runs


def test_commands_of_a_run(server, open_page):
    page = open_page(server, "#/plan", failures=True)
    verdict(page).get_by_text("no errors").wait_for()
    page.get_by_role("button", name="Run…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Start").select_option("on_command")
    dialog.get_by_label("Name").fill("on command")
    dialog.get_by_role("button", name="Run", exact=True).click()
    badge = page.locator(".run-head .badge")
    expect(badge).to_have_text("prepared")
    page.get_by_role("button", name="Start", exact=True).click()
    expect(badge).to_have_text("running")
    wait_for_points(page, "Frame rate")
    page.get_by_role("button", name="Pause").click()
    expect(tile(page, "Sent")).to_have_text("0 pps")
    page.get_by_role("button", name="Resume").click()
    expect(tile(page, "Sent")).to_contain_text(re.compile("(1 k|[89].. )?pps"))
    expect(tile(page, "Sent")).not_to_have_text("0 pps")
    page.get_by_label("Rate", exact=True).fill("quick")
    page.get_by_role("button", name="Set rate").click()
    expect(page.get_by_role("alert").get_by_text('found "quick"')).to_be_visible()
    page.get_by_role("button", name="Close").first.click()
    page.get_by_role("button", name="Stop", exact=True).click()
    page.get_by_role("button", name="Stop the run").click()
    expect(badge).to_contain_text("interrupted")


def test_loss_is_counted(server, open_page):
    # Nothing receives what right sends to a port that is not its peer's.
    document = plan(flow("lost", rx="left"))
    page = open_page(server)
    run = start_run(server, "loss", document)
    go(page, server, f"#/runs/{run}")
    figure = wait_for_points(page, "Loss", 3)
    expect(figure).to_be_visible()
    expect(page.locator("tr[data-row='lost'] td[data-label='Not arrived']")).to_contain_text(
        "(100 %)"
    )
    server.call("POST", f"/runs/{run}/commands", {"command": "stop"})
    expect(page.locator(".result .tiles")).to_contain_text("100 %")


def test_emulation_shows_connections(server, open_page):
    page = open_page(server)
    source = emulation_plan()
    body = {
        "plan": {"text": source},
        "name": "emulated",
        "ports": dict(zip(plan_ports(server, source), ("left", "right"), strict=True)),
        "options": {"duration": "30s"},
    }
    run = server.call("POST", "/runs", body)["id"]
    go(page, server, f"#/runs/{run}")
    wait_for_points(page, "Connections", 6)
    expect(tile(page, "Open connections")).to_be_visible()
    page.get_by_role("button", name="End load").click()
    # The open connections complete, then the run ends long before its duration.
    expect(page.locator(".run-head .badge")).to_contain_text("finished")
    expect(page.locator(".result tr", has_text="clients").first).to_be_visible()
    expect(chart(page, "Connections over time")).to_have_attribute(
        "data-points", re.compile("[1-9]")
    )


def emulation_plan():
    return (ROOT / "examples/pages.yaml").read_text()


def plan_ports(server, text):
    return [it["name"] for it in server.call("POST", "/plans/check", text=text)["ports"]]


def test_results_are_saved(server, open_page):
    run = start_run(server, "saved", duration="300ms")
    wait_for_state(server, run, "finished")
    page = open_page(server, f"#/runs/{run}")
    for button, name in (
        ("Result as JSON", "saved.json"),
        ("JUnit report", "saved.xml"),
        ("Markdown report", "saved.md"),
    ):
        with page.expect_download() as download:
            page.get_by_role("button", name=button).click()
        assert download.value.suggested_filename == name
        assert Path(download.value.path()).stat().st_size > 100
    open_report(page)


def test_a_pause_by_another_client_is_shown_and_resumed(server, open_page):
    run = start_run(server, "paused", plan(flow("one"), flow("two")))
    wait_for_state(server, run, "running")
    server.call("POST", f"/runs/{run}/commands", {"command": "pause"})
    page = open_page(server, f"#/runs/{run}")
    badge = page.locator(".run-head .badge")
    expect(badge).to_have_text("paused")
    expect(page.locator(".message")).to_have_text("The run is paused")
    resume = page.get_by_role("button", name="Resume")
    expect(resume).to_have_class("primary")
    expect(tile(page, "Sent")).to_have_text("0 pps")
    resume.click()
    expect(badge).to_have_text("running")
    expect(resume).not_to_have_class("primary")
    # A flow on its own, and the list of runs.
    body = {"command": "pause", "flows": ["two"]}
    server.call("POST", f"/runs/{run}/commands", body)
    expect(page.locator("tr[data-row='two'] td[data-label='Flow']")).to_contain_text("paused")
    expect(page.locator(".message")).to_have_text("1 flow is paused")
    expect(page.locator("tr[data-row='two'] td[data-label='Tx rate']")).to_have_text("0 pps")
    resume.click()
    expect(page.locator("tr[data-row='two'] td[data-label='Flow']")).not_to_contain_text("paused")
    server.call("POST", f"/runs/{run}/commands", {"command": "pause"})
    go(page, server, "#/runs")
    expect(page.locator("tbody tr").first).to_contain_text("paused")


def test_flows_of_an_ended_run_are_not_paused(server, open_page):
    run = start_run(server, "half", plan(flow("one"), flow("two")))
    wait_for_state(server, run, "running")
    page = open_page(server, f"#/runs/{run}")
    server.call("POST", f"/runs/{run}/commands", {"command": "pause", "flows": ["two"]})
    # The first table is that of the progress, or that of the result once the former is gone.
    name = page.locator("td[data-label='Flow']").filter(has_text="two").first
    expect(name).to_contain_text("paused")
    server.call("POST", f"/runs/{run}/commands", {"command": "stop"})
    expect(page.locator(".result .tiles")).to_contain_text("Verdict")
    expect(name).to_have_text("two")


def test_plan_of_a_run_is_opened_again(server, open_page):
    document = plan(flow("from a run", rate="3kpps"))
    run = start_run(server, "night", document, duration="300ms", when_lease_ends="stop")
    wait_for_state(server, run, "finished")
    page = open_page(server, f"#/runs/{run}")
    page.get_by_role("button", name="Plan and options").click()
    dialog = page.get_by_role("dialog")
    for words in ("left, right", "300ms", "the run stops", '"rate": "3kpps"'):
        expect(dialog).to_contain_text(words)
    dialog.get_by_role("button", name="Open in the editor").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Plan")
    expect(page.locator(".flows li")).to_have_text(["from a run"])
    expect(page.get_by_role("textbox", name="Rate")).to_have_value("3")
    expect(verdict(page)).to_have_text("The plan has no errors: 1 flow, 2 ports.")


# Two pages


def test_plans_and_captures_of_another_page_appear(server, open_page):
    page = open_page(server, "#/plan")
    verdict(page).get_by_text("no errors").wait_for()
    page.get_by_role("button", name="Open…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("No stored plans yet.")
    server.call("PUT", "/plans/of-bob", text=json.dumps(plan(flow("one"))))
    expect(dialog.locator("tr[data-row='of-bob']")).to_be_visible()
    server.call("DELETE", "/plans/of-bob")
    expect(dialog).to_contain_text("No stored plans yet.")
    go(page, server, "#/captures")
    expect(page.get_by_text("No captures yet.")).to_be_visible()
    server.call("PUT", "/captures/a.pcap", text="x")
    expect(page.locator("tr[data-row='a.pcap']")).to_be_visible()
    server.call("DELETE", "/captures/a.pcap")
    expect(page.get_by_text("No captures yet.")).to_be_visible()


def test_lists_follow_the_own_actions_without_events(server, open_page, tmp_path):
    server.call("PUT", "/plans/mine", text=json.dumps(plan(flow("one"))))
    page = open_page(server, failures=True)
    page.route("**/api/v1/events*", lambda route: route.abort())
    page.reload()
    go(page, server, "#/captures")
    expect(page.locator(".banner")).to_contain_text("The connection to the server is lost.")
    file = tmp_path / "a.pcap"
    file.write_bytes(b"x")
    page.locator("input[type=file]").set_input_files(file)
    row = page.locator("tr[data-row='a.pcap']")
    expect(row).to_be_visible()
    row.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete the capture").click()
    expect(row).to_have_count(0)
    go(page, server, "#/plan")
    page.get_by_role("button", name="Open…").click()
    delete = page.get_by_role("dialog").get_by_role("button", name="Delete mine")
    delete.click()
    delete.click()
    expect(page.get_by_text("No stored plans yet.")).to_be_visible()


# Captures


def test_captures_are_uploaded_replayed_and_deleted(server, open_page, tmp_path):
    page = open_page(server, "#/captures")
    expect(page.get_by_text("No captures yet.")).to_be_visible()
    capture = ROOT / "examples/web-and-mail.pcap"
    page.locator("input[type=file]").set_input_files(capture)
    expect(page.locator("tr[data-row='web-and-mail.pcap']")).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("button", name="Download web-and-mail.pcap").click()
    assert Path(download.value.path()).read_bytes() == capture.read_bytes()

    page.get_by_role("button", name="Replay web-and-mail.pcap").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Port", exact=True).select_option("left")
    dialog.get_by_label("Second port").select_option("right")
    dialog.get_by_label("Split").fill("auto")
    dialog.get_by_label("Rate").fill("2kpps")
    dialog.get_by_label("Passes").fill("3")
    dialog.get_by_label("Name").fill("replayed")
    dialog.get_by_role("button", name="Add an edit").click()
    dialog.get_by_label("Edit", exact=True).select_option("ttl")
    dialog.get_by_label("Value of the edit").fill("9")
    dialog.get_by_role("button", name="Replay", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("replayed")
    expect(page.locator(".run-head .badge")).to_contain_text("finished")
    run = server.runs()[0]["id"]
    result = server.call("GET", f"/runs/{run}/result")
    assert result["achieved"]["passes"] == 3
    assert result["achieved"]["packets"] > 0 and result["achieved"]["packets"] % 3 == 0
    assert all(port["tx"]["packets"] > 0 for port in result["ports"])

    go(page, server, "#/captures")
    page.get_by_role("button", name="Delete web-and-mail.pcap").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete the capture").click()
    expect(page.get_by_text("No captures yet.")).to_be_visible()


def test_uploads_show_progress_and_can_be_cancelled(server, open_page, tmp_path):
    big = tmp_path / "big.pcap"
    with big.open("wb") as it:
        it.truncate(40_000_000)
    page = open_page(server, "#/captures")
    # A slow line.
    session = page.context.new_cdp_session(page)
    slow = {"offline": False, "latency": 0, "downloadThroughput": -1, "uploadThroughput": 4_000_000}
    session.send("Network.emulateNetworkConditions", slow)
    page.locator("input[type=file]").set_input_files(big)
    expect(page.locator(".upload")).to_contain_text(re.compile(r"[1-9]\d? % of 40 MB"))
    page.locator(".upload").get_by_role("button", name="Cancel").click()
    expect(page.locator(".upload")).to_have_count(0)
    assert server.call("GET", "/captures") == []


def test_a_refused_name_is_shown(server, open_page, tmp_path):
    wrong = tmp_path / "a b.pcap"
    wrong.write_bytes(b"x")
    page = open_page(server, "#/captures", failures=True)
    page.locator("input[type=file]").set_input_files(wrong)
    expect(
        page.get_by_role("alert").get_by_text("expected a name of 1 to 128 letters")
    ).to_be_visible()


# The page


def test_a_lost_connection_is_shown_and_recovers(server, open_page):
    page = open_page(server, failures=True)
    run = start_run(server, "long")
    expect(page.locator("tr[data-row='left']").get_by_role("link", name="long")).to_be_visible()
    go(page, server, f"#/runs/{run}")
    wait_for_points(page, "Frame rate")
    server.stop()
    banner = page.locator(".banner")
    expect(banner).to_contain_text("The connection to the server is lost.")
    server.start()
    expect(banner).to_be_hidden()
    # The end of the server ended the run.
    expect(page.locator(".run-head .badge")).to_contain_text("interrupted")
    go(page, server, "#/ports")
    expect(page.locator("tr[data-row='left'] td[data-label='Runs']")).to_have_text("–")
    start_run(server, "after")
    expect(page.locator("tr[data-row='left']").get_by_role("link", name="after")).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_contrast_in_both_themes(server, open_page, scheme):
    run = start_run(server, "contrast", plan(flow("a"), flow("b", rate="2kpps")))
    page = open_page(server, color_scheme=scheme)
    for view in [*VIEWS, f"#/runs/{run}"]:
        go(page, server, view)
        if view == "#/plan":
            page.get_by_role("textbox", name="Rate").fill("wrong")
            expect(verdict(page)).to_contain_text("1 error")
        if view.startswith("#/runs/"):
            wait_for_points(page, "Frame rate")
        assert page.evaluate(LOW_CONTRAST) == [], view
    server.call("POST", f"/runs/{run}/commands", {"command": "stop"})
    expect(page.locator(".result .tiles")).to_contain_text("Verdict")
    assert page.evaluate(LOW_CONTRAST) == []
    back = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert back == ("rgb(244, 246, 248)" if scheme == "light" else "rgb(17, 22, 29)")


def test_theme_switch_overrides_the_system_and_stays(server, open_page):
    page = open_page(server, color_scheme="light")
    button = page.get_by_role("button", name="Theme")
    back = "getComputedStyle(document.body).backgroundColor"
    button.click()
    button.press("Enter")
    expect(button).to_have_text("Theme: dark")
    assert page.evaluate(back) == "rgb(17, 22, 29)"
    page.reload()
    expect(page.get_by_role("button", name="Theme")).to_have_text("Theme: dark")
    assert page.evaluate(back) == "rgb(17, 22, 29)"


@pytest.mark.parametrize("width", [360, 768, 1440])
def test_pages_have_no_horizontal_scroll(server, open_page, width):
    server.call("PUT", "/captures/" + "c" * 100 + ".pcap", text="x")
    long = "a run with a long name of many words, and more"
    flows = [flow(f"flow number {it} with a long name", rate="100pps") for it in range(6)]
    run = start_run(server, long, plan(*flows))
    page = open_page(server, viewport={"width": width, "height": 800})
    wide = "document.documentElement.scrollWidth"
    for view in [*VIEWS, f"#/runs/{run}"]:
        go(page, server, view)
        if view == "#/plan":
            verdict(page).get_by_text("no errors").wait_for()
            page.get_by_label("src", exact=True).nth(1).select_option("increment")
            assert page.evaluate(wide) <= width, "increment"
        if view.startswith("#/runs/"):
            wait_for_points(page, "Mean delay")
        assert page.evaluate(wide) <= width, view
    server.call("POST", f"/runs/{run}/commands", {"command": "stop"})
    expect(page.locator(".result .tiles")).to_contain_text("Verdict")
    assert page.evaluate(wide) <= width


def test_dialogs_fit_a_phone(server, open_page):
    page = open_page(server, viewport={"width": 360, "height": 640})
    server.call("PUT", "/captures/a.pcap", text="x")
    for view, button in (
        ("#/ports", "Capture port left"),
        ("#/plan", "Run…"),
        ("#/captures", "Replay a.pcap"),
        ("#/users", "Add a user"),
    ):
        go(page, server, view)
        page.get_by_role("button", name=button).click()
        box = page.get_by_role("dialog").bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= 360, view
        assert box["y"] >= 0 and box["y"] + box["height"] <= 640, view
        assert page.evaluate(
            "[...document.querySelectorAll('dialog')]"
            ".every((it) => it.scrollWidth <= it.clientWidth)"
        ), view
        page.keyboard.press("Escape")


@pytest.mark.parametrize("view", VIEWS)
def test_each_tab_stop_is_visible_and_named(server, open_page, view):
    server.call("PUT", "/captures/a.pcap", text="x")
    page = open_page(server, view)
    page.get_by_role("heading", level=1).wait_for()
    if view == "#/plan":
        verdict(page).get_by_text("no errors").wait_for()
    seen = 0
    for _ in range(150):
        page.keyboard.press("Tab")
        it = page.evaluate(FOCUSED)
        if it["tag"] == "BODY":
            break
        seen += 1
        assert it["outline"] and it["name"], it
    assert seen > 8


def test_hostile_names_are_shown_as_text(server, open_page):
    hostile = "<img src=x onerror=alert(1)>"
    run = start_run(server, hostile, plan(flow(hostile)))
    page = open_page(server, f"#/runs/{run}")
    wait_for_points(page, "Frame rate", 1)
    expect(page.get_by_role("heading", level=1)).to_have_text(hostile)
    server.call("POST", f"/runs/{run}/commands", {"command": "stop"})
    expect(page.locator(".result")).to_contain_text(hostile)
    assert page.locator("main img").count() == 0
    open_report(page)
    go(page, server, "#/runs")
    expect(page.get_by_role("link", name=hostile)).to_be_visible()
    assert page.locator("main img").count() == 0


def test_injected_script_does_not_run(server, open_page):
    page = open_page(server)
    page.get_by_role("heading", level=1).wait_for()
    page.evaluate("""() => {
      const script = document.createElement('script');
      script.textContent = 'document.title = "broken"';
      document.body.append(script);
    }""")
    # Chromium writes the violation to the console, and the page has its event.
    wait_for("the policy is applied", lambda: page.evaluate("1") and len(open_page.problems) >= 2)
    assert page.title() != "broken"
    assert all("olicy" in text or "script-src" in text for _, text in open_page.problems)
    open_page.problems.clear()


def test_unknown_addresses_are_explained(server, open_page):
    page = open_page(server, "#/nothing", failures=True)
    expect(page.get_by_role("heading", level=1)).to_have_text("Not found")
    go(page, server, "#/runs/no-such-run")
    expect(page.get_by_role("main").get_by_role("alert")).not_to_be_empty()
