"""The reference in docs/python is what the docstrings say now, and has everything that is public."""

import importlib.util
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent.parent / "docs" / "python"
SPEC = importlib.util.spec_from_file_location("make", FOLDER / "make.py")
make = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(make)
PAGES = make.pages()


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.open = set(), [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if tag != "meta":
            self.open.append(tag)
        if "id" in attrs:
            assert attrs["id"] not in self.ids
            self.ids.add(attrs["id"])
        if tag == "a":
            self.links.append(attrs["href"])

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_pages_are_of_the_docstrings_as_they_are():
    written = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.html")}
    told = "write them anew: python3 docs/python/make.py"
    assert set(written) == set(PAGES), told
    assert [name for name, text in PAGES.items() if written[name] != text] == [], told


def test_every_link_leads_somewhere_and_every_page_is_well_formed():
    pages = {name: Page(text) for name, text in PAGES.items()}
    for name, page in pages.items():
        for link in page.links:
            file, _, place = link.partition("#")
            assert (file or name) in pages, f"{name}: {link}"
            assert not place or place in pages[file or name].ids, f"{name}: {link}"


@pytest.mark.parametrize("name", ["regard", "regard.torch"])
def test_everything_public_has_an_entry(name):
    module = pytest.importorskip(name)
    text = PAGES[f"{name}.html"]
    listed = dict(re.findall(r'<li><a href="([^"]*)">([A-Za-z_0-9]+)</a>', text))
    assert set(module.__all__) <= set(listed.values())
    for one in module.__all__:
        place = next(link for link, name in listed.items() if name == one)
        file, _, anchor = place.partition("#")
        whole = PAGES[file] if file else text
        section = whole.split(f'<section id="{anchor}">', 1)[1] if anchor else whole
        # The docstring that Python has is the one that stands there.
        first = (getattr(module, one).__doc__ or "").strip().splitlines()[0].replace("``", "")
        shown = re.sub(r"<[^>]+>", "", section).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
        assert first and first[:40] in shown, one
