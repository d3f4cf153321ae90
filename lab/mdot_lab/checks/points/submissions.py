"""MLPerf's ResNet-50 on one node of eight GPUs, tuned by hand: fused BatchNormalization, custom kernels, CUDA graphs. It counts as
compiled."""

from __future__ import annotations

from mdot_lab.checks.points import NODE, Point, number
from mdot_lab.predictor.labels import Network

GPUS = {"A100-40": "A100-SXM-40GB", "A100-80": "A100-SXM-80GB", "A100-PCIe-40": "A100-PCIe-40GB",
        "A100-PCIe-80": "A100-PCIe-80GB",
         "H100-SXM": "H100-SXM-80GB", "H100-PCIe": "H100-PCIe-80GB", "L40S": "L40S", "A30": "A30", "V100": "V100-SXM-32GB"}


def resnet(row: dict[str, str]) -> Point | None:
    gpu_model, gpus, batch = GPUS.get(row["gpu_canonical"]), number(row, "gpus"), number(row, "batch_per_gpu")
    if row["model"] != "resnet" or gpu_model is None or gpus != NODE or not batch or "nodes=1" not in row["notes"]:
        return None
    options = {"batch": batch, "gpus": gpus, "precision": "amp", "layout": "nhwc", "optimizer": "sgd", "compiled": True,
               "torch": "2.0"}
    return Point(f"MLPerf: ResNet-50, {gpu_model}", Network("resnet50", 224), gpu_model, options,
                 1e3 * batch * gpus / float(row["throughput"]))


READERS = {"mlcommons/training_results": resnet}
