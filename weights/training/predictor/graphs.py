"""Rebuilds the labelled timm networks as ONNX training graphs without weights, one file a network and input size.

The graph is that of a training step's forward half: training mode, so that BatchNormalization stays. Tracing computes the
network once on two random samples, on one thread a process; weights are left as they come from the allocator, because
nothing reads them.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import warnings
from pathlib import Path

from collect.export import leave_weights_out, trace
from predictor.labels import Network, networks

OPSET = 18      # the first that has Col2Im, which VOLO needs
BATCH = 2       # BatchNormalization refuses one sample where the feature map is 1 x 1

RENAMED = {
    "convnext_nano_hnf": "convnext_nano",
    "convnext_tiny_hnfd": "convnext_tiny_hnf",
    "vit_base2_patch32_256": "vit_base_patch32_plus_256",
}
"""Names in the labels that timm gave up, and its name for the same network since."""


def current_name(name: str) -> str:
    return RENAMED.get(name, name.replace("swin_v2_cr_", "swinv2_cr_"))


def _leave_uninitialised() -> None:
    """Random weights of a billion parameters take longer than the graph."""
    import timm.models.layers.weight_init as timm_init
    import torch.nn.init as torch_init

    def keep(tensor, *arguments, **options):
        return tensor

    for module in (torch_init, timm_init):
        for name in dir(module):
            if name.endswith("_") and not name.startswith("_"):
                setattr(module, name, keep)


def _without_spatial_dropout(model):
    """The exporter does not know the dropout of whole channels in training; dropout is no operator of a job anyway."""
    import torch

    for parent in model.modules():
        for name, child in parent.named_children():
            if isinstance(child, torch.nn.Dropout2d):
                setattr(parent, name, torch.nn.Identity())
    return model


def build(network: Network) -> bytes:
    import timm
    import torch

    name = current_name(network.name)
    try:
        model = timm.create_model(name, pretrained=False, img_size=network.image_size)
    except TypeError:       # a network that takes any size
        model = timm.create_model(name, pretrained=False)
    model = _without_spatial_dropout(model).train()
    image = torch.zeros(BATCH, 3, network.image_size, network.image_size)
    with torch.no_grad():
        return leave_weights_out(trace(model, (image,), OPSET, dynamic_batch=False), 1, {"network": name})


def _start_process() -> None:
    import torch

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    _leave_uninitialised()


def _write(job: tuple[Network, Path]) -> str | None:
    """The reason why a graph could not be made, else None."""
    network, path = job
    try:
        graph = build(network)
    except Exception as fault:      # timm, tracing and the exporter raise what they like; the caller lists them all
        return f"{network.name} at {network.image_size}: {type(fault).__name__}: {(str(fault).splitlines() or [''])[0][:200]}"
    part = path.with_suffix(".part")
    part.write_bytes(graph)
    part.rename(path)
    return None


def write_all(wanted: list[Network], folder: Path, processes: int) -> int:
    """Writes the graphs that are missing; returns how many could not be made, each named on standard error."""
    folder.mkdir(parents=True, exist_ok=True)
    missing = [(network, folder / network.graph_file) for network in wanted if not (folder / network.graph_file).exists()]
    failed = 0
    with multiprocessing.get_context("spawn").Pool(processes, _start_process, maxtasksperchild=50) as pool:
        for reason in pool.imap_unordered(_write, missing):
            if reason:
                print(f"predictor: {reason}", file=sys.stderr, flush=True)
                failed += 1
    return failed


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="predictor graphs", description=__doc__.splitlines()[0])
    parser.add_argument("--labels", type=Path, required=True, help="timm's train.csv or infer.csv")
    parser.add_argument("--out", type=Path, required=True, help="folder of the ONNX files; those that exist stay")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args(arguments)
    failed = write_all(networks(options.labels), options.out, options.processes)
    return 1 if failed else 0
