"""What tests of the web page share: plans, runs, and parts of the page."""

import json
from pathlib import Path

from conftest import wait_for

VIEWS = ["#/ports", "#/plan", "#/captures", "#/runs", "#/users"]
ROOT = Path(__file__).parents[4]

# Contrast of all texts to the first background behind them that is not transparent.
LOW_CONTRAST = """() => {
  const parse = (color) => color.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => {
    const part = (value) => {
      const share = value / 255;
      return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    };
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  };
  const back = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const color = parse(getComputedStyle(at).backgroundColor);
      if (color.length === 3 || color[3] === 1) return color;
    }
    return [255, 255, 255];
  };
  const low = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim() || !element.checkVisibility()) continue;
    if (element.closest('script, .hidden, .skip, :disabled')) continue;
    const [a, b] = [light(parse(getComputedStyle(element).color)), light(back(element))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 4.5) low.push([walker.currentNode.textContent.trim().slice(0, 40), contrast]);
  }
  return low;
}"""

# Number of colors of the canvas of a chart. A blank one has one color at most.
CANVAS_COLORS = """(figure) => {
  const canvas = figure.querySelector('canvas');
  const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  const colors = new Set();
  for (let at = 0; at < data.length; at += 4) {
    if (data[at + 3]) colors.add(data[at] * 65536 + data[at + 1] * 256 + data[at + 2]);
  }
  return colors.size;
}"""

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
