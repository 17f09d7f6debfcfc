"""The wire format: what goes in comes out bit by bit, and nothing else is ever accepted."""

from __future__ import annotations

import json
import math
import struct

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from autograder.judge.wire import (
    DTYPES,
    LENGTHS,
    MAX_BLOB,
    MAX_HEADER,
    Kept,
    Malformed,
    Other,
    Packer,
    Unpacker,
    read_frame,
    to_frame,
)


def receiver(data: bytes):
    view = memoryview(data)

    def receive(n: int) -> bytes:
        nonlocal view
        if len(view) < n:
            raise EOFError
        part, view = bytes(view[:n]), view[n:]
        return part

    return receive


def there_and_back(value):
    packer = Packer()
    tree = packer.pack(value)
    header, tensors = read_frame(receiver(to_frame({"value": tree}, packer.tensors)))
    return Unpacker(tensors).unpack(header["value"])


SPECIAL = [0.0, -0.0, math.inf, -math.inf, math.nan, 5e-324, 1.5]


@pytest.mark.parametrize("dtype", sorted(DTYPES, key=str), ids=str)
def test_tensors_of_every_dtype_keep_every_bit(dtype):
    tensor = torch.tensor(SPECIAL if dtype.is_floating_point else [0, 1, 1, 0], dtype=dtype)
    back = there_and_back(tensor)
    assert back.dtype == dtype
    assert back.view(torch.uint8).tolist() == tensor.view(torch.uint8).tolist()


VIEWS = {
    "conj": (torch.tensor([1 + 2j]).conj(), torch.tensor([1 - 2j])),
    "neg": (torch._neg_view(torch.ones(2)), -torch.ones(2)),
    "transposed": (torch.arange(6.0).view(2, 3).T, torch.tensor([[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]])),
    "expanded": (torch.ones(1, 3).expand(2, 3), torch.ones(2, 3)),
    "grad": (torch.ones(2, requires_grad=True), torch.ones(2)),
    "empty": (torch.empty(0, 3), torch.empty(0, 3)),
    "scalar": (torch.tensor(3.0), torch.tensor(3.0)),
}


@pytest.mark.parametrize("name", VIEWS)
def test_lazy_and_strided_views_arrive_as_their_values(name):
    sent, expected = VIEWS[name]
    assert torch.equal(there_and_back(sent), expected)


@pytest.mark.parametrize(
    "value",
    [
        torch.eye(2).to_sparse(),
        torch.empty(2, device="meta"),
        torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.quint8),
        torch.ones(1, dtype=torch.complex128),
        object(),
    ],
    ids=["sparse", "meta", "quantised", "complex128", "object"],
)
def test_what_is_no_plain_data_becomes_the_name_of_its_type(value):
    assert isinstance(there_and_back(value), Other)


def test_a_callable_stays_behind_under_a_number():
    packer = Packer(handle=lambda value: (7, "Head"))
    assert Unpacker({}).unpack(packer.pack(print)) == Kept(7, "Head")


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(PLAIN)
def test_plain_values_come_back_as_they_were(value):
    assert repr(there_and_back(value)) == repr(value)


@given(st.binary(max_size=300))
@settings(max_examples=200)
def test_arbitrary_bytes_are_refused_or_read_never_anything_else(data):
    try:
        header, tensors = read_frame(receiver(data))
        Unpacker(tensors).unpack(header.get("value"))
    except (Malformed, EOFError):
        pass


@given(st.integers(0, 400), st.integers(0, 255))
@settings(max_examples=300)
def test_a_reply_changed_at_any_byte_is_refused_or_read_never_anything_else(position, byte):
    packer = Packer()
    frame = bytearray(to_frame({"value": packer.pack((torch.arange(6.0).view(2, 3), 1.5, "x"))}, packer.tensors))
    frame[position % len(frame)] = byte
    try:
        header, tensors = read_frame(receiver(bytes(frame)))
        Unpacker(tensors).unpack(header.get("value"))
    except (Malformed, EOFError):
        pass


TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=15,
)


@given(TREES)
@settings(max_examples=300)
def test_arbitrary_json_is_no_value_unless_written_in_our_way(tree):
    try:
        Unpacker({}).unpack(tree)
    except Malformed:
        return
    assert tree[0] in {"none", "bool", "int", "float", "str", "list", "tuple", "dict", "instance", "other", "dtype"}


def safetensors(entries: dict, data: bytes = b"") -> bytes:
    head = json.dumps(entries).encode()
    return struct.pack("<Q", len(head)) + head + data


@pytest.mark.parametrize(
    "blob",
    [
        b"\x01",
        safetensors({"0": {"dtype": "F64", "shape": [2], "data_offsets": [0, 8]}}, bytes(8)),
        safetensors({"0": {"dtype": "F64", "shape": [1 << 60, 0], "data_offsets": [0, 0]}}),
        safetensors({"0": {"dtype": "F64", "shape": [1] * 40, "data_offsets": [0, 8]}}, bytes(8)),
        safetensors({"0": {"dtype": "F8_E4M3", "shape": [8], "data_offsets": [0, 8]}}, bytes(8)),
        safetensors({"../../x": {"dtype": "F64", "shape": [1], "data_offsets": [0, 8]}}, bytes(8)),
        safetensors({"0": {"dtype": "F64", "shape": [True], "data_offsets": [0, 8]}}, bytes(8)),
        safetensors({str(i): {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]} for i in range(2000)}),
    ],
    ids=["cut off", "too few bytes", "huge shape", "many axes", "dtype", "name", "bool as size", "many tensors"],
)
def test_tensor_blobs_that_lie_are_refused(blob):
    with pytest.raises(Malformed):
        read_frame(receiver(LENGTHS.pack(2, len(blob)) + b"{}" + blob))


@pytest.mark.parametrize("lengths", [(MAX_HEADER + 1, 0), (2, MAX_BLOB + 1), (0xFFFFFFFF, 0xFFFFFFFF)])
def test_announced_sizes_are_refused_before_anything_is_read(lengths):
    asked = []

    def receive(n: int) -> bytes:
        asked.append(n)
        return LENGTHS.pack(*lengths)

    with pytest.raises(Malformed) as caught:
        read_frame(receive)
    assert caught.value.oversized
    assert asked == [LENGTHS.size]


@pytest.mark.parametrize("head", [b"[1]", b"nan", b'{"a": NaN}', b"\xff\xfe", b"[" * 100_000, b"null"])
def test_headers_that_are_no_json_object_are_refused(head):
    with pytest.raises(Malformed):
        read_frame(receiver(LENGTHS.pack(len(head), 0) + head))


def test_deep_and_wide_values_are_refused():
    deep = ["none"]
    for _ in range(40):
        deep = ["list", [deep]]
    wide = ["list", [["none"]] * 10_000]
    for tree in (deep, wide):
        with pytest.raises(Malformed) as caught:
            Unpacker({}).unpack(tree)
        assert caught.value.oversized


def test_more_tensor_data_than_a_frame_may_hold_is_not_sent():
    with pytest.raises(Malformed) as caught:
        to_frame({}, {"0": torch.empty(MAX_BLOB, dtype=torch.uint8)})
    assert caught.value.oversized
