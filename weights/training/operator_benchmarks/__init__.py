"""Measured operators of many GPUs, and the physical models that are fitted to them: what a GPU's figures alone can foretell."""
