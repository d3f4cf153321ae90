"""PROFET's image networks on K80 and V100, TensorFlow 2.5 in fp32. Keras copies each batch from the host between two
steps. Only networks that torchvision has in the same form are read, at the original size."""

from __future__ import annotations

from mdot_lab.checks.points import Point
from mdot_lab.predictor.labels import TORCHVISION, Network

GPUS = {"K80": "K80", "V100": "V100-SXM-16GB"}
"""Excludes M60, because it is one half of a Tesla M60 with unknown spec values."""
NETWORKS = {"ResNet50": "resnet50", "VGG16": "vgg16", "VGG19": "vgg19", "MobileNetV2": "mobilenet_v2"}
"""Keras's own networks; the others are the authors'."""
SIZE = 224


def read(row: dict[str, str]) -> Point | None:
    gpu_model, name = GPUS.get(row["gpu_canonical"]), NETWORKS.get(row["model"])
    if gpu_model is None or name is None or int(float(row["seq_or_resolution"])) != SIZE:
        return None
    batch = int(float(row["batch_per_gpu"]))
    options = {"batch": batch, "gpus": 1, "precision": "fp32", "layout": "nchw", "optimizer": "sgd", "torch": "1.10"}
    return Point(f"PROFET: {row['model']}", Network(TORCHVISION + name, SIZE), gpu_model, options,
                 1e3 * batch / float(row["throughput"]))


READERS = {"ddps-lab/profet": read}
