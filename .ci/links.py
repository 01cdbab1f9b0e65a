"""Follows every link of the HTML below a folder that leads to a file: it is there, and so is the place in it.

A page that was not built, of a crate whose documentation was left out, is a dead link for whoever reads these alone.
"""

import functools
import pathlib
import sys
import urllib.parse
from html.parser import HTMLParser


class Page(HTMLParser):
    """The links of a page, and the places that a link can name."""

    def __init__(self, text):
        super().__init__()
        self.links, self.places = set(), set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if tag == "a" and attributes.get("href"):
            self.links.add(attributes["href"])
        if attributes.get("id"):
            self.places.add(attributes["id"])


@functools.cache
def page(file):
    return Page(file.read_text(encoding="utf-8"))


def dead(folder):
    """Each dead link of the pages below a folder, as `page: link`, and how many links were followed."""
    found, count = [], 0
    for file in sorted(folder.rglob("*.html")):
        for link in sorted(page(file).links):
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            count += 1
            path = urllib.parse.unquote(parts.path)
            target = (file.parent / path).resolve() if path else file
            if target.is_dir():
                target = target / "index.html"
            place = urllib.parse.unquote(parts.fragment)
            # A source's line numbers are made by the page's script.
            in_source = "src" in target.relative_to(folder).parts if target.is_relative_to(folder) else False
            if not target.is_file():
                found.append(f"{file.relative_to(folder)}: {link}")
            elif place and target.suffix == ".html" and not in_source and place not in page(target).places:
                found.append(f"{file.relative_to(folder)}: {link} (no such place)")
    return found, count


def main():
    folder = pathlib.Path(sys.argv[1]).resolve()
    found, count = dead(folder)
    # Otherwise nothing was built, or nothing understood.
    if count < 1000:
        sys.exit(f"only {count} links were found below {folder}")
    if found:
        sys.exit("\n".join([f"{len(found)} dead links of {count}:", *found[:40]]))
    print(f"{count} links lead somewhere")


main()
