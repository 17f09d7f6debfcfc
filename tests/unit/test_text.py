"""Sentences made of pieces."""

from __future__ import annotations

import pytest

from autograder.text import run_on


@pytest.mark.parametrize(
    ("left", "right", "whole"),
    [
        ("weight", "应为 3", "weight 应为 3"),
        ("数值", "应为 3", "数值应为 3"),
        ("第 1 行", "的和", "第 1 行的和"),
        ("数值", "dtype", "数值 dtype"),
        ("W", "(3,)", "W(3,)"),
    ],
)
def test_latin_and_chinese_do_not_touch(left, right, whole):
    assert run_on(left, right) == whole
