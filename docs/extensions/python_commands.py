"""The directive `python-commands`: a page of the subcommands in bindings/python/mdot/__main__.py, made of their parsers, as
the other subcommands' pages are made of the tables of cli/."""

import argparse

from sphinx.util.docutils import SphinxDirective

from mdot import __main__ as command


def usage_of(parser):
    words = [f"mdot {parser.prog.split()[-1]}"]
    words += [action.metavar for action in parser._get_positional_actions()]
    return " ".join([*words, "[OPTION]…"])


def option_of(action):
    value = "" if action.nargs == 0 else f" {action.metavar or action.dest.upper()}"
    return ", ".join(f"`{name}{value}`" for name in action.option_strings)


def page_of(parser):
    lines = [f"## mdot {parser.prog.split()[-1]}\n", f"```text\n{usage_of(parser)}\n```\n"]
    summary = command.COMMANDS[parser.prog.split()[-1]][0]
    lines.append(f"{summary[0].upper()}{summary[1:]}. {parser.description}\n")
    training = []
    for action in parser._get_optional_actions():
        if action.help is None:
            training.append(f"`{action.option_strings[0]}`")
        elif action.help is not argparse.SUPPRESS and action.dest != "help":
            lines.append(f"{option_of(action)}\n:   {action.help % vars(action)}{' (required)' if action.required else ''}\n")
    if training:
        lines.append("The options of training are those of [mdot predict](predict.md): " + ", ".join(training) + ".\n")
    return "\n".join(lines)


class PythonCommands(SphinxDirective):
    def run(self):
        self.env.note_dependency(command.__file__)
        parsers = command.parser()._subparsers._group_actions[0].choices.values()
        return self.parse_text_to_nodes("\n".join(map(page_of, parsers)), allow_section_headings=True)


def setup(app):
    app.add_directive("python-commands", PythonCommands)
    return {"parallel_read_safe": True}
