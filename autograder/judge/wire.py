"""Plain data across the wall: JSON for structure, safetensors for tensors, never pickle.

A frame is two lengths (unsigned 32-bit, big endian), a JSON header and a safetensors blob. Values become a tree of tagged lists; a tensor
in it is a number that names an entry of the blob. Both sides encode; what the judge decodes is hostile, so every size is checked before
anything is built from it.
"""

from __future__ import annotations

import json
import math
import numbers
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors

LENGTHS = struct.Struct(">II")
MAX_HEADER = 1 << 18
MAX_BLOB = 1 << 26
MAX_TENSORS = 512
MAX_NODES = 4096
MAX_DEPTH = 16
MAX_TEXT = 4096
MAX_DIMS = 8
_SAFETENSORS_DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
    "C64": torch.complex64,
}
DTYPES = frozenset(_SAFETENSORS_DTYPES.values())

Tree = list[Any]


class Malformed(Exception):
    """Bytes that are not a frame of this format, or exceed its limits (``oversized``)."""

    def __init__(self, reason: str, oversized: bool = False) -> None:
        super().__init__(reason)
        self.oversized = oversized


@dataclass(frozen=True)
class Other:
    """Stands for a value that is no plain data; only the name of its type crosses the wall."""

    type: str


@dataclass(frozen=True)
class Kept:
    """Stands for a callable object that stayed on the other side under a number."""

    number: int
    type: str


@dataclass
class Packer:
    """Encodes values into trees and collects their tensors. ``handle`` turns an object that stays behind into its number and type."""

    handle: Callable[[Any], tuple[int, str] | None] = lambda value: None
    tensors: dict[str, torch.Tensor] = field(default_factory=dict)

    def pack(self, value: Any) -> Tree:
        """The tree of one value. Unknown types become their name, so that the other side can say what came."""
        if value is None:
            return ["none"]
        if isinstance(value, str):
            return ["str", value[:MAX_TEXT]]
        if isinstance(value, bool) or type(value).__name__ in ("bool_", "bool"):
            return ["bool", bool(value)]
        if isinstance(value, torch.Tensor):
            return self._pack_tensor(value)
        if isinstance(value, numbers.Integral):
            return ["int", str(int(value))]
        if isinstance(value, numbers.Real):
            return ["float", float(value).hex()]
        if isinstance(value, torch.dtype):
            return ["dtype", str(value).removeprefix("torch.")]
        if isinstance(value, (tuple, list)):
            return ["tuple" if isinstance(value, tuple) else "list", [self.pack(v) for v in value]]
        if isinstance(value, dict):
            return ["dict", [[str(k)[:MAX_TEXT], self.pack(v)] for k, v in value.items()]]
        known = self.handle(value)
        if known is not None:
            return ["instance", known[0], known[1][:MAX_TEXT]]
        return ["other", type(value).__name__[:MAX_TEXT]]

    def _pack_tensor(self, value: torch.Tensor) -> Tree:
        if value.layout != torch.strided or value.is_meta or value.is_quantized or value.dtype not in DTYPES:
            return ["other", f"{value.dtype} tensor, {value.layout}"[:MAX_TEXT].replace("torch.", "")]
        name = str(len(self.tensors))
        # safetensors writes lazy conj and neg views without their sign, and refuses shared or strided storage
        plain = value.detach().resolve_conj().resolve_neg().cpu().contiguous().clone()
        self.tensors[name] = plain.as_subclass(torch.Tensor)
        return ["tensor", name]


def to_frame(header: dict[str, Any], tensors: dict[str, torch.Tensor]) -> bytes:
    """One frame. Raises Malformed (oversized) when it would exceed what the other side accepts."""
    if (
        len(tensors) > MAX_TENSORS
        or sum(t.numel() * t.element_size() for t in tensors.values()) > MAX_BLOB - MAX_HEADER
    ):
        raise Malformed("more tensor data than a frame may hold", oversized=True)
    blob = save_tensors(tensors) if tensors else b""
    head = json.dumps(header, allow_nan=False).encode()
    if len(head) > MAX_HEADER or len(blob) > MAX_BLOB:
        raise Malformed("more data than a frame may hold", oversized=True)
    return LENGTHS.pack(len(head), len(blob)) + head + blob


def read_frame(receive: Callable[[int], bytes]) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """Read one frame through ``receive(n)``, which returns exactly n bytes.

    Raises Malformed for anything that ``to_frame`` would not have written.
    """
    head_length, blob_length = LENGTHS.unpack(receive(LENGTHS.size))
    if head_length > MAX_HEADER or blob_length > MAX_BLOB:
        raise Malformed("announces more data than a frame may hold", oversized=True)
    head = receive(head_length)
    blob = receive(blob_length)
    try:
        header = json.loads(head.decode("utf-8"), parse_constant=_refuse_constant)
        if b"\\ud" in head.lower():  # half a surrogate pair, which JSON can carry and no file can
            header = json.loads(json.dumps(header, ensure_ascii=False).encode("utf-8", "replace"))
    except (ValueError, RecursionError) as error:
        raise Malformed(f"the header is no JSON: {error}") from None
    if not isinstance(header, dict):
        raise Malformed("the header is no JSON object")
    return header, _tensors(blob) if blob else {}


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _tensors(blob: bytes) -> dict[str, torch.Tensor]:
    """The tensors of a safetensors blob, whose own header is checked against our narrower limits first."""
    if len(blob) < 8:
        raise Malformed("the tensor blob is cut off")
    length = int.from_bytes(blob[:8], "little")
    if length > MAX_HEADER:
        raise Malformed("the tensor header is too long", oversized=True)
    try:
        entries = json.loads(blob[8 : 8 + length].decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise Malformed(f"the tensor header is no JSON: {error}") from None
    if not isinstance(entries, dict) or len(entries) > MAX_TENSORS:
        raise Malformed(f"the tensor header is no table of at most {MAX_TENSORS} entries")
    for name, entry in entries.items():
        shape = entry.get("shape") if isinstance(entry, dict) else None
        if (
            not name.isascii()
            or not name.isdigit()
            or not isinstance(entry, dict)
            or entry.get("dtype") not in _SAFETENSORS_DTYPES
            or not isinstance(shape, list)
            or len(shape) > MAX_DIMS
            or not all(type(n) is int and 0 <= n <= MAX_BLOB for n in shape)
        ):
            raise Malformed("a tensor has a dtype or a shape that is not accepted")
    try:
        return dict(load_tensors(blob))
    except Exception as error:  # the library's own error types, and torch's for shapes it cannot build
        raise Malformed(f"the tensor blob is malformed: {type(error).__name__}") from None


@dataclass
class Unpacker:
    """Decodes trees strictly. ``instance`` makes what stands for an object that stayed on the other side."""

    tensors: dict[str, torch.Tensor]
    instance: Callable[[int, str], Any] = Kept
    nodes: int = 0

    def unpack(self, tree: Any, depth: int = 0) -> Any:
        """The value of a tree. Raises Malformed for anything that ``Packer`` would not have written."""
        self.nodes += 1
        if self.nodes > MAX_NODES or depth > MAX_DEPTH:
            raise Malformed("the value has too many parts or is nested too deeply", oversized=True)
        match tree:
            case ["none"]:
                return None
            case ["bool", bool() as value]:
                return value
            case ["int", str() as digits] if (
                len(digits) < 40 and digits.removeprefix("-").isdecimal() and digits.isascii()
            ):
                return int(digits)
            case ["float", str() as digits]:
                return _float(digits)
            case ["str", str() as text] if len(text) <= MAX_TEXT:
                return text
            case ["tensor", str() as name] if name in self.tensors:
                return self.tensors[name]
            case ["dtype", str() as name] if isinstance(getattr(torch, name, None), torch.dtype):
                return getattr(torch, name)
            case ["list", list() as parts]:
                return [self.unpack(part, depth + 1) for part in parts]
            case ["tuple", list() as parts]:
                return tuple(self.unpack(part, depth + 1) for part in parts)
            case ["dict", list() as pairs]:
                return dict(self._pair(pair, depth + 1) for pair in pairs)
            case ["instance", int() as number, str() as type_name] if not isinstance(number, bool):
                return self.instance(number, type_name[:MAX_TEXT])
            case ["other", str() as type_name]:
                return Other(type_name[:MAX_TEXT])
            case _:
                raise Malformed("a value is written in no known way")

    def _pair(self, pair: Any, depth: int) -> tuple[str, Any]:
        match pair:
            case [str() as key, tree] if len(key) <= MAX_TEXT:
                return key, self.unpack(tree, depth)
            case _:
                raise Malformed("a dictionary entry is no pair of a text and a value")


def _float(digits: str) -> float:
    if len(digits) > 40:
        raise Malformed("a float is written in no known way")
    try:
        return float.fromhex(digits)
    except (ValueError, OverflowError):
        raise Malformed("a float is written in no known way") from None


def is_finite(value: Any) -> bool:
    """Whether every number in a decoded value is finite."""
    if isinstance(value, torch.Tensor):
        return not value.is_floating_point() or bool(value.isfinite().all())
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, (tuple, list)):
        return all(is_finite(v) for v in value)
    if isinstance(value, dict):
        return all(is_finite(v) for v in value.values())
    return True
