"""What the mask-leak detector costs, and how it compares with the checks in common use.

python -m tests.bench.leak            times on small code, growth with T, comparison on the external cases
python -m tests.bench.leak --large    a GPT-2-sized block at T=256 as well (about a minute, CPU time is what counts)
"""

from __future__ import annotations

import argparse
import resource
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from autograder.leak import detect
from autograder.leak.bench import Bench
from autograder.leak.contract import Contract
from autograder.leak.inputs import Inputs
from autograder.leak.probes.single import matrix
from autograder.leak.setting import Setting
from autograder.leak.subject import Failed, Subject, first_tensor, undisturbed
from tests.leak import external


class Head(nn.Module):
    """One head of causal self-attention."""

    def __init__(self, C: int = 32, head_size: int = 16, block_size: int = 256) -> None:
        super().__init__()
        self.qkv = nn.Linear(C, 3 * head_size, bias=False)
        self.register_buffer("tril", torch.ones(block_size, block_size).tril())

    def forward(self, x: Tensor) -> Tensor:
        T = x.size(1)
        q, k, v = self.qkv(x).chunk(3, -1)  # each (B, T, head_size)
        scores = q @ k.mT / q.size(-1) ** 0.5
        return scores.masked_fill(self.tril[:T, :T] == 0, float("-inf")).softmax(-1) @ v


class Block(nn.Module):
    """A transformer block of GPT-2's size."""

    def __init__(self, C: int = 768, heads: int = 12) -> None:
        super().__init__()
        self.heads, self.norm1, self.norm2 = heads, nn.LayerNorm(C), nn.LayerNorm(C)
        self.qkv, self.out = nn.Linear(C, 3 * C), nn.Linear(C, C)
        self.mlp = nn.Sequential(nn.Linear(C, 4 * C), nn.GELU(), nn.Linear(4 * C, C), nn.Dropout(0.1))

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (z.unflatten(-1, (self.heads, -1)).transpose(1, 2) for z in self.qkv(self.norm1(x)).chunk(3, -1))
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.mlp(self.norm2(x))


def states(C: int) -> Callable[[int, int, torch.Generator], dict[str, Any]]:
    return lambda B, T, rng: {"x": torch.randn(B, T, C, generator=rng)}


class Cost(NamedTuple):
    """Seconds: of the processor, which a busy machine does not change much, and by the clock."""

    cpu: float
    wall: float

    def __format__(self, spec: str) -> str:
        return f"{self.cpu:{spec}} s ({self.wall:{spec}} s)"


def cost(run: Callable[[], Any], times: int = 1) -> Cost:
    """The least of a few runs."""
    runs = []
    for _ in range(times):
        cpu, wall = time.process_time(), time.perf_counter()
        run()
        runs.append((time.process_time() - cpu, time.perf_counter() - wall))
    return Cost(*map(min, zip(*runs, strict=True)))


def forward(model: nn.Module, T: int, C: int, B: int = 1) -> float:
    x = torch.randn(B, T, C)
    with torch.no_grad():
        return cost(lambda: [model(x) for _ in range(10)], 3).cpu / 10


def times() -> None:
    """The detector beside one forward pass."""
    print("CPU time (by the clock)  T   forward pass   quick                 full                  calls (quick, full)")
    model, inputs = Head(), states(32)
    for T in (8, 16):
        quick, full = (detect(model, inputs, effort=effort, T=T) for effort in ("quick", "full"))
        costs = [cost(lambda e=e, T=T: detect(model, inputs, effort=e, T=T), 5) for e in ("quick", "full")]
        print(
            f"a head, C=32            {T:2}   {forward(model, T, 32) * 1e6:9.0f} us   {costs[0]:.3f}"
            f"   {costs[1]:.3f}   {quick.calls}, {full.calls}"
        )


def growth() -> None:
    """The whole (T, T) matrix beside T forward passes of length T."""
    print("\nfull matrix              T   T forward passes   matrix        ratio")
    model = Head()
    for T in (16, 32, 64, 128, 256):
        with undisturbed():
            bench = Bench(Subject(model), Inputs(states(32), -2, None, 1, T, 0), Contract("causal", 0), -2, {"eval"})
            setting = Setting(T=T, B=1, mode="eval")
            whole = cost(lambda s=setting, b=bench: matrix(b.stage(s, folded=True), "x"), 3).cpu
        passes = T * forward(model, T, 32)
        print(
            f"a head, C=32            {T:3}   {passes * 1e3:13.1f} ms   {whole * 1e3:7.1f} ms   {whole / passes:5.2f}"
        )


def large() -> None:
    """A GPT-2-sized block."""
    model = Block()
    one = forward(model, 256, 768)
    verdicts = []
    spent = cost(lambda: verdicts.append(detect(model, states(768), T=256).verdict))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"\nGPT-2-sized block (C=768, 12 heads, T=256): {verdicts[0]}")
    print(f"forward pass {one * 1e3:.0f} ms, detector {spent:.1f}, peak memory {peak:.2f} GiB")


# --- the checks of others: each answers whether it sees a leak -----------------------------------------------------------

Run = Callable[[dict[str, Any]], Tensor]


def _replaced(values: dict[str, Any], other: dict[str, Any], call: external.Call, cut: int) -> dict[str, Any]:
    """Every causal input with its suffix from the cut on replaced."""
    changed = dict(values)
    for name in _causal(values, call):
        axis = 1 if values[name].dim() == 2 else -2
        length = values[name].size(axis)
        changed[name] = values[name].clone()
        changed[name].narrow(axis, cut, length - cut).copy_(other[name].narrow(axis, cut, length - cut))
    return changed


def _causal(values: dict[str, Any], call: external.Call) -> list[str]:
    names = call.options.get("causal_inputs") or ["q", "k", "v", "x", "ids"]
    return [name for name in names if name in values]


def _ahead(call: external.Call) -> int:
    return call.options.get("diagonal", 0)


def one_cut(run: Run, a: dict[str, Any], b: dict[str, Any], call: external.Call, T: int) -> bool:
    """Replace the second half, compare the first exactly."""
    rows = T // 2 - _ahead(call)
    return not torch.equal(run(a)[..., :rows, :], run(_replaced(a, b, call, T // 2))[..., :rows, :])


def last_to_first(run: Run, a: dict[str, Any], b: dict[str, Any], call: external.Call, T: int) -> bool:
    """Replace the last position, look at the first row."""
    return not torch.equal(run(a)[..., 0, :], run(_replaced(a, b, call, T - 1 + _ahead(call)))[..., 0, :])


def gradient_sum(run: Run, a: dict[str, Any], b: dict[str, Any], call: external.Call, T: int) -> bool:
    """d out[t].sum() / d input[j] for j > t in the middle row."""
    names = [name for name in _causal(a, call) if a[name].is_floating_point()]
    leaves = {name: a[name].clone().requires_grad_() for name in names}
    out = run({**a, **leaves})[..., T // 2, :].sum()
    grads = torch.autograd.grad(out, list(leaves.values()), allow_unused=True)
    return any(g is not None and bool((g[..., T // 2 + 1 + _ahead(call) :, :] != 0).any()) for g in grads)


def nan_poisoning(run: Run, a: dict[str, Any], b: dict[str, Any], call: external.Call, T: int) -> bool:
    """Plant NaN in the second half and look for it in the first."""
    nan = {
        n: torch.full_like(v, float("nan")) if torch.is_tensor(v) and v.is_floating_point() else v for n, v in b.items()
    }
    rows = T // 2 - _ahead(call)
    return bool(run(_replaced(a, nan, call, T // 2))[..., :rows, :].isnan().any())


def truncation(run: Run, a: dict[str, Any], b: dict[str, Any], call: external.Call, T: int) -> bool:
    """Compare f(x[:n]) with f(x)[:n] at the usual tolerance."""
    short = dict(a)
    for name, value in a.items():
        if torch.is_tensor(value) and name not in ("wq", "wk", "wv", "wo"):
            axis = 1 if value.dim() == 2 else -2
            short[name] = value.narrow(axis, 0, value.size(axis) - T // 2)
    return not torch.allclose(run(a)[..., : T // 2, :], run(short), rtol=1e-5, atol=1e-8)


def allclose(run: Run, a: dict[str, Any], b: dict[str, Any], call: external.Call, T: int) -> bool:
    """Every cut, all inputs at once, but forgiving 1e-5."""
    rows = [(cut, cut - _ahead(call)) for cut in range(1 + _ahead(call), T)]
    return any(
        not torch.allclose(run(a)[..., :r, :], run(_replaced(a, b, call, cut))[..., :r, :], rtol=0, atol=1e-5)
        for cut, r in rows
    )


CHECKS = {
    "one cut": one_cut,
    "last token to first row": last_to_first,
    "gradient of the sum": gradient_sum,
    "NaN poisoning": nan_poisoning,
    "prefix truncation": truncation,
    "allclose at 1e-5": allclose,
}


def comparison(T: int = 8) -> None:
    """Missed leaks and falsely accused valid code, on the same cases in one run."""
    cases = [case for case in external.index() if case["kind"] not in external.DATA_KINDS]
    if not cases:
        print(f"\nno cases at {external.FOLDER}: set AUTOGRADER_LEAK_CASES for the comparison")
        return
    missed: dict[str, list[str]] = {name: [] for name in (*CHECKS, "this detector")}
    accused: dict[str, list[str]] = {name: [] for name in missed}

    def note(check: str, case: dict[str, Any], sees: bool) -> None:
        if external.leaks(case) and not sees:
            missed[check].append(case["id"])
        elif case["valid"] and sees:
            accused[check].append(case["id"])

    for case in cases:
        if not (external.leaks(case) or case["valid"]):
            continue
        for name, check in CHECKS.items():
            call = external.load(case)
            if isinstance(call.fn, nn.Module):
                call.fn.eval()
            a, b = (call.inputs(2, T, torch.Generator().manual_seed(seed)) for seed in (0, 1))
            b |= {key: a[key] for key in ("wq", "wk", "wv", "wo") if key in a}

            def run(values: dict[str, Any], call: external.Call = call) -> Tensor:
                return first_tensor(call.fn(**values))

            try:
                sees = check(run, a, b, call, T)
            except (Failed, RuntimeError, IndexError):
                sees = False
            note(name, case, sees)
        call = external.load(case)
        report = detect(call.fn, call.inputs, **call.options)
        note("this detector", case, bool(report.leaking_inputs()))
    leaking, valid = sum(map(external.leaks, cases)), sum(case["valid"] for case in cases)
    print(f"\ncheck                     missed of {leaking}   falsely accused of {valid}")
    for name in missed:
        print(f"{name:24}  {len(missed[name]):12}   {len(accused[name]):21}")
    for name in ("this detector",):
        if missed[name] or accused[name]:
            print(name, "missed", missed[name], "accused", accused[name])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--large", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    times()
    growth()
    comparison()
    if options.large:
        large()


if __name__ == "__main__":
    main()
