"""Networks written out in PyTorch alone, so that their families are measured wherever PyTorch is."""
