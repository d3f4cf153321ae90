"""Comparisons of mdot with published numbers and with exporters. Each module is a command."""
