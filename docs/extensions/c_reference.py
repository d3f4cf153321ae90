"""The directive `c-header`: the reference of one public header, in the header's order.

    ```{c-header} mdot_run.h
    ```

Functions, structs, enums and callbacks are drawn by Breathe from Doxygen's XML. Below each function stands an example:
the part of a program of examples/ between two comments

    /* [example: mdot_predict, mdot_sweep] */
    /* [end of example] */

A function that lacks a fact, or an example, is a warning, and therefore an error of the build. So is a struct, a field, a
callback or a constant without text. X-macros (NAME_MAP) become tables. The directive `c-layout` lists a struct's fields with
their offsets.
"""

import functools
import pathlib
import re
import textwrap
import xml.etree.ElementTree as ElementTree

from docutils.parsers.rst import directives
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = (ROOT / "include" / "mdot", ROOT / "cluster" / "include" / "mdot")
logger = logging.getLogger(__name__)
EXAMPLE = re.compile(r"^( *)/\* \[example: ([\w, \n*]+)\] \*/\n(.*?)^ *//?\*? ?\[end of example\] \*/\n", re.M | re.S)
SIZES = {"char": 1, "bool": 1, "uint32_t": 4, "int": 4, "unsigned": 4, "int64_t": 8, "uint64_t": 8, "double": 8, "size_t": 8,
         "int32_t": 4, "mdot_abi_dim": 32, "mdot_abi_items": 24}


def header_path(name):
    """The public header of the product, or else of the companion."""
    return next((folder / name for folder in FOLDERS if (folder / name).exists()), FOLDERS[0] / name)


@functools.lru_cache
def examples():
    """{function: (file, code)}: the first example that names the function."""
    found = {}
    for path in sorted([*(ROOT / "examples").rglob("*.c"), *(ROOT / "cluster").glob("*/example*.c")]):
        for match in EXAMPLE.finditer(path.read_text(encoding="utf-8")):
            code = EXAMPLE.sub("", textwrap.dedent(match.group(3)))
            code = re.sub(r"^ */\* \[(?:end of )?example.*\] \*/\n", "", code, flags=re.M).rstrip()
            for name in re.split(r"[,\s*]+", match.group(2).strip()):
                if name not in code:
                    raise ValueError(f"{path}: the example of {name} does not use it")
                found.setdefault(name, (path.relative_to(ROOT), code))
    return found


# ---- Doxygen's XML ---------------------------------------------------------------------------------------------------


def text_of(element):
    return " ".join("".join(element.itertext()).split()) if element is not None else ""


def can_fail(member):
    """The functions whose result is MDOT_OK or the reason of a failure."""
    returned = [text_of(s) for s in member.iter("simplesect") if s.get("kind") == "return"]
    return text_of(member.find("type")) == "mdot_status" and any(text.startswith("MDOT_OK") for text in returned)


def missing_facts(member):
    """Names of the facts that the comment of a function lacks."""
    description = member.find("detaileddescription")
    first = description.find("para")
    missing = [] if first is not None and (first.text or "").strip() else ["description"]
    documented = {text_of(name) for item in description.iter("parameteritem") if text_of(item.find("parameterdescription"))
                  for name in item.iter("parametername")}
    for parameter in member.findall("param"):
        name = text_of(parameter.find("declname"))
        if name and name not in documented:
            missing.append(f"parameter {name}")
    sections = {section.get("kind"): section for section in description.iter("simplesect")}
    titles = {text_of(section.find("title")) for section in description.iter("simplesect")}
    if text_of(member.find("type")) != "void" and "return" not in sections:
        missing.append("return")
    for title in ["Ownership", "Threads"] + (["Errors"] if can_fail(member) else []):
        if title not in titles:
            missing.append(title.lower())
    return missing


def members_of(xml, header):
    """[(line, kind, name, member)] of a header in Doxygen's XML."""
    file = xml / (header.replace("_", "__").replace(".h", "_8h") + ".xml")
    compound = ElementTree.parse(file).getroot().find("compounddef")
    found = [(int(m.find("location").get("line")), m.get("kind"), text_of(m.find("name")), m)
             for m in compound.iter("memberdef")]
    for inner in compound.findall("innerclass"):
        struct = ElementTree.parse(xml / (inner.get("refid") + ".xml")).getroot().find("compounddef")
        found.append((int(struct.find("location").get("line")), "struct", inner.text, struct))
    return sorted(found, key=lambda item: (item[0], item[2]))


def functions_without_facts(xml, header):
    """[(function, missing facts)], for tests and for the build."""
    problems = []
    for _, kind, name, member in members_of(xml, header):
        if kind == "function" and not member.get("static") == "yes":
            missing = missing_facts(member) + ([] if name in examples() else ["example"])
            if missing:
                problems.append((name, missing))
    return problems


def without_text(xml, path):
    """Names of structs, fields, types and constants that lack a text, for tests and for the build. A constant that an
    X-macro makes has its text in the macro's table."""
    code = re.sub(r"/\*.*?\*/", "", path.read_text(encoding="utf-8"), flags=re.S)
    written = set(re.findall(r"\bMDOTC?_\w+", " ".join(re.findall(r"\benum (?:\w+ )?\{(.*?)\}", code, re.S))))
    names = []
    for _, kind, name, member in members_of(xml, path.name):
        if kind == "enum":
            names += [text_of(v.find("name")) for v in member.findall("enumvalue")
                      if text_of(v.find("name")) in written and not text_of(v.find("detaileddescription"))]
        if kind == "struct":
            names += [f"{name}.{text_of(field.find('name'))}" for field in member.iter("memberdef")
                      if not text_of(field.find("detaileddescription"))]
        if kind in ("struct", "typedef") or kind == "enum" and not name.startswith("@"):
            if not text_of(member.find("detaileddescription")):
                names.append(name)
    return sorted(set(names))


# ---- Pages -----------------------------------------------------------------------------------------------------------


def introduction(text):
    """The comment at the top of a header as Markdown: indented lines are a block of code."""
    comment = re.match(r"/\* (.*?)\s*\*/", text, re.S).group(1)
    lines = [re.sub(r"^ \* ?", "", line) for line in comment.split("\n")]
    lines[0] = re.sub(r"^\S+\.h — ", "", lines[0])
    lines[0] = lines[0][0].upper() + lines[0][1:]
    out, is_code = [], False
    for line in lines:
        begins_code = line.startswith("  ")
        if begins_code != is_code and line.strip():
            out += ["```text"] if begins_code else ["```", ""]
            is_code = begins_code
        out.append(line)
    return "\n".join(out + (["```"] if is_code else [])) + "\n"


def table_of_map(name, text):
    """Rows X(A, 1, "text") of a macro, with the comments behind them, as a table."""
    body = re.search(rf"#define {name}\(X\)((?:[^\n]*\\\n)*[^\n]*)", text).group(1)
    body = re.sub(r"\s*\\\n\s*", " ", body)
    body = re.sub(r'"\s+"', "", body)
    rows = []
    for match in re.finditer(r'X\(((?:"[^"]*"|[^()"])*)\)\s*(?:/\* (.*?) \*/)?', body):
        cells = [cell.strip() for cell in re.findall(r'"[^"]*"|[^,"]+', match.group(1)) if cell.strip()]
        cells = [cell.strip('"') if cell.startswith('"') and " " in cell else f"`{cell.strip(chr(34))}`" for cell in cells]
        rows.append(cells + [match.group(2) or ""])
    width = max(len(row) for row in rows)
    rows = [row[:-1] + [""] * (width - len(row)) + row[-1:] for row in rows]
    if not any(row[-1] for row in rows):
        rows = [row[:-1] for row in rows]
    cells = len(rows[0])
    lines = ["| " + " | ".join([""] * cells) + " |", "| " + " | ".join(["---"] * cells) + " |"]
    return "\n".join(lines + ["| " + " | ".join(row).replace("…|", "…\\|") + " |" for row in rows]) + "\n"


def table_of_constants(member):
    rows = []
    for value in member.findall("enumvalue"):
        initializer = text_of(value.find("initializer")).lstrip("= ")
        name, meaning = text_of(value.find("name")), text_of(value.find("detaileddescription"))
        rows.append(f"| `{name}` | {initializer.replace('|', chr(92) + '|')} | {meaning} |")
    intro = text_of(member.find("detaileddescription"))
    return (intro + "\n\n" if intro else "") + "| constant | value | meaning |\n| --- | --- | --- |\n" + "\n".join(rows) + "\n"


def example_of(name):
    path, code = examples()[name]
    return f"Example, from `{path}`:\n\n```c\n{code}\n```\n"


def page(header, xml):
    text = header_path(header).read_text(encoding="utf-8")
    titles = [(text[:m.start()].count("\n") + 1, m.group(1)) for m in re.finditer(r"^/\* -{4} (.*?) -*\s*-+ ?\*/$", text, re.M)]
    out = [introduction(text)]
    typedefs_with_body = set()
    members = members_of(xml, header)
    for _, kind, name, _ in members:
        if kind in ("struct", "enum"):
            typedefs_with_body.add(name)
    for line, kind, name, member in members:
        while titles and titles[0][0] < line:
            out.append(f"## {titles.pop(0)[1].strip(' -')}\n")
        if kind == "function" and member.get("static") != "yes":
            out.append(f"```{{doxygenfunction}} {name}\n```\n")
            if name in examples():
                out.append(example_of(name))
        elif kind == "struct":
            out.append(f"```{{doxygenstruct}} {name}\n:members:\n:undoc-members:\n```\n")
        elif kind == "enum" and not name.startswith("@"):
            out.append(f"```{{doxygenenum}} {name}\n```\n")
        elif kind == "enum" and not re.search(r"_ENUM|#define|_OR", text_of(member)):
            out.append(table_of_constants(member))
        elif kind == "typedef" and name not in typedefs_with_body:
            out.append(f"```{{doxygentypedef}} {name}\n```\n")
        elif kind == "define" and name.endswith("_MAP"):
            out.append(f"**{name}**: {text_of(member.find('detaileddescription'))}\n\n" + table_of_map(name, text))
    return "\n".join(out)


def layout(name, text):
    """A table of the fields of a struct: offset, type, name, meaning. Fields are aligned to their size."""
    body = re.search(rf"typedef struct {name} \{{[^\n]*\n(.*?)^\}} {name};", text, re.M | re.S).group(1)
    offset, rows = 0, []
    for match in re.finditer(r"^(?: +/\* ((?:(?!\*/).)*?) \*/\n)?\s*(const void \*const \*|const void \*|void \*const \*|void \*|\w+) ?"
                             r"(\w[\w, \n\[\]]*);[ \t]*(?:/\* (.*?) \*/)?", body, re.M | re.S):
        above, kind, names, behind = match.groups()
        comment = " ".join((behind or above or "").replace("\n *", " ").replace("*", "").split())
        size = SIZES.get(kind, 8 if "*" in kind else None)
        if size is None:
            raise ValueError(f"{name}: the size of {kind} is unknown")
        align = min(size, 8)
        for field in (part.strip() for part in names.split(",")):
            count = re.search(r"\[(\w+)\]", field)
            count = {"MDOT_MAX_RANK": 8, "MDOT_ABI_CUDA_MAX_TENSORS": 16}.get(count.group(1)) or int(count.group(1)) if count else 1
            offset = (offset + align - 1) // align * align
            rows.append((offset, size * count, kind, field, comment))
            offset += size * count
    lines = ["| offset | bytes | type | field | meaning |", "| --- | --- | --- | --- | --- |"]
    lines += [f"| {o} | {s} | `{k}` | `{f}` | {c} |" for o, s, k, f, c in rows]
    return "\n".join(lines) + f"\n\n`{name}` has {(offset + 7) // 8 * 8 if any(r[1] >= 8 for r in rows) else offset} bytes.\n"


class CHeader(SphinxDirective):
    required_arguments = 1

    def run(self):
        xml = pathlib.Path(self.config.breathe_projects[self.config.breathe_default_project])
        header = self.arguments[0]
        self.env.note_dependency(str(header_path(header)))
        for name, missing in functions_without_facts(xml, header):
            logger.warning("%s: %s lacks: %s", header, name, ", ".join(missing), location=self.get_location())
        for name in without_text(xml, header_path(header)):
            logger.warning("%s: %s lacks a text", header, name, location=self.get_location())
        return self.parse_text_to_nodes(page(header, xml), allow_section_headings=True)


class CLayout(SphinxDirective):
    required_arguments = 1
    option_spec = {"header": directives.unchanged_required}

    def run(self):
        path = header_path(self.options["header"])
        self.env.note_dependency(str(path))
        return self.parse_text_to_nodes(layout(self.arguments[0], path.read_text(encoding="utf-8")))


def setup(app):
    app.add_directive("c-header", CHeader)
    app.add_directive("c-layout", CLayout)
    return {"parallel_read_safe": True}
