"""Predicts one job with the Python package: one configuration, a table of GPUs and batches, and the largest batch.

    PYTHONPATH=bindings/python python3 examples/predict.py JOB.onnx [GPU ...]
"""
import sys

import mdot


def main() -> None:
    if len(sys.argv) < 2:
        sys.exit("usage: predict.py JOB.onnx [GPU ...]")
    gpus = sys.argv[2:] or ["T4", "A100"]
    job = mdot.Job.from_onnx(sys.argv[1])

    prediction = mdot.predict(job, gpus[0], batch=32, precision="amp")
    print(f"{gpus[0]}, batch 32: {prediction.step_ms:.1f} ms ({prediction.lower_ms:.1f} to {prediction.upper_ms:.1f})")
    for row in mdot.sweep(job, gpus, [32, 64], precision="amp"):
        print(f"{row.configuration.gpu}, batch {row.configuration.batch}: {row.samples_per_second:.0f} samples/s")
    print(f"largest batch on {gpus[0]}: {mdot.largest_batch(job, gpus[0], precision='amp')}")


if __name__ == "__main__":
    main()
