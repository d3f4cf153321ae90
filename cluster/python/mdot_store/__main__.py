"""`python -m mdot_store`, which the wheel also installs as `mdot-store`: replaces the process with the wheel's program."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def main() -> int:
    program = Path(__file__).with_name("bin") / "mdot-store"
    if not program.is_file():
        print("mdot-store: this copy of mdot_store has no program; install the wheel mdot-store, or build mdot's cluster/",
              file=sys.stderr)  # fmt: skip
        return 1
    # `mdot-store calibrate` starts `mdot`, which pip installs in the folder of Python's own scripts.
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    os.execv(program, ["mdot-store", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
