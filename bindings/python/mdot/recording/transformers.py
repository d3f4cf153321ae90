"""Records a training by the Trainer in Hugging Face's transformers, or in trl:

    from mdot.recording.transformers import RecordCallback

    trainer = Trainer(model, arguments, callbacks=[RecordCallback(job, "measured.csv")], …)
"""

from __future__ import annotations

import os
from typing import Any

from mdot.job import Job
from mdot.library.errors import NotFoundError
from mdot.recording.recorder import Recorder, going_on
from mdot.recording.row import Recorded

try:
    from transformers import TrainerCallback
except ImportError as fault:
    raise NotFoundError("recording a Trainer of transformers requires transformers: pip install transformers") from fault

_Callback: Any = TrainerCallback


class RecordCallback(_Callback):  # type: ignore[misc]
    """Records the first training of a Trainer. Epochs, evaluations, predictions and checkpoints interrupt it."""

    def __init__(self, job: Job | str | os.PathLike[str], table: str | os.PathLike[str] = "measured.csv",
                 **arguments: Any) -> None:  # fmt: skip
        """The arguments are those of `mdot.record`. Batch, model, optimizer, precision, accumulation and parallelism are the
        Trainer's, unless they are given."""
        self._recorder = Recorder(job, table, **arguments)
        self._passes = 0

    @property
    def result(self) -> Recorded | None:
        """The measured step, once recording is complete."""
        return self._recorder.result

    def on_train_begin(self, args: Any, state: Any, control: Any, **objects: Any) -> None:
        with going_on():
            self._see(args, state, objects)

    def _see(self, args: Any, state: Any, objects: dict[str, Any]) -> None:
        workers_of_process = max(int(args.n_gpu), 1)  # above 1 with nn.DataParallel, which divides the batch
        samples = int(state.train_batch_size or args.train_batch_size) // workers_of_process
        self._recorder.see_objects(model=objects.get("model"), optimizer=objects.get("optimizer"), batch=max(samples, 1))
        self._recorder.see(
            precision=_precision_of(args),
            grad_scaler=True if args.fp16 and not _deepspeed_of(args) else None,
            compiled=True if getattr(args, "torch_compile", False) else None,
            checkpoint="blocks" if _is_checkpointed(args) else None,
            accumulate=int(args.gradient_accumulation_steps),
            zero=_zero_of(args),
            gpus=workers_of_process if workers_of_process > 1 else None,
        )

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        self._recorder.begin()

    def on_substep_end(self, *_: Any, **__: Any) -> None:
        self._passes += 1

    def on_step_end(self, *_: Any, **__: Any) -> None:
        passes, self._passes = self._passes + 1, 0
        self._recorder.end_step(passes)

    def on_epoch_begin(self, *_: Any, **__: Any) -> None:
        self._recorder.interrupt("epoch")

    def on_evaluate(self, *_: Any, **__: Any) -> None:
        self._recorder.interrupt("evaluation")

    def on_predict(self, *_: Any, **__: Any) -> None:
        self._recorder.interrupt("evaluation")

    def on_save(self, *_: Any, **__: Any) -> None:
        self._recorder.interrupt("checkpoint")

    def on_train_end(self, *_: Any, **__: Any) -> None:
        self._recorder.finish()


def _deepspeed_of(args: Any) -> dict[str, Any]:
    configuration = getattr(getattr(args, "hf_deepspeed_config", None), "config", None)
    return configuration if isinstance(configuration, dict) else {}


def _is_checkpointed(args: Any) -> bool:
    """Newer versions of transformers call the argument activation_checkpointing."""
    return bool(getattr(args, "activation_checkpointing", None) or getattr(args, "gradient_checkpointing", None))


def _precision_of(args: Any) -> str | None:
    if not (args.bf16 or args.fp16):
        return None  # the weights' types, or fp32 by PyTorch's settings for TF32
    word = "bf16" if args.bf16 else "fp16"
    return f"mixed-{word}" if _deepspeed_of(args) or getattr(args, "fsdp", None) else f"amp-{word}"


def _zero_of(args: Any) -> int | None:
    stage = _deepspeed_of(args).get("zero_optimization", {}).get("stage")
    if stage is not None:
        return int(stage)
    return 3 if getattr(args, "fsdp", None) else None
