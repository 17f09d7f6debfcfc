"""The external collection of real mistakes: every leak found through the right input, no false alarm.

The folder is named by AUTOGRADER_LEAK_CASES (default ../shared/cases beside the repository).
"""

import warnings

import pytest
import torch

from autograder.leak import detect
from tests.leak import external

CASES = {case["id"]: case for case in external.index() if case["kind"] not in external.DATA_KINDS}
OTHER_VERDICTS = {  # what the index says in words about cases that do not leak
    "b04_softmax_implicit_dim": "nonfinite",
    "b11_zero_times_inf": "nonfinite",
    "b16_diagonal_excluded_nan": "nonfinite",
    "b32_key_reverse_all_axes": "error",
    "b50_mask_buffer_not_sliced": "error",
    "b62_position_table_overrun": "error",
    "b46_sdpa_dropout_in_eval": "random",
    "b93_hidden_state_not_reset": "stateful",
    "b61_pe_added_in_place": "mutates-input",
    "b38_batch_first_forgotten": "mixes-batch",
    "b92_lstm_batch_first_missing": "mixes-batch",
    "b39_mask_broadcast_batch_onto_heads": "mixes-batch",
    "b40_mask_repeat_not_interleave": "mixes-batch",
    "b60_pe_missing_colon": "length-dependent",
    "b104_cumsum_divided_by_length": "length-dependent",
    "b101_attention_output_unused": "ignores-past",
    "ok11_mask_after_softmax_renormalised": "numerical-leak",
    "ok20_fft_convolution_padded": "numerical-leak",
}

if not CASES:
    warnings.warn(
        f"NO LEAK CASES AT {external.FOLDER}: set AUTOGRADER_LEAK_CASES; tests/leak/test_cases.py checks nothing now",
        stacklevel=1,
    )


def judge(name: str, seed: int, dtype: torch.dtype) -> None:
    case = CASES[name]
    call = external.load(case, dtype)
    report = detect(call.fn, call.inputs, effort="full", seed=seed, language="en", **call.options)
    found = set(report.leaking_inputs())
    if external.leaks(case):
        assert found, f"missed: {case['what']}\n{report}"
        assert external.ways_in(case) <= found <= external.ways_in(case) | external.named(case), str(report)
    else:
        assert not found, f"false alarm: {case['what']}\n{report}"
    if case["valid"]:
        assert report.ok, str(report)
    if name in OTHER_VERDICTS:
        assert report.verdict == OTHER_VERDICTS[name], str(report)


@pytest.mark.skipif(not CASES, reason=f"NO LEAK CASES AT {external.FOLDER}: set AUTOGRADER_LEAK_CASES")
def test_collection_is_whole():
    assert sum(map(external.leaks, CASES.values())) >= 40
    assert sum(case["valid"] for case in CASES.values()) >= 20


@pytest.mark.parametrize("name", CASES)
def test_case(name):
    judge(name, 0, torch.float64)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["float64", "float32"])
@pytest.mark.parametrize("seed", range(1, 10))
@pytest.mark.parametrize("name", CASES)
def test_case_at_every_seed(name, seed, dtype):
    judge(name, seed, dtype)
