"""Measures training steps of many networks on the card at hand and writes one JSON line per configuration.

Stands alone: the standard library and PyTorch, and torchvision, timm and transformers as far as they are installed.
See README.md.
"""

SCHEMA = 1
"""Version of the record format (README.md, "Records"). Raise it when a field changes its meaning."""
