"""Prints the modules whose recorded step differs from the one on fake CUDA tensors, and the number of steps.

    python3 -m mdot_lab.checks.cuda [NAME …]
"""

import sys

from mdot_lab.checks.memory import fake_cuda

fake_cuda.install()  # before the first import of torch

from mdot_lab.checks.cuda import compare  # noqa: E402

if __name__ == "__main__":
    compare.main(sys.argv[1:])
