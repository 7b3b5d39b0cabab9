"""HTML reports in a browser: plots, tables, themes, widths, keyboard, print, hostile names.

WIRESTORM_SAMPLE_REPORTS names a directory with the output of
`cargo run -p wirestorm-report --example sample`.
"""

import json
import os
import re
import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest
from playwright.sync_api import sync_playwright

CHROMIUM = shutil.which("chromium")
SAMPLES = Path(os.environ.get("WIRESTORM_SAMPLE_REPORTS", "."))
NAMES = sorted(path.stem for path in SAMPLES.glob("*.html"))

# Number of plots of each report.
PLOTS = {
    "collector": 1,
    "emulation": 7,
    "flow-export": 1,
    "hostile": 6,
    "limited": 6,
    "mlrsearch": 1,
    "ndr": 5,
    "ndr-connections": 1,
    "ndr-overlay": 5,
    "overlay": 6,
    "rfc2544": 6,
    "rfc9411": 26,
    "rfc9411-overlay": 26,
    "streams": 9,
    "two-machines": 11,
    "y1564": 4,
}

LOW_CONTRAST = (Path(__file__).parent / "low_contrast.js").read_text()

CANVAS_COLORS = (Path(__file__).parent / "canvas_colors.js").read_text()


@pytest.fixture(scope="session")
def browser():
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def open_report(browser):
    """Opens reports. At the end no page may have had an error, a message or a request."""
    pages = []
    problems = []

    def open_report(name, **options):
        options.setdefault("viewport", {"width": 1280, "height": 900})
        page = browser.new_page(**options)
        path = SAMPLES / f"{name}.html"
        page.on("console", lambda message: problems.append(("console", message.text)))
        page.on("pageerror", lambda error: problems.append(("error", str(error))))
        page.on("dialog", lambda dialog: problems.append(("dialog", dialog.message)))
        page.on(
            "request",
            lambda request: None
            if request.url == path.as_uri()
            else problems.append(("request", request.url)),
        )
        page.goto(path.as_uri())
        page.wait_for_selector(":root[data-ready]")
        pages.append(page)
        return page

    open_report.problems = problems
    yield open_report
    for page in pages:
        page.close()
    assert problems == []


def test_all_samples_are_known():
    assert NAMES == sorted(PLOTS)


@pytest.mark.parametrize("name", sorted(PLOTS))
def test_every_plot_draws_all_of_its_points(open_report, name):
    page = open_report(name)
    figures = page.query_selector_all("figure")
    assert len(figures) == PLOTS[name]
    for figure in figures:
        title = figure.query_selector("figcaption").inner_text()
        points, expected = (figure.get_attribute(it) for it in ("data-points", "data-expected"))
        assert points == expected and int(points) > 0, title
        # Axes, text and a series have many colors with anti-aliasing.
        assert figure.evaluate(CANVAS_COLORS) > 20, title
        assert figure.query_selector(".plot").get_attribute("aria-label").startswith(title)
        # The alternative for readers who do not see the plot.
        assert len(figure.query_selector_all("details tbody tr")) > 0, title


@pytest.mark.parametrize("name", sorted(PLOTS))
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_contrast_in_both_themes(open_report, name, scheme):
    page = open_report(name, color_scheme=scheme)
    assert page.evaluate(LOW_CONTRAST) == []


def test_theme_switch_overrides_the_system(open_report):
    page = open_report("streams", color_scheme="light")
    back = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(back)
    canvas = "document.querySelector('canvas').toDataURL()"
    light_canvas = page.evaluate(canvas)
    button = page.get_by_role("button", name="Theme")
    button.click()
    assert page.evaluate(back) == light
    button.press("Enter")
    assert button.inner_text() == "Theme: dark"
    assert page.evaluate(back) != light
    page.wait_for_function(f"before => {canvas} !== before", arg=light_canvas)
    assert page.evaluate(LOW_CONTRAST) == []


@pytest.mark.parametrize("name", sorted(PLOTS))
def test_phone_width_has_no_horizontal_scroll(open_report, name):
    page = open_report(name, viewport={"width": 400, "height": 800})
    page.wait_for_function("document.querySelector('.uplot').clientWidth <= 400")
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    canvas = page.query_selector("canvas").bounding_box()
    assert canvas["x"] >= 0 and canvas["x"] + canvas["width"] <= 400


@pytest.mark.parametrize("name", sorted(PLOTS))
def test_tiles_keep_their_values_inside(open_report, name):
    for width in (400, 1280):
        page = open_report(name, viewport={"width": width, "height": 800})
        wide = """[...document.querySelectorAll('.tiles > div')]
          .filter((it) => it.scrollWidth > it.clientWidth).map((it) => it.innerText)"""
        assert page.evaluate(wide) == [], width


# Whether something is drawn in the last column of each canvas: a label that is cut.
LAST_COLUMN = """() => [...document.querySelectorAll('canvas')].map((canvas) => {
  const { data } = canvas.getContext('2d').getImageData(canvas.width - 1, 0, 1, canvas.height);
  return data.filter((_, at) => at % 4 === 3).some((alpha) => alpha > 0);
})"""


@pytest.mark.parametrize("name", sorted(PLOTS))
def test_no_label_of_a_plot_is_cut(open_report, name):
    for width in (400, 1280):
        page = open_report(name, viewport={"width": width, "height": 800})
        assert not any(page.evaluate(LAST_COLUMN)), width


@pytest.mark.parametrize("name", ["ndr", "rfc9411", "y1564"])
def test_tables_of_the_methods_sort(open_report, name):
    page = open_report(name)
    # All tables but those below a plot.
    wrong = page.evaluate("""() => {
      const wrong = [];
      for (const table of document.querySelectorAll('.blocks > .scroll table')) {
        table.querySelectorAll('th').forEach((heading, column) => {
          heading.querySelector('button').click();
          const cells = [...table.tBodies[0].rows].map((row) => row.cells[column]);
          const values = cells.filter((it) => !it.classList.contains('none'))
            .map((it) => (heading.classList.contains('n') ? Number(it.dataset.v) : it.textContent));
          const isLess = (a, b) => (typeof a === 'number'
            ? a <= b : a.localeCompare(b, undefined, { numeric: true }) <= 0);
          const isSorted = values.every((it, place) => !place || isLess(values[place - 1], it));
          if (!isSorted || heading.getAttribute('aria-sort') !== 'ascending') {
            wrong.push(heading.textContent);
          }
        });
      }
      return wrong;
    }""")
    assert wrong == []


def test_marks_of_a_service_are_read_with_its_plot(open_report):
    page = open_report("y1564")
    figure = page.query_selector_all("figure")[1]
    assert "data" in figure.query_selector("figcaption").inner_text()
    figure.query_selector("summary").click()
    text = figure.query_selector("details").inner_text()
    assert "CIR 10 Mbit/s" in text and "CIR + EIR 15 Mbit/s" in text, text


def cells(page, table, column):
    rows = page.query_selector_all(f"{table} tbody tr")
    return [row.query_selector_all("td")[column].inner_text() for row in rows]


def test_tables_sort_by_click_and_by_key(open_report):
    page = open_report("rfc2544")
    page.evaluate("""() => {
      const captions = [...document.querySelectorAll('caption')];
      const caption = captions.find((it) => it.textContent === 'Throughput of each interface');
      caption.closest('table').id = 'sorted';
    }""")
    headings = [it.inner_text() for it in page.query_selector_all("#sorted th")]
    column = next(place for place, it in enumerate(headings) if it.startswith("Throughput"))
    before = cells(page, "#sorted", column)
    button = page.query_selector_all("#sorted th button")[column]

    def values():
        return [int(text.replace(",", "")) for text in cells(page, "#sorted", column)]

    button.click()
    assert values() == sorted(values()) and cells(page, "#sorted", column) != before
    heading = page.query_selector_all("#sorted th")[column]
    assert heading.get_attribute("aria-sort") == "ascending"
    button.press("Enter")
    assert values() == sorted(values(), reverse=True)
    assert heading.get_attribute("aria-sort") == "descending"
    assert "descending" in page.inner_text("#status")


def test_missing_values_sort_last_in_both_directions(open_report):
    page = open_report("mlrsearch")
    page.evaluate("document.querySelector('.blocks > .scroll table').id = 'sorted'")
    headings = [it.inner_text() for it in page.query_selector_all("#sorted th")]
    column = next(place for place, it in enumerate(headings) if it.startswith("Upper"))
    button = page.query_selector_all("#sorted th button")[column]
    for _ in range(2):
        button.click()
        values = cells(page, "#sorted", column)
        missing = values.count("–")
        assert missing > 0 and values[-missing:] == ["–"] * missing


def test_legend_hides_and_shows_series(open_report):
    page = open_report("overlay")
    figure = page.query_selector("figure")
    points = int(figure.get_attribute("data-points"))
    button = figure.query_selector_all(".legend button")[1]
    button.press("Space")
    assert button.get_attribute("aria-pressed") == "false"
    page.wait_for_function(
        "points => Number(document.querySelector('figure').dataset.points) < points", arg=points
    )
    button.click()
    page.wait_for_function(
        "points => Number(document.querySelector('figure').dataset.points) === points", arg=points
    )


def test_keyboard_reaches_everything_in_order(open_report):
    page = open_report("rfc2544")
    seen = []
    for _ in range(40):
        page.keyboard.press("Tab")
        focused = "document.activeElement"
        seen.append(
            page.evaluate(f"""() => {{
              const it = {focused};
              const outline = getComputedStyle(it).outlineStyle;
              return [it.className || it.id || it.tagName, it.getBoundingClientRect().top
                + scrollY, outline];
            }}""")
        )
    kinds = [kind for kind, _, _ in seen]
    assert kinds[:2] == ["skip", "theme"]
    assert "plot" in kinds and "SUMMARY" in kinds and "BUTTON" in kinds
    assert all(outline != "none" for _, _, outline in seen)
    # Down the page, apart from neighbours in a row.
    tops = [top for _, top, _ in seen[2:]]
    assert sum(b < a - 400 for a, b in zip(tops, tops[1:])) <= 2, tops


def test_arrow_keys_read_the_values_of_a_plot(open_report):
    page = open_report("rfc2544")
    plot = page.query_selector(".plot")
    readout = page.query_selector(".readout")
    plot.press("ArrowRight")
    first = readout.inner_text()
    assert "64" in first and "14.88 Mpps" in first and "9.1" in first, first
    plot.press("ArrowRight")
    assert "128" in readout.inner_text()
    plot.press("End")
    assert "1518" in readout.inner_text()


def test_skip_link_leads_to_the_results(open_report):
    page = open_report("rfc2544")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "results"


def test_print_is_light_and_without_controls(open_report):
    page = open_report("streams", color_scheme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    page.wait_for_selector(":root[data-print]")
    assert not page.is_visible("#theme") and not page.is_visible("nav")
    assert page.is_visible("canvas") and page.is_visible(".warnings")
    text = page.evaluate("getComputedStyle(document.querySelector('h1')).color")
    assert max(int(part) for part in text[4:-1].split(",")) < 80, text
    widths = page.evaluate("[...document.querySelectorAll('canvas')].map((it) => it.clientWidth)")
    assert max(widths) <= 660
    page.emulate_media(media="screen", color_scheme="dark")
    page.wait_for_selector(":root:not([data-print])")


def test_hostile_names_are_shown_as_text(open_report):
    page = open_report("hostile")
    assert page.query_selector_all("img") == []
    assert "</script><img src=x" in page.title()
    assert "</script><img src=x" in page.inner_text("h1")
    assert "</script><img src=x" in page.inner_text(".legend")


def test_injected_script_does_not_run(open_report):
    page = open_report("streams")
    page.evaluate("""() => {
      window.blocked = [];
      addEventListener('securitypolicyviolation', (event) => blocked.push(event.effectiveDirective));
      const script = document.createElement('script');
      script.textContent = 'document.title = "broken"';
      document.body.append(script);
    }""")
    page.wait_for_function("window.blocked.length > 0")
    assert page.title() != "broken"
    # Chromium also writes the violation to the console.
    problems = open_report.problems
    assert len(problems) == 1 and "Content Security Policy" in problems.pop()[1]


# What the schemas of Apache Ant and of Jenkins's xUnit plugin both accept: attributes by element.
JUNIT = {
    "testsuites": set(),
    "testsuite": set(
        "id package name timestamp hostname tests failures errors skipped time".split()
    ),
    "properties": set(),
    "testcase": {"name", "classname", "time"},
    "failure": {"type", "message"},
    "error": {"type", "message"},
    "skipped": {"message"},
    "system-out": set(),
    "system-err": set(),
}


@pytest.mark.parametrize("name", sorted(PLOTS))
def test_junit_has_the_common_structure(name):
    root = ElementTree.parse(SAMPLES / f"{name}.xml").getroot()
    assert root.tag == "testsuites"
    for element in root.iter():
        assert set(element.attrib) == JUNIT[element.tag], element.tag
    for number, suite in enumerate(root):
        order = [child.tag for child in suite]
        cases = suite.findall("testcase")
        assert order == ["properties"] + ["testcase"] * len(cases) + ["system-out", "system-err"]
        assert suite.get("id") == str(number)
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", suite.get("timestamp"))
        assert int(suite.get("tests")) == len(cases) > 0
        kinds = {"failures": "failure", "errors": "error", "skipped": "skipped"}
        for count, kind in kinds.items():
            assert int(suite.get(count)) == len(suite.findall(f"testcase/{kind}"))
        for it in [suite, *cases]:
            # Names are tokens: not empty, with single spaces.
            assert it.get("name") and it.get("name") == " ".join(it.get("name").split())
            assert re.fullmatch(r"\d+\.\d{3}", it.get("time"))
        assert all(len(case) <= 1 for case in cases)


@pytest.mark.parametrize("name", sorted(PLOTS))
def test_json_figures_are_complete(name):
    report = json.loads((SAMPLES / f"{name}.json").read_text())
    assert report["schema"] == "wirestorm.report/1"
    assert report["figures"] and all(it["value"] is not None for it in report["figures"])
