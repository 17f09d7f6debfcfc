"""What the judge converts before it compares: nobody loses points by the kind of number that a right result came in."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from autograder.judge.faults import Fault, StudentFault
from autograder.judge.student import Direct, Student


def asked(answer: Callable[..., Any], reference: Callable[..., Any], *args: Any) -> Any:
    """What a hidden test gets from ``student.f(*args)``."""
    return Student(Direct({"f": answer}), Direct({"f": reference}), 0).f(*args)


def test_without_a_floating_argument_any_floating_dtype_will_do() -> None:
    got = asked(lambda T: torch.eye(T, dtype=torch.float64), lambda T: torch.eye(T), 3)
    assert got.dtype == torch.float32
    assert torch.equal(got, torch.eye(3))


def test_without_a_floating_argument_every_tensor_of_a_tuple_may_have_its_own_dtype() -> None:
    a, b = asked(lambda: [torch.ones(2), torch.ones(2).double()], lambda: (torch.ones(2).double(), torch.ones(2)))
    assert (a.dtype, b.dtype) == (torch.float64, torch.float32)


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.complex64])
def test_other_kinds_of_numbers_are_refused_all_the_same(dtype: torch.dtype) -> None:
    with pytest.raises(StudentFault, match="should have dtype float32") as caught:
        asked(lambda T: torch.eye(T, dtype=dtype), lambda T: torch.eye(T), 3)
    assert caught.value.kind is Fault.DTYPE


def test_with_a_floating_argument_the_dtype_has_to_follow() -> None:
    with pytest.raises(StudentFault, match="should have dtype float64, it has float32"):
        asked(lambda X: X.float(), lambda X: X, torch.ones(2, dtype=torch.float64))


def test_a_number_is_accepted_for_a_tensor_without_axes() -> None:
    got = asked(lambda x: x.sum().item(), lambda x: x.sum(), torch.ones(3))
    assert torch.equal(got, torch.tensor(3.0))


def test_stacked_tensors_are_accepted_for_a_tuple_of_them() -> None:
    got = asked(lambda x: torch.stack([x, 2 * x]), lambda x: (x, 2 * x), torch.ones(3))
    assert isinstance(got, tuple)
    assert torch.equal(got[1], torch.full((3,), 2.0))


def test_a_tensor_of_another_length_is_no_tuple() -> None:
    with pytest.raises(StudentFault, match=r"should be a tuple of 2, got a float32 tensor of shape \(3,\)"):
        asked(lambda x: x, lambda x: (x, 2 * x), torch.ones(3))


def test_a_bool_is_no_number() -> None:
    with pytest.raises(StudentFault, match=r"should be a float32 tensor of shape \(\), got a bool"):
        asked(lambda x: True, lambda x: x.sum(), torch.ones(3))
