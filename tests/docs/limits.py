"""Checks that docs/reference/limits.md states the values of the named constants.

    limits.py SOURCE_FOLDER

A row on the page ends in cells such as "2^24" and "`CLI_MAX_BATCH` in `base/training/job_argument.h`". The file must
define the constant with that value.
"""
import pathlib
import re
import sys

UNITS = {"": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
ROW = re.compile(r"^\| .* \| (?P<value>[^|]+) \| `(?P<name>\w+)` in `(?P<file>[\w/.]+)` \|$", re.M)
LEAST_ROWS = 20


def value_of(cell):
    """The number that a cell states: "2^24", "1,000,000" or "256 MiB"."""
    match = re.fullmatch(r"(?:2\^(?P<power>\d+)|(?P<number>[\d,]+))(?: (?P<unit>\w+))?", cell.strip())
    number = 2 ** int(match["power"]) if match["power"] else int(match["number"].replace(",", ""))
    return number * UNITS[match["unit"] or ""]


def constant_in(text, name):
    """The value of `name = 1 << 24`, `name = 64` or `#define name (UINT64_C(1) << 28)` in C, or None."""
    number = r"(?:\(size_t\)|\(?UINT64_C\()?(\d+)\)?(?: << (\d+)\)?)?"
    match = re.search(rf"\b{name} (?:= )?{number}\s*[,;}}/\n]", text)
    return int(match[1]) << int(match[2] or 0) if match else None


def main():
    root = pathlib.Path(sys.argv[1])
    rows = list(ROW.finditer((root / "docs/reference/limits.md").read_text(encoding="utf-8")))
    faults = 0
    for row in rows:
        found = constant_in((root / row["file"]).read_text(encoding="utf-8"), row["name"])
        if found != value_of(row["value"]):
            print(f"limits.md: {row['name']} is {row['value']} on the page, and {found} in {row['file']}")
            faults += 1
    if len(rows) < LEAST_ROWS:
        print(f"limits.md: only {len(rows)} rows name a constant; there should be {LEAST_ROWS} or more")
        faults += 1
    if faults == 0:
        print(f"{len(rows)} limits are those of the code")
    return min(faults, 1)


sys.exit(main())
