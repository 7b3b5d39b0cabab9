"""What tests of the web page share: plans, runs, and parts of the page."""

import json
from pathlib import Path

from conftest import wait_for

VIEWS = ["#/ports", "#/plan", "#/captures", "#/runs", "#/tests", "#/users"]
ROOT = Path(__file__).parents[4]
# What the pages of reports and of the server have to satisfy.
BROWSER = ROOT / "crates/report/tests/browser"

LOW_CONTRAST = (BROWSER / "low_contrast.js").read_text()

CANVAS_COLORS = (BROWSER / "canvas_colors.js").read_text()

FOCUSED = """() => {
  const it = document.activeElement;
  const labels = [...(it.labels ?? [])].map((label) => label.textContent).join(' ');
  const named = it.getAttribute('aria-label') ?? labels;
  const style = getComputedStyle(it);
  return { tag: it.tagName, name: (named || it.textContent || '').trim(),
    outline: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0 };
}"""


def flow(name, tx="left", rx="right", rate="1kpps", **others):
    return {
        "name": name,
        "tx": tx,
        "rx": rx,
        "packet": [
            {"ethernet": {"dst": "02:00:00:00:00:02"}},
            {"ipv4": {"src": "10.0.0.1", "dst": "10.0.0.2"}},
            {"udp": {"dst_port": 7}},
        ],
        "size": 128,
        "rate": rate,
        "metrics": {"enable": True},
        **others,
    }


def plan(*flows):
    return {"ports": [{"name": "left"}, {"name": "right"}], "flows": list(flows)}


def start_run(server, name="a run", document=None, user=None, duration=None, **others):
    """Starts a run by the API, and returns its ID."""
    body = {
        "plan": {"document": document or plan(flow("one"))},
        "name": name,
        "ports": {"left": "left", "right": "right"},
        "options": {"duration": duration},
        **others,
    }
    return server.call("POST", "/runs", body, user=user)["id"]


def state_of(server, run, user=None):
    return server.call("GET", f"/runs/{run}", user=user)["state"]


def wait_for_state(server, run, state, user=None):
    wait_for(f"run {run} is {state}", lambda: state_of(server, run, user) == state)


def go(page, server, view):
    page.goto(f"{server.url}/{view}")
    page.get_by_role("heading", level=1).wait_for()


def set_text(page, document):
    """Types a plan into the text tab."""
    page.get_by_role("tab", name="Text").click()
    text = document if isinstance(document, str) else json.dumps(document)
    page.get_by_label("Text of the plan").fill(text)


def verdict(page):
    return page.locator(".verdict")


def chart(page, title):
    return page.locator("figure.chart", has=page.locator(f"figcaption:has-text('{title}')"))


def wait_for_points(page, title, points=2):
    figure = chart(page, title).first
    page.wait_for_function(
        "([figure, points]) => Number(figure.dataset.points) >= points",
        arg=[figure.element_handle(), points],
    )
    return figure


def tile(page, name):
    return page.locator(".live .tiles > div", has=page.locator(f"dt:text-is('{name}')")).locator(
        ".value"
    )
