"""Reads files of this build with the independent readers of this folder, and compares them with the output of `mdot`.

    test_formats.py MDOT PREDICTOR.mdot SOURCE_FOLDER EXAMPLE_JOBS

EXAMPLE_JOBS is the program of examples/reference/jobs.c, which writes a job that has a program.
"""
import json
import math
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import cal_file  # noqa: E402
import job_file  # noqa: E402
import mdot_file  # noqa: E402

MDOT, PREDICTOR, SOURCE, EXAMPLE_JOBS = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]), sys.argv[4]


def run(*arguments):
    result = subprocess.run([MDOT, *map(str, arguments)], capture_output=True, text=True)
    assert result.returncode == 0, f"{arguments}: {result.stderr}"
    return result.stdout


def expect_equal(found, wanted, place):
    assert found == wanted, f"{place}: the reader finds {found}, mdot {wanted}"


def expect_refusal(read, data, place):
    """A damaged byte must be found by the reader, too."""
    try:
        read(data)
    except Exception:  # noqa: BLE001 any refusal will do
        return
    raise AssertionError(f"{place}: damage is not noticed")


# ---- .mdot -----------------------------------------------------------------------------------------------------------


def compare_entry(found, wanted):
    place = f"entry {wanted['name']}"
    for name in ("name", "min_length", "outputs"):
        expect_equal(found[name], wanted[name], f"{place}, {name}")
    for tensor, columns, other in zip(found["inputs"], found["columns"], wanted["inputs"], strict=True):
        expect_equal(tensor, {name: other[name] for name in tensor}, place)
        if columns and "columns" in other:
            expect_equal(columns, ",".join(other["columns"]), place)
    expect_equal(f"{found['schema_hash']:016x}", wanted["schema_hash"], f"{place}, schema_hash")
    expect_equal(found["computed_hash"], found["schema_hash"], f"{place}, computed schema_hash")
    for bucket, other in zip(found["buckets"], wanted["buckets"], strict=True):
        expect_equal(bucket["max_length"], other["max_length"], place)
        assert math.isclose(bucket["flops"], other["flops"], rel_tol=1e-6), place
        for kernel, named in zip(bucket["kernels"], other["kernels"], strict=True):
            expect_equal((kernel["name"], kernel["kind"]), (named["name"], named["kind"]), place)
            assert math.isclose(kernel["flops"], named["flops"], rel_tol=1e-6), place


def artefacts_are_read():
    data = PREDICTOR.read_bytes()
    table, wanted = mdot_file.Table(data), json.loads(run("inspect", PREDICTOR, "--json"))
    for name in ("name", "compiler", "file_bytes", "weights_bytes"):
        expect_equal(getattr(table, name), wanted[name], name)
    for entry, other in zip(table.entries(), wanted["entries"], strict=True):
        compare_entry(entry, other)
    for image, other in zip(table.images(), wanted["images"], strict=True):
        for name in ("kind", "target", "kernel_precision", "image_bytes", "weights_bytes"):
            expect_equal(image[name], other[name], f"image {other['target']}, {name}")
        expect_equal(image["scratch"], [k["scratch_bytes"] for k in other["kernels"]], f"image {other['target']}, scratch")
    for at in (100, len(data) // 2, len(data) - 1):
        expect_refusal(mdot_file.Table, data[:at] + bytes([data[at] ^ 1]) + data[at + 1:], f"byte {at} of an artefact")


# ---- .job ------------------------------------------------------------------------------------------------------------


def settings_of(source):
    schema = json.loads((source / "docs" / "schema.json").read_text())
    return schema["settings"]


def compare_operator(found, wanted, settings, batch, place):
    expect_equal((found["type"], found["known"], found["parameters"], found["inputs"], found["block"]),
                 tuple(wanted[name] for name in ("type", "known", "parameters", "inputs", "block")), place)
    expect_equal({settings[s]: value for s, value in found["settings"].items()}, wanted["configuration"], place)
    expect_equal(found["module"], wanted.get("module"), place)
    expect_equal(found["frozen_parameters"], wanted.get("frozen_parameters", 0), place)
    for phase, name in enumerate(("forward", "data_gradient", "weight_gradient")):
        parts = [found["loads"][phase][k:k + 3] for k in (0, 3, 6)]
        expect_equal([batch * a + b + batch * batch * c for a, b, c in zip(*parts)],
                     [wanted[name][k] for k in ("flops", "bytes_read", "bytes_written")], f"{place}, {name}")


def jobs_are_read(folder):
    settings = settings_of(SOURCE)
    for name, options in (("resnet50", []), ("resnet50", ["--keep-names", "--frozen", "layer1"]),
                          ("bert_base", ["--keep-names", "--dim", "sequence=128"])):
        model, path = SOURCE / "examples" / "jobs" / f"{name}.onnx", folder / f"{name}.job"
        run("extract", model, "-q", "-o", path, *options)
        data = path.read_bytes()
        job = job_file.read(data)
        for batch in (1, 7):
            wanted = json.loads(run("extract", path, "--json", "-q", "--batch", batch))
            expect_equal(job["batch"], wanted["file_batch"], f"{name}, batch")
            for i, (op, other) in enumerate(zip(job["operators"], wanted["operators"], strict=True)):
                compare_operator(op, other, settings, batch, f"{name}, operator {i}")
        for at in (12, 60, len(data) - 1):
            expect_refusal(job_file.read, data[:at] + bytes([data[at] ^ 1]) + data[at + 1:], f"byte {at} of {name}.job")


def programs_of_jobs_are_read(folder):
    """The numbers of examples/reference/jobs.c."""
    subprocess.run([EXAMPLE_JOBS, SOURCE / "examples" / "jobs" / "resnet50.onnx", folder], check=True, capture_output=True)
    program = job_file.read((folder / "example.job").read_bytes())["program"]
    bf16, flash, nothing = 4, 2, 0
    record, = program.pop("recorded")
    expect_equal(program, {"precision": bf16, "attention": flash, "has_loss": 0, "trained_bytes": 51200000,
                           "frozen_bytes": 0, "buffer_bytes": 0}, "program")
    expect_equal((record["precision"], record["recompute"]), (bf16, nothing), "record of memory")
    expect_equal(record["moments"], [{"per_sample": 100000000, "per_step": 1000000, "weight_copies": 0,
                                      "gradients": 1 << 19, "logits": 4096}], "moments")


# ---- JSON ------------------------------------------------------------------------------------------------------------


def members_of_pages():
    """Names that docs/reference/formats/json.md and the table of names in docs/reference/configuration.md list."""
    reference = SOURCE / "docs" / "reference"
    names = set()
    for object_ in (reference / "formats" / "json.md").read_text().split("| member |")[1:]:
        rows = [line.split("|")[1] for line in object_.split("\n") if line.startswith("| `")]
        of_object = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
        expect_equal(len(of_object), len(set(of_object)), "members that the page lists, and different ones")
        names.update(of_object)
    table = (reference / "configuration.md").read_text().split("## Names")[1].split("## Other words")[0]
    members = re.findall(r"(?m)^\| `(\w+)`", (reference / "configuration.md").read_text().split("## Names")[0])
    others = {}
    for line in table.split("\n"):
        if line.startswith("| `"):
            member, _, others[member.strip(" `")] = line.replace("\\|", "").split("|")[1:4]
    for member in members:
        names.update(re.findall(r"`(\w+)`", others.get(member, "").strip() or f"`{member}`"))
    return names


def predictions_are_read(folder):
    """Names, units and sums are those of the page."""
    out = json.loads(run("predict", folder / "bert_base.job", "--gpu", "T4,A100", "--sweep", "batch=8..16", "--gpus", 2, "--steps",
                         1000, "--price", "2.5/h", "-m", PREDICTOR, "--json", "-q", "--explain"))
    expect_equal(out["schema"], "mdot-predict/1", "schema")
    known = members_of_pages()
    explained = [e for p in out["predictions"] for e in (p["explanation"], *p["explanation"]["operators"])]
    unknown = {name for part in (out, *out["predictions"], *explained) for name in part} - known
    expect_equal(unknown, set(), "members that no page lists")
    expect_equal([(p["gpu"], p["batch"]) for p in out["predictions"]],
                 [(gpu, batch) for gpu in ("T4", "A100-SXM-40GB") for batch in (8, 16)], "order")
    for p in out["predictions"]:
        parts = sum(p[name] for name in ("weight_bytes", "gradient_bytes", "optimizer_bytes", "activation_bytes"))
        more = sum(p[name] for name in ("rounding_bytes", "context_bytes", "workspace_bytes", "collective_bytes"))
        assert p["lower_ms"] < p["step_ms"] < p["upper_ms"], p
        assert abs(parts - p["peak_memory_bytes"]) <= 4, f"parts of the peak: {parts}, {p['peak_memory_bytes']}"
        assert abs(p["peak_memory_bytes"] + more - p["reserved_bytes"]) <= 5, f"reserved: {p}"
        expect_equal(p["fits"], p["reserved_bytes"] <= p["usable_bytes"], "fits")
        assert math.isclose(p["samples_per_second"], 1000 * p["batch"] * p["gpus"] / p["step_ms"], rel_tol=1e-5), p
        assert math.isclose(p["total_seconds"], p["step_ms"], rel_tol=1e-5), p
        assert math.isclose(p["cost"], 2.5 * p["gpus"] * p["total_seconds"] / 3600, rel_tol=1e-4), p
        assert math.isclose(p["energy_joules"], p["average_watts"] * p["gpus"] * p["step_ms"] / 1000, rel_tol=1e-4), p
        explanation_is_read(p)


def explanation_is_read(p):
    e, phases = p["explanation"], ("forward_ms", "data_gradient_ms", "weight_gradient_ms", "optimizer_ms")
    step = sum(e[name] for name in (*phases, "host_ms", "communication_ms", "idle_ms", "data_ms"))
    assert math.isclose(step, p["step_ms"], rel_tol=1e-4), f"the eight times add up to {step}, not {p['step_ms']}"
    busy = e["gpu_busy_ms"] + e["host_busy_ms"] - e["overlap_ms"] + e["communication_ms"] + e["idle_ms"] + e["data_ms"]
    assert math.isclose(busy, p["step_ms"], rel_tol=1e-4), f"the busy times add up to {busy}, not {p['step_ms']}"
    for name in phases:
        total = sum(operator[name] for operator in e["operators"])
        assert math.isclose(total, e[name], rel_tol=1e-4), f"{name} of the operators adds up to {total}, not {e[name]}"
    expect_equal([operator["operator"] for operator in e["operators"]], list(range(len(e["operators"]))), "order of operators")


# ---- .cal ------------------------------------------------------------------------------------------------------------

ROWS = (("T4", 32, "fp32", 250.0), ("T4", 64, "fp32", 500.0), ("A100-SXM-40GB", 64, "amp", 60.0))


def calibrations_are_read(folder):
    table, path = folder / "measured.csv", folder / "site.cal"
    table.write_text("job,gpu,batch,precision,ms,gib\n" +
                     "".join(f"resnet50.job,{gpu},{batch},{precision},{ms},4\n" for gpu, batch, precision, ms in ROWS))
    printed = run("calibrate", table, "-o", path, "-m", PREDICTOR)
    found = cal_file.read(path.read_text())
    expect_equal(found["predictor"], json.loads(run("inspect", PREDICTOR, "--json"))["name"], "predictor")
    expect_equal(found["rows"], [len(ROWS), len(ROWS)], "rows")
    expect_equal(len(found["jobs"]), 1, "jobs")
    for gpu in found["gpus"]:
        rows = [row for row in ROWS if row[0] == gpu["name"]]
        expect_equal(gpu["full"], sum(row[2] == "fp32" for row in rows), f"{gpu['name']}, rows in full precision")
        expect_equal(gpu["half"], sum(row[2] == "amp" for row in rows), f"{gpu['name']}, rows in half precision")
        assert gpu["name"] in printed
        for step in gpu["steps"]:
            row, = [row for row in rows if row[1] == step["batch"]]
            answer = json.loads(run("predict", folder / "resnet50.job", "--gpu", row[0], "--batch", row[1], "--precision",
                                    row[2], "-m", PREDICTOR, "--json", "-q"))["predictions"][0]
            residual = math.log(row[3] / answer["step_ms"])
            assert abs(step["residual"] - residual) < 1e-5, f"{row}: residual {step['residual']}, by hand {residual}"
            memory = math.log(4 * 2**30 / answer["peak_memory_bytes"])
            assert abs(step["memory_residual"] - memory) < 1e-5, f"{row}: {step['memory_residual']}, by hand {memory}"
    expect_equal(sum(len(gpu["steps"]) for gpu in found["gpus"]), len(ROWS), "steps")
    expect_refusal(cal_file.read, path.read_text().replace("calibration 5", "calibration 2"), "another version")
    expect_refusal(cal_file.read, path.read_text() + "gpu 1\n", "a line that is cut")


# ---- Pages -----------------------------------------------------------------------------------------------------------


def pages_state_the_current_versions(folder):
    """docs/reference/formats/NAME.md and the page index.md state the version of the files that this build writes."""
    index = (SOURCE / "docs" / "reference" / "formats" / "index.md").read_text()
    job, calibration = (folder / "resnet50.job").read_bytes(), (folder / "site.cal").read_text()
    for name, version in (("mdot", mdot_file.Table(PREDICTOR.read_bytes()).abi_version),
                          ("job", int.from_bytes(job[8:12], "little")),
                          ("cal", int(calibration.split()[1]))):
        text = " ".join((SOURCE / "docs" / "reference" / "formats" / f"{name}.md").read_text().split())
        stated, = re.findall(r"The current version is (\d+)", text)
        expect_equal(version, int(stated), f"version on the page {name}.md")
        listed, = re.findall(rf"\| \[`\.{name}`\]\({name}\.md\) \|.*\| (\d+) \|", index)
        expect_equal(version, int(listed), f"version of .{name} on the page index.md")


def main():
    with tempfile.TemporaryDirectory() as name:
        artefacts_are_read()
        jobs_are_read(pathlib.Path(name))
        predictions_are_read(pathlib.Path(name))
        programs_of_jobs_are_read(pathlib.Path(name))
        calibrations_are_read(pathlib.Path(name))
        pages_state_the_current_versions(pathlib.Path(name))
    print("four formats are read as mdot reads them, and their pages state the versions")


main()
