"""benchmarks/gpu/kernel_model.py finds a known step time and rate again, and reads clusters from a cubin."""

import struct
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks" / "gpu"))
import kernel_model  # noqa: E402


def cubin(kernel, blocks):
    """An ELF file with one .nv.info section: an attribute of one word, then the cluster's dimensions."""
    name = b".nv.info." + kernel
    names = b"\0" + name + b"\0.shstrtab\0"
    info = struct.pack("<BBH", 3, 0x1B, 255) + struct.pack("<BBH3I", 4, 0x3D, 12, blocks, 1, 1)
    section = "<IIQQQQIIQQ"
    header = bytearray(64)
    header[:4] = b"\x7fELF"
    struct.pack_into("<Q", header, 40, 64)
    struct.pack_into("<HHH", header, 58, 64, 3, 2)
    data = 64 + 3 * 64
    table = bytes(64)
    table += struct.pack(section, 1, 1, 0, 0, data, len(info), 0, 0, 1, 0)
    table += struct.pack(section, 2 + len(name), 3, 0, 0, data + len(info), len(names), 0, 0, 1, 0)
    return bytes(header) + table + info + names


counts = {64: (40, 5, 1.8e6), 256: (40, 5, 2.2e6), 1024: (40, 5, 3.8e6)}
times = {length: 5 * 0.9 + 40 * 0.25 + read / 5e4 for length, (_, _, read) in counts.items()}
step_us, rate = kernel_model.fit(counts, times, 0.9)
assert abs(step_us - 0.25) < 1e-9 and abs(rate - 5e4) < 1e-3, (step_us, rate)

with tempfile.NamedTemporaryFile() as file:
    file.write(b"\x7fELF artefact " + cubin(b"entry_a_n64", 8) + cubin(b"entry_b", 2))
    file.flush()
    assert kernel_model.cluster_sizes(file.name) == {"entry_a_n64": 8, "entry_b": 2}

results = kernel_model.read_results("speed_model")
assert all(abs(float(results["model"][n]) / float(results["measured"][n]) - 1) < 0.1 for n in results["model"] if n.isdigit())
