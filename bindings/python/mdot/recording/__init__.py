"""Records real training steps as table rows for `mdot calibrate`.

  recorder.py      `mdot.record` and the Recorder, for plain loops
  lightning.py     RecordCallback for Lightning's Trainer
  transformers.py  RecordCallback for the Trainer in Hugging Face's transformers
  accelerate.py    `record` for loops with an Accelerator
  hooks.py         StepHook, with begin and end of a step, for loops such as torchtitan's
  traced_row.py    `mdot.record_trace`: a row from a torch.profiler trace, which trace_file.py reads
  overhead.py      measures the cost of recording

  clocks.py        CUDA events, and the host's clock
  observed.py      the configuration in PyTorch's objects
  row.py           the row, which libmdot writes

Nothing here imports PyTorch or a framework, except the modules named for one.
"""
