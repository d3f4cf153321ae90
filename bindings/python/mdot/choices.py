"""Words for choices: an enum value by its name in configuration.def, or by an object that has this name."""

from __future__ import annotations

import re
from typing import Any, Callable, Mapping

from mdot.example_inputs import named
from mdot.library.errors import InvalidArgumentError, suggest


def choose(
    option: str,
    value: Any,
    choices: tuple[str, ...],
    aliases: Mapping[str, str] = {},
    nearest: Mapping[str, str] = {},
    words_elsewhere: Callable[[], Mapping[str, str]] = dict,
) -> int:
    """The enum value of a word as in configuration.def, or of an object with this name, for example torch.bfloat16,
    torch.optim.AdamW or an optimizer of this class. For other words, InvalidArgumentError lists the choices and the
    nearest one, or the nearest of another option (`words_elsewhere`, with its text)."""
    name = value.__name__ if isinstance(value, type) else str(getattr(value, "value", value))
    if not isinstance(getattr(value, "value", ""), str):
        name = str(value)  # an Enum of numbers
    if isinstance(getattr(value, "param_groups", None), list):  # a torch.optim.Optimizer
        has_fused = any(group.get("fused") for group in value.param_groups)
        name = type(value).__name__ + ("_fused" if has_fused else "")
    word = name.rpartition(".")[2].lower().replace("_", "-")
    known = {**{choice.replace("_", "-"): choice for choice in choices}, **aliases}
    if word in known:
        return choices.index(known[word])
    elsewhere = words_elsewhere()
    parts = [nearest.get(part, part) for part in re.split(r"[-|+,:/ ]", word)]  # for example paged|sdpa and fp8-e4m3
    suggestion = nearest.get(word) or next((part for part in parts if part in known), None)
    near = word if len(word) < 4 else suggest(word, {*elsewhere, *known}) or word
    if suggestion is None and (other := elsewhere.get(near if word.startswith(near) else word)):
        hint = f" (did you mean {other}?)"
    else:
        suggestion = suggestion or suggest(word, known)
        hint = "" if suggestion is None else f" (did you mean {known.get(suggestion, suggestion)}?)"
    shown = named(value) if "\n" in repr(value) else repr(value)
    raise InvalidArgumentError(f"{option} must be {', '.join(choices[:-1])} or {choices[-1]}, not {shown}{hint}")
