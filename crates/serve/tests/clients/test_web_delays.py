"""The web page of a server: delays of a run over time."""

import json
import re
import time

from playwright.sync_api import expect

from conftest import wait_for
from web import CANVAS_COLORS, chart, flow, go, plan, start_run


def frames_of_column(figure, column):
    """Returns the number of frames of a column of the delays over time, the first is 0."""
    canvas = figure.locator("canvas")
    width = canvas.bounding_box()["width"]
    columns = int(figure.get_attribute("data-columns"))
    # Labels are at the left.
    at = 64 + (width - 64) * (column % columns + 0.5) / columns
    # The readout follows moves.
    canvas.hover(position={"x": at, "y": 50})
    canvas.hover(position={"x": at, "y": 100})
    text = figure.locator(".readout").inner_text()
    return int(re.search(r"([\d,]+) frames$", text)[1].replace(",", ""))


def has_settled(figure):
    """Returns whether no column is added for a second."""
    columns = figure.get_attribute("data-columns")
    time.sleep(1)
    return figure.get_attribute("data-columns") == columns


def test_delays_over_time_have_the_histograms_of_the_server(server, open_page):
    flows = plan(flow("one"), flow("two", rate="3kpps"))
    run = start_run(server, "delays", flows)
    page = open_page(server, f"#/runs/{run}")
    figure = chart(page, "Delays over time")
    expect(figure).to_be_visible()
    page.wait_for_function(
        "(figure) => Number(figure.dataset.cells) >= 6 && Number(figure.dataset.columns) >= 2",
        arg=figure.element_handle(),
    )
    assert figure.evaluate(CANVAS_COLORS) > 3
    row = page.locator("tr[data-row='one']")
    for label in ("Median", "99 %", "Jitter"):
        expect(row.locator(f"td[data-label='{label}']")).to_have_text(re.compile("[µmn]s$"))
    # The figure of a run that has ended does not change by itself, once it has the last counters.
    server.call("POST", f"/runs/{run}/commands", {"command": "stop"})
    expect(page.locator(".result .tiles")).to_contain_text("Verdict")
    wait_for("all counters are in the figure", lambda: has_settled(figure))
    images, frames = [], []
    for name in ("", "one", "two"):
        figure.get_by_label("Flow of the delays").select_option(name)
        images.append(figure.locator("canvas").evaluate("(canvas) => canvas.toDataURL()"))
        frames.append(frames_of_column(figure, 1))
    assert len(set(images)) == 3
    assert frames[0] == frames[1] + frames[2] and frames[2] > 2 * frames[1]


def test_delays_before_the_page_opened_are_no_interval(server, open_page):
    run = start_run(server, "old", plan(flow("one", rate="2kpps")))
    path = f"/runs/{run}/progress"
    wait_for("the run is 8 s old", lambda: server.call("GET", path)["elapsed_ns"] > 8e9)
    page = open_page(server, f"#/runs/{run}")
    figure = chart(page, "Delays over time")
    expect(figure).to_be_visible()
    assert 0 < frames_of_column(figure, 0) < 6_000


def test_delays_below_zero_are_in_the_lowest_row(server, open_page):
    """Clocks of two machines differ, those of one machine do not: the histogram is replaced."""
    run = start_run(server, "skewed")

    def measured():
        progress = server.call("GET", f"/runs/{run}/progress?delays=1")
        return progress if progress["flows"] and progress["flows"][0].get("delays") else None

    progress = wait_for("delays are measured", measured)
    progress["elapsed_ns"] = 1_000_000_000
    progress["flows"][0]["delays"]["histogram"] = [[-1024, 10], [-1, 20], [0, 30]]
    page = open_page(server)
    body = f"data: {json.dumps(progress)}\n\n"
    page.route(
        f"**/runs/{run}/events*",
        lambda route: route.fulfill(content_type="text/event-stream", body=body),
    )
    go(page, server, f"#/runs/{run}")
    figure = chart(page, "Delays over time")
    expect(figure).to_be_visible()
    assert figure.evaluate(CANVAS_COLORS) >= 2
    canvas = figure.locator("canvas")
    canvas.hover(position={"x": 70, "y": 50})
    canvas.hover(position={"x": 70, "y": 100})
    expect(figure.locator(".readout")).to_contain_text("0 ns or less: 60 of 60 frames")


def test_delays_are_of_the_first_64_flows(server, open_page):
    flows = [flow(f"flow {number}", rate="10pps") for number in range(66)]
    run = start_run(server, "many", plan(*flows))
    page = open_page(server, f"#/runs/{run}")
    figure = chart(page, "Delays over time")
    expect(figure.get_by_label("Flow of the delays")).to_contain_text("first 64 of 66 flows")
    expect(page.locator(".flows-part .hint")).to_contain_text("first 64 of 66 measured flows")
