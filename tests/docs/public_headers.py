"""Checks, without Doxygen and Sphinx, the facts whose absence stops the manual: every public function has an example, every
constant and field of a public header a text, and every role of an operator that only jobs hold a text on the page of operators.

    public_headers.py SOURCE_FOLDER

docs/extensions/c_reference.py compares the other facts, from Doxygen's XML. That test skips where these programs are missing.
"""
import pathlib
import re
import sys

HEADERS = ("include/mdot/*.h", "cluster/include/mdot/*.h")
EXAMPLE = re.compile(r"/\* \[example: ([\w, \n*]+)\] \*/")
FUNCTION = re.compile(r"^(?!typedef|static|#)[a-z_]\w*[\w *]*?\b(mdot\w*)\((?!\*)[^;{]*\);", re.M)
BLOCK = re.compile(r"^typedef (?:enum|struct) \w+ \{(.*?)^\} \w+;", re.M | re.S)
EXEMPT = re.compile(r"\b(?:struct_size|reserved|user);|_MAP\(")  # the manual explains these once
LEAST_FUNCTIONS, LEAST_LINES = 100, 200


def functions_without_example(root, headers):
    shown = set()
    for path in [*(root / "examples").rglob("*.c"), *(root / "cluster").glob("*/example*.c")]:
        for names in EXAMPLE.findall(path.read_text(encoding="utf-8")):
            shown.update(re.split(r"[,\s*]+", names.strip()))
    declared = {name: header.name for header, text in headers for name in FUNCTION.findall(text)}
    return declared, [f"{header}: {name} has no example" for name, header in sorted(declared.items()) if name not in shown]


def lines_without_text(headers):
    """Lines that declare a constant or a field, and have no comment on the line or directly above."""
    count, faults = 0, []
    for header, text in headers:
        for body in BLOCK.findall(text):
            above = False
            for line in body.split("\n"):
                is_comment = re.match(r" *(/\*| \*)", line) is not None
                is_item = not is_comment and re.match(r" +\w", line) and not EXEMPT.search(line)
                if is_item:
                    count += 1
                    if "/*" not in line and not above:
                        faults.append(f"{header.name}: `{line.strip()}` has no text")
                above = is_comment or (above and bool(re.match(r" {8}", line)))
    return count, faults


def roles_without_text(root):
    page = (root / "docs/extensions/table_pages.py").read_text(encoding="utf-8").split("roles = {")[1].split("}")[0]
    rows = re.findall(r'^JOB_ONLY_OP\("[^"]*", *"[^"]*", *(?:NULL|"[^"]*"), *(\w+)',
                      (root / "frontend/job/job_only_ops.def").read_text(encoding="utf-8"), re.M)
    return rows, [f"docs/extensions/table_pages.py has no text for the role {role}" for role in sorted(set(rows))
                  if f'"{role}":' not in page]


def main(root):
    headers = [(path, path.read_text(encoding="utf-8")) for pattern in HEADERS for path in sorted(root.glob(pattern))]
    declared, faults = functions_without_example(root, headers)
    lines, more = lines_without_text(headers)
    rows, others = roles_without_text(root)
    faults += more + others
    if len(declared) < LEAST_FUNCTIONS or lines < LEAST_LINES or not rows:
        faults.append(f"only {len(declared)} functions, {lines} constants and fields, and {len(rows)} operators were found")
    print("\n".join(faults) if faults else f"{len(declared)} functions, {lines} constants and fields are documented")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
