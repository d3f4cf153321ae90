"""Networks in PyTorch alone, so that every machine with PyTorch can measure these families."""
