"""Checks that docs/reference/python shows every public name in the package, each with a docstring.

    python_reference.py SOURCE_FOLDER

Exceptions and warnings have the texts of MDOT_STATUS_MAP and MDOT_WARNING_MAP as docstrings.
"""
import inspect
import pathlib
import re
import sys

SOURCE = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(SOURCE / "bindings" / "python"))
import mdot  # noqa: E402


def rows(header, macro):
    """{last name in the row: text} from a macro X(NAME, number, ["name",] "text")."""
    text = re.sub(r"\s*\\\n\s*", " ", (SOURCE / "include" / "mdot" / header).read_text(encoding="utf-8"))
    body = re.sub(r'"\s+"', "", re.search(rf"#define {macro}\(X\) (.*)", text).group(1))
    return {name or "MDOT_" + identifier: words
            for identifier, name, words in re.findall(r'X\((\w+), \d+, (?:"([^"]*)", )?"([^"]*)"\)', body)}


def lacks_docstring(name, value):
    if name == "__version__":
        return
    if not (inspect.getdoc(value) or "").strip():
        yield name
    for member, part in vars(value).items() if inspect.isclass(value) else ():
        function = part.fget if isinstance(part, property) else getattr(part, "__func__", part)
        if not member.startswith("_") and inspect.isfunction(function) and not (function.__doc__ or "").strip():
            yield f"{name}.{member}"


def problems():
    shown = set()
    for page in (SOURCE / "docs" / "reference" / "python").glob("*.md"):
        shown.update(re.findall(r"^\.\. (?:auto\w+|py:data):: mdot\.(\w+)$", page.read_text(encoding="utf-8"), re.M))
    for name in sorted(set(mdot.__all__) - shown):
        yield f"docs/reference/python lacks mdot.{name}"
    for name in sorted(shown - set(mdot.__all__) - {"__version__"}):
        yield f"docs/reference/python shows mdot.{name}, which is not public"
    for name in mdot.__all__:
        for found in lacks_docstring(name, getattr(mdot, name)):
            yield f"mdot.{found} has no docstring"
    texts = {**rows("mdot_base.h", "MDOT_STATUS_MAP"), **rows("mdot_predict.h", "MDOT_WARNING_MAP")}
    if len(texts) < 25:
        yield f"only {len(texts)} statuses and warnings were found"
    for name in mdot.__all__:
        value = getattr(mdot, name)
        key = vars(value).get("status", vars(value).get("name")) if inspect.isclass(value) else None
        if key in texts and name != "Error":
            wanted = texts[key][0].upper() + texts[key][1:] + "."
            if " ".join(inspect.getdoc(value).split()) != wanted:
                yield f"the docstring of mdot.{name} is not \"{wanted}\""


def main():
    found = list(problems())
    print("\n".join(found))
    return 1 if found else 0


sys.exit(main())
