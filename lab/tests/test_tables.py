"""Tests reading the C side's tables."""

from mdot_lab.predictor import tables


def test_settings_have_the_order_of_the_header():
    assert tables.settings()[:3] == ("kernel_d", "kernel_h", "kernel_w")
    assert tables.settings()[-1] == "inputs"
    assert len(set(tables.settings())) == len(tables.settings())


def test_operator_types_start_with_the_unknown_one():
    assert tables.operator_types()[tables.UNKNOWN_TYPE] == "?"
    assert tables.operator_type_row("Conv") != tables.UNKNOWN_TYPE
    assert tables.operator_type_row("com.example.Unheard") == tables.UNKNOWN_TYPE


def test_every_gpu_has_every_column():
    for gpu in tables.gpus():
        assert len(gpu.numbers) == len(tables.gpu_columns()), gpu.names
        assert all(number > 0 for number in gpu.model_specs), gpu.names


def test_gpus_are_found_by_name_and_alias():
    assert tables.gpu("RTX-3090") is tables.gpu("3090")
    assert tables.gpu("RTX-3090")["memory_gib"] == 24


def test_every_gpu_has_a_power_limit():
    assert all(gpu["watts"] >= 70 for gpu in tables.gpus())
    assert tables.gpu("T4")["watts"] == 70


def test_links_and_power_limits_do_not_distinguish_gpu_models():
    assert tables.MODEL_SPECS[-1] == "fp16_tflops" and len(tables.gpu("A100").model_specs) == len(tables.MODEL_SPECS)


def test_configuration_numbers_match_the_header():
    assert set(tables.READS) <= set(tables.configuration())
    assert tables.configuration()[:2] == ("batch", "gpu_count") and tables.configuration()[-1] == "host_launch_us"


def test_causes_have_the_order_of_the_header():
    assert tables.causes()[0] == "BATCH_BELOW_DATA" and len(tables.causes()) == 8
