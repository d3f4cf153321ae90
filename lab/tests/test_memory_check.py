"""The comparison of predicted memory. PyTorch's side needs a separate process, because it prepares CUDA before torch's
import."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from mdot_lab.checks.memory import run_networks, table

torch = pytest.importorskip("torch")

MEASURE = """
import json
from mdot_lab.checks.memory import fake_cuda, reference
from mdot_lab.checks.memory.step import Step
fake_cuda.install()
import torch
import torch.nn.functional as F
from torch import nn
import torch.utils.checkpoint
from torch._subclasses.fake_tensor import FakeTensorMode

SIZE = 1 << 20

class Product(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(SIZE))
    def forward(self, values):
        return (self.weight * values).sum()

class Attention(nn.Module):
    def __init__(self, is_checkpointed=False):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(64))
        self.frozen = nn.Parameter(torch.ones(64), requires_grad=False)
        self.is_checkpointed = is_checkpointed
    def attend(self, values):
        return F.scaled_dot_product_attention(values, values, values, is_causal=True)
    def forward(self, values):
        values = values * self.weight * self.frozen
        if self.is_checkpointed:
            return torch.utils.checkpoint.checkpoint(self.attend, values, use_reentrant=False).sum()
        return self.attend(values).sum()

def product():
    return Step(Product(), (torch.ones(SIZE),), {})

def attention():
    return Step(Attention(), (torch.ones(2, 4, 128, 64),), {})

def checkpointed():
    return Step(Attention(True), (torch.ones(2, 4, 128, 64),), {})

found = {f"{name} {precision}": reference.peak(product, precision, name).peak_bytes
         for name in reference.OPTIMIZERS for precision in ("fp32", "bf16")}
found.update({f"attention {precision}": reference.peak(attention, precision, "sgd").attention for precision in reference.PRECISIONS})
found["checkpointed"] = reference.peak(checkpointed, "bf16", "sgd").attention
with FakeTensorMode():
    layer, norm = nn.Linear(8, 8, device="cuda"), nn.LayerNorm(8, device="cuda")
    rows, classes = torch.ones(4, 8, device="cuda"), torch.zeros(4, dtype=torch.int64, device="cuda")
    with torch.autocast("cuda", torch.bfloat16):
        out = layer(rows)
        kinds = {"linear": out, "layer_norm": norm(out), "softmax": out.softmax(-1), "cross_entropy": F.cross_entropy(out, classes),
                 "gelu": F.gelu(out), "square": out.square()}
        found["autocast"] = {name: str(value.dtype) for name, value in kinds.items()}
    found["mask"] = str(F.dropout(layer(rows), 0.1).grad_fn._saved_result1.dtype)
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def measured():
    if torch.version.cuda is None or not (shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")):
        pytest.skip("needs a build of torch for CUDA and a C compiler")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-c", MEASURE], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


# Weights, inputs and gradients or the product, and the optimizer's state: momentum, or two averages. AdamW over lists of tensors
# also makes the roots of the second averages.
@pytest.mark.parametrize("optimizer, copies", [("sgd", 4), ("sgd-fused", 4), ("adamw", 6), ("adamw-fused", 5)])
@pytest.mark.parametrize("precision, size", [("fp32", 4), ("bf16", 2)])
def test_peak_of_a_product_is_its_tensors(measured, optimizer, copies, precision, size):
    assert measured[f"{optimizer} {precision}"] == pytest.approx(copies * size * (1 << 20), abs=8192)


def test_autocast_follows_the_lists_of_cuda(measured):
    fp32, bf16 = "torch.float32", "torch.bfloat16"
    assert measured["autocast"] == {"linear": bf16, "layer_norm": fp32, "softmax": fp32, "cross_entropy": fp32, "gelu": bf16,
                                    "square": fp32}


def test_dropout_saves_a_mask_of_booleans(measured):
    assert measured["mask"] == "torch.bool"


def test_attention_is_fused_as_on_a_gpu(measured):
    assert measured["checkpointed"] == "1 flash"
    assert [measured[f"attention {name}"] for name in ("fp32", "bf16", "amp")] == ["1 efficient", "1 flash", "1 flash"]


@pytest.mark.parametrize("heads, size, kind, has_mask, is_grouped, kernel", [
    (4, 64, "bfloat16", False, False, "flash"),
    (4, 80, "float16", False, False, "flash"),
    (4, 64, "float32", False, False, "efficient"),
    (4, 64, "bfloat16", True, False, "efficient"),
    (2, 64, "bfloat16", False, True, "flash"),
    (2, 64, "float32", False, True, "math"),
    (4, 288, "bfloat16", False, False, "efficient"),
    (4, 30, "float32", False, False, "math"),
    (4, 64, "float64", False, False, "math"),
])
def test_kernel_of_attention_is_that_of_sdp_utils(heads, size, kind, has_mask, is_grouped, kernel):
    from mdot_lab.checks.memory.attention_kernels import choose

    query = torch.empty(2, 4, 16, size, dtype=getattr(torch, kind), device="meta")
    key = torch.empty(2, heads, 16, size, dtype=query.dtype, device="meta")
    mask = torch.empty(2, 1, 16, 16, dtype=torch.bool, device="meta") if has_mask else None
    assert choose(query, key, key, mask, False, is_grouped) == kernel


def _row(network, ratio, precision="fp32", **values):
    return table.Row(network, precision, "sgd", 8, 2, reference_bytes=1000, predicted_bytes=int(1000 * ratio),
                     same_batch_bytes=int(1000 * ratio), **values)


def test_rows_survive_the_file(tmp_path):
    rows = [_row("a/b", 0.9, attention="2 flash, 1 math"), _row("a/c, d", 1.2, "amp", note='mdot: "x"', seconds=1.5)]
    for row in rows:
        table.append(tmp_path / "table.csv", row)
    assert list(table.read(tmp_path / "table.csv").values()) == rows
    assert table.read(tmp_path / "missing.csv") == {}


def test_later_row_replaces_an_equal_one(tmp_path):
    for ratio in (0.5, 1.0):
        table.append(tmp_path / "table.csv", _row("a/b", ratio))
    assert [row.ratio for row in table.read(tmp_path / "table.csv").values()] == [1.0]


def test_summary_counts_errors_and_names_failures():
    rows = [_row("x/a", 1.05), _row("x/b", 0.85), _row("y/c", 1.4, "amp"), table.Row("y/d", "amp", "sgd", 8, 2, note="no reason")]
    lines = table.summary(rows, worst=1).splitlines()
    assert "| all | 3 | 20.0 | 33 | 67 | 40.0 |" in lines
    assert "| x | 2 | 10.0 | 50 | 100 | 15.0 |" in lines
    assert "  y/d, amp: no reason" in lines
    assert [line for line in lines if "predicted," in line] == ["   1.40  y/c, amp: 0.00 predicted, 0.00 GiB in PyTorch"]


def test_first_rows_cover_all_libraries_and_precisions():
    names = [f"{library}/{number}" for library in ("vision", "text") for number in range(4)]
    rows = run_networks.order(names, ["fp32", "bf16", "amp"])
    assert sorted(rows) == sorted((name, precision) for name in names for precision in ("fp32", "bf16", "amp"))
    assert {name for name, _ in rows[:8]} == set(names)
    for library in ("vision", "text"):
        assert {precision for name, precision in rows[:6] if name.startswith(library)} == {"fp32", "bf16", "amp"}
