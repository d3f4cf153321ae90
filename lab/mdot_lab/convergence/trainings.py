"""Small real trainings on the CPU, whose losses judge `mdot converge`. It needs PyTorch.

    python3 -m mdot_lab.convergence.trainings ../docs --out losses.csv
    python3 -m mdot_lab.convergence.trainings --fresh --out fresh.csv

Networks for language learn from the characters of the folder's pages; the others from drawn data. The form and the widening
of `mdot converge` were chosen on them. `--fresh` trains on scikit-learn's measured data sets instead: judge on these
curves, and choose nothing by them. The table has the columns curve, step and loss; each loss is the mean over the steps since the row before."""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

LENGTH, WIDTH = 48, 48


class Text(nn.Module):
    """Predicts the next character by a GRU, by causal attention, or from the last character alone."""

    def __init__(self, kind: str, layers: int = 1) -> None:
        super().__init__()
        self.kind = kind
        self.table, self.place = nn.Embedding(128, WIDTH), nn.Embedding(LENGTH, WIDTH)
        if kind == "gru":
            self.body: nn.Module = nn.GRU(WIDTH, WIDTH, layers, batch_first=True)
        elif kind == "attention":
            block = nn.TransformerEncoderLayer(WIDTH, 4, 2 * WIDTH, 0.0, batch_first=True, norm_first=True)
            self.body = nn.TransformerEncoder(block, layers, enable_nested_tensor=False)
        else:
            self.body = nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH))
        self.head = nn.Linear(WIDTH, 128)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.table(ids) + self.place(torch.arange(LENGTH))
        if self.kind == "attention":
            x = self.body(x, mask=nn.Transformer.generate_square_subsequent_mask(LENGTH), is_causal=True)
        else:
            x = self.body(x)
        return self.head(x[0] if self.kind == "gru" else x)


def text_loss(model: nn.Module, folder: Path, seed: int) -> Callable[[], torch.Tensor]:
    pages = "\n".join(path.read_text() for path in sorted(folder.rglob("*.md")))
    ids = torch.tensor([ord(letter) if ord(letter) < 128 else 0 for letter in pages])
    generator = torch.Generator().manual_seed(seed)

    def loss() -> torch.Tensor:
        starts = torch.randint(len(ids) - LENGTH - 1, (16, 1), generator=generator)
        window = ids[starts + torch.arange(LENGTH + 1)]
        return F.cross_entropy(model(window[:, :-1]).flatten(0, 1), window[:, 1:].flatten())

    return loss


def glyph_loss(model: nn.Module, seed: int, noise: float, rebuild: bool = False) -> Callable[[], torch.Tensor]:
    """Ten drawn glyphs of 12 by 12 under noise, to be told apart or, with rebuild, to be cleaned."""
    generator = torch.Generator().manual_seed(seed)
    glyphs = torch.randn(10, 1, 12, 12, generator=generator)

    def loss() -> torch.Tensor:
        kinds = torch.randint(10, (64,), generator=generator)
        images = glyphs[kinds] + noise * torch.randn(64, 1, 12, 12, generator=generator)
        answer = model(images)
        return F.mse_loss(answer, glyphs[kinds].flatten(1)) if rebuild else F.cross_entropy(answer, kinds)

    return loss


def teacher_loss(model: nn.Module, seed: int) -> Callable[[], torch.Tensor]:
    """A regression onto a random network with noise."""
    generator = torch.Generator().manual_seed(seed)
    first, second = torch.randn(20, 30, generator=generator) / 4, torch.randn(30, 1, generator=generator) / 4

    def loss() -> torch.Tensor:
        x = torch.randn(64, 20, generator=generator)
        y = torch.tanh(x @ first) @ second + 0.2 * torch.randn(64, 1, generator=generator)
        return F.mse_loss(model(x), y)

    return loss


def measured_loss(model: nn.Module, seed: int, name: str, batch: int, rebuild: bool = False) -> Callable[[], torch.Tensor]:
    """A data set of scikit-learn, in passes over shuffled samples."""
    from sklearn import datasets

    loaded = getattr(datasets, f"load_{name}")()
    x, kinds = torch.tensor(loaded.data, dtype=torch.float32), torch.tensor(loaded.target)
    x = (x - x.mean(0)) / (x.std(0) + 1e-3)
    is_regression = kinds.dtype == torch.float64
    wanted = ((kinds - kinds.mean()) / kinds.std()).float() if is_regression else kinds
    generator, order = torch.Generator().manual_seed(seed), torch.zeros(0, dtype=torch.int64)

    def loss() -> torch.Tensor:
        nonlocal order
        if len(order) < batch:
            order = torch.randperm(len(x), generator=generator)
        rows, order = order[:batch], order[batch:]
        answer = model(x[rows])
        if rebuild or is_regression:
            return F.mse_loss(answer if rebuild else answer[:, 0], x[rows] if rebuild else wanted[rows])
        return F.cross_entropy(answer, wanted[rows])

    return loss


class Factors(nn.Module):
    """Factorises a matrix, as recommenders do."""

    def __init__(self) -> None:
        super().__init__()
        self.rows, self.columns = nn.Embedding(400, 16), nn.Embedding(300, 16)

    def forward(self, i: torch.Tensor, j: torch.Tensor) -> torch.Tensor:
        return (self.rows(i) * self.columns(j)).sum(1)


def factor_loss(model: nn.Module, seed: int) -> Callable[[], torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    truth = torch.randn(400, 5, generator=generator) @ torch.randn(5, 300, generator=generator)

    def loss() -> torch.Tensor:
        i, j = torch.randint(400, (256,), generator=generator), torch.randint(300, (256,), generator=generator)
        return F.mse_loss(model(i, j), truth[i, j] + 0.5 * torch.randn(256, generator=generator))

    return loss


def perceptron(inputs: int, outputs: int) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(inputs, 64), nn.ReLU(), nn.Linear(64, outputs))


def convolution() -> nn.Module:
    return nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3), nn.ReLU(), nn.Flatten(),
                         nn.Linear(144, 10))  # fmt: skip


Make = Callable[[int], tuple[nn.Module, Callable[[], torch.Tensor]]]
Curve = tuple[str, int, Make, str, float, str]


def of(make_model: Callable[[], nn.Module], make_loss: Callable[..., Callable[[], torch.Tensor]], *more: object) -> Make:
    def make(seed: int) -> tuple[nn.Module, Callable[[], torch.Tensor]]:
        model = make_model()
        return model, make_loss(model, seed, *more)

    return make


def images() -> nn.Module:
    return nn.Sequential(nn.Unflatten(1, (1, 8, 8)), nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Conv2d(8, 16, 3), nn.ReLU(), nn.Flatten(),
                         nn.Linear(256, 10))  # fmt: skip


def fresh() -> list[Curve]:
    """Curves for judging alone."""
    return [
        ("digits, linear", 2000, of(lambda: nn.Linear(64, 10), measured_loss, "digits", 64), "sgd", 0.002, "constant"),
        ("digits, perceptron", 2000, of(lambda: perceptron(64, 10), measured_loss, "digits", 16), "sgd", 0.001, "constant"),
        ("digits, convolution", 1600, of(images, measured_loss, "digits", 128), "adam", 3e-4, "constant"),
        ("digits, cosine", 1600, of(images, measured_loss, "digits", 32), "adam", 3e-4, "cosine"),
        ("digits, rebuilt", 2000, of(lambda: perceptron(64, 64), measured_loss, "digits", 64, True), "adam", 5e-4, "constant"),
        ("digits, rebuilt, sgd", 2000, of(lambda: perceptron(64, 64), measured_loss, "digits", 256, True), "sgd", 0.1, "linear"),
        ("cancer, perceptron", 2000, of(lambda: perceptron(30, 2), measured_loss, "breast_cancer", 32), "sgd", 0.0005, "constant"),
        ("cancer, linear", 2000, of(lambda: nn.Linear(30, 2), measured_loss, "breast_cancer", 64), "adam", 1e-3, "constant"),
        ("diabetes, perceptron", 2000, of(lambda: perceptron(10, 1), measured_loss, "diabetes", 64), "adam", 3e-4, "constant"),
        ("wine, perceptron", 2000, of(lambda: perceptron(13, 3), measured_loss, "wine", 16), "sgd", 0.0003, "linear"),
    ]  # fmt: skip


def curves(folder: Path) -> list[Curve]:
    """Name, steps, network with its loss, optimizer, rate and schedule of the rate."""

    def text(kind: str, layers: int = 1) -> Callable[[int], tuple[nn.Module, Callable[[], torch.Tensor]]]:
        def make(seed: int) -> tuple[nn.Module, Callable[[], torch.Tensor]]:
            model = Text(kind, layers)
            return model, text_loss(model, folder, seed)

        return make

    return [
        ("bigram", 3000, text("last"), "adam", 1e-3, "constant"),
        ("gru", 2000, text("gru"), "adam", 2e-3, "constant"),
        ("attention", 2000, text("attention", 2), "adam", 1e-3, "constant"),
        ("attention, cosine", 2000, text("attention", 2), "adam", 2e-3, "cosine"),
        ("gru, sgd", 2000, text("gru"), "sgd", 0.5, "constant"),
        ("bigram, linear", 3000, text("last"), "adam", 3e-3, "linear"),
        ("glyphs, perceptron", 3000, of(lambda: perceptron(144, 10), glyph_loss, 3.0), "sgd", 0.02, "constant"),
        ("glyphs, convolution", 2000, of(convolution, glyph_loss, 3.0), "adam", 5e-4, "constant"),
        ("glyphs, linear", 3000, of(lambda: nn.Sequential(nn.Flatten(), nn.Linear(144, 10)), glyph_loss, 4.0), "sgd",
         0.002, "constant"),
        ("glyphs, cleaned", 3000, of(lambda: perceptron(144, 144), glyph_loss, 1.5, True), "adam", 5e-4, "constant"),
        ("teacher", 4000, of(lambda: perceptron(20, 1), teacher_loss), "sgd", 0.01, "constant"),
        ("teacher, cosine", 4000, of(lambda: perceptron(20, 1), teacher_loss), "adam", 2e-3, "cosine"),
        ("factors", 3000, of(Factors, factor_loss), "adam", 1e-2, "constant"),
    ]  # fmt: skip


def train(curve: Curve, seed: int) -> list[tuple[int, float]]:
    name, steps, make, optimizer_name, rate, schedule = curve
    torch.manual_seed(seed)
    model, loss_of = make(seed)
    parameters = model.parameters()
    optimizer: torch.optim.Optimizer = (
        torch.optim.Adam(parameters, rate) if optimizer_name == "adam" else torch.optim.SGD(parameters, rate, 0.9))
    scheduler = None
    if schedule == "cosine":
        scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    elif schedule == "linear":
        scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.02, steps)
    rows, total, each = [], 0.0, steps // 200
    for step in range(1, steps + 1):
        optimizer.zero_grad()
        loss = loss_of()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        total += loss.item()
        if step % each == 0:
            rows.append((step, total / each))
            total = 0.0
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", type=Path, nargs="?", help="folder of Markdown pages")
    parser.add_argument("--fresh", action="store_true", help="other curves, for judging alone; needs scikit-learn")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=2)
    arguments = parser.parse_args()
    if (arguments.pages is None) != arguments.fresh:
        parser.error("name a folder of pages, or --fresh")
    torch.set_num_threads(1)
    with arguments.out.open("w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["curve", "step", "loss"])
        for seed in range(1, arguments.seeds + 1):
            for curve in fresh() if arguments.fresh else curves(arguments.pages):
                begin = time.monotonic()
                rows = train(curve, seed)
                table.writerows([f"{curve[0]} {seed}", step, f"{loss:.6g}"] for step, loss in rows)
                file.flush()
                print(f"{curve[0]} {seed}: {rows[0][1]:.3g} to {rows[-1][1]:.3g}, {time.monotonic() - begin:.0f} s")


if __name__ == "__main__":
    main()
