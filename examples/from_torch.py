"""Reads a PyTorch module as a job, predicts a training step of it, and saves the job for `mdot predict` and `mdot report`.

    python3 examples/from_torch.py language_model.job
"""
import sys
import warnings

import torch
from torch.nn import functional

import mdot

WIDTH, HEADS, LAYERS, LENGTH, VOCABULARY = 768, 12, 12, 512, 32000


class Block(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm_1, self.norm_2 = torch.nn.LayerNorm(WIDTH), torch.nn.LayerNorm(WIDTH)
        self.qkv, self.out = torch.nn.Linear(WIDTH, 3 * WIDTH), torch.nn.Linear(WIDTH, WIDTH)
        self.up, self.down = torch.nn.Linear(WIDTH, 4 * WIDTH), torch.nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(self.norm_1(x)).unflatten(2, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        attended = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).flatten(2))
        return x + self.down(functional.gelu(self.up(self.norm_2(x))))


class LanguageModel(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.positions = torch.nn.Embedding(VOCABULARY, WIDTH), torch.nn.Embedding(LENGTH, WIDTH)
        self.blocks = torch.nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm, self.head = torch.nn.LayerNorm(WIDTH), torch.nn.Linear(WIDTH, VOCABULARY)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.tokens(tokens) + self.positions(torch.arange(LENGTH, device=tokens.device))
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        return functional.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit("usage: from_torch.py OUTPUT.job")
    with torch.device("meta"):  # the weights take no memory
        model = LanguageModel()
        example = torch.zeros(2, LENGTH, dtype=torch.int64)
    job = mdot.Job.from_torch(model, example)
    print(f"{len(job)} operators, {job.parameters / 1e6:.1f} million parameters, {job.block_count} blocks")

    warnings.simplefilter("ignore", mdot.Warning)  # printed below instead
    answer = mdot.predict(job, "A100", batch=16, precision="amp-bf16", optimizer="adamw")
    print(f"A100, batch 16: {answer.step_ms:.0f} ms, {answer.memory_gib:.1f} GiB, fits: {answer.fits}")
    print("warnings:", ", ".join(answer.warnings) or "none")
    job.save(sys.argv[1])


if __name__ == "__main__":
    main()
