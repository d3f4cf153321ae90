"""Checks the links in a built manual, which must work from the file system and without a network.

    links.py FOLDER

Every relative link must lead to a file in the folder, and to an existing anchor if it names one. Scripts, styles and
images must be files in the folder. Links to other sites are for readers alone.
"""
import html.parser
import pathlib
import sys
import urllib.parse

LOADED = {("script", "src"), ("link", "href"), ("img", "src"), ("iframe", "src"), ("source", "src")}


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.anchors, self.links, self.loads = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.anchors.update(value for name, value in attrs if name in ("id", "name") and value)
        for name in ("href", "src"):
            if attributes.get(name):
                is_loaded = (tag, name) in LOADED and attributes.get("rel") not in ("next", "prev", "index", "search")
                (self.loads if is_loaded else self.links).append(attributes[name])


def problems(folder):
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(folder.rglob("*.html"))}
    count = 0
    for path, page in pages.items():
        place = path.relative_to(folder)
        for link in page.loads + page.links:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc:
                if link in page.loads and parts.scheme != "data":
                    yield f"{place} loads {link}"
                continue
            count += 1
            target = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
            if not target.is_file():
                yield f"{place} links to {link}, which is absent"
            elif parts.fragment and target in pages and urllib.parse.unquote(parts.fragment) not in pages[target].anchors:
                yield f"{place} links to {link}, whose anchor is absent"
    for style in folder.rglob("*.css"):
        text = style.read_text(encoding="utf-8", errors="replace")
        if "url(http" in text or "@import" in text and "http" in text.split("@import", 1)[1][:80]:
            yield f"{style.relative_to(folder)} loads a file from the network"
    if len(pages) < 30 or count < 1000:
        yield f"only {len(pages)} pages and {count} links in {folder}"


def main():
    found = list(problems(pathlib.Path(sys.argv[1]).resolve()))
    print("\n".join(found))
    return 1 if found else 0


sys.exit(main())
