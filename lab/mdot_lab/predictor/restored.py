"""The shipped predictor as a PyTorch module again, from its ONNX files, so that a changed law of the prior can be judged, and
exported without training.

The exporter keeps most parameters by name. It folds the others into constants, which appear in a fixed order, or transposes
them. What a correction of all operators and one of a phase add up to is stored once: the first is zero here.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from mdot_lab.predictor.deploy_graphs import Shipped
from mdot_lab.predictor.domain_check import TrainingRange
from mdot_lab.predictor.embedding_distance import UNREACHED, EmbeddingDistance
from mdot_lab.predictor.export import ENCODING_FILE, EVALUATE
from mdot_lab.predictor.familiarity import Familiarity
from mdot_lab.predictor.interval import Interval
from mdot_lab.predictor.model import Options, Predictor, Roofline

PREFIX = "shipped."


def _constants(path: Path) -> tuple[dict[str, torch.Tensor], list[torch.Tensor]]:
    """Parameters by name, and folded ones in order."""
    import onnx
    from onnx import numpy_helper

    named, folded = {}, []
    for tensor in onnx.load(str(path)).graph.initializer:
        value = torch.tensor(np.array(numpy_helper.to_array(tensor)))
        if tensor.name.startswith(PREFIX):
            named[tensor.name.removeprefix(PREFIX)] = value
        else:
            folded.append(value)
    return named, folded


def read(folder: Path) -> Shipped:
    """The predictor of encode.onnx and evaluate.onnx in `folder`."""
    named, of_encode = _constants(folder / ENCODING_FILE)
    of_evaluate_named, of_evaluate = _constants(folder / EVALUATE)
    named |= of_evaluate_named
    (attention_in, attention_out, feed, head, head_bias, share, share_slopes, dense, dense_nhwc, grouped, grouped_nhwc, depthwise,
     depthwise_nhwc, others, norm_head, norm_bias) = of_encode
    (norm_rate, norm_cost, norm_rate_backward, norm_cost_backward, first_batch, last_batch, gpus, unreached, step_gpus,
     *publisher) = of_evaluate
    options = Options(width=attention_out.shape[0], hidden=head.shape[-1], norm_hidden=norm_head.shape[-1])
    member = Predictor(options)
    model = Shipped([member], Interval(), TrainingRange(len(gpus), len(step_gpus)), EmbeddingDistance(options.width),
                    Familiarity(options.width, named["familiarity.networks"].shape[1]))
    model.load_state_dict(named, strict=False)
    specific = member.head.correction.specific
    with torch.no_grad():
        member.encoder.fusion.attention_in.weight.copy_(attention_in.T)
        member.encoder.fusion.attention_out.weight.copy_(attention_out.T)
        member.encoder.fusion.feed[0].weight.copy_(feed.T)
        for correction, weight, bias in ((member.head.correction, head, head_bias),
                                         (member.norm_head.correction, norm_head, norm_bias)):
            correction.out.weight.copy_((weight / specific[:, None, None]).flatten(0, 1))
            correction.out.bias.copy_((bias.reshape(len(specific), -1) / specific[:, None]).flatten())
            correction.common.weight.zero_()
            correction.common.bias.zero_()
        roofline = member.roofline
        roofline.share.copy_(torch.cat([share, share_slopes], dim=1))
        for kind, cost in ((Roofline.DENSE, dense), (Roofline.GROUPED, grouped), (Roofline.DEPTHWISE, depthwise),
                           (Roofline.ELEMENTWISE, others)):
            roofline.flop_cost[kind] = cost
        for kind, cost in ((Roofline.DENSE, dense_nhwc), (Roofline.GROUPED, grouped_nhwc - grouped),
                           (Roofline.DEPTHWISE, depthwise_nhwc)):
            roofline.flop_cost_nhwc[kind] = cost
        roofline.norm_rate.copy_(torch.stack([-norm_rate, -norm_rate_backward]))
        roofline.norm_cost.copy_(torch.stack([norm_cost, norm_cost_backward]))
        model.trained_on.log_batch.copy_(torch.stack([first_batch, last_batch]))
        model.trained_on.log_gpu.copy_(gpus[:, :, 0])
        model.distance_model.is_stepped.copy_(1 - unreached / UNREACHED)
        model.interval.publisher.copy_(torch.stack(publisher))
    return model.eval()
