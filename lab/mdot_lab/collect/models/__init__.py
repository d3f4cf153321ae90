"""Networks implemented with PyTorch alone, so that their families can be measured on every machine with PyTorch."""
