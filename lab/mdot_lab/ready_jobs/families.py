"""Describes families of transformers' networks (families.csv) by formulas in their sizes, from a few small traces:

    python -m mdot_lab.ready_jobs.families weights/jobs [--missing] [FAMILY…]

`--missing` keeps the variants and records that the file has. It adds the missing ones. New variants have no records of
adapters, and records of adapters stay as they are.
Each variant of a family, for example with tied embeddings, is traced with several random sizes and a fixed number of
blocks. Each number of the job, and each allocation of its recorded memory, becomes a formula (fit.py). Equal blocks
become one block with a count. frontend/config reads the result and builds the job of any config.json of the family.
"""

from __future__ import annotations

import dataclasses
import gzip
import itertools
import json
import random
import re
import sys
import time
import warnings
from pathlib import Path
from typing import Any, Callable, Mapping, Sequence

import numpy as np

from mdot_lab.ready_jobs.fit import Fitter, Formula, add, text_of

TRACES = 5
BATCHES, MOST_MOMENTS = (0.25, 1.0, 4.0, 16.0, 64.0, 256.0, 8192.0), 16
TYPICAL = [
    {"wider": wider, "hidden": hidden, "words": words, "blocks": blocks, "L": length}
    for wider, blocks in ((2, 6), (8, 8), (8, 32)) for hidden in (1, 2) for words in (1, 5) for length in (128, 1024, 8192)
]  # fmt: skip
"""Sizes for which a pass's largest moments are kept: factors of each trace's widths, further ones of hidden layers
and of the vocabulary, blocks, and lengths."""
RANGES = {"d": (200, 400), "f": (500, 900), "V": (2000, 3000), "P": (600, 900), "L": (2, 8), "E": (7, 12), "k": (2, 4)}


@dataclasses.dataclass
class Family:
    name: str
    network: str
    sizes: dict[str, tuple[list[str], str]]
    """By name, the keys in a configuration, and the formula of the default."""
    atoms: list[str]
    runs: list[list[str]]
    """Consecutive blocks: formulas of the numbers of blocks of each kind."""
    variants: list[dict[str, Any]]
    """Settings that change the operators. "g==h" is a relation of sizes."""
    fixed: dict[str, Any]
    """Other settings of the traces."""
    choose: dict[str, str]
    """Sizes of the traces, in place of the usual random ones."""
    adapters: list[list[str]]
    """Sets of modules that low-rank adapters (LoRA) are recorded for; the first is peft's default."""


def read_families(path: Path) -> list[Family]:
    made = []
    for row in json.loads(path.read_text()):
        sizes = {}
        for item in row["sizes"].split():
            name, _, rest = item.partition(":")
            keys, _, default = rest.partition("=")
            sizes[name] = ([key for key in keys.split("|") if key], default)
        axes = row.get("axes", {})
        variants = row.get("variants") or [dict(zip(axes, values)) for values in itertools.product(*axes.values())]
        runs = [run.split("+") for run in row.get("runs", "n").split()]
        made.append(Family(row["family"], row["network"], sizes, row["atoms"].split(), runs, variants, row.get("fixed", {}), row.get("choose", {}), [one.split("+") for one in row.get("adapters", "").split()]))  # fmt: skip
    return made


def choose_sizes(family: Family, variant: Mapping[str, Any], seed: int) -> dict[str, int]:
    """Random sizes, such that heads divide what they have to divide."""
    rng = random.Random(f"{family.name} {seed}")
    made: dict[str, int] = {"L": 32 * rng.randint(*RANGES["L"])} if "L" in family.atoms else {}
    for name, (keys, default) in family.sizes.items():
        if name == "g":
            continue
        low, high = RANGES.get(name, (100, 300))
        made[name] = rng.randint(low, high)
        if name == "d" and "h" in made:
            made["d"] = made["h"] * rng.randint(50, 90)
        while made[name] % 23 == 0 or made[name] in [v for n, v in made.items() if n != name]:
            made[name] += made["h"] if name == "d" and "h" in made else 1
        if name in ("n", "N", "M"):
            made[name] = 4
        if name in ("h", "e"):
            made[name] = 3 + (seed * 3 + 1) % 7 if name == "h" else 8 * (3 + (seed * 2) % 5)
        if name == "h" and "g" in family.sizes:
            made["g"] = 2 + seed if variant.get("g==h") else 2 + seed % 2
            made["h"] = made["g"] * (1 if variant.get("g==h") else 2 + seed % 3)
        elif name in family.choose:
            made[name] = int(eval(family.choose[name], {"rng": rng, "variant": variant, "seed": seed}, made))
        elif not keys:
            made[name] = int(eval(default, {}, made))
    return made


# ---- Traces ----------------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Recorded:
    """One pass of a trace. Times after the step's clock are those of the blocks' second forward passes: a peak can lie
    between two of their operators, and its formula is a sum like any other."""

    intervals: list[Any]
    blocks: list[int]
    """By interval, the block whose operator allocates, or whose recomputation ends it; -1 if the next block ends it in the
    same pass, so that further blocks add none."""
    block_at: np.ndarray
    """By time."""
    samples: int
    tensors: Sequence[int] = ()
    """By interval of compiled code, its tensor: the partitioner may choose other tensors at other sizes."""
    bytes_of: Sequence[int] = ()
    """By tensor."""


class Capture:
    """The recorded memory of a trace."""

    def __init__(self) -> None:
        from mdot.trace import traced_program

        self._module, self._records = traced_program, traced_program.records
        self.passes: dict[tuple[str, str], Recorded] = {}
        self.buffers = 0
        self.blocks: Sequence[str] = ()

    def __enter__(self) -> Capture:
        self._module.records = self._capture  # type: ignore[assignment]
        return self

    def __exit__(self, *_: Any) -> None:
        self._module.records = self._records

    def _capture(self, program: Any, blocks: Sequence[str]) -> Any:
        from mdot.trace import compiled, moments as m

        self.buffers, self.blocks = program.buffer_bytes, blocks
        for precision, one in program.runs.items():
            line = one.timeline
            regions = self._module._regions(one, blocks)
            ways = {"nothing": m.as_run(line), "selective": m.selectively(line)}
            has_blocks = bool(regions)
            if not regions:  # a block's operators are in a list of modules, which is not called
                regions = self._module._regions(one, [block.rpartition(".")[0] for block in blocks])
                if not regions:
                    raise ValueError("the blocks are no modules")
            begin, extra = m._recomputations(line, regions, m.regions_by_time(regions, line.backward_start))
            block_at = np.full(line.clock, -1)
            for i, region in enumerate(regions):
                block_at[region.first : region.last + 1] = i
                block_at[begin[i] : begin[i - 1] if i > 0 else None] = i

            def block_of(interval: Any, recomputes: bool = False, at: np.ndarray = block_at) -> int:
                is_forward, ends_forward = interval.start < line.backward_start, interval.end < line.backward_start
                block, last = at[interval.start], at[interval.end]
                if recomputes and is_forward and not ends_forward and last == block + 1:
                    return int(last)  # a block's result, which exists until the next block is recomputed
                return -1 if is_forward == ends_forward and last == block + (1 if is_forward else -1) else int(block)

            for way, intervals in ways.items():
                self.passes[precision, way] = Recorded(intervals, list(map(block_of, intervals)), block_at, line.samples)

            def add_compiled(way: str, timeline: Any, at: np.ndarray) -> None:
                step = compiled.Step(timeline)
                tensors, intervals = zip(*compiled.with_tensors(step))
                sizes = [tensor.bytes for tensor in step.tensors]
                blocks_of = [block_of(one, way != "compiled", at) for one in intervals]
                self.passes[precision, way] = Recorded(list(intervals), blocks_of, at, line.samples, tensors, sizes)

            add_compiled("compiled", line, block_at)
            if has_blocks:
                order = sorted((time, i) for i, time in enumerate(begin) if time < len(block_at))
                runs = [(time, i) for time, i in order for _ in range(regions[i].first, regions[i].last + 1)]
                second = np.insert(block_at, [time for time, _ in runs], [i for _, i in runs])
                add_compiled("compiled blocks", compiled.with_checkpoints(line, regions), second)
                kept = m.by_block(line, regions)
                kept = kept[: len(kept) - sum(size > 0 for size in extra)]
                self.passes[precision, "blocks"] = self._with_second_passes(line, regions, begin, Recorded(kept, [block_of(one, True) for one in kept], block_at, line.samples))
        return self._records(program, blocks)

    def _with_second_passes(self, line: Any, regions: Sequence[Any], begin: Sequence[int], kept: Recorded) -> Recorded:
        """At the start of a block's backward pass, its saved tensors exist. During its second forward pass, those that
        follow do not exist yet, and temporary ones do."""
        from mdot.trace import moments as m

        intervals, blocks, at = list(kept.intervals), list(kept.blocks), list(kept.block_at)
        region_of = m.regions_by_time(regions, line.backward_start)
        for i, region in enumerate(regions):
            shift = len(at) - region.first
            at += [i] * (region.last + 1 - region.first)
            for interval, block in zip(kept.intervals, kept.blocks):
                if interval.start <= begin[i] <= interval.end:
                    intervals.append(m.Interval(shift + region.first, shift + region.last, interval.bytes, interval.kind))
                    blocks.append(block)
            for a in line.allocations:
                if a.start >= line.backward_start or region_of[a.start] != i or a.kind != m.Kind.SAMPLES:
                    continue
                stays = line.is_saved(a) or a.end >= region.last
                if stays and a.start > region.first:
                    intervals.append(m.Interval(shift + region.first, shift + a.start - 1, -a.bytes, a.kind))
                    blocks.append(i)
                elif not stays:
                    intervals.append(m.Interval(shift + a.start, shift + a.end, a.bytes, a.kind))
                    blocks.append(i)
        return Recorded(intervals, blocks, np.array(at), kept.samples)


def network_of(family: Family, variant: Mapping[str, Any], sizes: Mapping[str, int], half: bool, targets: Sequence[str] = ()) -> Any:
    import torch
    import transformers
    from mdot.trace.models import of_transformers

    made = getattr(transformers, family.network)
    settings = {key: value for key, value in {**family.fixed, **variant}.items() if "==" not in key}
    settings.update((keys[0], sizes[name]) for name, (keys, _) in family.sizes.items() if keys)
    config = made.config_class(**settings)
    config.dtype = torch.bfloat16 if half else torch.float32
    network = of_transformers(made, config, 2, sizes.get("L"), None)
    if targets:
        import peft

        network.model = peft.get_peft_model(network.model, peft.LoraConfig(r=sizes["rank"], lora_alpha=2 * sizes["rank"], target_modules=list(targets)))
    return network


def trace(*which: Any) -> tuple[list[Any], Capture, Any]:
    import mdot

    with Capture() as capture, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        job = mdot.Job.from_network(network_of(*which), batch=2)
    return list(job), capture, job.program


def trace_memory(blocks: Sequence[str], *which: Any) -> Capture:
    """The recorded memory alone, which takes a third of the time. `blocks` are those of an earlier trace."""
    from mdot.trace import failures, losses, modules, replacements, traced_program

    network = network_of(*which)
    with Capture() as capture, replacements.active([], has_backward=True), failures.quiet(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model, args = losses.attach(modules.prepare(network.model), network.args, network.loss, network.targets)
        capture._capture(traced_program.record(model, args, {**network.kwargs, **network.labels}, 2), blocks)
    return capture


# ---- Formulas --------------------------------------------------------------------------------------------------------


class Writer:
    """The description of one family: tables of formulas and of texts, and the variants, which refer to them."""

    def __init__(self, known: Mapping[str, Any]) -> None:
        """`known` is an earlier description, whose entries keep their places."""
        self.tables: dict[str, dict[str, int]] = {"formulas": {"0": 0}, "texts": {}, "operators": {}, "records": {}}
        for table in self.tables:
            for entry in known.get(table, ()):
                self.intern(table, entry if isinstance(entry, str) else json.dumps(entry))

    def intern(self, table: str, text: str) -> int:
        return self.tables[table].setdefault(text, len(self.tables[table]))

    def row(self, table: str, row: list[Any]) -> int:
        return self.intern(table, json.dumps(row))

    def formula(self, formula: Formula) -> int:
        return self.intern("formulas", text_of(formula))


def layout(family: Family, blocks: Sequence[int]) -> list[tuple[str, list[int]]]:
    """The parts of a trace: the formula of the count, and the first operators of the copies."""
    starts = [i for i in range(len(blocks)) if i == 0 or blocks[i] != blocks[i - 1]]
    at = iter([start for start in starts if blocks[start] != 0])
    kinds: dict[int, tuple[str, list[int]]] = {}
    try:
        for run in family.runs:
            first = next(at)
            kinds[first] = ("1", [first])
            for i, count in enumerate(run):
                copies = [next(at), next(at)]
                kinds[copies[0]] = (f"{count}-{(i == 0) + (i == len(run) - 1)}", copies)
            last = next(at)
            kinds[last] = ("1", [last])
    except StopIteration:
        raise ValueError(f"blocks {sorted(set(blocks))} do not match the runs {family.runs}") from None
    copied = {copy for _, copies in kinds.values() for copy in copies[1:]}
    return [kinds.get(start, ("1", [start])) for start in starts if start not in copied]


def loads_of(op: Any) -> list[float]:
    """The work of an operator, in the order of rt_load_at."""
    phases = ("forward", "data_gradient", "weight_gradient")
    parts = [[work[phase] for phase in phases] for work in (op.per_sample, op.per_step, op.per_square)]
    order = [load for pair in zip(parts[0], parts[1]) for load in pair] + parts[2]
    return [n for load in order for n in (load.flops, load.bytes_read, load.bytes_written)]


def describe_operators(family: Family, jobs: Sequence[list[Any]], halves: list[Any], fitter: Fitter, writer: Writer, names: list[str]) -> list[Any]:
    """The parts of the job: a formula of the number of copies, and the operators. Inputs are distances, or -1 - i for
    operator i of all parts."""
    parts = layout(family, [op.block for op in jobs[0]])
    bounds = sorted(start for _, copies in parts for start in copies) + [len(jobs[0])]
    part_of = {i: (p, c) for p, (_, copies) in enumerate(parts) for c, start in enumerate(copies) for i in range(start, bounds[bounds.index(start) + 1])}
    position = {}  # of an operator in the description, for parts with one copy
    out: list[Any] = []
    for p, (count, copies) in enumerate(parts):
        start = copies[-1]
        lengths = {tuple(op.type for op in jobs[0][copy : bounds[bounds.index(copy) + 1]]) for copy in copies}
        if len(lengths) > 1:
            raise ValueError(f"the blocks of {count} differ")
        stop = bounds[bounds.index(start) + 1]
        out.append([count, []])
        for i in range(start, stop):
            position[i] = len(position)
            same = [job[i] for job in jobs]
            op = same[0]
            inputs = [i - source if len(parts[part_of[source][0]][1]) > 1 or part_of[source][0] == p else -1 - position[source] for source in op.inputs]
            settings = [[names.index(name), writer.formula(fitter.fit([o.settings.get(name, 0) for o in same]))] for name in op.settings]
            loads = [[k, writer.formula(fitter.fit(values))] for k, values in enumerate(zip(*map(loads_of, same))) if any(values)]
            module = re.sub(r"(^|\.)\d+(?=\.|$)", r"\g<1>#", op.module or "", count=1) if op.block else op.module or ""
            out[-1][1].append(writer.row("operators", [
                writer.intern("texts", op.type), writer.intern("texts", module), int(op.known), op.flags, halves[i].flags, int(op.block > 0),
                writer.formula(fitter.fit([o.parameters for o in same])), settings, loads, inputs, [names.index(n) for n in op.batch_settings],
            ]))  # fmt: skip
    return out


def _totals(columns: Any) -> Any:
    """The bytes of all moments, by batch and by the parts of copies, gradients and logits."""
    return np.array([
        batch * (columns[0] + logits * columns[4] + batch * columns[5]) + columns[1] + copies * columns[2] + gradients * columns[3]
        for batch, copies, gradients, logits in itertools.product(BATCHES, (1, 0), (1, 0.5, 0), (1, 0))
    ])  # fmt: skip


def _cover(ratios: Any, count: int) -> list[int]:
    """The columns, one after the other, that lower the largest minimum of a row most, and then the mean."""
    found: list[int] = []
    least = np.ones(len(ratios))
    while len(found) < count:
        made = np.minimum(least[:, None], ratios)
        worst = made.max(axis=0) + 1e-3 * made.mean(axis=0)
        worst[found] = np.inf
        found.append(int(worst.argmin()))
        least = made[:, found[-1]]
    return found


def describe_pass(family: Family, captures: Sequence[Capture], key: tuple[str, str], sizes: Sequence[Mapping[str, int]], fitter: Fitter, writer: Writer) -> list[Any]:
    """The moments of one pass that can be the peak for typical sizes: formulas of bytes by kind."""
    own = captures[0].passes[key]
    intervals, samples, block_at, clock = own.intervals, own.samples, own.block_at, len(own.block_at)
    others = [capture.passes[key] for capture in captures]
    if {len(o.bytes_of) or len(o.intervals) for o in others} != {len(own.bytes_of) or len(intervals)}:
        raise ValueError(f"{key}: the traces have different allocations")
    sizes_of = [[o.bytes_of[i] for i in own.tensors] or [i.bytes for i in o.intervals] for o in others]
    starts, ends, kinds = (np.array([getattr(i, name) for i in intervals]) for name in ("start", "end", "kind"))
    scale = np.array([1, 1, 1, 1, 1, 1.0])
    scale[[0, 4]], scale[5] = 1 / samples, 1 / samples**2
    formulas = [fitter.fit_or_near([float(f"{o[j] * scale[kinds[j]]:.12g}") for o in sizes_of]) for j in range(len(intervals))]
    middles = {}  # the second middle block of each kind, and its symbol
    first = 0
    for run in family.runs:
        for i in range(len(run)):
            middles[first + 2 + 2 * i] = f"m{len(middles)}"
        first += 2 * len(run) + 2
    block = np.array(own.blocks)
    allowed = ~np.isin(block_at, list(middles))
    tables: list[Any] = []
    for base, typical in itertools.product(sizes, TYPICAL):
        further = {"f": typical["hidden"], "m": typical["hidden"], "q": typical["hidden"], "V": typical["words"]}
        wider = {n: base[n] * typical["wider"] * further.get(n, 1) for n in base if n in ("d", "f", "V", "h", "g", "m", "q")}
        values = {**base, **wider, **{n: v for n, v in typical.items() if n in base}}
        count = np.where(np.isin(block, list(middles)), typical["blocks"] - 3, 1)
        columns = np.zeros((6, clock + 1))
        size = count * [sum(c * np.prod([values[n] for n in p]) for p, c in f.items()) for f in formulas]
        np.add.at(columns, (kinds, starts), size)
        np.add.at(columns, (kinds, np.minimum(ends + 1, clock)), -size)
        columns = np.where(allowed, columns.cumsum(axis=1)[:, :clock], -1e30)
        tables.append(columns)
    wanted = np.concatenate([_totals(columns).argmax(axis=1) for columns in tables])
    chosen = [int(moment) for moment in np.unique(wanted)]
    if len(chosen) > MOST_MOMENTS:
        ratios = np.concatenate([1 - made[:, chosen] / made.max(axis=1, keepdims=True) for made in map(_totals, tables)])
        found = _cover(ratios, MOST_MOMENTS)
        chosen = [chosen[i] for i in found]
        print(f"{family.name} {key}: {ratios.shape[1]} moments; the kept {MOST_MOMENTS} lack {ratios[:, found].min(axis=1).max():.3f} at most", flush=True)
    out = []
    for moment in chosen:
        sums: list[Formula] = [{} for _ in range(6)]
        for j in np.flatnonzero((starts <= moment) & (ends >= moment)):
            add(sums[kinds[j]], formulas[j])
            if block[j] in middles:
                add(sums[kinds[j]], formulas[j], 1, (middles[block[j]],))
        out.append([writer.formula(one) for one in sums])
    return out


def describe_passes(family: Family, variant: Mapping[str, Any], first: Capture, sizes: Sequence[Mapping[str, int]], fitter: Fitter, writer: Writer, *which: Any) -> dict[tuple[str, str], list[Any]]:
    """The records of a network, from one trace and from its memory at the other sizes."""
    captures = [first] + [trace_memory(first.blocks, family, variant, one, *which) for one in sizes[1:]]
    return {key: describe_pass(family, captures, key, sizes, fitter, writer) for key in first.passes}


def describe_variant(family: Family, variant: Mapping[str, Any], writer: Writer, names: list[str]) -> dict[str, Any]:
    import mdot

    sizes = [choose_sizes(family, variant, seed) for seed in range(TRACES)]
    runs = [trace(family, variant, one, False) for one in sizes]
    try:
        half = trace(family, variant, sizes[0], True)
    except mdot.Error:  # a network without 16-bit parameters, for example because its inputs are in fp32
        half = runs[0]
    fitter = Fitter({name: [one[name] for one in sizes] for name in sizes[0]}, family.atoms)
    parts = describe_operators(family, [job for job, _, _ in runs], half[0], fitter, writer, names)
    captures, program = [capture for _, capture, _ in runs], runs[0][2]
    parameters = sum(op.parameters for op in runs[0][0])
    if abs(program.trained_bytes / parameters / 4 - 1) > 1e-3:
        print(f"{family.name} {variant}: {program.trained_bytes} bytes of parameters, {parameters} in operators")
    passes = {key: describe_pass(family, captures, key, sizes, fitter, writer) for key in captures[0].passes}
    halves = passes if half is runs[0] else describe_passes(family, variant, half[1], sizes, fitter, writer, True)
    records = [[writer.row("records", [*key, moments]) for key, moments in recorded.items()] for recorded in (passes, halves)]
    buffers = [writer.formula(fitter.fit_or_near([c.buffers for c in captures])), writer.formula(fitter.fit_or_near([half[1].buffers] * len(sizes)))]
    programs = [{"attention": program.attention, "buffers": b, "records": r} for b, r in zip(buffers, records)]
    return {"when": dict(variant), "parts": parts, "programs": programs, "has_loss": program.has_loss}


def add_records(family: Family, variant: Mapping[str, Any], described: dict[str, Any], writer: Writer) -> dict[str, Any]:
    import mdot

    sizes = [choose_sizes(family, variant, seed) for seed in range(TRACES)]
    fitter = Fitter({name: [one[name] for one in sizes] for name in sizes[0]}, family.atoms)
    blocks = trace(family, variant, sizes[0], False)[1].blocks
    captures: list[Capture] = []
    for half, program in enumerate(described["programs"]):
        try:
            captures = [trace_memory(blocks, family, variant, one, half > 0) for one in sizes]
        except mdot.Error:  # a network without 16-bit parameters has the records of fp32
            if half == 0:
                raise
        rows = list(writer.tables["records"])
        known = {tuple(json.loads(rows[i])[:2]) for i in program["records"]}
        missing = [key for key in captures[0].passes if key not in known]
        program["records"] += [writer.row("records", [*key, describe_pass(family, captures, key, sizes, fitter, writer)]) for key in missing]
    return described


ADAPTED: dict[str, list[Any]] = {}
"""The adapted programs of a variant, without settings that change frozen parameters alone."""


def adapted_key(family: Family, variant: Mapping[str, Any]) -> str:
    return json.dumps([family.name, {key: value for key, value in variant.items() if key != "tie_word_embeddings"}])


def describe_adapters(family: Family, variant: Mapping[str, Any], writer: Writer) -> list[Any]:
    """The memory of the frozen network with adapters: by set of adapted modules, the records of a network in fp32 and of
    one in 16 bits, whose adapters peft keeps in fp32."""
    same = adapted_key(family, variant)
    if same in ADAPTED:
        return ADAPTED[same]
    sizes = [{**choose_sizes(family, variant, seed), "rank": 5 + (seed * 31 + 7) % 47} for seed in range(TRACES)]
    fitter = Fitter({name: [one[name] for one in sizes] for name in sizes[0]}, [*family.atoms, "rank"])
    made = []
    for targets in family.adapters:
        programs = []
        for half in (False, True):
            first = trace(family, variant, sizes[0], half, targets)[1]
            passes = describe_passes(family, variant, first, sizes, fitter, writer, half, targets)
            programs.append([writer.row("records", [*key, moments]) for key, moments in passes.items()])
        made.append({"targets": targets, "records": programs})
    return ADAPTED.setdefault(same, made)


def describe(family: Family, folder: Path, only_missing: bool) -> None:
    import mdot
    import transformers
    from mdot.operators import setting_names

    path = folder / f"{family.name}.json.gz"
    known = json.loads(gzip.decompress(path.read_bytes())) if only_missing and path.exists() else {}
    writer, names, started = Writer(known), setting_names(), time.process_time()
    kept = {json.dumps(one["when"], sort_keys=True): one for one in known.get("variants", ())}
    ADAPTED.update({adapted_key(family, one["when"]): one["adapters"] for one in kept.values() if "adapters" in one})
    made = getattr(transformers, family.network)
    default = made.config_class()
    kinds: Callable[[str], Any] = lambda key: getattr(default, key, family.variants[0][key])  # noqa: E731
    variants = []
    for variant in family.variants:
        same = kept.get(json.dumps(variant, sort_keys=True))
        variants.append(add_records(family, variant, same, writer) if same else describe_variant(family, variant, writer, names))
    for variant, described in zip(family.variants, variants) if family.adapters else ():
        if not known or adapted_key(family, variant) in ADAPTED:
            described["adapters"] = describe_adapters(family, variant, writer)
    description = {
        "mdot": mdot.library_version(),
        "family": family.name,
        "network": family.network,
        "sizes": [[name, keys, default] for name, (keys, default) in family.sizes.items()],
        "length": "L" in family.atoms,
        "defaults": {key: kinds(key) for key in family.variants[0] if "==" not in key},
        **{table: list(entries) for table, entries in writer.tables.items() if table in ("formulas", "texts")},
        **{table: [json.loads(row) for row in writer.tables[table]] for table in ("operators", "records")},
        "variants": variants,
    }
    path.write_bytes(gzip.compress(json.dumps(description, separators=(",", ":")).encode(), 9, mtime=0))
    print(f"{path}: {len(variants)} variants, {path.stat().st_size} bytes, {time.process_time() - started:.0f} s", flush=True)


def main() -> None:
    folder, wanted = Path(sys.argv[1]), [name for name in sys.argv[2:] if name != "--missing"]
    for family in read_families(Path(__file__).with_name("families.json")):
        if not wanted or family.name in wanted:
            try:
                describe(family, folder, "--missing" in sys.argv)
            except Exception as fault:  # the other families follow
                if wanted:
                    raise
                print(f"{family.name}: {type(fault).__name__}: {fault}", flush=True)


if __name__ == "__main__":
    main()
