# SPDX-License-Identifier: Apache-2.0
"""build/site in a real browser, opened from the disk: run by scripts/test.sh site."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

sync_api = pytest.importorskip("playwright.sync_api")
SITE = Path(__file__).resolve().parents[2] / "build" / "site"
PAGES = sorted(p for p in SITE.rglob("*.html") if "rustdoc" not in p.relative_to(SITE).parts)
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")
# How much lighter one colour is than the other; the guidelines of the web ask for 4.5.
CONTRAST = """() => {
  const light = (colour) => {
    const [r, g, b] = colour.match(/[\\d.]+/g).map((x) => x / 255)
      .map((x) => (x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const text = light(getComputedStyle(document.querySelector("article")).color);
  const paper = light(getComputedStyle(document.body).backgroundColor);
  return [paper, (Math.max(text, paper) + 0.05) / (Math.min(text, paper) + 0.05)];
}"""


class Links(HTMLParser):
    """What a page links to, loads and defines."""

    def __init__(self) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.loads: list[str] = []
        self.anchors: set[str] = {"", "#"}

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        found = dict(attributes)
        for name in ("id", "name"):
            self.anchors.add(found.get(name) or "")
        if tag == "a" and found.get("href"):
            self.targets.append(str(found["href"]))
        for name in ("src", "href"):
            if tag != "a" and found.get(name):
                self.loads.append(str(found[name]))


@cache
def links(page: Path) -> Links:
    parser = Links()
    parser.feed(page.read_text(encoding="utf-8"))
    return parser


def test_there_are_pages() -> None:
    assert len(PAGES) > 100, "make docs builds them"


def test_no_dead_link() -> None:
    dead = []
    for page in PAGES:
        for link in [*links(page).targets, *links(page).loads]:
            parts = urlsplit(link)
            if parts.scheme in ("http", "https", "mailto", "data"):
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            where = f"{page.relative_to(SITE)}: {link}"
            if not target.is_file():
                dead.append(where)
            elif target.suffix == ".html" and "rustdoc" not in target.parts:
                dead += [where] if unquote(parts.fragment) not in links(target).anchors else []
    assert dead == []


def test_nothing_is_loaded_from_the_network() -> None:
    for page in PAGES:
        away = [x for x in links(page).loads if urlsplit(x).scheme in ("http", "https")]
        assert [x for x in away if "//" in x] == [], page


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


class Watch:
    """What goes wrong on the pages of a tab."""

    def __init__(self, tab: Any) -> None:
        self.tab = tab
        self.problems: list[str] = []
        tab.on("console", self.console)
        tab.on("pageerror", lambda error: self.problems.append(f"error: {error}"))
        tab.on("requestfailed", lambda request: self.problems.append(f"failed: {request.url}"))
        tab.on("request", self.request)

    def console(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.problems.append(f"console: {message.text}")

    def request(self, request: Any) -> None:
        if urlsplit(request.url).scheme not in ("file", "data"):
            self.problems.append(f"request: {request.url}")

    def open(self, page: Path, query: str = "") -> None:
        self.tab.goto(f"file://{page}{query}")


@pytest.fixture
def watch(browser: Any) -> Iterator[Watch]:
    tab = browser.new_page(viewport={"width": 1200, "height": 900})
    yield Watch(tab)
    tab.close()


@needs_chromium
def test_every_page_loads_and_is_readable(watch: Watch) -> None:
    for page in PAGES:
        name = page.relative_to(SITE).as_posix()
        watch.tab.set_viewport_size({"width": 1200, "height": 900})
        watch.open(page)
        assert watch.problems == [], name
        papers = []
        for scheme in ("light", "dark"):
            watch.tab.emulate_media(color_scheme=scheme)
            paper, contrast = watch.tab.evaluate(CONTRAST)
            assert contrast > 4.5, f"{name}, {scheme}"
            papers.append(paper)
        assert papers[0] > 0.8 and papers[1] < 0.2, f"{name}: {papers}"
        watch.tab.set_viewport_size({"width": 400, "height": 800})
        width = watch.tab.evaluate("document.documentElement.scrollWidth")
        assert width <= 400, f"{name} is {width} wide on a screen of 400"


@needs_chromium
@pytest.mark.parametrize("words", ["weak reference", "TVM_FFI_THROW", "no_leaks"])
def test_search_finds(watch: Watch, words: str) -> None:
    watch.open(SITE / "search.html", "?q=" + words.replace(" ", "+"))
    found = watch.tab.locator("#search-results li a")
    if words == "weak reference":
        found = found.filter(has_text="One Python object for one C++ object")
    found.first.wait_for()  # results come one after another
    assert watch.problems == []


@needs_chromium
def test_reference_of_the_crates_loads(watch: Watch) -> None:
    page = SITE / "rustdoc" / "tvm_ffi" / "index.html"
    if not page.exists():
        pytest.skip("no cargo when the site was made")
    watch.open(page)
    assert "tvm_ffi" in watch.tab.title()
    assert watch.problems == []
