"""Rebuilds the labelled networks as `.job` files, which describe the work of a training step as PyTorch calls it.

mdot's own module reader (bindings/python) runs the network once on two samples that have shapes and no data. Weights stay as
the allocator returns them, because nothing reads them. Networks that the installed timm lacks are listed on standard error:
timm 0.6 has those of the training tables, and 1.0 has the later ones of the inference tables. Both may write into one folder.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import warnings
from pathlib import Path

from mdot_lab.predictor import language, published
from mdot_lab.predictor.labels import CIFAR_RESNET18, TORCHVISION, Network, networks

BATCH = 2       # BatchNormalization rejects one sample if the feature map is 1 x 1

RENAMED = {
    "convnext_nano_hnf": "convnext_nano",
    "convnext_tiny_hnfd": "convnext_tiny_hnf",
    "vit_base2_patch32_256": "vit_base_patch32_plus_256",
}
"""Label names that timm has dropped, and timm's current name for the same network."""


def current_name(name: str) -> str:
    return RENAMED.get(name, name.replace("swin_v2_cr_", "swinv2_cr_"))


def _leave_uninitialised() -> None:
    """Skips the initialisation, because a billion random weights take longer than the graph. The functions with a
    leading underscore are called by the public ones, also under a name already imported by a network."""
    import importlib

    try:
        import timm
    except ImportError:     # language models do not need timm
        return
    import torch.nn.init as torch_init

    layers = "timm.layers" if hasattr(timm, "layers") else "timm.models.layers"
    timm_init = importlib.import_module(f"{layers}.weight_init")

    def keep(tensor, *arguments, **options):
        return tensor

    for module in (torch_init, timm_init):
        for name in dir(module):
            if name.endswith("_") and not name.endswith("__"):
                setattr(module, name, keep)


def _skip_memory() -> None:
    """Records no memory, because the predictor reads none, and it takes 5 to 15 s per network. Kernels of attention, types,
    the loss and regions without gradient come from the trace itself. Not for networks that checkpoint their own modules:
    the recorded step alone says which of their operators run again."""
    from mdot.trace import traced_program as program

    def skip(*arguments: object, **options: object) -> None:
        raise RuntimeError("the recipe records no memory")

    program.run = skip


def _timm_model(network: Network):
    import timm

    name = current_name(network.name)
    try:
        return timm.create_model(name, pretrained=False, img_size=network.image_size)
    except TypeError:       # a network that accepts any size
        return timm.create_model(name, pretrained=False)


def build(network: Network):
    """The network as an mdot.Job, with cross-entropy as loss, as in training benchmarks."""
    import mdot
    import torch
    from mdot.trace import losses

    if network.name.startswith(language.LANGUAGE):
        return language.build(network.name.removeprefix(language.LANGUAGE), network.image_size)
    if network.name == CIFAR_RESNET18:
        from mdot_lab.predictor import other_networks

        model = other_networks.cifar_resnet18()
    elif network.name.startswith(TORCHVISION):
        import torchvision

        model = torchvision.models.get_model(network.name.removeprefix(TORCHVISION), weights=None)
    else:
        model = _timm_model(network)
    images = torch.zeros(BATCH, 3, network.image_size, network.image_size)
    return mdot.Job.from_torch(model.train(), images, loss=losses.classification,
                               targets=torch.zeros(BATCH, dtype=torch.int64))


def _start_process() -> None:
    import torch

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    _leave_uninitialised()
    _skip_memory()


def _write(job: tuple[Network, Path]) -> str | None:
    """The reason of a failure, or None."""
    network, path = job
    try:
        job = build(network)
    except Exception as fault:      # timm and tracing raise many types of exceptions; the caller lists them all
        return f"{network.name} at {network.image_size}: {type(fault).__name__}: {(str(fault).splitlines() or [''])[0][:200]}"
    job.save(path)
    return None


def write_all(wanted: list[Network], folder: Path, processes: int) -> int:
    """Writes missing graphs. Returns the number of failures, listed on standard error."""
    folder.mkdir(parents=True, exist_ok=True)
    missing = [(network, folder / network.graph_file) for network in wanted if not (folder / network.graph_file).exists()]
    failed = 0
    with multiprocessing.get_context("spawn").Pool(processes, _start_process, maxtasksperchild=500) as pool:
        for reason in pool.imap_unordered(_write, missing):
            if reason:
                print(f"predictor: {reason}", file=sys.stderr, flush=True)
                failed += 1
    return failed


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="mdot_lab.predictor graphs", description=__doc__.splitlines()[0])
    parser.add_argument("--labels", type=Path, default=[], nargs="*",
                        help="timm's tables of training and inference benchmarks, or the folder of torchvision's results")
    parser.add_argument("--published", type=Path, default=[], nargs="*",
                        help="published steps: NeuSight's folder of labels, or a table that published.py or measured_2026.py reads")
    parser.add_argument("--out", type=Path, required=True, help="folder of the .job files; existing files are kept")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args(arguments)
    wanted = {*networks(options.labels), *(label.network for path in options.published for label in published.read(path))}
    failed = write_all(sorted(wanted), options.out, options.processes)
    return 1 if failed else 0
