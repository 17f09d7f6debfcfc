"""Serves calls to a student's functions. Runs in the student's kernel, so nothing it says is trusted; in the judge it serves references.

A request names an operation and carries its arguments as plain data; the reply carries a value or the name of an exception. The calls run
in the thread that called :func:`serve` (the kernel's main thread), so that an interrupt reaches the student's function.
"""

from __future__ import annotations

import io
import os
import socket
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from functools import lru_cache
from types import CodeType
from typing import Any

import torch

from autograder.judge.wire import Malformed, Packer, Tree, Unpacker, read_frame, to_frame

MAX_MESSAGE = 500


class Agent:
    """The objects of one namespace, callable by name, and the instances that calls have made."""

    def __init__(self, namespace: dict[str, Any]) -> None:
        self.namespace = namespace
        self.instances: list[Any] = []

    def handle(
        self, header: dict[str, Any], tensors: dict[str, torch.Tensor]
    ) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
        """Answer one request: ``{"value": tree}`` or ``{"error": {"type", "message", "line"}}``, and the tensors of the tree."""
        packer = Packer(handle=self._keep)
        try:
            tree = self._operate(header, Unpacker(tensors, instance=self._instance), packer)
            return {"value": tree}, packer.tensors
        except BaseException as error:  # KeyboardInterrupt and SystemExit of a student's function are answers too
            return {"error": _describe(error)}, {}

    def _operate(self, header: dict[str, Any], unpacker: Unpacker, packer: Packer) -> Tree:
        torch.default_generator.manual_seed(int(header.get("seed", 0)))  # torch.manual_seed costs 1 ms more for GPUs
        if header.get("first"):
            self.instances.clear()  # another hidden test begins
        operation = getattr(self, "_op_" + str(header["op"]))
        args = unpacker.unpack(header.get("args", ["tuple", []]))
        kwargs = unpacker.unpack(header.get("kwargs", ["dict", []]))
        return packer.pack(operation(header, args, kwargs))

    # --- operations -------------------------------------------------------------------------------------------------------------------

    def _op_hello(self, header: dict[str, Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Say that requests are being served."""

    def _op_call(self, header: dict[str, Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self._target(header)(*args, **kwargs)

    def _op_inputs_after(self, header: dict[str, Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self._target(header)(*args, **kwargs)
        return args

    def _op_gradients(self, header: dict[str, Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Gradients of ``(output * cotangent).sum()`` for each argument and, for a module, each parameter; None where there is none."""
        target = self._target(header)
        cotangent = kwargs.pop("cotangent")
        output = kwargs.pop("output")
        leaves = [
            a.clone().requires_grad_() if isinstance(a, torch.Tensor) and a.is_floating_point() else a for a in args
        ]
        parameters = dict(target.named_parameters()) if isinstance(target, torch.nn.Module) else {}
        with torch.enable_grad():
            result = target(*leaves, **kwargs)
            result = result if output is None else result[output]
            wanted = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
            wanted += [p for p in parameters.values() if p.requires_grad]
            if result.requires_grad and wanted:
                found: list[Any] = list(torch.autograd.grad((result * cotangent).sum(), wanted, allow_unused=True))
            else:
                found = [None] * len(wanted)
        inputs = [found.pop(0) if isinstance(leaf, torch.Tensor) and leaf.requires_grad else None for leaf in leaves]
        reached = {name: found.pop(0) if p.requires_grad else None for name, p in parameters.items()}
        return {"inputs": inputs, "parameters": reached}

    def _op_probe(self, header: dict[str, Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run source text under neutral names and return the object it defines."""
        source, name = args
        scope: dict[str, Any] = {
            "torch": torch,
            "nn": torch.nn,
            "F": torch.nn.functional,
            "math": __import__("math"),
            **kwargs,
        }
        exec(_compiled(source), scope)
        return scope[name]

    def _op_state_dict(self, header: dict[str, Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return dict(self._target(header).state_dict())

    def _op_parameters(self, header: dict[str, Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return dict(self._target(header).named_parameters())

    def _op_buffers(self, header: dict[str, Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return dict(self._target(header).named_buffers())

    def _op_load_state_dict(self, header: dict[str, Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self._target(header).load_state_dict(args[0])

    def _op_train(self, header: dict[str, Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self._target(header).train(args[0])

    def _op_training(self, header: dict[str, Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self._target(header).training

    def _op_to(self, header: dict[str, Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self._target(header).to(args[0])

    # --- objects ----------------------------------------------------------------------------------------------------------------------

    def _target(self, header: dict[str, Any]) -> Any:
        target = header["target"]
        if isinstance(target, int):
            return self.instances[target]
        if target not in self.namespace:
            raise _Missing(target)
        return self.namespace[target]

    def _instance(self, number: int, type_name: str) -> Any:
        return self.instances[number]

    def _keep(self, value: Any) -> tuple[int, str] | None:
        """Keep a module or another callable object of the student's on this side and return its number."""
        if not callable(value):
            return None
        self.instances.append(value)
        return len(self.instances) - 1, type(value).__name__


@lru_cache(maxsize=256)
def _compiled(source: str) -> CodeType:
    """Hidden tests make the same few probes over and over."""
    return compile(source, "<probe>", "exec")


class _Missing(Exception):
    """The namespace has no such name."""


def _describe(error: BaseException) -> dict[str, Any]:
    """An exception as plain data: its type, its message and the line of the student's code that raised it."""
    try:
        message = str(error)[:MAX_MESSAGE]
    except Exception:  # a student's exception may fail to print
        message = ""
    line, traceback = 0, error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename != __file__ and "ipykernel" in traceback.tb_frame.f_code.co_filename:
            line = traceback.tb_lineno
        traceback = traceback.tb_next
    kind = "Missing" if isinstance(error, _Missing) else type(error).__name__[:100]
    return {"type": kind, "message": message, "line": line, "missing": isinstance(error, _Missing)}


def serve(listener: socket.socket, namespace: dict[str, Any]) -> None:
    """Serve one connection until the judge closes it."""
    connection, _ = _uninterrupted(listener.accept)
    agent = Agent(namespace)
    receive = _receiver(connection)
    with connection, redirect_stdout(_Discard()), redirect_stderr(_Discard()):
        while True:
            try:
                header, tensors = read_frame(receive)
            except EOFError:
                return
            reply, values = agent.handle(header, tensors)
            connection.sendall(_frame(reply, values))


def _frame(reply: dict[str, Any], tensors: dict[str, torch.Tensor]) -> bytes:
    try:
        return to_frame(reply, tensors)
    except Malformed as error:
        return to_frame({"error": {"type": "Oversized", "message": str(error), "line": 0, "oversized": True}}, {})


def _receiver(connection: socket.socket) -> Callable[[int], bytes]:
    def receive(n: int) -> bytes:
        data = bytearray()
        while len(data) < n:
            part = _uninterrupted(connection.recv, n - len(data))
            if not part:
                raise EOFError
            data += part
        return bytes(data)

    return receive


def _uninterrupted(call: Callable[..., Any], *args: Any) -> Any:
    """Repeat a system call that a late interrupt hit: it was meant for a call that has already returned."""
    while True:
        try:
            return call(*args)
        except KeyboardInterrupt:
            continue


class _Discard(io.TextIOBase):
    """Where prints of a called function go: hidden tests look at results only, and a flood must not reach the notebook."""

    def write(self, text: str) -> int:
        return len(text)


def serve_in_kernel() -> None:
    """Serve the namespace of the notebook in whose kernel this runs, on the socket that the sandbox gave to it."""
    with socket.socket(fileno=os.dup(int(os.environ["AUTOGRADER_AGENT_FD"]))) as listener:
        serve(listener, sys.modules["__main__"].__dict__)
