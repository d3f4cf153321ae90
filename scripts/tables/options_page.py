"""docs/reference/configuration.md: the reference page of the training options."""

PAGE = """<!-- scripts/write-tables.sh writes this page from runtime/job/configuration.def. Edit the table instead. -->
# Training options

A configuration describes how a job trains. C programs fill an `mdot_configuration`. The same options exist on the
command line, in tables of measured steps (`mdot calibrate`), in Slurm (`sbatch --mdot`) and in Python. For example,
`--parallel tp=2` and Python's `tensor_parallel=2` are one option.

## Values

A number of 0 in C selects the default, because a zeroed struct must be valid. Choices are the enums of `mdot.h` in this
order, so 0 in C is the first one. Rates are in GB/s (10^9 bytes per second). A version is 100 * major + minor in C:
for example, 2.4 is 204.

{values}
## Names

JSON, Slurm and Python use the member's name, and the command uses it with hyphens, for example `--power-limit W`. The
table has the exceptions, and empty cells where the rule holds. Slurm takes GPUs, nodes and links from its own options.
A table of measured steps names a column like the option without `--`, beside `job` and `ms`; `--gpu-spec` has none.

{names}
## Other words

The command, Slurm and Python accept these words of PyTorch, Lightning and transformers for a choice.

{words}
## Inputs of predictors

A predictor reads these numbers, in this order or by name (`mdot_predict.h`, "Inputs of predictors"): the member's
value, or 1 if the condition in parentheses holds. mdot estimates an option analytically if the predictor lacks the
numbers. The batch is a micro-batch's.

{inputs}.
"""


def table(titles, rows):
    lines = [titles, ["---"] * len(titles), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def values_of(option):
    gpu = "a name of `mdot gpus`" if option["field"] == "gpu" else "spec values of `mdot gpus --json`"
    text = {"flag": "no, yes", "version": "1.0 to 99.99", "gpu": gpu}.get(option["kind"])
    return ", ".join(option["choices"]) or text or f'{option["least"]:.10g} to {option["most"]:.10g}'


def command_of(option):
    """The option as `--name VALUE`. A '|' would end the cell of the table."""
    is_degree = option["section"] == "degree"
    text = ("--parallel " if is_degree else "--") + option["command"]
    if option["value"] is not None:
        text += ("=" if is_degree else "[=" if option["bare"] is not None else " ") + option["value"]
    return "`" + text.replace("|", "\\|") + ("]" if option["bare"] is not None else "") + "`"


def is_member_name(option, text):
    """True if a name is the member's, with hyphens in place of underscores on the command line."""
    return text.split("?")[0].replace("-", "_") == option["field"]


def other_name(option, text):
    """The name in backquotes if it is another one than the member's."""
    if not text:
        return "none"
    return "" if is_member_name(option, text) else f'`{text.split("?")[0]}`'


def names(options):
    for option in options:
        json = "link" if option["field"] == "link_gbps" else option["json"]
        spellings = [json, option["slurm"], option["python"]]
        if option["section"] == "degree" or not all(is_member_name(option, text)
                                                    for text in [option["command"], *spellings]):
            yield [f'`{option["field"]}`', command_of(option), *[other_name(option, text) for text in spellings]]


def words(options):
    """One row per choice: all words for it."""
    for option in options:
        for choice in dict.fromkeys(option["names"].values()):
            own = [word for word, name in option["names"].items() if name == choice]
            yield [f'`{option["field"]}`', choice, ", ".join(own)]


def input_text(tables, name, option, ones):
    option = tables["options"][option]
    chosen = " or ".join(choice for k, choice in enumerate(option["choices"]) if ones >> k & 1)
    condition = f" is {chosen}" if chosen else ""
    return f"`{name}`{condition}" if name == option["field"] else f"`{name}` (`{option['field']}`{condition})"


def write(tables):
    options, inputs = tables["options"], [input_text(tables, *row) for row in tables["inputs"]]
    meanings = [[f'`{option["field"]}`', values_of(option), option["default"], option["meaning"]] for option in options]
    return PAGE.format(
        values=table(["member of `mdot_configuration`", "values", "default", "meaning"], meanings),
        names=table(["member", "`mdot predict`", "JSON", "Slurm key", "Python"], names(options)),
        words=table(["member", "choice", "other words"], words(options)),
        inputs=",\n".join(", ".join(inputs[i:i + 3]) for i in range(0, len(inputs), 3)))
