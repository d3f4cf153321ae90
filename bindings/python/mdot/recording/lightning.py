"""Records a training by Lightning's Trainer:

    from mdot.recording.lightning import RecordCallback

    trainer = Trainer(callbacks=[RecordCallback(job, "measured.csv")])

Works with the packages lightning and pytorch-lightning, from version 2.0 on. If both are installed, the base class
is from the package that the program imported.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from mdot.job import Job
from mdot.library.errors import NotFoundError
from mdot.recording.recorder import Recorder, going_on
from mdot.recording.row import Recorded


def _base() -> Any:
    order = ["lightning.pytorch", "pytorch_lightning"]
    if "pytorch_lightning" in sys.modules and "lightning.pytorch" not in sys.modules:
        order.reverse()
    for name in order:
        try:
            return __import__(name, fromlist=["Callback"]).Callback
        except ImportError:
            continue
    raise NotFoundError("recording a Lightning training requires Lightning: pip install lightning")


_Callback: Any = _base()

PRECISIONS = {
    "16-mixed": "amp-fp16",
    "bf16-mixed": "amp-bf16",
    "bf16-true": "bf16",
    "transformer-engine": "fp8",
}
"""Lightning's words for precision. 32-true follows PyTorch's settings for TF32, and mdot has no word for the others."""


class RecordCallback(_Callback):  # type: ignore[misc]
    """Records the first fit of a Trainer. Epochs, validation and checkpoints interrupt it."""

    def __init__(self, job: Job | str | os.PathLike[str], table: str | os.PathLike[str] = "measured.csv",
                 **arguments: Any) -> None:  # fmt: skip
        """The arguments are those of `mdot.record`. Batch, model, optimizer, precision, accumulation and parallelism are the
        Trainer's, unless they are given."""
        self._recorder = Recorder(job, table, **arguments)
        self._is_updated = False
        self._passes = 0

    @property
    def result(self) -> Recorded | None:
        """The measured step, once recording is complete."""
        return self._recorder.result

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        with going_on():
            self._see(trainer, pl_module)

    def _see(self, trainer: Any, pl_module: Any) -> None:
        optimizers = list(trainer.optimizers)
        loader = trainer.train_dataloader
        self._recorder.see_objects(
            model=pl_module,
            optimizer=optimizers[0] if len(optimizers) == 1 else None,
            batch=loader if getattr(loader, "batch_size", None) else None,
        )
        nodes, gpus = int(trainer.num_nodes), int(trainer.world_size)
        self._recorder.see(
            precision=PRECISIONS.get(str(trainer.precision)),
            grad_scaler=True if str(trainer.precision) == "16-mixed" else None,
            gpus=gpus if gpus > 1 else None,
            nodes=nodes if nodes > 1 else None,
            zero=_zero_of(trainer.strategy),
        )

    def on_train_batch_start(self, *_: Any) -> None:
        self._recorder.begin()

    def on_before_optimizer_step(self, *_: Any) -> None:
        self._is_updated = True

    def on_train_batch_end(self, *_: Any) -> None:
        self._passes += 1
        if self._is_updated:
            self._recorder.end_step(self._passes)
            self._is_updated = False
            self._passes = 0
        else:
            self._recorder.end_pass()

    def on_train_epoch_start(self, *_: Any) -> None:
        self._recorder.interrupt("epoch")

    def on_validation_start(self, *_: Any) -> None:
        self._recorder.interrupt("evaluation")

    def on_validation_end(self, *_: Any) -> None:
        self._recorder.interrupt("evaluation")

    def on_save_checkpoint(self, *_: Any) -> None:
        self._recorder.interrupt("checkpoint")

    def on_train_end(self, *_: Any) -> None:
        self._recorder.finish()

    def on_exception(self, *_: Any) -> None:
        self._recorder.finish()


def _zero_of(strategy: Any) -> int | None:
    """The ZeRO stage of a strategy."""
    names = {kind.__name__ for kind in type(strategy).__mro__}
    if "FSDPStrategy" in names:
        return 3
    configuration = getattr(strategy, "config", None) if "DeepSpeedStrategy" in names else None
    stage = configuration.get("zero_optimization", {}).get("stage") if isinstance(configuration, dict) else None
    return int(stage) if stage is not None else None
