"""Models that nobody here wrote, at random small configurations (extra ``test-leak``)."""

import random

import pytest
import torch
from torch import nn

from autograder.leak import detect

pytestmark = pytest.mark.slow


def embedded(C: int):
    return lambda B, T, rng: {"x": torch.randn(B, T, C, generator=rng)}


def token_ids(vocab: int):
    return lambda B, T, rng: {"input_ids": torch.randint(vocab, (B, T), generator=rng)}


@pytest.mark.parametrize("seed", range(3))
def test_gpt2(seed):
    transformers = pytest.importorskip("transformers")
    rand = random.Random(seed)
    heads, vocab = rand.choice([1, 2, 4]), rand.choice([20, 100])
    torch.manual_seed(seed)
    config = transformers.GPT2Config(
        vocab_size=vocab, n_positions=64, n_embd=8 * heads, n_layer=rand.choice([1, 2]), n_head=heads
    )
    model = transformers.GPT2LMHeadModel(config)
    report = detect(model, token_ids(vocab), seed=seed, language="en")
    assert report.verdict == "causal", str(report)


def test_gpt2_with_its_mask_switched_off_leaks_through_the_tokens():
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.GPT2Config(vocab_size=30, n_positions=64, n_embd=16, n_layer=1, n_head=2)
    config._attn_implementation = "eager"
    model = transformers.GPT2Model(config)

    def bidirectional(input_ids):
        everything = torch.zeros(len(input_ids), 1, input_ids.size(1), input_ids.size(1))
        return model(input_ids, attention_mask=everything)

    report = detect(bidirectional, token_ids(30), language="en")
    assert report.leaking_inputs() == ["input_ids"], str(report)
    assert "whole upper triangle" in str(report)


@pytest.mark.parametrize("seed", range(3))
def test_llama(seed):
    transformers = pytest.importorskip("transformers")
    rand = random.Random(seed)
    heads = rand.choice([2, 4])
    torch.manual_seed(seed)
    config = transformers.LlamaConfig(
        vocab_size=40,
        hidden_size=8 * heads,
        intermediate_size=24,
        num_hidden_layers=rand.choice([1, 2]),
        num_attention_heads=heads,
        num_key_value_heads=rand.choice([1, 2]),
        max_position_embeddings=64,
    )
    report = detect(transformers.LlamaForCausalLM(config), token_ids(40), seed=seed, language="en")
    assert report.verdict == "causal", str(report)


@pytest.mark.parametrize("causal", [True, False])
def test_x_transformers(causal):
    x_transformers = pytest.importorskip("x_transformers")
    torch.manual_seed(0)
    kind = x_transformers.Decoder if causal else x_transformers.Encoder
    model = kind(dim=16, depth=1, heads=2, attn_dim_head=8, rotary_pos_emb=causal)
    report = detect(model, embedded(16), language="en")
    assert (report.verdict == "causal") == causal, str(report)
    assert report.leaking_inputs() == ([] if causal else ["x"])


@pytest.mark.parametrize("causal", [True, False])
def test_transformer_decoder_layer(causal):
    torch.manual_seed(0)
    layer = nn.TransformerDecoderLayer(16, 2, 32, batch_first=True)

    def decode(tgt, memory):
        mask = nn.Transformer.generate_square_subsequent_mask(tgt.size(1)) if causal else None
        return layer(tgt, memory, tgt_mask=mask)

    def inputs(B, T, rng):
        return {"tgt": torch.randn(B, T, 16, generator=rng), "memory": torch.randn(B, 6, 16, generator=rng)}

    report = detect(decode, inputs, language="en")
    assert report.leaking_inputs() == ([] if causal else ["tgt"]), str(report)
    assert report.ok == causal


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize("kind", [bool, float])
def test_multihead_attention_with_either_kind_of_mask(kind, fast):
    torch.manual_seed(0)
    layer = nn.MultiheadAttention(16, 2, batch_first=True, dropout=0.1)

    def attend(x):
        blocked = torch.ones(x.size(1), x.size(1), dtype=torch.bool).triu(1)
        mask = blocked if kind is bool else torch.zeros(blocked.shape).masked_fill(blocked, -torch.inf)
        return layer(x, x, x, attn_mask=mask, need_weights=not fast)

    report = detect(attend, embedded(16), language="en")
    assert report.verdict == "causal", str(report)


def test_multihead_attention_with_the_mask_the_wrong_way_round():
    layer = nn.MultiheadAttention(16, 2, batch_first=True)

    def attend(x):
        return layer(x, x, x, attn_mask=torch.ones(x.size(1), x.size(1), dtype=torch.bool).tril(), need_weights=False)

    report = detect(attend, embedded(16), language="en")
    assert report.leaking_inputs() == ["x"]
    assert any(finding.kind == "ignores-past" for finding in report.findings) or report.verdict == "nonfinite"


@pytest.mark.parametrize("both_ways", [True, False])
def test_lstm(both_ways):
    torch.manual_seed(0)
    lstm = nn.LSTM(8, 8, num_layers=2, dropout=0.2, batch_first=True, bidirectional=both_ways)
    report = detect(lstm, lambda B, T, rng: {"input": torch.randn(B, T, 8, generator=rng)}, language="en")
    assert report.leaking_inputs() == (["input"] if both_ways else []), str(report)


@pytest.mark.parametrize("centred", [True, False])
def test_conv1d(centred):
    torch.manual_seed(0)
    conv = nn.Conv1d(8, 8, 3, padding=1 if centred else 2)

    def convolve(x):
        return conv(x.mT)[..., : x.size(1)].mT

    report = detect(convolve, embedded(8), language="en")
    assert report.leaking_inputs() == (["x"] if centred else []), str(report)
    assert not centred or "Only the next position" in str(report)
