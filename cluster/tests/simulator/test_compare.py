"""compare.py: means over files, the marked best values, and foreign files."""
import json
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from pathlib import Path

SCRIPT = Path(sys.argv[1]) / "compare.py"
KEYS = ("p95_jct_s", "mean_wait_s", "makespan_s", "used", "mean_rho", "max_rho", "deadlines_met", "energy_kwh", "cost",
        "preemptions")


def result(policy, mean_s, **more):
    return {"policy": policy, "estimate": "oracle", "mean_jct_s": mean_s, **dict.fromkeys(KEYS, 0), "used": 0.5, **more}


def run(folder, *files):
    command = [sys.executable, SCRIPT, *files, "--out", folder / "page.html"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


with tempfile.TemporaryDirectory() as name:
    folder = Path(name)
    for i, times in enumerate(((7200, 3600), (14400, 3600))):
        results = [result("fifo", times[0]), result("<b>", times[1], estimate="limit", used=0.25)]
        text = json.dumps({"trace": f"/x/t{i}.csv", "jobs": 3, "gpus": 4, "results": results})
        (folder / f"{i}.json").write_text(text, encoding="utf-8")
    done = run(folder, folder / "0.json", folder / "1.json")
    assert done.returncode == 0, done.stderr
    page = (folder / "page.html").read_text(encoding="utf-8")
    assert "t0.csv (3 jobs, 4 GPUs); t1.csv" in page and "<b>" not in page
    assert "<td>fifo</td><td>3</td><td class=best>50</td>" in page, page  # the mean of 2 and 4 h
    assert "<td>&lt;b&gt;, limit</td><td class=best>1</td><td>25</td>" in page
    assert "energy" not in page  # unknown everywhere
    for chart in re.findall(r"<svg.*?</svg>", page, re.S):
        ET.fromstring(chart)
    # A file without one of the values, or with one of another type, is refused in one line.
    whole = {"trace": "t.csv", "jobs": 3, "gpus": 4, "results": [result("fifo", 3)]}
    wrong = [{}, [], None, {**whole, "results": 3}, {**whole, "results": [3]}, {**whole, "trace": 3}]
    wrong += [{k: v for k, v in whole.items() if k != key} for key in whole]
    for key in ("policy", "estimate", "mean_jct_s", *KEYS):
        wrong.append({**whole, "results": [{k: v for k, v in result("fifo", 3).items() if k != key}]})
        wrong += [{**whole, "results": [{**result("fifo", 3), key: other}]} for other in (None, [1])]
    for data in wrong:
        (folder / "bad.json").write_text(json.dumps(data), encoding="utf-8")
        done = run(folder, folder / "bad.json")
        assert done.returncode == 1 and done.stderr.startswith("compare.py: ") and done.stderr.count("\n") == 1, (
            data, done.stderr)
        assert "bad.json: not an output of mdot-simulate --json" in done.stderr
    done = run(folder / "absent", folder / "0.json")
    assert done.returncode == 1 and "No such file" in done.stderr and done.stderr.count("\n") == 1
    (folder / "bad.json").write_text(json.dumps({**whole, "results": []}), encoding="utf-8")
    assert "holds no results" in run(folder, folder / "bad.json").stderr
print("compare.py: passed")
