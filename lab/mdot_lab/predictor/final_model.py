"""The shipped predictor: members trained on all labels, and an interval fitted to predictions of held-out labels."""

from __future__ import annotations

import copy
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from mdot_lab.predictor import batches, splits, training
from mdot_lab.predictor.dataset import Dataset
from mdot_lab.predictor.evaluation import read_folds, write_bounds
from mdot_lab.predictor.ablations import SHIPPED_FORM, SHIPPED_MEMBERS
from mdot_lab.predictor.interval import (Interval, beyond, interval_features, of_publishers, quantiles,
                                             unmeasured_software, without_host)
from mdot_lab.predictor.labels import TRAIN
from mdot_lab.predictor import familiarity as familiarities
from mdot_lab.predictor.embedding_distance import EmbeddingDistance, mean_encodings, networks
from mdot_lab.predictor.familiarity import Familiarity
from mdot_lab.predictor.model import Options, Predictor
from mdot_lab.predictor.deploy_graphs import Shipped
from mdot_lab.predictor.domain_check import TrainingRange, gpu_names, step_gpu_names


class HeldOut:
    """Labels, log(measured / predicted) by models without these labels, the predicted time, the split, the fold and a
    weight; with it, all splits count equally."""

    def __init__(self, folder: Path) -> None:
        label, residual, predicted, weight, split_of, fold_of = [], [], [], [], [], []
        for split in splits.SPLITS:
            folds = read_folds(folder, SHIPPED_FORM, split)
            if not folds:
                continue
            count = sum(len(fold.label) for fold in folds.values())
            for name, fold in folds.items():
                label.append(fold.label)
                residual.append(np.log(fold.measured_ms / fold.predicted_ms))
                predicted.append(fold.predicted_ms)
                weight.append(np.full(len(fold.label), 1 / count))
                split_of.append(np.full(len(fold.label), split))
                fold_of.append(np.full(len(fold.label), name))
        if not label:
            raise FileNotFoundError(f"{folder}: no predictions of '{SHIPPED_FORM}'; run evaluate first")
        self.label, self.residual = np.concatenate(label), torch.tensor(np.concatenate(residual), dtype=torch.float32)
        self.predicted_ms = np.concatenate(predicted)
        weights = np.concatenate(weight)
        self.weight = torch.tensor(weights / weights.mean(), dtype=torch.float32)
        self.split, self.fold = np.concatenate(split_of), np.concatenate(fold_of)


def _has_steps(data: Dataset, known: np.ndarray) -> Tensor:
    """[networks]"""
    return torch.tensor(np.isin(known, data.label_network[data.kind == TRAIN]))


def _distances(model: Shipped, data: Dataset, held: HeldOut) -> tuple[Tensor, Tensor]:
    """[labels] each, as in EmbeddingDistance.distances: each label's distance from the networks in the fold's training."""
    known, label_of = networks(data)
    member, distance_model = model.members[0], copy.deepcopy(model.distance_model)
    encodings = mean_encodings(member, data, label_of)
    profiles = distance_model.profiles(mean_encodings(member, data, held.label))
    distance, unlike = torch.zeros(len(held.label)), torch.zeros(len(held.label))
    for split in splits.SPLITS:
        for name, train, _ in splits.folds(data, split):
            at = torch.tensor((held.split == split) & (held.fold == name))
            if at.any():
                is_in = torch.tensor(np.isin(known, data.label_network[train]))
                distance_model.fit_centres(encodings[is_in], _has_steps(data, known)[is_in])
                distance[at], unlike[at] = distance_model.distances(profiles[at].T)
    return distance, unlike


def interval_inputs(model: Shipped, data: Dataset, held: HeldOut) -> Tensor:
    """[FEATURES, labels]. Properties that a split held out count as never measured."""
    steps = step_gpu_names(data)
    (distance, unlike), result = _distances(model, data, held), []
    for at in np.array_split(np.arange(len(held.label)), max(1, len(held.label) // 400)):
        label = held.label[at]
        batch = batches.make(data, label)
        with torch.no_grad():
            fraction = torch.stack([training.time_fractions(member, batch) for member in model.members]).mean(dim=0)
            waiting = torch.stack([training.waiting(member, batch) for member in model.members]).mean(dim=0)
        work = batch.work
        kinds = (work.is_grouped * (1 - work.is_depthwise), work.is_depthwise, 1 - work.is_matmul, work.is_convolution)
        fractions = torch.cat([training.sums(batch, fraction * kind) for kind in kinds], dim=1).T
        c = batch.configurations
        is_new = torch.tensor(held.split[at] == splits.SOFTWARE, dtype=torch.float32)
        software = unmeasured_software(c.torch[:, 0], c.is_compiled[:, 0], unlike[at])
        software = torch.maximum(is_new, software + (c.is_inference * (1 - c.is_amp + c.is_half))[:, 0])
        is_new_gpu = torch.tensor(np.isin(held.split[at], splits.GPU_SPLITS), dtype=torch.float32)
        is_measured = torch.tensor(np.isin(data.gpu[label], steps), dtype=torch.float32) * (c.is_amp - c.is_half)[:, 0]
        result.append(interval_features(fractions, c.is_nhwc[:, 0], software, torch.maximum(1 - is_measured, unlike[at]),
                                        is_new_gpu, waiting[:, 0], distance[at]))
    return torch.cat(result, dim=1)


def train(data_path: Path, out: Path) -> None:
    """Trains the members, and fits the training range and the distance model. `fit_interval` adds the interval."""
    torch.set_num_threads(1)
    data = Dataset.load_file(data_path)
    labels = np.arange(len(data.step_ms))
    members = [training.fit(data, labels, options, schedule)[0] for options, schedule in SHIPPED_MEMBERS]
    trained_on = TrainingRange(len(gpu_names(data)), len(step_gpu_names(data)))
    trained_on.fit(data, members[0].row_of_type.unique())
    distance_model = EmbeddingDistance(members[0].options.width)
    known, label_of = networks(data)
    distance_model.fit(mean_encodings(members[0], data, label_of), _has_steps(data, known))
    familiarity = familiarities.fit(members[0], data, data.whole_networks)
    save(Shipped(members, Interval(), trained_on, distance_model, familiarity), out)


def _fitted(x: Tensor, r: Tensor, w: Tensor) -> Interval:
    interval = Interval()
    interval.fit(x, r, w)
    return interval


def _wider_by(r: Tensor, half_widths: Tensor, w: Tensor) -> Tensor:
    """[2, 1]: the factors that the half-widths below and above need, at least 1."""
    return torch.tensor(quantiles(beyond(r, half_widths), w)).clamp(min=1)[:, None]


def publisher_offsets(held: HeldOut) -> dict[str, float]:
    """Mean residual for each left-out publisher."""
    is_of_source = held.split == splits.SOURCES
    return {str(fold): float(held.residual[torch.tensor(is_of_source & (held.fold == fold))].mean())
            for fold in np.unique(held.fold[is_of_source])}


def fit_interval(model_path: Path, data_path: Path, held_out_folder: Path, out: Path) -> dict[str, tuple[float, float]]:
    """Fits the interval. Returns for each split the percentage of held-out labels within an interval fitted without
    them, and the median width, upper over lower. "Without them" means without this half of the networks, or, if a
    GPU was held out, without all labels on this GPU. A left-out publisher is judged by the others' offsets. Writes
    these bounds to the folder of held-out predictions, for `report`.

    GPUs are few and differ more than networks do. Therefore the half-widths on a GPU without measurements are
    widened by the factor needed by held-out GPUs with an interval fitted without them."""
    data, model, held = Dataset.load_file(data_path), load(model_path), HeldOut(held_out_folder)
    x, r, w = interval_inputs(model, data, held), held.residual, held.weight
    is_of_gpu = torch.tensor(np.isin(held.split, splits.GPU_SPLITS))
    is_even = torch.tensor(data.label_network[held.label] % 2 == 0)
    held_out_gpus = [torch.tensor((held.split == split) & (held.fold == fold))
                     for split, fold in sorted(set(zip(held.split[is_of_gpu], held.fold[is_of_gpu])))]
    half_widths = torch.zeros(2, len(r))
    for left_out in (is_even, ~is_even, *held_out_gpus):
        without = _fitted(x[:, ~left_out], r[~left_out], w[~left_out])
        half_widths[:, left_out] = torch.stack(without.half_widths(x[:, left_out])).detach()
    offsets, of_gpu = publisher_offsets(held), without_host(r, x)
    model.interval.load_state_dict(_fitted(x, r, w).state_dict())
    model.interval.widen_new_gpus(_wider_by(of_gpu[is_of_gpu], half_widths[:, is_of_gpu], w[is_of_gpu])[:, 0])
    if offsets:
        model.interval.publisher.copy_(of_publishers(list(offsets.values())))
    save(model, out)
    others = [is_of_gpu & ~held_out for held_out in held_out_gpus]
    for held_out, factor in zip(held_out_gpus, [_wider_by(of_gpu[at], half_widths[:, at], w[at]) for at in others]):
        half_widths[:, held_out] *= factor
    half_widths = _with_unknown(x, half_widths, held, offsets)
    below, above = half_widths.double().exp().numpy()
    write_bounds(held_out_folder, held.split, held.fold, held.label, held.predicted_ms / below, held.predicted_ms * above)
    inside, width = (beyond(r, half_widths) <= 1).all(dim=0).float(), torch.exp(half_widths.sum(dim=0))
    rows = {split: torch.tensor(held.split == split) for split in splits.SPLITS}
    return {split: (float(100 * inside[at].mean()), float(width[at].median())) for split, at in rows.items() if at.any()}


def _with_unknown(x: Tensor, half_widths: Tensor, held: HeldOut, offsets: dict[str, float]) -> Tensor:
    """[2, labels]: the half-widths with the errors for unknown hosts and publishers. A left-out publisher is judged by
    the others' offsets. All other splits know the publishers."""
    result = torch.stack(Interval().with_unknown(x, half_widths, torch.zeros(x.shape[1])))
    for name in offsets if len(offsets) > 1 else ():
        at = torch.tensor((held.split == splits.SOURCES) & (held.fold == name))
        interval = Interval()
        interval.publisher.copy_(of_publishers([offset for other, offset in offsets.items() if other != name]))
        result[:, at] = torch.stack(interval.with_unknown(x[:, at], half_widths[:, at], torch.ones(int(at.sum()))))
    return result


def save(model: Shipped, out: Path) -> None:
    torch.save({"options": [asdict(member.options) for member in model.members], "gpus": len(model.trained_on.log_gpu),
                "step_gpus": model.trained_on.step_gpu_count, "familiar": model.familiarity.networks.shape[1],
                "state": model.state_dict()}, out)


def load(path: Path) -> Shipped:
    saved = torch.load(path, weights_only=True)
    members = [Predictor(Options(**options)) for options in saved["options"]]
    model = Shipped(members, Interval(), TrainingRange(saved["gpus"], saved["step_gpus"]),
                    EmbeddingDistance(members[0].options.width), Familiarity(members[0].options.width, saved["familiar"]))
    model.load_state_dict(saved["state"])
    return model.eval()
