"""Observes where a module runs without gradients or in a checkpoint, while the trace itself runs in inference mode.

Inference mode disables gradients everywhere, so that the mode itself is uninformative, and checkpoints do nothing. The modules' contexts are
replaced during the trace: they keep the mode in which the module would run.
"""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Iterator
from unittest import mock

import torch
from torch.utils import checkpoint


class GradientMode:
    """Whether operators have gradients at this point of the module's run."""

    def __init__(self) -> None:
        self.is_enabled = True
        self.checkpoints = 0
        """Checkpoints around this point."""

    @contextlib.contextmanager
    def observed(self) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            for cls, mode in ((torch.no_grad, False), (torch.enable_grad, True), (torch.inference_mode, False)):
                stack.enter_context(mock.patch.object(cls, "__enter__", self._enter(cls.__enter__, mode)))
                stack.enter_context(mock.patch.object(cls, "__exit__", self._leave(cls.__exit__)))
            setter = torch.set_grad_enabled
            stack.enter_context(mock.patch.object(setter, "__init__", self._set(setter.__init__)))
            stack.enter_context(mock.patch.object(setter, "__exit__", self._leave(setter.__exit__)))
            stack.enter_context(mock.patch.object(checkpoint.CheckpointFunction, "forward", staticmethod(self._run)))
            generator = next(name for name in _GENERATORS if hasattr(checkpoint, name))
            stack.enter_context(mock.patch.object(checkpoint, generator, self._around(getattr(checkpoint, generator))))
            yield

    def _around(self, original: Callable[..., Iterator[None]]) -> Callable[..., Iterator[None]]:
        def generate(*args: Any, **kwargs: Any) -> Iterator[None]:
            with self._in_checkpoint():
                yield from original(*args, **kwargs)

        return generate

    @contextlib.contextmanager
    def _in_checkpoint(self) -> Iterator[None]:
        self.checkpoints += 1
        try:
            yield
        finally:
            self.checkpoints -= 1

    def _run(self, _: Any, function: Callable[..., Any], __: bool, *args: Any) -> Any:
        """Runs a checkpointed function with gradients. PyTorch runs it without, and again in the backward pass."""
        with self._in_checkpoint():
            return function(*args)

    def _enter(self, original: Callable[..., Any], mode: bool) -> Callable[..., Any]:
        def enter(context: Any) -> Any:
            before = self.is_enabled
            result = original(context)  # may call torch.set_grad_enabled
            context.mdot_before = before
            self.is_enabled = mode or not getattr(context, "mode", True)  # inference_mode(False) enables gradients
            return result

        return enter

    def _set(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def initialise(context: Any, mode: bool) -> None:
            context.mdot_before = self.is_enabled
            original(context, mode)
            self.is_enabled = mode

        return initialise

    def _leave(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def leave(context: Any, *reason: Any) -> Any:
            result = original(context, *reason)
            self.is_enabled = getattr(context, "mdot_before", self.is_enabled)
            return result

        return leave


_GENERATORS = ("_checkpoint_without_reentrant_generator_impl", "_checkpoint_without_reentrant_generator")
"""PyTorch's functions around a checkpointed call that is not reentrant, the newest first."""
