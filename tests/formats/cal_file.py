"""A reader of `.cal` files, written from docs/reference/formats/cal.md alone, with Python's standard library."""
from mdot_file import require

FIELDS = ("digest", "precision", "layout", "torch", "gpus", "mode", "others", "batch", "host",
          "rows", "deviation", "residual", "own", "memory_rows", "memory_deviation", "memory_residual", "memory_own")
RANGES = {"precision": (0, 64), "layout": (0, 64), "torch": (0, 9999), "gpus": (0, 1 << 16), "mode": (0, 64), "batch": (1, 1 << 24),
          "host": (0, 1), "rows": (0, 1 << 24), "deviation": (0.005, 4), "residual": (-6, 6), "own": (0, 1e4)}


def number(text, least, most):
    value = float(text)
    require(least <= value <= most, f"{text} is not between {least} and {most}")
    return value


def digest(text):
    require(len(text) == 16 and set(text) <= set("0123456789abcdef"), f"{text} is no digest")
    return text


def step(words):
    require(len(words) == len(FIELDS), f"a step has {len(words)} fields")
    out = {}
    for name, text in zip(FIELDS, words):
        if name == "digest":
            out[name] = None if text == "-" else digest(text)
        elif name == "others":
            out[name] = digest(text)
        else:
            out[name] = number(text, *RANGES[name.replace("memory_", "")])
    return out


def read(text):
    require(text.endswith("\n"), "the last line has no end")
    lines = [line.partition(" ")[::2] for line in text.split("\n")[:-1]]
    take = iter(lines)

    def expect(word):
        found, rest = next(take)
        require(found == word, f"{found} stands where {word} must")
        return rest

    require(expect("mdot-calibration") == "5", "the version is unknown")
    out = {"predictor": expect("predictor"), "rows": [int(n) for n in expect("rows").split(" ")], "jobs": {}, "gpus": []}
    for word, rest in take:
        words = rest.split(" ")
        if word == "job":
            require(not out["gpus"], "a job stands behind a GPU model")
            require(digest(words[0]) > max(out["jobs"], default="0" * 16), "digests do not ascend")
            require(len(words) in (33, 34), "a job has no 32 shares")
            out["jobs"][words[0]] = [int(number(n, 0, 10000)) for n in words[1:33]]
            require(words[33:] in ([], ["1"]), "a job waits for data, or its line ends")
        elif word == "gpu":
            full, half, several, is_new, name = rest.split(" ", 4)
            out["gpus"].append({"name": name, "is_new": int(number(is_new, 0, 1)), "full": int(full), "half": int(half), "several": int(several), "steps": []})
            for scale in ("time", "memory"):
                general, idle = expect(scale).split(" ")
                out["gpus"][-1][scale] = (number(general, 1e-6, 16), number(idle, 0, 1))
        else:
            require(word == "step" and out["gpus"], f"a line begins with {word}")
            found = step(words)
            require(found["digest"] is None or found["digest"] in out["jobs"], "a step names a job that has no line")
            out["gpus"][-1]["steps"].append(found)
    return out
