"""The ``leak`` sub-command: probe any function or module from the command line, with the standard library alone."""

from __future__ import annotations

import argparse
import ast
import importlib
import importlib.util
import inspect
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from autograder.leak.detect import detect
from autograder.leak.inputs import Factory

EXAMPLES = """\
examples:
  autograder leak model.py:Head --arg C=32 --arg head_size=16 --inputs x=B,T,32
  autograder leak model.py:make_model --inputs "ids=int(65):B,T"
  autograder leak model.py:attention --inputs q,k,v=B,2,T,8 --json
  autograder leak torch.nn:GRU --arg input_size=8 --arg hidden_size=8 --arg batch_first=True --inputs input=B,T,8
  autograder leak model.py:model --inputs model.py:inputs

exit code: 0 causal (or a leak by rounding alone), 1 anything else that was found, 2 wrong usage
"""


class Usage(Exception):
    """What the user typed cannot be carried out; the message says what to type instead."""


def main(argv: list[str]) -> int:
    """Run the sub-command with these arguments; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="autograder leak",
        description="Does an output row depend on a later input position? / 输出的某一行是否取决于更晚的位置？",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("target", help="file.py:name or package.module:name of a function, module, class or factory")
    parser.add_argument(
        "--inputs",
        help="file.py:name of a function inputs(B, T, rng), or shapes: name=B,T,32 (float) or name=int(65):B,T (tokens); "
        "several separated by spaces; default: a function called inputs beside the target",
    )
    parser.add_argument("--arg", action="append", default=[], metavar="NAME=VALUE", help="for a class or factory")
    parser.add_argument("--effort", choices=("quick", "full"), default="full")
    parser.add_argument("--expect", choices=("causal", "strictly-causal", "none"), default="causal")
    parser.add_argument("--diagonal", type=int, default=0, help="keys ahead of the queries in a cache")
    parser.add_argument("--length", "-T", type=int, help="length of the plain setting (default 16, quick 8)")
    parser.add_argument("--max-length", type=int, help="longest sequence the code takes (block_size)")
    parser.add_argument("--time-dim", type=int, default=-2)
    parser.add_argument("--out-time-dim", type=int, default=-2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--lang", choices=("zh", "en"), default="zh")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    options = parser.parse_args(argv)
    bar = _Bar() if sys.stderr.isatty() and not options.json else None
    try:
        factory = _inputs(options.inputs, options.target)
        torch.manual_seed(options.seed)
        fn = _target(options.target, factory, dict(map(_argument, options.arg)))
        report = detect(
            fn,
            factory,
            time_dim=options.time_dim,
            out_time_dim=options.out_time_dim,
            effort=options.effort,
            expect=options.expect,
            diagonal=options.diagonal,
            T=options.length,
            max_T=options.max_length,
            seed=options.seed,
            language=options.lang,
            progress=bar,
        )
    except (Usage, ValueError, TypeError) as error:
        print(f"autograder leak: {error}", file=sys.stderr)
        return 2
    finally:
        if bar is not None:
            bar.clear()
    print(report.to_json() if options.json else str(report))
    return 0 if report.ok else 1


def _target(spec: str, factory: Factory, arguments: dict[str, Any]) -> Callable[..., Any]:
    """The function to probe: the named object itself, or what it makes if it is a class or a factory."""
    found: Callable[..., Any] = _find(spec)
    if isinstance(found, nn.Module):
        return found
    names = set(factory(1, 2, torch.Generator().manual_seed(0)))
    if inspect.isclass(found) or arguments or not _takes(found, names):
        try:
            found = found(**arguments)
        except Exception as error:
            raise Usage(f"{spec} could not be made: {error}. Pass its arguments with --arg NAME=VALUE") from error
    return found


def _takes(found: Any, names: set[str]) -> bool:
    """Whether a function has parameters of these names."""
    try:
        inspect.signature(found).bind(**dict.fromkeys(names))
    except (TypeError, ValueError):
        return False
    return True


def _find(spec: str) -> Any:
    """The object behind file.py:name or package.module:name."""
    place, _, name = spec.rpartition(":")
    if not place or not name:
        raise Usage(f"expected file.py:name or package.module:name, got {spec!r}")
    if place.endswith(".py"):
        path = Path(place)
        if not path.is_file():
            raise Usage(f"there is no file {place}")
        module_spec = importlib.util.spec_from_file_location(path.stem, path)
        assert module_spec is not None
        assert module_spec.loader is not None
        module = importlib.util.module_from_spec(module_spec)
        sys.modules.setdefault(path.stem, module)
        try:
            module_spec.loader.exec_module(module)
        except Exception as error:
            raise Usage(f"{place} does not run: {type(error).__name__}: {error}") from error
    else:
        try:
            module = importlib.import_module(place)
        except ImportError as error:
            raise Usage(f"cannot import {place}: {error}") from error
    try:
        return getattr(module, name)
    except AttributeError:
        raise Usage(f"{place} has no {name!r}") from None


def _inputs(spec: str | None, target: str) -> Factory:
    """The inputs function, from a name or from shapes."""
    if spec is None:
        beside = target.rpartition(":")[0] + ":inputs"
        try:
            return _find(beside)
        except Usage as error:
            raise Usage(f"{error}; say what the inputs are, for example --inputs x=B,T,32") from None
    if "=" not in spec:
        return _find(spec)
    shapes = dict(pair for part in spec.split() for pair in _shape(part))

    def factory(B: int, T: int, rng: torch.Generator) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for name, (tokens, sizes) in shapes.items():
            size = [{"B": B, "T": T}.get(s) or int(s) for s in sizes]
            made[name] = (
                torch.randint(tokens, size, generator=rng) if tokens is not None else torch.randn(size, generator=rng)
            )
        return made

    return factory


def _shape(part: str) -> list[tuple[str, tuple[int | None, Sequence[str]]]]:
    """Read q,k,v=B,2,T,8 or ids=int(65):B,T."""
    match = re.fullmatch(r"([A-Za-z_][\w,]*)=(?:int\((\d+)\):)?((?:B|T|\d+)(?:,(?:B|T|\d+))*)", part)
    if match is None:
        raise Usage(f"expected shapes such as x=B,T,32 or ids=int(65):B,T, got {part!r}")
    names, tokens, sizes = match.groups()
    return [(name, (int(tokens) if tokens else None, sizes.split(","))) for name in names.split(",")]


def _argument(text: str) -> tuple[str, Any]:
    """Read NAME=VALUE; a value that is no Python literal is a string."""
    name, equals, value = text.partition("=")
    if not equals:
        raise Usage(f"expected --arg NAME=VALUE, got {text!r}")
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value


class _Bar:
    """A progress bar on the terminal's error stream, taken before the probed code's output is silenced."""

    def __init__(self) -> None:
        self.stream = sys.stderr

    def __call__(self, share: float) -> None:
        self.stream.write(f"\r[{'#' * round(30 * share):<30}] {share:4.0%}")
        self.stream.flush()

    def clear(self) -> None:
        """Wipe the line."""
        self.stream.write("\r" + " " * 40 + "\r")
        self.stream.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
