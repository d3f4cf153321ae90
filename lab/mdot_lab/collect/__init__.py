"""Measures training steps of many networks on this machine's GPU, and writes one JSON line for each configuration.

It stands alone: it needs the standard library and PyTorch, and uses torchvision, timm and transformers if they are installed.
See README.md.
"""

SCHEMA = 3
"""Record format version (README.md, "Records"). Raise it when a field changes meaning."""
