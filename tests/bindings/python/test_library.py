"""library/: structs agree with the C compiler, tables agree with the headers."""

from __future__ import annotations

import ctypes
import inspect
import os
import re
import tempfile
import unittest
from pathlib import Path

import support

import mdot
from mdot import configuration, job, operators
from mdot.library import errors, libraries, structs
from mdot.version import VERSION


def structs_of_package() -> list[type[structs.Struct]]:
    found = [kind for _, kind in inspect.getmembers(structs, inspect.isclass) if issubclass(kind, structs.Struct)]
    return [kind for kind in found if hasattr(kind, "_fields_") and kind.__name__.startswith("mdot")]


def headers() -> str:
    return "".join(path.read_text() for path in sorted(support.INCLUDE.glob("*.h")))


def rows(name: str) -> list[tuple[str, ...]]:
    """The first columns of a map's rows, #define NAME(X) X(a, b, …) …"""
    text = headers()
    body = re.search(r"#define %s\(X\)(.*?[^\\])\n" % name, text, re.S)
    assert body is not None, name
    return re.findall(r"X\((\w+), ([\w\"-]+)(?:, +\"([\w-]+)\")?", body.group(1))


# Public functions that Python does not use, with reasons.
NOT_NEEDED = {
    "mdot_fail": "exceptions do that",
    "mdot_status_name": "each exception has its own",
    "mdot_calibrate": "mdot_calibrate_measured, which takes memory, too",
    "mdot_calibration_effect_name": "calibration.py has the effects as fields",
    "mdot_operators_combine": "the reader combines two batches: Job.from_onnx(other_batch=)",
    "mdot_context_create": "mdot_context_create_with, without options",
    "mdot_run_ordered": "saves checks that cost less than a call from Python",
    "mdot_run_step": "mdot bench --profile measures kernels; a call from Python takes longer than most of them",
    "mdot_predictor_find_bucket": "mdot_run finds it, and Entry.buckets has their lengths",
    "mdot_version_number": "mdot_version has it as text",
    "mdotjob_version": "libraries of one version are opened together",
    "mdotjob_version_number": "likewise",
    "mdotc_version": "likewise",
    "mdotc_version_number": "likewise",
}


class EmbeddedNul(support.TestCase):
    """C ends a text at NUL, so that mdot would open, write or name something else."""

    def test_paths_with_nul_are_refused_as_open_refuses_them(self) -> None:
        job = mdot.Job.read(support.RESNET)
        predictor = mdot.Predictor()
        with tempfile.TemporaryDirectory() as folder:
            hidden = Path(folder) / "out.job"
            for path in (f"{hidden}\0.txt", f"{hidden}\0.txt".encode(), Path(f"{hidden}\0.txt")):
                calls = (
                    lambda: open(path),
                    lambda: mdot.Job.read(path),
                    lambda: mdot.Job.load(path),
                    lambda: job.save(path),
                    lambda: mdot.Predictor(path),
                    lambda: mdot.Calibration.load(path),
                    lambda: mdot.compile(support.RESNET, path),
                    lambda: mdot.compile(path, hidden),
                )
                for call in calls:
                    if isinstance(path, bytes) and call is calls[1]:
                        continue  # bytes are the model itself
                    self.assertRaises(ValueError, call)
                if not isinstance(path, bytes):  # before the training, because a recorder's later faults are warnings
                    self.assertRaises(ValueError, mdot.Recorder, support.RESNET, path)
            self.assertEqual(os.listdir(folder), [])
        del predictor

    def test_names_with_nul_are_refused(self) -> None:
        calls = (
            lambda: mdot.Job.read(support.RESNET, dims={"N\0x": 1}),
            lambda: mdot.Job.read(support.RESNET, dims={"N": "M\0x"}),
            lambda: mdot.Job.read(support.RESNET).freeze(["layer1\0x"]),
            lambda: mdot.Predictor(device="cpu\0x"),
            lambda: mdot.Predictor(cpu_isa="x86-64-v3\0x"),
            lambda: mdot.gpu("T4\0x"),
            lambda: mdot.Predictor().predict(mdot.Job.read(support.RESNET), gpu="T4\0x", batch=1),
        )
        for call in calls:
            self.assertRaises(ValueError, call)


class Completeness(support.TestCase):
    def exported(self) -> set[str]:
        names = ("runtime/libmdot.map", "frontend/libmdotjob.map", "compiler/libmdotc.map")
        maps = [support.SOURCE / name for name in names]
        return {name for path in maps for name in re.findall(r"^ +(mdot\w+);", path.read_text(), re.M)}

    def test_every_public_function_can_be_used_from_python(self) -> None:
        package = Path(mdot.__file__).parent
        used: set[str] = set()
        for path in package.rglob("*.py"):
            if path.name != "libraries.py":
                used |= set(re.findall(r"\.(mdot\w+)", path.read_text()))
        used |= {"mdot_status_text"}  # used by libraries.py itself
        exported = self.exported()
        self.assertGreater(len(exported), 50)
        self.assertEqual(exported - used, set(NOT_NEEDED))
        bound = {*libraries._RUNTIME, *libraries._READER, *libraries._COMPILER}
        self.assertEqual(bound - exported, set())
        self.assertEqual(bound & set(NOT_NEEDED), set())

    def test_every_public_struct_is_declared(self) -> None:
        # except the artefact's ABI, which is for compilers
        abi = (support.INCLUDE / "mdot_abi.h").read_text()
        code = re.sub(r"/\*.*?\*/", "", headers().replace(abi, ""), flags=re.S)
        named = set(re.findall(r"typedef struct (mdotc?_\w+) \{", code))
        self.assertEqual(named, {kind.__name__ for kind in structs_of_package()})


class Layout(support.TestCase):
    def test_structs_match_the_c_compilers_layout(self) -> None:
        """A C program prints every offset. A field missing in the headers fails to compile, and a new one changes the
        size."""
        lines = []
        for kind in structs_of_package():
            name = kind.__name__
            lines.append(f'    printf("{name} %zu\\n", sizeof({name}));')
            for field in kind._fields_:
                lines.append(f'    printf("{name}.{field[0]} %zu %zu\\n", offsetof({name}, {field[0]}), '
                             f"sizeof((({name} *)0)->{field[0]}));")
        names = ("mdot/mdot.h", "mdot/mdotc.h", "mdot/mdotjob.h")
        headers = "".join(f'#include "{name}"\n' for name in names) + "#include <stdio.h>\n"
        with tempfile.TemporaryDirectory() as folder:
            source, program = Path(folder) / "layout.c", Path(folder) / "layout"
            source.write_text(headers + "int main(void)\n{\n" + "\n".join(lines) + "\n    return 0;\n}\n")
            support.run(os.environ["MDOT_CC"], f"-I{support.INCLUDE.parent}", str(source), "-o", str(program))
            reported = support.run(str(program)).split("\n")
        expected = []
        for kind in structs_of_package():
            expected.append(f"{kind.__name__} {ctypes.sizeof(kind)}")
            for field in kind._fields_:
                at = getattr(kind, field[0])
                expected.append(f"{kind.__name__}.{field[0]} {at.offset} {at.size}")
        self.assertGreater(len(expected), 150)
        self.assertEqual(reported[:-1], expected)

    def test_every_struct_that_functions_take_is_declared(self) -> None:
        named = {kind.__name__ for kind in structs_of_package()}
        for functions in (libraries._RUNTIME, libraries._READER, libraries._COMPILER):
            for _, takes in functions.values():
                for taken in takes:
                    kind = getattr(taken, "_type_", None)
                    if inspect.isclass(kind) and issubclass(kind, structs.Struct):
                        self.assertIn(kind.__name__, named)


class Tables(support.TestCase):
    def enumerators(self, prefix: str) -> list[str]:
        """Returns the names of an enum whose values count from 0, in order."""
        text = headers()
        body = re.search(r"typedef enum mdot_%s \{(.*?)\}" % prefix.lower(), text, re.S)
        assert body is not None, prefix
        code = re.sub(r"/\*.*?\*/", "", body.group(1), flags=re.S)
        names = [entry.strip() for entry in code.split(",") if entry.strip() and "=" not in entry]
        return [name.replace(f"MDOT_{prefix}_", "") for name in names if not name.endswith("_COUNT")]

    def test_words_follow_the_order_of_their_enums(self) -> None:
        for prefix, words in (
            ("LAYOUT", configuration.LAYOUTS),
            ("ATTENTION", configuration.ATTENTIONS),
            ("RECOMPUTE", configuration.RECOMPUTES),
            ("LINK", configuration.LINKS),
            ("OPTIMIZER", job.OPTIMIZERS),
            ("PHASE", operators.PHASES),
        ):
            named = [name.lower().replace("_", "-") for name in self.enumerators(prefix)]
            self.assertEqual(named, [word.replace("_", "-") for word in words], prefix)
        named = [name.lower().replace("_", "-") for name in self.enumerators("PRECISION")]
        self.assertEqual(["amp-fp16" if name == "amp" else name for name in named], list(configuration.PRECISIONS))

    def test_every_status_is_an_exception(self) -> None:
        found = rows("MDOT_STATUS_MAP")
        self.assertEqual([int(row[1]) for row in found], list(range(len(errors.BY_STATUS))))
        self.assertEqual([f"MDOT_{row[0]}" for row in found], [kind.status for kind in errors.BY_STATUS])

    def test_every_warning_is_a_class_and_has_its_name(self) -> None:
        found = [row[2] for row in rows("MDOT_WARNING_MAP")]
        self.assertEqual(found, list(errors.BY_NAME))
        for name, kind in errors.BY_NAME.items():
            self.assertEqual(kind.__name__.lower(), name.replace("-", "") + "warning")

    def test_versions_agree(self) -> None:
        self.assertEqual(mdot.library_version(), VERSION)
        self.assertIn(f'"{VERSION}"', (support.INCLUDE / "mdot_base.h").read_text())
        self.assertTrue(VERSION.startswith(libraries.SOVERSION + "."))

    def test_options_match_the_fields_of_a_configuration(self) -> None:
        named = set(configuration.Options.__annotations__)
        self.assertEqual(named | {"gpu", "batch"}, set(configuration.OPTIONS))


if __name__ == "__main__":
    unittest.main()
