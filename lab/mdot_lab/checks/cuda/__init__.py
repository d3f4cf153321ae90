"""A recorded training step (mdot.trace.training_run) compared with the same step on fake CUDA tensors, module by module."""
