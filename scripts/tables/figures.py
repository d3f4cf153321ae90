"""Measured figures in documents. They stand in weights/results/FILE.csv, whose first column is the key.

    <!--=FILE.KEY.COLUMN-->8.5<!--/-->            one value; the key may contain dots
    <!--rows FILE: | {COLUMN} | {COLUMN} % |-->   a table: two lines of head, which stay, and one line for each row
    <!--/-->
"""

import csv
import re

# A mark of one value must not begin a line, which Markdown would take as HTML.
MARK = re.compile(r"<!--=(?P<value>.*?)-->.*?<!--/-->|<!--rows (?P<rows>.*?)-->(?P<head>\n.*?\n.*?\n).*?<!--/-->", re.DOTALL)
BEGIN = re.compile(r"<!--(?:=|rows )")


class NoResult(Exception):
    """The mark's beginning."""


def read(tree, name):
    with open(tree / "weights" / "results" / f"{name}.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def value(tree, name):
    file, rest = name.split(".", 1)
    key, column = rest.rsplit(".", 1)
    return next(row[column] for row in read(tree, file) if next(iter(row.values())) == key)


def rows(tree, name):
    file, template = name.split(": ", 1)
    return "".join(re.sub(r"\{(.*?)\}", lambda cell: row[cell[1]], template) + "\n" for row in read(tree, file))


def replace(tree, page):
    """The page with today's figures in the marks. NoResult if one is missing."""
    text, done = "", 0
    for begin in BEGIN.finditer(page):
        if begin.start() < done:
            continue
        mark = MARK.match(page, begin.start())
        breaks_line = begin[0] == "<!--=" and page[:begin.start()][-1:] in ("", "\n")
        try:
            if mark is None or breaks_line:
                raise KeyError
            if mark["value"] is not None:
                new = f"<!--={mark['value']}-->{value(tree, mark['value'])}<!--/-->"
            else:
                new = f"<!--rows {mark['rows']}-->{mark['head']}{rows(tree, mark['rows'])}<!--/-->"
        except (KeyError, StopIteration, ValueError, OSError):
            raise NoResult(page[begin.start():begin.start() + 60]) from None
        text += page[done:begin.start()] + new
        done = mark.end()
    return text + page[done:]
