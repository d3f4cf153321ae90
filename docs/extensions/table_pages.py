"""Directives for tables in pages. Each table comes from a .def file, so a page cannot contradict it.

    ```{gpu-columns}```        runtime/job/gpus.def, the meaning of each column
    ```{gpu-table}```          runtime/job/gpus.def, with the sources, and weights/measured_gpus.def
    ```{operator-table}```     ir/ops.def and ir/ops_job.def
    ```{job-only-table}```     frontend/job/job_only_ops.def
    ```{map-table} HEADER MACRO```   a macro NAME(X) of include/mdot, with titles of columns as content
"""

import pathlib
import re

from c_reference import header_path, table_of_map
from sphinx.util.docutils import SphinxDirective

ROOT = pathlib.Path(__file__).resolve().parents[2]
GPUS, MEASURED = "runtime/job/gpus.def", "weights/measured_gpus.def"
OPERATORS, JOB_OPERATORS, JOB_ONLY = "ir/ops.def", "ir/ops_job.def", "frontend/job/job_only_ops.def"
KERNEL_KINDS, CUDA_KINDS = "plan/kernel_kinds.def", "codegen/cuda/tile_schedule.c"


def read(path):
    return (ROOT / path).read_text(encoding="utf-8")


def cells_of(arguments):
    """Arguments of a row: texts without their quotes, and words."""
    return [text if text or not word else word for text, word in re.findall(r'"([^"]*)"|([^,\s"]+)', arguments)]


def prose(comment):
    return " ".join(re.sub(r"\n \*", " ", comment).split())


def table(titles, rows):
    lines = ["| " + " | ".join(titles) + " |", "| " + " | ".join("---" for _ in titles) + " |"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


# ---- GPUs ------------------------------------------------------------------------------------------------------------


def gpu_groups():
    """[(sources, [(name, aliases, numbers)])] in the table's order."""
    text = read(GPUS).split("/* clang-format off */")[1]
    groups = []
    for match in re.finditer(r"/\* ((?:(?!\*/).)*?)\s*\*/|^GPU\(([^\n]*)\)$", text, re.S | re.M):
        if match.group(1) is not None:
            groups.append((prose(match.group(1)), []))
        elif '"' in match.group(2):
            name, aliases, *numbers = cells_of(match.group(2))
            groups[-1][1].append((name, aliases, numbers))
    return [group for group in groups if group[1]]


def gpu_columns():
    """[(field, unit, meaning)] in the table's order."""
    rows = [cells_of(row) for row in re.findall(r"^COLUMN\((.*)\)$", read(GPUS), re.M)]
    return [(field, unit, meaning) for field, _, _, _, unit, meaning in rows]


def gpu_column_page():
    return table(["column", "unit", "meaning"], [[f"`{field}`", unit, meaning] for field, unit, meaning in gpu_columns()])


def data_of_gpus():
    measured = read(MEASURED)
    data = dict.fromkeys(re.findall(r'TRAINED_ON\("([^"]+)"\)', measured), "training steps")
    data.update(dict.fromkeys(re.findall(r'INFERENCE_OF\("([^"]+)"\)', measured), "inference"))
    return data


def gpu_page():
    columns, data, out = gpu_columns(), data_of_gpus(), []
    titles = ["GPU model", "other names", "data"] + [f"`{field}`" for field, _, _ in columns]
    for sources, gpus in gpu_groups():
        family, _, source = sources.partition(". ")
        out.append(f"### {family}\n\nSources: {source}.\n")
        out.append(table(titles, [[f"`{name}`", aliases.replace("|", ", "), data.get(name, "spec values")] + numbers
                                  for name, aliases, numbers in gpus]))
    return "\n".join(out)


# ---- Operators -------------------------------------------------------------------------------------------------------

HOW = {
    "POINTWISE": "expression", "MOVE": "data movement", "ALIAS": "view", "REDUCE": "reduction", "LINEAR": "linear",
    "ATTENTION": "attention", "NORM": "norm", "SEQUENTIAL": "sequential kernel", "RECURRENCE": "recurrence",
    "TREES": "tree kernel",
    "EXPAND": "other operators", "FOLD": "constant",
}


def kinds_without_cuda():
    """Kernel kinds that the table of CUDA code leaves out. A lowering of the same name needs that kind."""
    found = set(re.findall(r"\[PL_(\w+)\] = &cu_", read(CUDA_KINDS)))
    if not found:
        raise ValueError(f"{CUDA_KINDS} lists no kernel kinds")
    return set(re.findall(r"^PL_KERNEL_KIND\((\w+),", read(KERNEL_KINDS), re.M)) - found


def operators():
    """[(domain, name, inputs, effect of the lowering, CPU code, CUDA code, job's type, type id, autocast)]"""
    without_cuda = kinds_without_cuda()
    jobs = {row[0]: row for row in (cells_of(r) for r in re.findall(r"^JOB\((.*)\)$", read(JOB_OPERATORS), re.M))}
    rows = []
    for arguments in re.findall(r"^OP\((.*)\)$", read(OPERATORS), re.M):
        cells = cells_of(arguments)
        identifier, name, domain, least, most = cells[:5]
        lowering = re.search(r'(\w+), *"\w*", *[^"]*$', arguments)[1]  # in front of the element types
        job = jobs[identifier]
        inputs = least if least == most else f"{least} to {most.replace('MANY', 'any')}"
        rows.append((domain or "ai.onnx", name, inputs, HOW.get(lowering, ""), lowering != "NONE",
                     lowering not in {"NONE", *without_cuda}, job[1], job[2], job[5]))
    return rows


def operator_page():
    titles = ["operator", "domain", "inputs", "becomes", "CPU", "CUDA", "type in jobs", "type id", "autocast"]
    autocast = {"HALF": "fp16", "FULL": "fp32", "WIDEST": "widest operand", "DATA": "widest datum"}
    return table(titles, [[f"`{name}`", domain, inputs, how, "yes" if cpu else "no", "yes" if cuda else "no",
                           "left out" if kind == "0" or number == "0" else f"`{kind}`", number, autocast.get(cast, cast)]
                          for domain, name, inputs, how, cpu, cuda, kind, number, cast in operators()])


def job_only_page():
    roles = {
        "BACKWARD": "backward pass: removed with its readers", "YIELD": "end of the forward graph",
        "SGD": "SGD: removed, names the optimizer", "ADAM": "Adam: removed, names the optimizer",
        "ADAMW": "AdamW: removed, names the optimizer", "UPDATE": "another optimizer: removed",
        "ALIAS": "same as", "UNIFORM": "random numbers of a dropout", "MASK": "mask of a dropout",
        "SPLIT": "makes a list of tensors", "MEMBER": "takes a tensor out of a list", "JOIN": "joins a list",
        "EMBEDDING_BAGS": "bag of embeddings, as", "STOP": "stops the gradient", "VIEW": "the operand in another shape",
        "CALL": "a traced call, with its FLOPs", "BRANCHES": "one branch counts",
    }
    rows = []
    for arguments in re.findall(r"^JOB_ONLY_OP\((.*?)\)(?: */\*.*)?$", read(JOB_ONLY), re.M):
        cells = [text if quoted else word for quoted, text, word in re.findall(r'(")([^"]*)"|([^,\s"]+)', arguments)]
        domain, name, function, role, target = cells[:5]
        name = f"`{name}`" + (f" of `{function}`" if function != "NULL" else "")
        rows.append([name, {"": "ai.onnx", "*": "any"}.get(domain, domain),
                     roles[role] + (f" `{target}`" if role in ("ALIAS", "EMBEDDING_BAGS") else "")])
    return table(["operator", "domain", "effect"], rows)


# ---- Directives ------------------------------------------------------------------------------------------------------


def directive(make, *paths):
    class TableDirective(SphinxDirective):
        def run(self):
            for path in paths:
                self.env.note_dependency(str(ROOT / path))
            return self.parse_text_to_nodes(make(), allow_section_headings=True)
    return TableDirective


class MapTable(SphinxDirective):
    required_arguments = 2
    has_content = True

    def run(self):
        header, macro = self.arguments
        self.env.note_dependency(str(header_path(header)))
        lines = table_of_map(macro, header_path(header).read_text(encoding="utf-8")).split("\n")
        titles = [title.strip() for title in " ".join(self.content).split("|")]
        if len(titles) != lines[0].count("|") - 1:
            raise self.error(f"{macro} has {lines[0].count('|') - 1} columns, and the page has titles for {len(titles)}")
        lines[0] = "| " + " | ".join(titles) + " |"
        return self.parse_text_to_nodes("\n".join(lines))


def setup(app):
    app.add_directive("gpu-columns", directive(gpu_column_page, GPUS))
    app.add_directive("gpu-table", directive(gpu_page, GPUS, MEASURED))
    app.add_directive("operator-table", directive(operator_page, OPERATORS, JOB_OPERATORS, KERNEL_KINDS, CUDA_KINDS))
    app.add_directive("job-only-table", directive(job_only_page, JOB_ONLY))
    app.add_directive("map-table", MapTable)
    return {"parallel_read_safe": True}
