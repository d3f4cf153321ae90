"""Deviations of ONNX Runtime from ONNX's specification, which are no faults of mdot."""


def known_deviation(operators, found, third, case):
    """The reason, or None."""
    return None
