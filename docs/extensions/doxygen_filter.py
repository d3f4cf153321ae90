"""Prints a C header with the comment markers of Doxygen. Usage: doxygen_filter.py HEADER

The headers use plain comments, for people who read them in an editor. A comment that begins a line describes the
declaration below it and becomes /** … */. A comment behind code describes this code and becomes /**< … */. Titles of
sections (/* ---- Title ---- */) stay as they are.
"""

import re
import sys


def with_markers(text: str) -> str:
    lines = []
    for line in text.split("\n"):
        if re.match(r"\s*/\* (?!----)", line):
            line = line.replace("/* ", "/** ", 1)
        elif re.search(r"\S.*/\* ", line) and not line.endswith("\\"):
            line = re.sub(r"/\* ", "/**< ", line, count=1)
        lines.append(line)
    return "\n".join(lines)


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as header:
        sys.stdout.write(with_markers(header.read()))
