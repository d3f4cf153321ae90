"""bindings/python/mdot/options.py, and option_words.py beside it."""

import json

HEAD = '''"""The training options and GPU columns. scripts/write-tables.sh writes this file from configuration.def and
gpus.def in runtime/job: edit the tables instead."""

from __future__ import annotations

import ctypes
import dataclasses
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict, Union

if TYPE_CHECKING:
    from mdot.gpus import GPU


class Row(NamedTuple):
    """A keyword, its member of mdot_configuration, the range of values, the command's spelling, the value
    where only the name is given, and whether it is for several GPUs."""

    keyword: str
    field: str
    kind: str
    least: float
    most: float
    command: str
    bare: Union[str, None]
    several: bool


'''
WORDS_HEAD = '''"""Words of other programs for options and choices. scripts/write-tables.sh writes this file from
configuration.def and option_words.def in runtime/job: edit the tables instead."""

from __future__ import annotations

'''
ROW_KINDS = {"whole": "whole", "count": "whole", "real": "rate", "choice": "choice", "flag": "flag",
             "version": "version"}


def quoted(text):
    return json.dumps(text, ensure_ascii=False)


def dictionary(name, kind, lines, meaning):
    return f'{name}: {kind} = {{\n' + "".join(f"    {line},\n" for line in lines) + f'}}\n"""{meaning}"""\n\n'


# ---- Properties of an option -----------------------------------------------------------------------------------------


def is_keyword(option):
    """`link` and `link_gbps` are one keyword, and so are `gpu` and `gpu_spec`."""
    return option["field"] not in ("link_gbps", "gpu_spec")


def begins_at_one(option):
    """True if the keyword begins at 1. Otherwise 0 is accepted and selects the default."""
    return option["section"] != "degree" and option["default"] == "1"


def may_be_none(option):
    """True if None selects the default."""
    return option["kind"] == "version" or option["section"] == "link" or option["bare"] is not None


def type_of(option):
    if option["section"] == "link":
        return "Union[str, float, None]"
    text = "Union[str, None]" if may_be_none(option) else "str"
    return {"whole": "int", "count": "int", "real": "float", "choice": text, "version": text, "flag": "bool",
            "gpu": "Union[str, GPU]"}[option["kind"]]


def default_of(option):
    if may_be_none(option):
        return "None"
    if option["kind"] == "choice":
        return quoted(option["choices"][int(option["fallback"])])
    one = "1" if begins_at_one(option) or option["field"] == "batch" else "0"
    return {"flag": "False", "real": "0.0"}.get(option["kind"], one)


def docstring(option):
    """The meaning, the choices, and the default where 0 or None selects it."""
    is_link = option["section"] == "link"
    text = option["meaning"] + (", or its rate in GB/s" if is_link else "") + "."
    if option["choices"]:
        text += "\n    Values: " + ", ".join(option["choices"][is_link:]) + "."
    if may_be_none(option) or (option["accepts_zero"] and not begins_at_one(option)):
        text += f'\n    {"None" if may_be_none(option) else "0"} selects the default: {option["default"]}.'
    return f'    """{text[0].upper()}{text[1:]}"""\n'


# ---- options.py ------------------------------------------------------------------------------------------------------


def ctype_of(option):
    return "c_int" if option["kind"] == "choice" else "c_char_p" if option["field"] == "gpu" else option["ctype"]


def fields(options):
    members = [option for option in options if option["offset"] > 0]
    lines = [f'    ("{option["field"]}", ctypes.{ctype_of(option)}),\n'
             for option in sorted(members, key=lambda option: option["offset"])]
    return ("CONFIGURATION_FIELDS: list[tuple[str, Any]] = [\n" + "".join(lines) + "]\n"
            '"""The members of mdot_configuration behind struct_size. gpu_spec is a pointer to an mdot_gpu."""\n\n')


def choices(options):
    def names(option):
        return ", ".join(f'"{choice}"' for choice in option["choices"])

    lines = [f'"{option["python"]}": ({names(option)})' for option in options if option["choices"]]
    return dictionary("CHOICES", "dict[str, tuple[str, ...]]", lines, "Names in the order of the enums in C.")


def commands(options):
    firsts = [option for i, option in enumerate(options) if i == 0 or option["command"] != options[i - 1]["command"]]
    lines = [f'"{option["label"]}": "{option["python"]}"' for option in firsts]
    return dictionary("COMMANDS", "dict[str, str]", lines, "Keywords by the options' names on the command line, "
                      "which messages of the libraries have.")


def rows(options):
    text = "ROWS: tuple[Row, ...] = (\n"
    for option in options:
        if option["kind"] == "gpu" or option["section"] == "link":
            continue
        least = 0 if option["accepts_zero"] and not begins_at_one(option) else option["least"]
        bare = "None" if option["bare"] is None else quoted(option["bare"])
        text += (f'    Row("{option["python"]}", "{option["field"]}", "{ROW_KINDS[option["kind"]]}", {least:.15g}, '
                 f'{option["most"]:.15g}, "{option["command"]}", {bare}, '
                 f'{option["section"] not in ("training", "job")}),\n')
    return text + ')\n"""The options, except the GPU and the link, which take several forms."""\n\n\n'


def gpu_columns(columns):
    text = ('@dataclasses.dataclass(frozen=True)\nclass GPUColumns:\n    """The columns of the GPU table."""\n\n'
            "    name: str\n")
    for field, _, may_be_zero, unit, meaning in columns:
        text += f'    {field}: float{" = 0.0" if may_be_zero else ""}\n'
        text += f'    """{meaning[0].upper()}{meaning[1:]}{f". Unit: {unit}" if unit else ""}."""\n'
    return text + "\n\n"


def configuration_options(options):
    text = ("@dataclasses.dataclass(frozen=True)\nclass ConfigurationOptions:\n"
            '    """The keywords of a Configuration, with their defaults."""\n\n')
    for option in filter(is_keyword, options):
        text += f'    {option["python"]}: {type_of(option)}'
        if option["kind"] == "gpu":
            text += '\n    """Name of a known GPU model, or the spec values of any GPU."""\n'
        else:
            text += f" = {default_of(option)}\n{docstring(option)}"
    return text


def write(tables):
    options = tables["options"]
    keys = [f'"{key}": "{field}"' for field, key, *_ in tables["gpu_columns"]]
    typed = [f'    {option["python"]}: {type_of(option)}\n' for option in options
             if is_keyword(option) and option["section"] != "job"]
    return (HEAD + fields(options) + choices(options) + commands(options) +
            dictionary("GPU_KEYS", "dict[str, str]", keys, "Columns of a GPU by the keys of --gpu-spec.") +
            rows(options) + gpu_columns(tables["gpu_columns"]) + configuration_options(options) +
            "\n\nclass Options(TypedDict, total=False):\n"
            '    """The keyword options of a Configuration: all of its fields except GPU and batch."""\n\n' +
            "".join(typed))


# ---- option_words.py -------------------------------------------------------------------------------------------------


def words(options, name, same, meaning):
    """The words that are accepted, or those that are only suggested."""
    lines = []
    for option in options:
        own = [f'\n        "{word}": "{choice}",' for word, choice, is_same in option["words"] if is_same == same]
        if option["choices"]:
            lines.append(f'"{option["python"]}": {{{"".join(own)}' + ("\n    }" if own else "}"))
    return dictionary(name, "dict[str, dict[str, str]]", lines, meaning)


def write_words(tables):
    options = tables["options"]
    lines = [f'"{word}": "{option["python"]}"' for word, name, _ in tables["option_words"] for option in options
             if option["label"] == name and is_keyword(option)]
    return (WORDS_HEAD + words(options, "WORDS", 1, "Other words for the choices.") +
            words(options, "NEAREST", 0, "The nearest choice for words that mean something else.") +
            dictionary("OPTION_WORDS", "dict[str, str]", lines,
                       "Keywords by names of options in other programs, for suggestions.")[:-1])
