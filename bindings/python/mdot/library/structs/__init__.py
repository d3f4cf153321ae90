"""Structs in mdot's public headers, field by field, with the headers' names.

tests/bindings/python compares sizes and offsets with the C compiler's in include/mdot. A struct with struct_size
grows only at its end. The libraries accept a shorter one, so that this package may be older than they are.

  base.py         Struct, Sized and `new`
  artefact.py     predictors, entry points and images
  job.py          jobs and programs
  prediction.py   GPUs, configurations, predictions and explanations
  plan.py         searches and whole trainings
  measurement.py  measured steps, calibrations and recorders
  compiler.py     the compiler
"""

from mdot.library.structs.artefact_structs import *  # noqa: F403
from mdot.library.structs.base import *  # noqa: F403
from mdot.library.structs.compiler_structs import *  # noqa: F403
from mdot.library.structs.job_structs import *  # noqa: F403
from mdot.library.structs.measurement import *  # noqa: F403
from mdot.library.structs.plan_structs import *  # noqa: F403
from mdot.library.structs.prediction_structs import *  # noqa: F403
