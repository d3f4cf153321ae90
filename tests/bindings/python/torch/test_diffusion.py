"""Networks of diffusers by name: each is traced without a download, with the published parameters, and follows the batch."""

from __future__ import annotations

import inspect
import unittest
import warnings

import support  # noqa: F401 (finds the libraries)
import torch

import mdot
from mdot.trace import diffusion
from mdot.trace.models import build

try:
    import diffusers
except ImportError:
    diffusers = None  # type: ignore[assignment]

PARAMETERS = {
    "stable-diffusion-1.5": 859520964, "stable-diffusion-2.1": 865910724, "sdxl": 2567463684, "flux.1-dev": 11901408320,
    "flux.1-schnell": 11891178560, "qwen-image": 20430401088, "wan2.1-t2v-1.3b": 1418996800, "wan2.1-t2v-14b": 14288491584,
}  # fmt: skip
"""As published with the weights."""
BILLIONS = {
    "sd3-medium": 2.0, "sd3.5-large": 8.1, "flux.2-dev": 32, "wan2.2-ti2v-5b": 5.0, "sana-0.6b": 0.59, "sana-1.6b": 1.6,
    "pixart-alpha": 0.61, "pixart-sigma": 0.61, "cogvideox-2b": 1.7, "cogvideox-5b": 5.6, "hunyuandit-1.2": 1.5,
    "hunyuanvideo": 13, "ltx-video": 1.9,
}  # fmt: skip
"""As published in words. diffusers' DiT-XL/2 has a tenth more than the paper's, and SD3.5 medium is stated as 2.5 with parts
that are no parameters here."""
NAMES = ("flux.1-dev", "hunyuandit-1.2", "cogvideox-5b", "pixart-alpha", "qwen-image", "sd3-medium", "wan2.1-t2v-1.3b")
"""One of most classes, to trace."""


def settings_of(name: str) -> dict[str, int]:
    """One layer of each kind."""
    made = getattr(diffusers, diffusion.KNOWN[name][0])
    taken = inspect.signature(made.__init__).parameters
    found = {key: 1 for key in ("num_layers", "num_single_layers", "num_refiner_layers") if key in taken}
    return {**found, "dual_attention_layers": ()} if "dual_attention_layers" in taken else found


def flops(job: mdot.Job, batch: int) -> float:
    terms = ((1, "per_step"), (batch, "per_sample"), (batch * batch, "per_square"))
    return sum(n * load.flops for op in job for n, term in terms for load in getattr(op, term).values())


@unittest.skipIf(diffusers is None, "diffusers is missing")
class Diffusion(unittest.TestCase):
    def test_parameters_are_the_published_ones(self) -> None:
        for name in diffusion.KNOWN:
            with self.subTest(name=name):
                count = sum(p.numel() for p in build(f"diffusers:{name}", size=16).model.parameters())
                if name in PARAMETERS:
                    self.assertEqual(count, PARAMETERS[name])
                elif name in BILLIONS:
                    self.assertLess(abs(count / 1e9 / BILLIONS[name] - 1), 0.035, count)

    def test_a_traced_network_follows_the_batch(self) -> None:
        """Position tables whose rows are a multiple of the batch hold no samples."""
        for name in NAMES:
            with self.subTest(name=name), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                two, five = (mdot.Job.from_name(f"diffusers:{name}", batch=n, size=16, **settings_of(name)) for n in (2, 5))
                self.assertLess(abs(flops(two, 5) / flops(five, 5) - 1), 0.001)

    def test_a_network_on_meta_keeps_its_tensors(self) -> None:
        network = build("diffusers:qwen-image", size=16, settings={"num_layers": 1})
        before = network.model.pos_embed.pos_freqs
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # its last block's text is unused
            mdot.Job.from_network(network)
        self.assertIs(network.model.pos_embed.pos_freqs, before)
        self.assertIsInstance(before, torch.Tensor)

    def test_an_unknown_name_lists_the_nearest(self) -> None:
        for wrong, near in (("flux", "flux.1-dev"), ("SDLX", "sdxl"), ("FluxTransformer2D", "FluxTransformer2DModel"), ("wan", "wan2.1")):
            with self.subTest(name=wrong), self.assertRaisesRegex(mdot.NotFoundError, near):
                build(f"diffusers:{wrong}")


if __name__ == "__main__":
    unittest.main()
