"""The web page of a server: tests across machines, and agents."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from playwright.sync_api import expect

from conftest import BINARY, free_port, wait_for
from web import FOCUSED, LOW_CONTRAST, go

NATS = os.environ.get("WIRESTORM_NATS_SERVER") or shutil.which("nats-server")
# Folder for pictures of the view; none without it.
PICTURES = os.environ.get("WIRESTORM_PICTURES")


def document(duration="60s", name="two", interfaces=("left", "right")):
    flow = {
        "name": "voice",
        "tx": "a",
        "rx": "b",
        "size": 128,
        "rate": "1kpps",
        "metrics": {"enable": True},
        "packet": [
            {"ethernet": {"dst": "02:00:00:00:00:02"}},
            {"ipv4": {"src": "10.0.0.1", "dst": "10.0.0.2"}},
            {"udp": {"dst_port": 7}},
        ],
    }
    tx, rx = interfaces
    options = {"backend": "af_packet", "tolerance": 50}
    return {
        "name": name,
        "nodes": ["tx", "rx"],
        "ports": [
            {"name": "a", "node": "tx", "interface": tx},
            {"name": "b", "node": "rx", "interface": rx},
        ],
        "runs": [{"name": "flows", "streams": {"flows": [flow]}, "options": options}],
        "duration": duration,
    }


def start_test(server, user=None, **others):
    body = {"test": {"document": document(**others)}}
    return server.call("POST", "/tests", body, user=user)["id"]


def status(server, test, user=None):
    return server.call("GET", f"/tests/{test}", user=user)


def wait_until_over(server, test, user=None):
    over = ("finished", "failed", "interrupted")
    wait_for(f"test {test} ends", lambda: status(server, test, user)["test"]["state"] in over)
    return status(server, test, user)


def badge(page):
    return page.locator(".run-head .badge")


def tile(page, name):
    return page.locator(".tiles > div", has=page.locator(f"dt:text-is('{name}')")).locator(".value")


def picture(page, name):
    if PICTURES:
        page.screenshot(path=Path(PICTURES) / f"{name}.png", full_page=True)


def test_a_file_becomes_a_test_whose_runs_have_reports(server, open_page, tmp_path):
    page = open_page(server, "#/tests")
    expect(page.locator(".reason")).to_contain_text("this server has no bus")
    expect(page.get_by_text("No tests yet.")).to_be_visible()
    file = tmp_path / "two.json"
    file.write_text(json.dumps(document("2s")))
    page.get_by_label("File").set_input_files(file)
    expect(page.get_by_label("Text of the test")).to_have_value(file.read_text())
    page.get_by_label("Name").fill("night")
    page.get_by_role("button", name="Start the test").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("night")
    expect(page.locator(".phases [aria-current]")).to_have_text("run")
    expect(tile(page, "Received")).to_have_text(re.compile(r"^[1-9][\d,]*$"))
    expect(badge(page)).to_have_text("finished")
    expect(page.locator(".log li")).to_contain_text(["agents", "prepare", "run", "results"])
    row = page.locator("tbody tr")
    cell = lambda label: row.locator(f"td[data-label='{label}']")  # noqa: E731
    expect(cell("Flow")).to_have_text("voicea > b")
    expect(cell("Sent")).to_contain_text("2,000")
    expect(cell("Received")).to_contain_text("2,000")
    expect(cell("Loss")).to_have_text("0 %")
    expect(cell("One-way delay")).to_contain_text(re.compile(r"mean [\d.]+ (ns|µs|ms)"))
    expect(cell("Error of the delay")).to_contain_text("one clock")
    expect(page.locator(".test-run .badge")).to_have_text("met")
    expect(page.locator(".test-results")).to_contain_text("Start skew between agents")
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save the results as JSON").click()
    assert saved.value.suggested_filename == "night.json"
    content = json.loads(Path(saved.value.path()).read_text())
    assert content["schema"] == "wirestorm.test/1"
    with page.context.expect_page() as opened:
        page.get_by_role("button", name="Report of flows").click()
    report = opened.value
    report.frame_locator("iframe").locator(":root[data-ready]").wait_for(state="attached")
    expect(report.frame_locator("iframe").locator("body")).to_contain_text("voice")
    page.get_by_role("link", name="Run in the history").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("night/flows")
    expect(page.locator(".result .tiles")).to_contain_text("Verdict")
    go(page, server, "#/tests")
    expect(page.get_by_role("link", name="night")).to_be_visible()


def test_a_test_is_stopped_in_the_list_and_on_its_page(server, open_page):
    page = open_page(server, "#/tests")
    # The example has the ports of the server.
    page.get_by_role("button", name="Example").click()
    expect(page.get_by_label("Text of the test")).to_have_value(re.compile('interface: "right"'))
    page.get_by_role("button", name="Start the test").click()
    expect(badge(page)).to_have_text("running, run")
    page.get_by_role("button", name="Stop", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Stop the test").click()
    expect(badge(page)).to_have_text("interrupted")
    expect(page.locator(".message")).to_have_text("local stopped the test")
    # Only what ran is in the results.
    expect(page.locator(".test-run .badge")).not_to_have_text("met")
    test = start_test(server, name="again")
    go(page, server, "#/tests")
    row = page.locator(f"tr[data-row='{test}']")
    expect(row).to_contain_text("running")
    row.get_by_role("button", name="Stop again").click()
    page.get_by_role("dialog").get_by_role("button", name="Stop the test").click()
    expect(row).to_contain_text("interrupted")
    expect(row.get_by_role("button")).to_have_count(0)


def test_errors_name_their_place_and_stay_until_the_text_changes(server, open_page):
    page = open_page(server, "#/tests", failures=True)
    text = page.get_by_label("Text of the test")
    problem = page.locator("form .problem")
    start = page.get_by_role("button", name="Start the test")
    start.click()
    expect(problem).to_contain_text("There is no test")
    wrong = document()
    wrong["ports"][1]["node"] = "nobody"
    text.fill(json.dumps(wrong))
    expect(problem).to_be_hidden()
    start.click()
    expect(problem).to_contain_text('ports[1].node: found "nobody", expected one of the nodes')
    expect(text).to_have_attribute("aria-invalid", "true")
    wrong = document()
    wrong["runs"][0]["streams"] = "plan.yaml"
    text.fill(json.dumps(wrong))
    start.click()
    expect(problem).to_contain_text("plan.yaml: upload it as a capture")
    wrong = document(interfaces=("left", "nowhere"))
    text.fill(json.dumps(wrong))
    start.click()
    expect(problem).to_contain_text("ports[1].interface")
    assert server.call("GET", "/tests") == []
    go(page, server, "#/tests/t0")
    expect(page.locator("main .problem").first).to_contain_text("no test")


def test_an_observer_sees_tests_and_starts_none(start_server, open_page):
    server = start_server(users={"ada": "operate", "bob": "operate", "eve": "observe"})
    test = start_test(server, user="ada")
    page = open_page(server, "#/tests", user="eve", failures=True)
    for control in (
        page.get_by_role("button", name="Start the test"),
        page.get_by_role("button", name="Example"),
        page.get_by_label("Text of the test"),
        page.get_by_label("File"),
    ):
        expect(control).to_be_disabled()
    expect(page.get_by_text("Your role is observe; this needs operate.")).to_be_visible()
    expect(page.get_by_role("button", name="Stop two")).to_be_disabled()
    page.get_by_role("link", name="two", exact=True).click()
    expect(badge(page)).to_have_text("running, run")
    expect(page.get_by_role("button", name="Stop", exact=True)).to_be_disabled()
    other = open_page(server, f"#/tests/{test}", user="bob", failures=True)
    stop = other.get_by_role("button", name="Stop", exact=True)
    expect(stop).to_be_disabled()
    expect(stop).to_have_attribute("title", re.compile("belongs to ada"))
    server.call("POST", f"/tests/{test}/stop", user="ada")
    expect(badge(page)).to_have_text("interrupted")


def test_a_test_by_keyboard_alone(server, open_page):
    page = open_page(server, "#/tests")
    page.get_by_role("heading", level=1).wait_for()

    def focus(name):
        for _ in range(60):
            page.keyboard.press("Tab")
            it = page.evaluate(FOCUSED)
            assert it["tag"] == "BODY" or it["outline"], it
            if it["name"].startswith(name):
                return
        raise AssertionError(f"Tab does not reach {name!r}")

    focus("Text of the test")
    page.keyboard.insert_text(json.dumps(document("60s", name="keys")))
    focus("Start the test")
    page.keyboard.press("Enter")
    expect(badge(page)).to_have_text("running, run")
    focus("Stop")
    page.keyboard.press("Enter")
    focus("Stop the test")
    page.keyboard.press("Enter")
    expect(badge(page)).to_have_text("interrupted")


@pytest.mark.parametrize("width", [360, 768, 1440])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_view_fits_and_has_contrast(server, open_page, width, scheme):
    long = "a test with a long name of many words, and more of them"
    done = start_test(server, duration="300ms", name=long)
    wait_until_over(server, done)
    test = start_test(server)
    page = open_page(server, color_scheme=scheme, viewport={"width": width, "height": 800})
    wide = "document.documentElement.scrollWidth"
    for view in ("#/tests", f"#/tests/{test}", f"#/tests/{done}"):
        go(page, server, view)
        ready = "tbody tr" if view != f"#/tests/{test}" else ".phases [aria-current]"
        page.locator(ready).first.wait_for()
        assert page.evaluate(wide) <= width, view
        assert page.evaluate(LOW_CONTRAST) == [], view
        picture(page, f"{view.split('/')[-1] if view == '#/tests' else 'one'}-{width}-{scheme}-"
                      f"{'done' if view.endswith(done) else 'active'}")
    server.call("POST", f"/tests/{test}/stop")


@pytest.fixture
def nats(namespace, tmp_path):
    """A server of a bus; its address."""
    if NATS is None:
        pytest.skip("nats-server is not installed; cargo xtask setup installs it")
    port = free_port()
    arguments = [NATS, "-a", "127.0.0.1", "-p", str(port), "-js", "-sd", str(tmp_path / "nats")]
    log = (tmp_path / "nats.log").open("wb")
    process = subprocess.Popen(arguments, stdout=log, stderr=log)
    wait_for("nats-server listens", lambda: b"is ready" in (tmp_path / "nats.log").read_bytes())
    yield f"nats://127.0.0.1:{port}"
    process.terminate()
    process.wait(30)


@pytest.fixture
def start_agent(nats, tmp_path):
    """Starts agents: `start_agent("tx", "left", KEY)`."""
    running = []

    def start(name, interface, key):
        arguments = [BINARY, "agent", "--bus", nats, "--name", name, "--interface", interface]
        arguments += ["--trust-director", key, "--reflector", f"127.0.0.1:{free_port()}"]
        arguments += ["--runs-dir", tmp_path / f"{name}-runs"]
        env = {**os.environ, "XDG_STATE_HOME": str(tmp_path / f"{name}-state")}
        log = (tmp_path / f"{name}.log").open("wb")
        running.append(subprocess.Popen(arguments, env=env, stdout=log, stderr=log))
        return running[-1]

    yield start
    for process in running:
        process.terminate()
        process.wait(30)


def test_agents_of_a_bus_run_a_test(start_server, start_agent, nats, open_page):
    server = start_server(ports=(), flags=["--bus", nats])
    log = (server.directory / "server.log").read_text()
    key = re.search(r"key (U\w+)", log).group(1)
    page = open_page(server, "#/tests")
    expect(page.locator(".reason")).to_contain_text("no agent has reported yet")
    start_agent("tx", "left", key)
    receiver = start_agent("rx", "right", key)
    row = page.locator("tr[data-row='tx']")
    expect(row).to_contain_text("idle")
    expect(row.locator("td[data-label='Interfaces']")).to_contain_text("left up")
    expect(row.locator("td[data-label='Clock comparisons']")).to_contain_text("127.0.0.1:")
    expect(row.locator("td[data-label='Last seen']")).to_have_text("now")
    expect(page.locator("tr[data-row='rx']")).to_contain_text("idle")
    page.get_by_label("Text of the test").fill(json.dumps(document("4s")))
    page.get_by_role("button", name="Start the test").click()
    expect(page.locator(".phases [aria-current]")).to_have_text("run")
    page.get_by_role("link", name="All tests").click()
    expect(row).to_contain_text("busy")
    picture(page, "agents-1280-busy")
    row.get_by_role("link").click()
    expect(badge(page)).to_have_text("finished")
    error = page.locator("td[data-label='Error of the delay']")
    expect(error).to_contain_text(re.compile(r"±[\d.]+ (ns|µs), symmetric path"))
    expect(error).to_contain_text("in any case")
    expect(error).to_contain_text("STAMP to 127.0.0.1:")
    picture(page, "result-1280-bus")
    receiver.kill()
    page.get_by_role("link", name="All tests").click()
    expect(page.locator("tr[data-row='rx']")).to_contain_text("lost")
