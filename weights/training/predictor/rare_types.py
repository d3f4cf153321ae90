"""Which type an operator is taken for that too few networks of the training set have: one whose kernels do the same with memory.
Types without a relative here are the unknown one.
"""

from __future__ import annotations

import numpy as np

from predictor import tables

RELATIVES = {
    "Conv": ("ConvTranspose",),
    "Linear": ("FusedGemm",),
    "MatMul": ("Einsum", "MatMulInteger"),
    "Attention": ("MultiHeadAttention",),
    "Softmax": ("LogSoftmax",),
    "LayerNormalization": ("RMSNormalization", "SkipLayerNormalization", "LpNormalization", "MeanVarianceNormalization"),
    "GroupNormalization": ("InstanceNormalization",),
    "ReduceMean": ("ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp",
                   "ReduceSumSquare"),
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
    """For each type the number of its relative, and of the unknown type where there is none."""
    result = np.full(len(tables.operator_types()), tables.UNKNOWN_TYPE)
    for name, others in RELATIVES.items():
        result[[tables.operator_types().index(other) for other in others]] = tables.operator_types().index(name)
    return result
