"""Related types: an operator type that too few networks of the training set contain is replaced by one whose kernels access
memory in the same way. Types without a related type are replaced by the unknown type.
"""

from __future__ import annotations

import numpy as np

from mdot_lab.predictor import tables

RELATIVES = {
    "Conv": ("ConvTranspose",),
    "Linear": ("FusedGemm",),
    "MatMul": ("Einsum", "MatMulInteger"),
    "Attention": ("MultiHeadAttention",),
    "Softmax": ("LogSoftmax",),
    "LayerNormalization": ("RMSNormalization", "SkipLayerNormalization", "LpNormalization", "MeanVarianceNormalization"),
    "GroupNormalization": ("InstanceNormalization",),
    "ReduceMean": ("ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSum",
                   "ReduceLogSumExp", "ReduceSumSquare"),
    "Relu": ("LeakyRelu", "Elu", "Selu", "Celu", "ThresholdedRelu", "Clip", "Abs", "Neg", "Sign", "Floor", "Ceil", "Round"),
    "Sigmoid": ("Tanh", "HardSigmoid", "Exp", "Sqrt", "Reciprocal", "Erf", "Softsign"),
    "Swish": ("HardSwish", "Mish", "Softplus", "QuickGelu"),
    "Gelu": ("FastGelu", "BiasGelu"),
    "Add": ("Sub",),
    "Mul": ("Div", "Pow", "Max", "Min", "PRelu"),
    "MaxPool": ("LpPool",),
    "GlobalAveragePool": ("GlobalMaxPool",),
}


def rows() -> np.ndarray:
    """For each type the number of the related type, or the unknown type."""
    result = np.full(len(tables.operator_types()), tables.UNKNOWN_TYPE)
    for name, others in RELATIVES.items():
        result[[tables.operator_types().index(other) for other in others]] = tables.operator_types().index(name)
    return result
