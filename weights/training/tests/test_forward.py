"""The forward part of a step beside measured inference."""

import pytest
import torch

from predictor import forward, tables
from predictor.exported import Exported
from predictor.interval import Interval
from predictor.model import Options, Predictor
from predictor.range import TrainingRange

COLUMNS = "device,precision,layout,torch,cuda,run,model,img_size,batch_size,step_time_ms"


@pytest.fixture
def measured(data, tmp_path):
    """Two rows of a network that is there, and rows that are of no use: another card, arithmetic, software or network."""
    rows = ["rtx3090,amp,nchw,pt111,cu113,a,net_2_32,224,64,5.0", "rtx3090,amp,nhwc,pt111,cu113,a,net_2_32,224,128,4.0",
            "rtx4090,amp,nchw,pt111,cu113,a,net_2_32,224,64,5.0", "rtx3090,fp32,nchw,pt111,cu113,a,net_2_32,224,64,5.0",
            "rtx3090,amp,nchw,pt113,cu117,a,net_2_32,224,64,5.0", "rtx3090,amp,nchw,pt111,cu113,a,other,224,64,5.0"]
    path = tmp_path / "infer.csv"
    path.write_text("\n".join([COLUMNS, *rows]))
    return forward.read_inference(path, data)


def test_rows_of_the_same_card_and_software_are_read(measured):
    assert measured.batch.tolist() == [64, 128]
    assert measured.is_nhwc.tolist() == [False, True]
    assert measured.step_ms.tolist() == [5, 4]


def test_the_forward_part_is_a_part_of_the_step_and_grows_with_the_batch(measured):
    torch.manual_seed(0)
    model = Exported([Predictor(Options(width=8, hidden=8)).eval()], Interval(), TrainingRange())
    of_64, of_128 = forward.forward_ms(model, measured)
    parts_ms = forward.training.parts_ms(model.members[0], forward.batches.make(measured, [0]))[0]
    assert parts_ms.shape[1] == len(tables.PHASES) + 2
    assert 0 < of_64 < of_128
    assert of_64 < parts_ms.sum().item()
