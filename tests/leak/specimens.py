"""Small right and wrong sequence code, each with the verdict it deserves: the detector's own exhibits.

`leaky` marks code whose rows see later positions and names the inputs they come through; `sound` marks code that is
causal, however odd it looks; `faulty` marks other failures.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

INF = float("inf")
C = 8


@dataclass
class Specimen:
    """A function (or a class to make a module of), its inputs, and what `detect` must say."""

    make: Callable[[], Callable[..., Any]]
    inputs: Callable[[int, int, torch.Generator], dict[str, Any]]
    verdicts: tuple[str, ...]
    ways_in: frozenset[str] = frozenset()
    options: dict[str, Any] = field(default_factory=dict)
    words: str = ""  # a piece of the English meaning


SPECIMENS: dict[str, Specimen] = {}


def draw(*shape: int, rng: torch.Generator) -> Tensor:
    return torch.randn(*shape, generator=rng, dtype=torch.float64)


def qkv(B: int, T: int, rng: torch.Generator) -> dict[str, Any]:
    return {name: draw(B, 2, T, 4, rng=rng) for name in ("q", "k", "v")}


def sequence(B: int, T: int, rng: torch.Generator) -> dict[str, Any]:
    return {"x": draw(B, T, C, rng=rng)}


def tokens(B: int, T: int, rng: torch.Generator) -> dict[str, Any]:
    return {"ids": torch.randint(1, 50, (B, T), generator=rng)}


def _enter(verdicts: tuple[str, ...], ways_in: str, inputs: Any, words: str, options: dict[str, Any]) -> Any:
    def enter(code: Any) -> Any:
        make = (lambda: code().double()) if isinstance(code, type) else (lambda: code)
        given = inputs or (sequence if isinstance(code, type) else qkv)
        SPECIMENS[code.__name__] = Specimen(make, given, verdicts, frozenset(ways_in.split()), options, words)
        return code

    return enter


def leaky(ways_in: str, *, verdict: str = "leaks", inputs: Any = None, words: str = "", **options: Any) -> Any:
    return _enter((verdict,), ways_in, inputs, words, options)


def sound(*, inputs: Any = None, numerical: bool = False, **options: Any) -> Any:
    return _enter(("numerical-leak",) if numerical else ("causal",), "", inputs, "", options)


def faulty(verdict: str, *, inputs: Any = None, words: str = "", **options: Any) -> Any:
    return _enter((verdict,), "", inputs, words, options)


def past(T: int, diagonal: int = 0) -> Tensor:
    return torch.ones(T, T, dtype=torch.bool).tril(diagonal)


def attend(q: Tensor, k: Tensor, v: Tensor, keep: Tensor, fill: float = -INF) -> Tensor:
    scores = q @ k.mT / q.size(-1) ** 0.5  # (B, H, T, T)
    return scores.masked_fill(~keep, fill).softmax(-1) @ v


# --- masks -----------------------------------------------------------------------------------------------------------


@leaky("k v", words="off by one")
def diagonal_one_too_far(q, k, v):
    return attend(q, k, v, past(q.size(-2), 1))


@leaky("k v")
def second_head_unmasked(q, k, v):
    keep = past(q.size(-2)).repeat(2, 1, 1)
    keep[1] = True
    return attend(q, k, v, keep)


@leaky("k v", words="only above 32 positions")
def mask_only_up_to_32(q, k, v):
    T = q.size(-2)
    return attend(q, k, v, past(T, 0 if T <= 32 else T))


@leaky("k v")
def mask_only_for_even_lengths(q, k, v):
    T = q.size(-2)
    return attend(q, k, v, past(T, 0 if T % 2 == 0 else 1))


@leaky("k v", words="only when B equals T")
def unmasked_when_b_equals_t(q, k, v):
    T = q.size(-2)
    return attend(q, k, v, past(T, T if len(q) == T else 0))


@leaky("k v", words="only when B is 1")
def unmasked_for_one_sample(q, k, v):
    T = q.size(-2)
    return attend(q, k, v, past(T, T if len(q) == 1 else 0))


@leaky("k v", words="only while autograd records")
def unmasked_with_gradients(q, k, v):
    T = q.size(-2)
    return attend(q, k, v, past(T, T if torch.is_grad_enabled() else 0))


@leaky("k v", words="one column too many")
def last_key_always_open(q, k, v):
    keep = past(q.size(-2))
    keep[:, -1] = True
    return attend(q, k, v, keep)


@leaky("k v")
def first_row_sees_all(q, k, v):
    keep = past(q.size(-2))
    keep[0] = True
    return attend(q, k, v, keep)


@leaky("k v", words="blocks of 4")
def chunks_see_themselves(q, k, v):
    chunk = torch.arange(q.size(-2)) // 4
    return attend(q, k, v, chunk[None, :] <= chunk[:, None])


@leaky("k v", words="only above 17 positions")
def far_future_only(q, k, v):
    i = torch.arange(q.size(-2))
    return attend(q, k, v, past(q.size(-2)) | (i[None, :] - i[:, None] > 20))


@leaky("v", words="usual tolerances")
def fill_of_minus_20(q, k, v):
    return attend(q, k, v, past(q.size(-2)), -20.0)


@leaky("v", words="not 0")
def fill_of_zero(q, k, v):
    return attend(q, k, v, past(q.size(-2)), 0.0)


@leaky("v", words="large logits only")
def fill_of_minus_1e5(q, k, v):
    return attend(q, k, v, past(q.size(-2)), -1e5)


@sound()
def fill_of_minus_1e9(q, k, v):
    return attend(q, k, v, past(q.size(-2)), -1e9)


@leaky("v")
def scores_times_mask(q, k, v):
    return (q @ k.mT * past(q.size(-2))).softmax(-1) @ v


@leaky("k", words="normaliser is taken before the mask")
def masked_weights_not_renormalised(q, k, v):
    return (q @ k.mT).softmax(-1).tril() @ v


@leaky("q", words="query axis")
def softmax_over_queries(q, k, v):
    return (q @ k.mT).masked_fill(~past(q.size(-2)), -INF).softmax(-2) @ v


@leaky("k v")
def loud_scores_ignore_the_mask(q, k, v):
    scores = q @ k.mT / 2
    return scores.masked_fill(~past(q.size(-2)) & (scores < 30), -INF).softmax(-1) @ v


@sound()
def exponentials_by_hand(q, k, v):
    weights = (q @ k.mT / 2).exp().tril()
    return weights / weights.sum(-1, keepdim=True) @ v


@sound(numerical=True)
def maximum_over_all_keys(q, k, v):
    scores = q @ k.mT / 2
    weights = (scores - scores.amax(-1, keepdim=True)).exp().tril()
    return weights / weights.sum(-1, keepdim=True) @ v


@sound()
def online_softmax(q, k, v):
    T, out = q.size(-2), torch.zeros_like(v)
    top = torch.full((*q.shape[:-1], 1), -INF, dtype=q.dtype)
    total = torch.zeros_like(top)
    for first in range(0, T, 4):
        keys = torch.arange(first, min(first + 4, T))
        scores = (q @ k[..., keys, :].mT / 2).masked_fill(keys[None] > torch.arange(T)[:, None], -INF)
        higher = torch.maximum(top, scores.amax(-1, keepdim=True))
        weights, decay = (scores - higher).exp(), (top - higher).exp()
        out, total, top = out * decay + weights @ v[..., keys, :], total * decay + weights.sum(-1, keepdim=True), higher
    return out / total


@sound()
def decaying_retention(q, k, v):
    i = torch.arange(q.size(-2), dtype=q.dtype)
    return (q @ k.mT * 0.9 ** (i[:, None] - i[None]).clamp(min=0)).tril() @ v


@sound()
def lengths_in_fours_only(q, k, v):
    q.unflatten(-2, (-1, 4))
    return attend(q, k, v, past(q.size(-2)))


@sound(max_T=16)
def stated_block_size(q, k, v):
    return attend(q, k, v, past(16)[: q.size(-2), : q.size(-2)] if q.size(-2) <= 16 else None)


@sound(inputs=lambda B, T, rng: {n: draw(B, 2, T + (5 if n in "kv" else 0), 4, rng=rng) for n in "qkv"}, diagonal=5)
def keys_ahead_in_a_cache(q, k, v):
    keep = torch.ones(q.size(-2), k.size(-2), dtype=torch.bool).tril(k.size(-2) - q.size(-2))
    return attend(q, k, v, keep)


@leaky(
    "k v", inputs=lambda B, T, rng: {n: draw(B, 2, T + (5 if n in "kv" else 0), 4, rng=rng) for n in "qkv"}, diagonal=5
)
def cache_off_by_one(q, k, v):
    keep = torch.ones(q.size(-2), k.size(-2), dtype=torch.bool).tril(k.size(-2) - q.size(-2) + 1)
    return attend(q, k, v, keep)


@leaky("k v", expect="strictly-causal", causal_inputs=["k", "v"])
def diagonal_where_none_is_allowed(q, k, v):
    return attend(q, k, v, past(q.size(-2)))


@sound(expect="strictly-causal", causal_inputs=["k", "v"])
def strictly_the_past(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=past(q.size(-2), -1))


@sound(expect="none")
def encoder_without_a_mask(q, k, v):
    return F.scaled_dot_product_attention(q, k, v)


# --- ways around the mask ----------------------------------------------------------------------------------------------


@leaky("v", words="side path")
def mean_of_values_added(q, k, v):
    return attend(q, k, v, past(q.size(-2))) + 1e-7 * v.mean(-2, keepdim=True)


@leaky("v")
def detached_sign_of_the_sum(q, k, v):
    return attend(q, k, v, past(q.size(-2))) * v.sum((-1, -2), keepdim=True).sign().detach()


@leaky("k q")
def scores_standardised(q, k, v):
    scores = q @ k.mT
    return (scores / scores.std((-1, -2), keepdim=True)).masked_fill(~past(q.size(-2)), -INF).softmax(-1) @ v


@leaky("x", inputs=sequence)
def value_of_the_last_row_as_scale(x):
    return x.cumsum(1) / x[:, -1:].norm(dim=-1, keepdim=True)


@leaky("x", inputs=sequence)
def rank_in_the_sequence(x):
    return x.cumsum(1) + x[..., 0].argsort(1).argsort(1)[..., None]


@leaky("x", inputs=sequence)
def winner_at_the_end(x):
    last_wins = x[..., 0].argmax(1) == x.size(1) - 1
    return x.cumsum(1) + 1e-3 * last_wins[:, None, None]


@leaky("x", inputs=sequence)
def length_counted_from_zero_rows(x):
    return x.cumsum(1) * (x.abs().sum(-1) != 0).sum(1)[:, None, None]


@leaky("x", inputs=sequence)
def summed_from_the_right(x):
    return x.flip(1).cumsum(1).flip(1)


@leaky("x", inputs=sequence)
def expert_capacity(x):
    score = x[..., 0]
    chosen = torch.zeros_like(score, dtype=torch.bool).scatter(1, score.topk(-(-x.size(1) // 2), 1).indices, True)
    return torch.where(chosen[..., None], 2 * x, x).cumsum(1)


@sound(inputs=sequence)
def expert_chosen_by_each_token(x):
    return torch.where(x[..., :1] > x[..., 1:2], 2 * x, -x).cumsum(1)


@sound(inputs=sequence)
def flipped_twice(x):
    return x.flip(1).flip(1).cummax(1).values


@sound(inputs=sequence, numerical=True)
def total_minus_the_rest(x):
    return x.sum(1, keepdim=True) - (x.flip(1).cumsum(1).flip(1) - x)


@sound(inputs=sequence)
def bfloat16_inside(x):
    y = x.bfloat16()
    return ((y @ y.mT / 3).masked_fill(~past(x.size(1)), -INF).softmax(-1) @ y).to(x.dtype)


@sound(inputs=sequence)
def float32_inside(x):
    y = x.float()
    return ((y @ y.mT / 3).masked_fill(~past(x.size(1)), -INF).softmax(-1) @ y).to(x.dtype) * 3.1


@sound(inputs=lambda B, T, rng: {"x": draw(T, C, rng=rng)})
def one_sequence_without_batch(x):
    return torch.stack([x[: t + 1].mean(0) for t in range(len(x))])


@leaky("x", inputs=lambda B, T, rng: {"x": draw(T, C, rng=rng)})
def one_sequence_centred(x):
    return x - x.mean(0)


@leaky("x", inputs=lambda B, T, rng: {"x": draw(T, B, C, rng=rng)}, time_dim=0, out_time_dim=0)
def time_axis_first_centred(x):
    return x - x.mean(0)


# --- other failures ----------------------------------------------------------------------------------------------------


@faulty("mutates-input")
def writes_into_q(q, k, v):
    q *= 0.5
    return attend(q, k, v, past(q.size(-2)))


@faulty("mutates-input")
def writes_behind_autograd(q, k, v):
    v.data.mul_(0.5)
    return attend(q, k, v, past(q.size(-2)))


@faulty("mixes-batch")
def mean_over_the_batch(q, k, v):
    return attend(q, k, v, past(q.size(-2))) + v.mean(0)


@faulty("mixes-batch", inputs=sequence, words="place in the batch")
def encodings_by_batch_index(x):
    return x.cumsum(1) + torch.arange(len(x))[:, None, None].sin()


@leaky("k v", words="only above 40 positions")
def tiles_of_64(q, k, v):
    i = torch.arange(q.size(-2))
    return attend(q, k, v, past(q.size(-2)) | (i[None] // 64 == 1))


@faulty("nonfinite", words="blocks the diagonal")
def first_row_empty(q, k, v):
    return attend(q, k, v, past(q.size(-2), -1))


@faulty("nonfinite", words="Every row")
def zero_times_infinity(q, k, v):
    T = q.size(-2)
    return (q @ k.mT + (1 - torch.ones(T, T).tril()) * -INF).softmax(-1) @ v


@faulty("ignores-past")
def only_itself(q, k, v):
    return attend(q, k, v, torch.eye(q.size(-2), dtype=torch.bool))


@faulty("ignores-past")
def a_constant(q, k, v):
    return torch.ones_like(v)


@faulty("length-dependent", inputs=sequence, words="dividing by T")
def sum_over_the_length(x):
    return x.cumsum(1) / x.size(1)


@faulty("length-dependent", inputs=sequence)
def counted_from_the_end(x):
    return x.cumsum(1) + torch.arange(x.size(1) - 1, -1, -1)[:, None]


@faulty("error", inputs=sequence)
def last_state_only(x):
    return x.cumsum(1)[:, -1]


@faulty("error", inputs=sequence)
def nothing_returned(x):
    x.cumsum(1)


@faulty("error")
def one_length_fits(q, k, v):
    return attend(q, k, v, past(16))


# --- modules -----------------------------------------------------------------------------------------------------------


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.rnn, self.state = nn.GRU(C, C, batch_first=True), None


@sound()
class StartsAfresh(Recurrent):
    def forward(self, x):
        return self.rnn(x)[0]


@faulty("stateful", words="not reset")
class KeepsItsState(Recurrent):
    def forward(self, x):
        if self.state is not None and self.state.size(1) != len(x):
            self.state = None
        y, self.state = self.rnn(x, self.state)
        return y


@faulty("stateful")
class RemembersTheLengthBefore(Recurrent):
    def forward(self, x):
        y = self.rnn(x)[0] * (1.0 if self.state in (None, x.size(1)) else 0.5)
        self.state = x.size(1)
        return y


@sound()
class AveragesInTraining(Recurrent):
    def forward(self, x):
        y = self.rnn(x)[0]
        centred = y if self.state is None else y - self.state
        if self.training:
            self.state = y.mean().detach()
        return centred


@leaky("x", verdict="mixes-batch")
class BatchNormBefore(Recurrent):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(C)

    def forward(self, x):
        return self.rnn(self.norm(x.mT).mT)[0]


@leaky("x", words="train mode only")
class UnmaskedInTraining(nn.Module):
    def forward(self, x):
        return F.scaled_dot_product_attention(x, x, x, is_causal=not self.training)


@leaky("x", words="dropout on masked scores")
class DropoutOnScores(nn.Module):
    def forward(self, x):
        scores = F.dropout((x @ x.mT).masked_fill(~past(x.size(1)), -1e9), 0.2, self.training)
        return scores.softmax(-1) @ x


@faulty("random", words="eval mode")
class AlwaysDrops(nn.Module):
    def forward(self, x):
        return F.dropout(x, 0.2).cumsum(1)


@sound()
class DropsInTraining(nn.Module):
    def forward(self, x):
        return F.dropout(x, 0.2, self.training).cumsum(1)


@sound()
class NormOnly(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(C)

    def forward(self, x):
        return self.norm(x)


@faulty("ignores-past", words="not wired")
class AttentionForgotten(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.out = nn.Linear(C, C), nn.Linear(C, C)

    def forward(self, x):
        F.scaled_dot_product_attention(self.query(x), x, x, is_causal=True)
        return x + self.out(x)


class Dilated(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.conv = nn.Conv1d(C, C, 3, dilation=4)


@sound()
class PaddedLeft(Dilated):
    def forward(self, x):
        return self.conv(F.pad(x.mT, (8, 0))).mT


@leaky("x")
class PaddedBothSides(Dilated):
    def forward(self, x):
        return self.conv(F.pad(x.mT, (4, 4))).mT


@leaky("x", words="Only the next position")
class ShiftedTheWrongWay(nn.Module):
    def forward(self, x):
        return x.cumsum(1) + F.pad(x, (0, 0, -1, 1))


@leaky("x", words="wrap-around")
class RolledIn(nn.Module):
    def forward(self, x):
        return x.cumsum(1) + x.roll(1, 1)


class Tokens(nn.Module):
    mask = True

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.table = nn.Embedding(50, C)

    def forward(self, ids):
        x = self.table(ids)  # (B, T, C)
        return F.scaled_dot_product_attention(x, x, x, is_causal=self.mask)


@sound(inputs=tokens)
class MaskedTokens(Tokens):
    pass


@leaky("ids", inputs=tokens)
class UnmaskedTokens(Tokens):
    mask = False


@leaky("ids", inputs=tokens)
class LengthFromPadding(Tokens):
    def forward(self, ids):
        return super().forward(ids) * (ids != 0).sum(1)[:, None, None]


# --- odd forms of output, state and parameters -----------------------------------------------------------------------------


@sound(inputs=sequence)
def loss_before_the_logits(x):
    return {"loss": x.mean(), "logits": x.cumsum(1)}


@leaky("x", inputs=sequence)
def logits_deep_inside(x):
    return ((x.mean(), {"logits": x.flip(1).cumsum(1)}), x)


@sound(inputs=sequence)
def one_number_per_position(x):
    return x.cumsum(1).sum(-1)  # (B, T): no axis of features, and B may equal T


@leaky("ids", inputs=tokens)
def most_frequent_token_so_far_and_after(ids):
    return (ids[:, :, None] == ids[:, None, :]).sum(-1)


@sound(inputs=lambda B, T, rng: {"x": draw(B, T, C, rng=rng), "memory": draw(B, T, C, rng=rng)}, causal_inputs=["x"])
def memory_as_long_as_the_sequence(x, memory):
    return x.cumsum(1) + (x @ memory.mT).softmax(-1) @ memory


@leaky("x", inputs=sequence)
def bfloat16_throughout_without_a_mask(x):
    y = x.bfloat16()
    return (y @ y.mT / 3).softmax(-1) @ y


@leaky("x", inputs=sequence)
def prefix_sums_that_wrap_around(x):
    step = 1
    while step < x.size(1):
        x, step = x + x.roll(step, 1), 2 * step
    return x


@leaky("x", inputs=sequence)
def chunk_written_before_it_is_read(x):
    state, rows = torch.zeros(len(x), C, C, dtype=x.dtype), []
    for chunk in x.split(4, 1):
        state = 0.9 * state + chunk.mT @ chunk
        rows.append(chunk @ state)
    return torch.cat(rows, 1)


@leaky("x", inputs=sequence)
def few_tokens_chosen_for_more_depth(x):
    chosen = x[..., 0].topk(max(1, x.size(1) // 4), 1).indices
    return x.cumsum(1) * torch.ones_like(x[..., 0]).scatter(1, chosen, 2.0)[..., None]


@sound(inputs=sequence, numerical=True)
def padded_fft_with_a_single_precision_kernel(x):
    T, kernel = x.size(1), 0.9 ** torch.arange(x.size(1))
    spectrum = torch.fft.rfft(kernel.to(x.dtype), n=2 * T)[:, None]
    return torch.fft.irfft(torch.fft.rfft(x, n=2 * T, dim=1) * spectrum, n=2 * T, dim=1)[:, :T]


LAYERS = [nn.Dropout(0.5), nn.Softmax(-1)]


@sound(inputs=sequence)
def layers_in_a_list(x):
    for layer in LAYERS:
        x = layer(x)
    return x.cumsum(1)


@faulty("random", inputs=sequence)
def whole_samples_dropped(x):
    return x.cumsum(1) * (torch.rand(len(x), 1, 1) > 0.5)


@sound()
class WholeSamplesDroppedInTraining(nn.Module):
    def forward(self, x):
        return x.cumsum(1) * (torch.rand(len(x), 1, 1) > 0.5) if self.training else x.cumsum(1)


@sound()
class GeneratorOfItsOwn(nn.Module):
    def __init__(self):
        super().__init__()
        self.rng = torch.Generator().manual_seed(0)

    def forward(self, x):
        return x.cumsum(1) * torch.rand(x.shape, generator=self.rng) if self.training else x.cumsum(1)


@sound()
class PowerIteration(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.utils.parametrizations.spectral_norm(nn.Linear(C, C))

    def forward(self, x):
        return self.linear(x).cumsum(1)


@leaky("x", verdict="stateful")
class CentredByTheFirstBatch(nn.Module):
    mean = None

    def forward(self, x):
        if self.mean is None:
            self.mean = x.mean((0, 1))
        return (x - self.mean).cumsum(1)


@leaky("x")
class SameTensorEveryTime(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = {}

    def forward(self, x):
        out = self.out.setdefault(x.shape, torch.empty_like(x))
        return out.copy_(x.flip(1).cumsum(1)) if not x.requires_grad else x.flip(1).cumsum(1)


class ZeroGate(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Parameter(torch.zeros(1))


@sound()
class GateStillShut(ZeroGate):
    def forward(self, x):
        return x + self.gate * x.cumsum(1)


@leaky("x", words="parameters that are all zero")
class LeakBehindAShutGate(ZeroGate):
    def forward(self, x):
        return x.cumsum(1) + self.gate * x.mean(1, keepdim=True)
