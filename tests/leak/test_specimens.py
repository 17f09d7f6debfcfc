"""Every exhibit gets the verdict it deserves, through the right inputs, in words that fit."""

import pytest
import torch

from autograder.leak import detect
from tests.leak.specimens import SPECIMENS


def judge(name: str, seed: int, dtype: torch.dtype = torch.float64) -> None:
    specimen = SPECIMENS[name]

    def inputs(B, T, rng):
        drawn = specimen.inputs(B, T, rng)
        return {n: v.to(dtype) if torch.is_tensor(v) and v.is_floating_point() else v for n, v in drawn.items()}

    fn = specimen.make()
    fn = fn.to(dtype) if isinstance(fn, torch.nn.Module) else fn
    report = detect(fn, inputs, seed=seed, language="en", **specimen.options)
    assert report.verdict in specimen.verdicts, str(report)
    assert set(report.leaking_inputs()) == specimen.ways_in, str(report)
    assert specimen.words in str(report)
    assert len(str(report).splitlines()) == 3


@pytest.mark.parametrize("name", SPECIMENS)
def test_verdict(name):
    judge(name, seed=0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 10))
@pytest.mark.parametrize("name", SPECIMENS)
def test_verdict_at_every_seed(name, seed):
    judge(name, seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", [n for n in SPECIMENS if n != "fill_of_minus_20"])
def test_verdict_in_single_precision(name, seed):
    judge(name, seed, torch.float32)
