"""The web page of a server: the history of runs."""

import json
import shutil
import subprocess

from playwright.sync_api import expect

from conftest import BINARY, wait_for
from web import ROOT, flow, go, plan, start_run, wait_for_state


def test_history_filters_and_deletes(server, open_page):
    ids = []
    for name in ("alpha", "beta"):
        ids.append(start_run(server, name, duration="200ms"))
        wait_for_state(server, ids[-1], "finished")
    page = open_page(server, "#/runs")
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(2)
    expect(rows.first).to_contain_text("beta")
    page.get_by_label("Filter").fill("alph")
    expect(rows).to_have_count(1)
    expect(page.get_by_text("1 of 1 run")).to_be_visible()
    page.get_by_label("Filter").fill("")
    page.get_by_label("State").select_option("failed")
    expect(rows).to_have_count(0)
    page.get_by_label("State").select_option("finished")
    expect(rows).to_have_count(2)
    page.get_by_role("button", name="Delete alpha").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete the run").click()
    expect(rows).to_have_count(1)
    assert [it["name"] for it in server.runs()] == ["beta"]
    # A run of another user of the server appears by itself.
    start_run(server, "gamma", duration="200ms")
    expect(rows.first).to_contain_text("gamma")
    expect(rows.first).to_contain_text("finished")


def test_plans_of_the_command_line_have_their_reasons(server, open_page, tmp_path):
    source = tmp_path / "mine.json"
    document = plan(flow("one"))
    document["ports"] = [{"name": it, "location": it} for it in ("left", "right")]
    source.write_text(json.dumps(document))
    capture = ROOT / "examples/web-and-mail.pcap"
    runs_dir = ["--runs-dir", server.directory / "runs"]
    for arguments in (
        ["run", source, "--duration", "100ms", "--save=of-a-file"],
        ["replay", "-i", "left", "-t", "--save=replayed", capture],
    ):
        # A busy machine may lose frames, which is exit status 3.
        done = subprocess.run([BINARY, *arguments, *runs_dir], check=False, capture_output=True)
        assert done.returncode in (0, 3), done.stderr
    page = open_page(server, "#/runs")
    dialog = page.get_by_role("dialog")
    page.get_by_role("link", name="of-a-file").click()
    page.get_by_role("button", name="Plan and options").click()
    expect(dialog.locator("dl")).to_contain_text("mine.json")
    expect(dialog.locator("dt")).to_have_text(["Plan", "Command line"])
    page.keyboard.press("Escape")
    go(page, server, "#/runs")
    page.get_by_role("link", name="replayed").click()
    page.get_by_role("button", name="Plan and options").click()
    expect(dialog).to_contain_text("replays of the command line have none")
    expect(dialog.locator("dt")).to_have_text(["Command line"])


def copy_runs(server, run, count, step_s=-1):
    """Stops the server, adds copies of a run at steps of time, and starts the server."""
    server.stop()
    records = server.directory / "runs"
    record = json.loads((records / run / "run.json").read_text())
    for number in range(count):
        copy = records / f"{run}-{number:04}"
        copy.mkdir()
        record.update(id=copy.name, name=f"copy {number:04}")
        record["started_unix_ns"] += step_s * 1_000_000_000
        (copy / "run.json").write_text(json.dumps(record))
    server.start()
    return records


def short_run(server, name="template"):
    run = start_run(server, name, duration="50ms")
    wait_for_state(server, run, "finished")
    return run


def test_history_has_pages(server, open_page):
    run = short_run(server)
    records = copy_runs(server, run, 120)
    page = open_page(server, "#/runs", failures=True)
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(50)
    expect(page.get_by_role("status").filter(has_text="of 100 runs")).to_contain_text("121 runs")
    more = page.get_by_role("button", name="Show more")
    for count in (100, 121):
        more.click()
        expect(rows).to_have_count(count)
    expect(rows.last).to_contain_text("copy 0119")
    expect(more).to_be_hidden()
    # A new connection keeps the pages, and finds what is gone.
    server.stop()
    expect(page.locator(".banner")).to_be_visible()
    shutil.rmtree(records / f"{run}-0110")
    server.start()
    expect(rows).to_have_count(120)
    expect(rows.last).to_contain_text("copy 0119")


def test_history_shows_more_than_1000_runs(server, open_page):
    copy_runs(server, short_run(server), 1_070)
    page = open_page(server, "#/runs")
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(50)
    for count in [*range(100, 1_071, 50), 1_071]:
        page.get_by_role("button", name="Show more").click()
        expect(rows).to_have_count(count)
    expect(rows.last).to_contain_text("copy 1069")


def test_an_active_run_is_listed_below_a_page_of_newer_ones(server, open_page):
    copy_runs(server, short_run(server), 120, 3_600)
    run = start_run(server, "active")
    page = open_page(server, "#/runs")
    page.get_by_label("State").select_option("active")
    row = page.locator(f"tr[data-row='{run}']")
    expect(row).to_contain_text("running")
    server.call("POST", f"/runs/{run}/commands", {"command": "stop"})
    expect(row).to_have_count(0)
    page.get_by_label("State").select_option("interrupted")
    expect(row).to_be_visible()


def test_a_run_that_is_deleted_while_its_page_is_read_does_not_return(server, open_page):
    run = short_run(server)
    copy_runs(server, run, 120)
    page = open_page(server, "#/runs")
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(50)
    held = []
    page.route("**/runs?*after=*", lambda route: held.append((route, route.fetch())))
    more = page.get_by_role("button", name="Show more")
    more.click()
    expect(rows).to_have_count(100)
    more.click()
    wait_for("the page of older runs is read", lambda: page.evaluate("1") and held)
    server.call("DELETE", f"/runs/{run}-0119")
    # Events are in order.
    short_run(server, "later")
    expect(rows.first).to_contain_text("later")
    route, response = held.pop()
    route.fulfill(response=response)
    expect(rows.filter(has_text="copy 0118")).to_be_visible()
    expect(rows.filter(has_text="copy 0119")).to_have_count(0)
