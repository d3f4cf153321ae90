"""Writes the files and file parts that come from the tables in C, or checks that they are up to date.

    write_tables.py DUMP_TABLES TREE [--check]

DUMP_TABLES is the program of dump_tables.c. With --check nothing changes, and the exit status is 1 if a file differs.
"""

import json
import pathlib
import subprocess
import sys
from collections import defaultdict

import figures
import options_module
import options_page

NAMES_PER_LINE = 8


def quoted(text):
    return json.dumps(text, ensure_ascii=False)


def load(program):
    """The tables, by name. Options get `names`, the words that equal each of the choices."""
    tables = json.loads(subprocess.run([program], capture_output=True, text=True, check=True).stdout)
    tables = {name: [row for row in rows if row is not None] for name, rows in tables.items()}
    for option in tables["options"]:
        option["names"] = {word: name for word, name, is_same in option["words"] if is_same}
    return tables


# ---- docs/schema.json ------------------------------------------------------------------------------------------------


def names(key, values):
    text = ""
    for i, value in enumerate(values):
        text += ("" if i == 0 else ",\n    " if i % NAMES_PER_LINE == 0 else ", ") + quoted(value)
    return f',\n  "{key}": [{text}]'


def operator_types(tables):
    """Names by type id; the first stands for all unknown types."""
    name_of = dict(tables["operators"])
    types = defaultdict(lambda: "?", {number: name_of[row] for row, kind, number in tables["job_rows"] if row == kind})
    types[0] = "?"
    return [types[number] for number in range(max(types) + 1)]


def option_row(option):
    text = f'{{"field": "{option["field"]}", "kind": "{option["kind"]}"'
    if option["kind"] != "gpu" and not option["choices"]:
        text += f', "least": {option["least"]:.15g}, "most": {option["most"]:.15g}'
    if option["choices"]:
        text += f',\n     "choices": {quoted(option["choices"])}, "words": {quoted(option["names"])}'
    members = {"default": option["default"]}
    text += "".join(f', "{name}": {quoted(value)}' for name, value in members.items() if value)
    is_degree = option["section"] == "degree"
    command = f'--parallel {option["command"]}={option["value"]}' if is_degree else f'--{option["command"]}'
    text += f',\n     "command": "{command}"'
    if option["field"] != "gpu_spec":  # a measured GPU has a name
        text += f', "column": "{"parallel" if is_degree else option["command"]}"'
    members = {"json": option["json"].split("?")[0], "slurm": option["slurm"], "python": option["python"]}
    text += "".join(f', "{name}": {quoted(value)}' for name, value in members.items() if value)
    return text + f',\n     "meaning": {quoted(option["meaning"])}}}'


def input_row(tables, name, option, ones):
    option = tables["options"][option]
    chosen = [choice for k, choice in enumerate(option["choices"]) if ones >> k & 1]
    return f'{{"name": "{name}", "field": "{option["field"]}"' + (f', "ones": {quoted(chosen)}}}' if ones else "}")


def schema(tables):
    gpus = [f'{{"name": "{name}", "aliases": {quoted(aliases.split("|") if aliases else [])}, "numbers": '
            f'[{", ".join(f"{number:.15g}" for number in numbers)}]}}' for name, aliases, *numbers in tables["gpus"]]
    parts = {"gpus": gpus, "configuration": [option_row(option) for option in tables["options"]],
             "inputs": [input_row(tables, *row) for row in tables["inputs"]]}
    rows = {key: f',\n  "{key}": [\n    ' + ",\n    ".join(lines) + "\n  ]" for key, lines in parts.items()}
    return ('{\n  "schema": "mdot-schema/1"' + names("settings", tables["settings"]) +
            names("operator_types", operator_types(tables)) + names("outside_reasons", tables["outside_reasons"]) +
            names("gpu_columns", [column[0] for column in tables["gpu_columns"]]) + "".join(rows.values()) + "\n}\n")


# ---- docs/predict.schema.json ----------------------------------------------------------------------------------------


def json_options(tables):
    """Options that a prediction has as members; the GPU's name is written by hand."""
    return [option for option in tables["options"] if option["json"] and option["kind"] != "gpu"]


def json_required(tables):
    required = [f'"{option["json"]}",' for option in json_options(tables) if "?" not in option["json"]]
    lines = [required[i:i + NAMES_PER_LINE] for i in range(0, len(required), NAMES_PER_LINE)]
    return "\n".join(" " * 19 + " ".join(line) for line in lines) + "\n"


def json_type(option):
    is_link = option["section"] == "link"
    choices = f'"enum": {quoted(option["choices"])}'
    return {"whole": f'"type": "integer", "minimum": {option["least"]:.0f}, "maximum": {option["most"]:.0f}',
            "count": f'"type": "integer", "minimum": {option["least"]:.0f}',
            "real": '"type": "number", "exclusiveMinimum": 0',
            "choice": f'"anyOf": [{{{choices}}}, {{"type": "number", "exclusiveMinimum": 0}}]' if is_link else choices,
            "flag": '"type": "boolean"',
            "version": '"type": "string", "pattern": "^[1-9][0-9]?[.][0-9]+$"'}[option["kind"]]


def json_members(tables):
    text = ""
    for option in json_options(tables):
        notes = ", or its rate in GB/s" if option["section"] == "link" else ""
        notes += "; absent at the default" if "?" in option["json"] else ""
        text += (f'        "{option["json"].split("?")[0]}": {{{json_type(option)},\n'
                 f'          "description": "{option["meaning"]}{notes}"}},\n')
    return text


# ---- Files -----------------------------------------------------------------------------------------------------------

# A part lies between a line with the first mark and a line with the last mark; both lines stay. None: the whole file.
PARTS = [
    ("docs/schema.json", None, None, schema),
    ("docs/reference/configuration.md", None, None, options_page.write),
    ("docs/predict.schema.json", '"required": ["gpu",', '"step_ms", "lower_ms"', json_required),
    ("docs/predict.schema.json", "the swept dimension's value; absent", '"step_ms": {', json_members),
    ("docs/plan.schema.json", '"required": ["gpu",', '"samples_of_a_step", "pipeline_share"', json_required),
    ("docs/plan.schema.json", '"description": "GPU model"}', '"samples_of_a_step": {', json_members),
    ("bindings/python/mdot/options.py", None, None, options_module.write),
    ("bindings/python/mdot/option_words.py", None, None, options_module.write_words),
]
# Pages whose marked figures come from weights/results (figures.py).
PAGES = [
    "README.md",
    "weights/MODEL_CARD.md",
    "docs/explanation/accuracy.md",
    "docs/explanation/memory-accuracy.md",
    "docs/explanation/prediction.md",
    "docs/explanation/related-work.md",
    "docs/explanation/speed.md",
]


def replace(old, first, last, text):
    """The file with the part replaced; None if a mark is missing."""
    if first is None:
        return text
    start = old.find("\n", old.find(first)) if first in old else -1
    end = old.find(last, start) if start >= 0 else -1
    return None if end < 0 else old[:start + 1] + text + old[old.rfind("\n", 0, end) + 1:]


def update(path, old, text, only_checks):
    """False, with a message, if the file differs where it is only checked."""
    if old == text:
        return True
    if only_checks:
        print(f"write_tables: {path} differs from the tables; run scripts/write-tables.sh", file=sys.stderr)
        return False
    path.write_text(text, encoding="utf-8")
    return True


def main():
    if len(sys.argv) not in (3, 4) or sys.argv[3:] not in ([], ["--check"]):
        sys.exit(__doc__)
    tables, tree, only_checks = load(sys.argv[1]), pathlib.Path(sys.argv[2]), len(sys.argv) == 4
    succeeds = True
    for name, first, last, write in PARTS:
        path = tree / name
        old = path.read_text(encoding="utf-8") if path.exists() else ""
        text = replace(old, first, last, write(tables))
        if text is None:
            print(f'write_tables: {path} lacks the line "{first}" or "{last}"', file=sys.stderr)
        succeeds = text is not None and update(path, old, text, only_checks) and succeeds
    for name in PAGES:
        path = tree / name
        old = path.read_text(encoding="utf-8")
        try:
            succeeds = update(path, old, figures.replace(tree, old), only_checks) and succeeds
        except figures.NoResult as mark:
            print(f"write_tables: {path}: no result for {mark}\nwrite_tables: {path} is unchanged", file=sys.stderr)
            succeeds = False
    sys.exit(not succeeds)


if __name__ == "__main__":
    main()
