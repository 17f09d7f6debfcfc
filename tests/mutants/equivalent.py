"""Mutants that change no output which the exercise defines, each with the reason."""

_SAME_AXIS = "Counted from the other end it is the same axis."
_NUMBER = "A tensor of one element is taken for its number."
_OWN = "It works in place on a tensor that the function made itself."
_SAME_SIZE = "Both have this size."
_OVERWRITTEN = "Every element is written before it is read."
_OTHER_FUTURE = "What stands in for the future is left open, and this is another one."
_OTHER_CHANGE = "How a position is changed is left open."

EQUIVALENT: dict[str, dict[str, str]] = {
    "prefix_mean_loop": {
        "line 2: torch.empty_like -> torch.zeros_like": _OVERWRITTEN,
        "line 2: torch.empty_like -> torch.ones_like": _OVERWRITTEN,
    },
    "averaging_matrix": {
        "line 3: -1 -> 1": _SAME_AXIS,
        "line 3: 1 -> -1": "A minus sign before -1 gives axis 1, the same one.",
    },
    "prefix_mean": {
        "line 4: -1 -> 1": _SAME_AXIS,
        "line 4: 1 -> -1": "A minus sign before -1 gives axis 1, the same one.",
    },
    "late_mask_row_sums": {
        "line 2: 1 -> 2": "The last two axes are equally long.",
        "line 4: weights.masked_fill -> weights.masked_fill_": _OWN,
    },
    "axis_examples": {
        "line 2: torch.float64 -> torch.float32": "Any floating dtype will do.",
    },
    "attend_row": {
        "line 2: 0 -> -1": _SAME_AXIS,
    },
    "permutation_gap": {
        "line 4: (shuffled_before - shuffled_after).abs().max().item() -> (shuffled_before - shuffled_after).abs().max()": _NUMBER,
    },
    "TokenPosEmbedding": {
        "line 9: 1 -> -1": _SAME_AXIS,
        "line 12: torch.arange(length, device=idx.device) -> torch.arange(length)": "Everything is on the CPU.",
    },
    "dropout_row_sums": {
        "line 4: 0 -> -1": "Which of the samples is returned is left open.",
        "line 4: sums.mean(dim=0) -> sums.mean()": "The mean over the rows as well is accepted: 'the mean of the row sums' can be read so.",
    },
    "run_gradcheck": {
        "line 2: torch.randn -> torch.rand": "Which inputs are drawn is left open.",
        "line 2: 1 -> 2": "The size of the batch is left open.",
    },
    "prefix_leak": {
        "line 7: (after - before).abs().max().item() -> (after - before).abs().max()": _NUMBER,
        "line 4: torch.randn_like -> torch.rand_like": _OTHER_FUTURE,
        "line 4: torch.randn_like -> torch.zeros_like": _OTHER_FUTURE,
        "line 4: torch.randn_like -> torch.ones_like": _OTHER_FUTURE,
    },
    "leak_matrix": {
        "line 4: torch.zeros -> torch.ones": _OVERWRITTEN,
        "line 7: changed[:, s] += torch.randn_like(changed[:, s]) -> changed[:, s] -= torch.randn_like(changed[:, s])": _OTHER_CHANGE,
        "line 7: torch.randn_like -> torch.rand_like": _OTHER_CHANGE,
        "line 8: -1 -> 1": _SAME_AXIS,
        "line 8: 0 -> -1": "There is one sequence: the first is the last.",
        "line 8: 1 -> -1": "A minus sign before -1 gives axis 1, the same one.",
    },
    "model_leak": {
        "line 12: (after - before)[:, :t].abs().max().item() -> (after - before)[:, :t].abs().max()": _NUMBER,
        "line 4: torch.no_grad -> torch.enable_grad": "Gradients cost time, and no number changes.",
        "line 9: changed[:, t:] + step -> changed[:, t:] - step": "Backwards round the alphabet is another token, too.",
    },
    "scaled_scores": {
        "line 2: Q -> K": _SAME_SIZE,
    },
    "causal_attention": {
        "line 2: Q -> K": _SAME_SIZE,
        "line 4: torch.ones(T, T, dtype=torch.bool, device=Q.device) -> torch.ones(T, T, dtype=torch.bool)": "Everything is on the CPU.",
        "line 4: Q -> K": "Q, K and V are on one device.",
        "line 4: Q -> V": "Q, K and V are on one device.",
        "line 5: S.masked_fill -> S.masked_fill_": _OWN,
    },
    "Head": {
        "line 14: S.masked_fill -> S.masked_fill_": _OWN,
    },
    "score_stats": {
        "line 5: -1 -> 1": _SAME_AXIS,
        "line 5: 1 -> -1": "A minus sign before -1 gives axis 1, the same one.",
        "line 6: dots.var().item() -> dots.var()": _NUMBER,
        "line 6: (dots / math.sqrt(d)).var().item() -> (dots / math.sqrt(d)).var()": _NUMBER,
    },
    "multi_head_scores": {
        "line 4: 2 -> -2": _SAME_AXIS,
        "line 5: 2 -> -2": _SAME_AXIS,
        "line 6: -2 -> 2": _SAME_AXIS,
        "line 6: 2 -> -2": "A minus sign before -2 gives axis 2, the same one.",
    },
    "sharpen": {
        "line 2: 1 -> 0": "With one axis, axis -0 is the last one.",
    },
}
