"""PyTorch's CUDA programs on fake tensors, on a machine without a GPU.

A fake tensor of device "cuda" runs CUDA's dispatch rules: autocast's lists, dropout's boolean mask, the types of the statistics
of LayerNorm, and 512-byte allocations. Only the backward pass needs more than PyTorch offers, because the engine asks the
driver whether device 0 has a context. `install` loads a small library that answers "no", in place of the driver that the
machine lacks. The library must precede torch, therefore call `install` before the first import of torch. A machine with a GPU
needs no library.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Iterator

# PyTorch's mangled c10::cuda::device_count(). The count is nonzero only within a backward pass, because PyTorch initialises
# devices that it counts. The library's soname is the driver's, so that PyTorch finds it instead of searching for libcuda.so.1.
SOURCE = """
signed char mdot_device_count = 0;
signed char _ZN3c104cuda12device_countEv(void) { return mdot_device_count; }
int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *is_active)
{
    (void)device;
    *flags = 0;
    *is_active = 0;
    return 0;
}
"""

_count: ctypes.c_int8 | None = None
_library = None
_is_installed = False


def _has_driver() -> bool:
    try:
        driver = ctypes.CDLL("libcuda.so.1")
        count = ctypes.c_int(0)
        return driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value > 0
    except OSError:
        return False


def _compile(folder: Path) -> Path:
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        raise RuntimeError("fake CUDA tensors need a C compiler, because this machine has no GPU: install cc, gcc or clang")
    source, library = folder / "no_driver.c", folder / "no_driver.so"
    source.write_text(SOURCE, encoding="ascii")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-Wl,-soname,libcuda.so.1", "-o", library, source], check=True)
    return library


def install() -> None:
    """Prepares this process. Raises RuntimeError if torch was imported before, or lacks CUDA, or a C compiler is missing."""
    global _count, _is_installed, _library
    if _is_installed:
        return
    if not _has_driver():
        if "torch" in sys.modules:
            raise RuntimeError("call fake_cuda.install before the first import of torch")
        with tempfile.TemporaryDirectory() as folder:
            _count = ctypes.c_int8.in_dll(ctypes.CDLL(str(_compile(Path(folder))), ctypes.RTLD_GLOBAL), "mdot_device_count")
    import torch

    if torch.version.cuda is None:
        raise RuntimeError(f"the reference needs a build of PyTorch for CUDA; this is {torch.__version__}")
    # This optimizer's kernel writes in place and returns nothing. PyTorch lacks its rule for fake tensors.
    _library = torch.library.Library("aten", "IMPL")
    _library.impl("_fused_sgd_", lambda *_, **__: None, "Meta")
    # A convolution's backend depends on the card. All backends give tensors with equal sizes.
    torch.backends.cudnn.enabled = False
    # Checks that read values, for example of LLaVA's image tokens, cannot run on fake tensors.
    os.environ["TRANSFORMERS_DISABLE_TORCH_CHECK"] = "1"
    torch.cuda.amp.common.amp_definitely_not_available = lambda: False
    torch.cuda.is_bf16_supported = lambda *_, **__: True
    torch.cuda.get_device_capability = lambda *_, **__: (8, 0)
    _is_installed = True


@contextlib.contextmanager
def backward() -> Iterator[None]:
    """The block may run a backward pass on fake CUDA tensors."""
    import torch

    if _count is not None:
        _count.value = 127
    try:
        with torch.autograd.set_multithreading_enabled(False):
            yield
    finally:
        if _count is not None:
            _count.value = 0
