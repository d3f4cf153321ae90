"""Records the steps of real trainings as rows of the table that `mdot calibrate` reads.

    recorder.py      `mdot.record` and the Recorder, for plain loops
    lightning.py     RecordCallback for Lightning's Trainer
    transformers.py  RecordCallback for the Trainer of Hugging Face's transformers
    accelerate.py    `record` for loops with an Accelerator
    hooks.py         StepHook, with begin and end of a step, for loops such as torchtitan's
    traced_row.py    `mdot.record_trace`: a row from a trace of torch.profiler, which trace_file.py reads
    overhead.py      measures the cost of recording

    clocks.py        CUDA events, and the host's clock
    observed.py      the configuration that PyTorch's objects show
    row.py           the row, which libmdot writes

Nothing here imports PyTorch or a framework, except the modules that are named for one.
"""
