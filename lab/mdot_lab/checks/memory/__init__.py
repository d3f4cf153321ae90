"""Predicted memory compared with PyTorch's (`networks`) and with published peaks (`published`)."""
