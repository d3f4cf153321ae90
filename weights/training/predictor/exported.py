"""The predictor as the runtime calls it: one job, raw numbers in, milliseconds out. What is exported to ONNX."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from predictor import features, normalisation, tables
from predictor.interval import Interval, interval_features
from predictor.model import Configurations, Predictor
from predictor.operators import Operators
from predictor.range import TrainingRange

INPUTS = ("operator_type", "operator_setting", "operator_load", "operator_count", "configuration", "gpu")
OUTPUTS = ("step_ms", "outside_training")


SMALLEST_GPU_NUMBER = 0.01


class Exported(nn.Module):
    """The mean of the members' logarithms, with the newest software that labels know. Inputs that no job has are taken for the
    nearest possible ones, so that every input has a finite answer."""

    def __init__(self, members: list[Predictor], interval: Interval, trained_on: TrainingRange) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)
        self.interval, self.trained_on = interval, trained_on

    @staticmethod
    def _configurations(configuration: Tensor, gpu: Tensor) -> Configurations:
        given = dict(zip(tables.CONFIGURATION, configuration.reshape(-1, 1, 1).unbind(0), strict=True))
        flags = {name: value.clamp(0, 1) for name, value in given.items() if name.startswith("is_")}
        is_adam = flags.pop("is_adam") + flags.pop("is_adamw")
        return Configurations(batch=given["batch"].clamp(min=1), gpu_count=given["gpu_count"].clamp(min=1), is_adam=is_adam,
                              software=torch.ones(1, 1), gpu=gpu[None, :].clamp(min=SMALLEST_GPU_NUMBER), **flags)

    def forward(self, operator_type: Tensor, operator_setting: Tensor, operator_load: Tensor, operator_count: Tensor,
                configuration: Tensor, gpu: Tensor) -> tuple[Tensor, Tensor]:
        operators = Operators(operator_type, operator_setting.clamp(min=0), operator_load.clamp(min=0))
        count, c = operator_count[:, None].clamp(min=0), self._configurations(configuration, gpu)
        bare, norm = normalisation.split(operators)
        work = features.work(bare, norm, c.batch)
        work_features, norm_features = features.batch_features(work), normalisation.features(norm, c.batch)
        parameters = (operators.load[:, -1:] * count).sum(dim=0, keepdim=True)
        launches = (work.launches * count).sum(dim=0, keepdim=True)
        logs, shares = [], []
        for member in self.members:
            known = bare._replace(type=member.row_of_type[bare.type])
            encoded = member.head.from_encoding(member.encoder(known))
            priced = member.price(encoded, work_features, norm_features)
            correction = member.correction(priced, work.has_layout, c)
            parts = member.roofline(work, c) * torch.exp(correction) * count
            operators_ms = parts.sum(dim=1, keepdim=True)
            total_ms = operators_ms.sum(dim=0, keepdim=True)
            logs.append(torch.log(member.step(total_ms, launches, parameters, c)))
            shares.append(operators_ms / total_ms)
        middle = torch.stack(logs).mean(dim=0)
        share = torch.stack(shares).mean(dim=0)
        outside = self.trained_on(operators, share, c)
        x = interval_features(work, share, c.is_nhwc, lambda each: each.sum(dim=0, keepdim=True))
        low, high = self.interval(x, outside)
        return torch.exp(torch.cat([middle - low, middle, middle + high], dim=1))[0], outside[0]
