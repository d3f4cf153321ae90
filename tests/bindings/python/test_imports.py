"""Modules of the Python trees import each other without circles. Imports for type annotations and imports inside functions
are exempt."""

from __future__ import annotations

import ast
import re
import sys
import unittest
from pathlib import Path
from typing import Iterator

REPOSITORY = Path(__file__).resolve().parents[3]
TREES = {"mdot": REPOSITORY / "bindings/python/mdot"}
if (REPOSITORY / "lab").is_dir():  # a companion, which may be absent
    TREES["mdot_lab"] = REPOSITORY / "lab/mdot_lab"


def modules(package: str, folder: Path) -> dict[str, Path]:
    """Each module's file, by module name. A package is the module of its __init__.py."""
    found = {}
    for path in folder.rglob("*.py"):
        parts = path.relative_to(folder).with_suffix("").parts
        found[".".join((package, *(parts[:-1] if parts[-1] == "__init__" else parts)))] = path
    return found


def is_type_checking(node: ast.If) -> bool:
    return ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")


def import_statements(body: list[ast.stmt]) -> Iterator[ast.Import | ast.ImportFrom]:
    """Statements that run when the module is imported."""
    for node in body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield node
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        elif isinstance(node, ast.If) and is_type_checking(node):
            yield from import_statements(node.orelse)
        else:
            for field in ("body", "orelse", "finalbody"):
                yield from import_statements(getattr(node, field, []))
            for handler in getattr(node, "handlers", []):
                yield from import_statements(handler.body)


def imported(name: str, is_package: bool, tree: ast.Module, known: dict[str, Path]) -> set[str]:
    """The modules in `known` that a module imports. `from package import name` reads `package`, and loads the module
    `package.name` if there is one. Python also loads the packages around a module, which this list leaves out."""
    found = set()
    for node in import_statements(tree.body):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
            continue
        base = node.module or ""
        if node.level:
            parents = name.split(".") if is_package else name.split(".")[:-1]
            base = ".".join([*parents[: len(parents) - node.level + 1], *filter(None, [node.module])])
        found.update([base, *(f"{base}.{alias.name}" for alias in node.names)])
    return (found & known.keys()) - {name}


def graph(known: dict[str, Path]) -> dict[str, set[str]]:
    return {
        name: imported(name, path.name == "__init__.py", ast.parse(path.read_text(encoding="utf-8")), known)
        for name, path in known.items()
    }


def circle(edges: dict[str, set[str]]) -> list[str]:
    """The modules in one circle in order, with the first repeated at the end; empty if there is none."""
    finished: set[str] = set()

    def visit(name: str, path: list[str]) -> list[str]:
        if name in path:
            return [*path[path.index(name) :], name]
        if name not in finished:
            for other in sorted(edges[name]):
                found = visit(other, [*path, name])
                if found:
                    return found
            finished.add(name)
        return []

    return next((found for name in sorted(edges) if (found := visit(name, []))), [])


class Circles(unittest.TestCase):
    def test_trees_have_no_circle(self) -> None:
        for package, folder in TREES.items():
            with self.subTest(package):
                known = modules(package, folder)
                self.assertGreater(len(known), 10)
                self.assertEqual(" -> ".join(circle(graph(known))), "")

    def test_imports_of_a_tree_are_found(self) -> None:
        edges = graph(modules("mdot", TREES["mdot"]))
        self.assertIn("mdot.library.structs", edges["mdot.job"])
        self.assertIn("mdot.predictor", edges["mdot"])

    def test_wheels_contain_every_package(self) -> None:
        folder = REPOSITORY / "bindings/python"
        listed = re.search(r"^packages = \[(.*mdot\..*)\]", (folder / "pyproject.toml").read_text(encoding="utf-8"), re.M)
        assert listed is not None
        packages = {".".join(path.parent.relative_to(folder).parts) for path in TREES["mdot"].rglob("__init__.py")}
        self.assertEqual(set(re.findall(r'"([\w.]+)"', listed[1])), packages)


class Statements(unittest.TestCase):
    def imports(self, text: str, name: str = "p.a") -> set[str]:
        known = {module: Path() for module in ("p", "p.a", "p.b", "p.c", "p.q", "p.q.d")}
        return imported(name, name == "p", ast.parse(text), known)

    def test_every_form_of_import_counts(self) -> None:
        self.assertEqual(self.imports("import p.b"), {"p.b"})
        self.assertEqual(self.imports("from p import b, VALUE"), {"p", "p.b"})
        self.assertEqual(self.imports("from p.b import VALUE"), {"p.b"})
        self.assertEqual(self.imports("from . import b"), {"p", "p.b"})
        self.assertEqual(self.imports("from .q.d import VALUE"), {"p.q.d"})
        self.assertEqual(self.imports("from . import b", name="p"), {"p.b"})

    def test_nested_statements_count_if_they_run_at_import(self) -> None:
        self.assertEqual(self.imports("try:\n    import p.b\nexcept ImportError:\n    import p.c"), {"p.b", "p.c"})
        self.assertEqual(self.imports("class A:\n    import p.b"), {"p.b"})

    def test_type_annotations_and_functions_are_exempt(self) -> None:
        self.assertEqual(self.imports("if TYPE_CHECKING:\n    import p.b\nelse:\n    import p.c"), {"p.c"})
        self.assertEqual(self.imports("def f():\n    import p.b"), set())

    def test_circles_are_found(self) -> None:
        self.assertEqual(circle({"a": {"b"}, "b": {"c"}, "c": {"b"}}), ["b", "c", "b"])
        self.assertEqual(circle({"a": {"b", "c"}, "b": {"c"}, "c": set()}), [])


if __name__ == "__main__":
    sys.exit(unittest.main())
