"""Notebook 3: where a token stands, whom a decoder may look at, and what dropout does to a weighted sum."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F

from autograder.exercises import alternative, exercise, mistake

# ---------------------------------------------------------------- permutation_gap


@exercise
def permutation_gap(f, X, perm):
    shuffled_before = f(X[:, perm])  # (B, T, …)
    shuffled_after = f(X)[:, perm]  # (B, T, …)
    return (shuffled_before - shuffled_after).abs().max().item()


@mistake(
    of=permutation_gap,
    zh="输入换了顺序，输出却还按原来的顺序比较：这问的是“输出变不变”，而不是“输出是否跟着重排”。",
    en="The output is compared in its old order: that asks whether it stays the same, not whether it follows along.",
)
def invariance_instead(f, X, perm):
    return (f(X[:, perm]) - f(X)).abs().max().item()


@mistake(
    of=permutation_gap,
    zh="数一数 X 的三根轴：perm 重排的应是哪一根？最后一根装的是特征。",
    en="Count the three axes of X: which one should perm reorder? The last one holds features.",
)
def features_permuted(f, X, perm):
    return (f(X[..., perm]) - f(X)[..., perm]).abs().max().item()


@mistake(
    of=permutation_gap,
    zh="第 0 轴是 batch：交换两条序列的次序，什么也说明不了。",
    en="Axis 0 is the batch: swapping whole sequences says nothing about positions.",
)
def batch_permuted(f, X, perm):
    return (f(X[perm]) - f(X)[perm]).abs().max().item()


@mistake(
    of=permutation_gap,
    zh="换一个因果的 f 试试，结果还是 0：相减的两边是不是同一次计算？",
    en="Try a causal f and it is still 0: are the two sides of your subtraction one and the same computation?",
)
def same_input_on_both_sides(f, X, perm):
    return (f(X[:, perm]) - f(X[:, perm])).abs().max().item()


@mistake(
    of=permutation_gap,
    zh="差可以是负数：一个处处偏小的输出，会被你当成没有差距。",
    en="A difference can be negative: an output that is too small everywhere counts as no gap with yours.",
)
def sign_kept(f, X, perm):
    return (f(X[:, perm]) - f(X)[:, perm]).max().item()


@mistake(
    of=permutation_gap,
    zh="只有一个位置出错时，平均值会把它冲淡：要报告的是最大的差。",
    en="When a single position is off, an average waters it down: report the largest difference.",
)
def average_difference(f, X, perm):
    return (f(X[:, perm]) - f(X)[:, perm]).abs().mean().item()


@mistake(
    of=permutation_gap,
    zh="输入用了 perm，输出用了它的逆：对一般的排列，这两者不是同一次重排。",
    en="The input went through perm, the output through its inverse: for most permutations that is another order.",
)
def inverse_on_the_output(f, X, perm):
    return (f(X[:, perm]) - f(X)[:, perm.argsort()]).abs().max().item()


@mistake(
    of=permutation_gap,
    zh="你只看了 batch 里的第一条序列，其余几条里的差距被漏掉了。",
    en="Only the first sequence of the batch was looked at; a gap in another one goes unseen.",
)
def first_sequence_only(f, X, perm):
    return (f(X[:, perm]) - f(X)[:, perm])[0].abs().max().item()


@mistake(
    of=permutation_gap,
    zh="小的差距被你当成了舍入误差：题目要的是差的大小，舍不舍去由看的人决定。",
    en="A small gap is passed off as rounding: the size of the difference is asked for, whoever reads it can judge.",
)
def small_gaps_forgiven(f, X, perm):
    gap = (f(X[:, perm]) - f(X)[:, perm]).abs().max().item()
    return gap if gap > 1e-5 else 0.0


@alternative(of=permutation_gap)
def put_back_in_order(f, X, perm):
    back = torch.empty_like(perm)  # (T,)
    back[perm] = torch.arange(len(perm))
    return float((f(X[:, perm])[:, back] - f(X)).abs().amax())


@alternative(of=permutation_gap)
def with_permutation_matrix(f, X, perm):
    P = torch.eye(len(perm), dtype=X.dtype)[perm]  # (T, T)
    return torch.linalg.vector_norm(f(P @ X) - P @ f(X), ord=math.inf)


# ---------------------------------------------------------------- TokenPosEmbedding


@exercise
class TokenPosEmbedding(nn.Module):
    def __init__(self, V, C, T_max):
        super().__init__()
        self.T_max = T_max
        self.token = nn.Embedding(V, C)
        self.position = nn.Embedding(T_max, C)

    def forward(self, idx):
        length = idx.shape[1]
        if length > self.T_max:
            raise ValueError(f"the context has {length} tokens, the position table has only {self.T_max} rows")
        positions = torch.arange(length, device=idx.device)  # (T,)
        return self.token(idx) + self.position(positions)  # (B, T, C) + (T, C)


class _Tables(nn.Module):
    """What the wrong solutions share: the two tables."""

    def __init__(self, V, C, T_max):
        super().__init__()
        self.T_max = T_max
        self.token = nn.Embedding(V, C)
        self.position = nn.Embedding(T_max, C)

    def check(self, idx):
        if idx.shape[1] > self.T_max:
            raise ValueError("too long")


@mistake(
    of=TokenPosEmbedding,
    zh="同一个字符出现在两个位置时，你给的向量完全一样：位置表是用什么去查的？",
    en="One character at two positions gets the same vector: what is your position table looked up with?",
)
class PositionByTokenId(_Tables):
    def forward(self, idx):
        self.check(idx)
        return self.token(idx) + self.position(idx % self.T_max)


@mistake(
    of=TokenPosEmbedding,
    zh="输出变宽了：两个向量合成一个 C 维向量时，特征数不应增加。",
    en="The output got wider: joining the two vectors must leave C features.",
)
class Concatenated(_Tables):
    def forward(self, idx):
        self.check(idx)
        positions = self.position(torch.arange(idx.shape[1])).expand(*idx.shape, -1)
        return torch.cat([self.token(idx), positions], dim=-1)


@mistake(
    of=TokenPosEmbedding,
    zh="第 0 行与第 1 行序列加上的位置向量不同：位置只和它在序列里的次序有关，与 batch 里的行号无关。",
    en="Rows of the batch got different position vectors: positions count along the sequence, not down the batch.",
)
class PositionByBatchRow(_Tables):
    def forward(self, idx):
        self.check(idx)
        rows = torch.arange(idx.shape[0]) % self.T_max
        return self.token(idx) + self.position(rows)[:, None]


@mistake(
    of=TokenPosEmbedding,
    zh="序列比位置表还长时，你悄悄重复了最后一行；应当让调用的人知道。",
    en="When the sequence is longer than the table, the last row is silently reused; the caller should be told.",
)
class ClampedPositions(_Tables):
    def forward(self, idx):
        positions = torch.arange(idx.shape[1]).clamp(max=self.T_max - 1)
        return self.token(idx) + self.position(positions)


@mistake(
    of=TokenPosEmbedding,
    zh="序列太长时，错误来自查表本身（IndexError）；题目要的是一句说得清楚的 ValueError。",
    en="A sequence that is too long fails inside the lookup (IndexError); asked for is a ValueError that explains.",
)
class LengthNotChecked(_Tables):
    def forward(self, idx):
        return self.token(idx) + self.position(torch.arange(idx.shape[1]))


@mistake(
    of=TokenPosEmbedding,
    zh="长度恰好等于 T_max 的序列是放得下的，你却报了错：看看比较号。",
    en="A sequence of exactly T_max tokens fits, yet yours refuses it: look at the comparison.",
)
class FullLengthRefused(_Tables):
    def forward(self, idx):
        if idx.shape[1] >= self.T_max:
            raise ValueError("too long")
        return self.token(idx) + self.position(torch.arange(idx.shape[1]))


@mistake(
    of=TokenPosEmbedding,
    zh="位置表建好了，却没有进入输出：它的梯度会是空的。",
    en="The position table exists but never reaches the output: its gradient stays empty.",
)
class PositionsForgotten(_Tables):
    def forward(self, idx):
        self.check(idx)
        return self.token(idx)


@mistake(
    of=TokenPosEmbedding,
    zh="第一个字符的位置是 0：看看你的下标从几开始。",
    en="The first token stands at position 0: see where your count starts.",
)
class CountedFromOne(_Tables):
    def forward(self, idx):
        self.check(idx)
        positions = torch.arange(1, idx.shape[1] + 1) % self.T_max
        return self.token(idx) + self.position(positions)


@mistake(
    of=TokenPosEmbedding,
    zh="位置表也要学习：它应当是参数，参数总数是 V·C + T_max·C。",
    en="The position table is learned too: it should be a parameter, V·C + T_max·C numbers in all.",
)
class PositionsNotLearned(_Tables):
    def __init__(self, V, C, T_max):
        super().__init__(V, C, T_max)
        self.position.weight.requires_grad_(False)
        self.register_buffer("frozen", self.position.weight.detach().clone())
        del self.position

    def forward(self, idx):
        self.check(idx)
        return self.token(idx) + self.frozen[: idx.shape[1]]


@mistake(
    of=TokenPosEmbedding,
    zh="同一段开头，后面多接几个字符，它的位置向量就变了：位置应从序列的开头数起。",
    en="Append a few tokens and the position vectors of the beginning change: count from the start of the sequence.",
)
class CountedFromTheEnd(_Tables):
    def forward(self, idx):
        self.check(idx)
        return self.token(idx) + self.position.weight[-idx.shape[1] :]


@alternative(of=TokenPosEmbedding)
class WithPlainParameters(nn.Module):
    def __init__(self, V, C, T_max):
        super().__init__()
        self.E = nn.Parameter(torch.randn(V, C) * 0.02)
        self.P = nn.Parameter(torch.zeros(1, T_max, C))

    def forward(self, idx):
        B, T = idx.shape
        if self.P.shape[1] < T:
            raise ValueError("the context is too long")
        return self.E[idx] + self.P[:, :T].expand(B, T, -1)


@alternative(of=TokenPosEmbedding)
class WithPositionBuffer(nn.Module):
    def __init__(self, V, C, T_max):
        super().__init__()
        self.pos_emb = nn.Embedding(T_max, C)
        self.tok_emb = nn.Embedding(V, C)
        self.register_buffer("positions", torch.arange(T_max))

    def forward(self, idx):
        if idx.shape[1] > len(self.positions):
            raise ValueError("the context is too long")
        positions = self.positions[: idx.shape[1]].unsqueeze(0).expand_as(idx)  # (B, T)
        return self.pos_emb(positions).add(self.tok_emb(idx))


@alternative(of=TokenPosEmbedding)
class OneHotTokens(nn.Module):
    def __init__(self, V, C, T_max):
        super().__init__()
        self.V = V
        self.tokens = nn.Linear(V, C, bias=False)  # its weight is E transposed, (C, V)
        self.P = nn.Parameter(torch.randn(1, T_max, C))

    def forward(self, idx):
        T = idx.shape[1]
        if self.P.shape[1] < T:
            raise ValueError("too long")
        return self.tokens(F.one_hot(idx, self.V).to(self.P.dtype)) + self.P[:, :T]


# ---------------------------------------------------------------- crop_context


@exercise
def crop_context(idx, T_max):
    return idx[:, -T_max:]  # (B, min(T, T_max))


@mistake(
    of=crop_context,
    zh="接着往下写时，离得最近的字符在哪一头？你留下的是最早的那些。",
    en="When the text goes on, at which end are the nearest tokens? You kept the oldest ones.",
)
def oldest_kept(idx, T_max):
    return idx[:, :T_max]


@mistake(
    of=crop_context,
    zh="被剪短的是 batch：第 0 轴是序列的条数，时间是第 1 轴。",
    en="The batch was cropped: axis 0 counts sequences, time is axis 1.",
)
def batch_cropped(idx, T_max):
    return idx[-T_max:]


@mistake(
    of=crop_context,
    zh="数一数剩下几个位置：多了一个。",
    en="Count the positions that are left: there is one too many.",
)
def one_too_many(idx, T_max):
    return idx[:, -T_max - 1 :]


@mistake(
    of=crop_context,
    zh="数一数剩下几个位置：少了一个。",
    en="Count the positions that are left: one is missing.",
)
def one_too_few(idx, T_max):
    return idx[:, max(idx.shape[1] - T_max + 1, 0) :]


@mistake(
    of=crop_context,
    zh="试一段比 T_max 还短的序列：起点成了负数，本来不用剪的也被剪掉了。",
    en="Try a sequence shorter than T_max: the start turns negative, and tokens that fit are cut off.",
)
def negative_start(idx, T_max):
    return idx[:, idx.shape[1] - T_max :]


@mistake(
    of=crop_context,
    zh="最新的字符被丢掉了：右端应一直保留到最后一个位置。",
    en="The newest token is gone: the right end should reach the last position.",
)
def newest_dropped(idx, T_max):
    return idx[:, :-1][:, -T_max:] if idx.shape[1] > T_max else idx


@alternative(of=crop_context)
def with_narrow(idx, T_max):
    T = idx.size(1)
    keep = min(T, T_max)
    return idx.narrow(1, T - keep, keep)


@alternative(of=crop_context)
def only_when_too_long(idx, T_max):
    return idx if idx.size(1) <= T_max else idx[:, -T_max:].clone()


# ---------------------------------------------------------------- cross_attention


@exercise
def cross_attention(X_out, X_enc, Wq, Wk, Wv):
    Q = X_out @ Wq  # (B, T_out, d)
    K = X_enc @ Wk  # (B, T_in, d)
    V = X_enc @ Wv  # (B, T_in, d)
    scores = Q @ K.transpose(-2, -1) / math.sqrt(Q.shape[-1])  # (B, T_out, T_in)
    A = scores.softmax(dim=-1)  # (B, T_out, T_in)
    return A @ V, A


def _attend(Q, K, V, scale):
    A = (Q @ K.transpose(-2, -1) * scale).softmax(dim=-1)
    return A @ V, A


@mistake(
    of=cross_attention,
    zh="改动编码器的最后一个位置，第一个输出竟然不变：编码器的整句话本来就都可以看。",
    en="Change the encoder's last position: the first output does not move, though the whole sentence is visible.",
)
def causal_mask_applied(X_out, X_enc, Wq, Wk, Wv):
    Q, K, V = X_out @ Wq, X_enc @ Wk, X_enc @ Wv
    scores = Q @ K.transpose(-2, -1) / math.sqrt(Q.shape[-1])
    allowed = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
    A = scores.masked_fill(~allowed, -math.inf).softmax(dim=-1)
    return A @ V, A


@mistake(
    of=cross_attention,
    zh="A 的行应是正在生成的位置，你的行却是编码器的位置：谁来提问，谁来回答？",
    en="Rows of A should be the positions being generated; yours are the encoder's. Who asks, and who answers?",
)
def roles_swapped(X_out, X_enc, Wq, Wk, Wv):
    return _attend(X_enc @ Wq, X_out @ Wk, X_out @ Wv, 1 / math.sqrt(Wq.shape[1]))


@mistake(
    of=cross_attention,
    zh="分数来自编码器，被汇总的内容却来自输出侧：value 应由谁提供？",
    en="The scores come from the encoder, what is summed up comes from the output side: who should supply the values?",
)
def values_from_the_output(X_out, X_enc, Wq, Wk, Wv):
    return _attend(X_out @ Wq, X_enc @ Wk, X_out @ Wv, 1 / math.sqrt(Wq.shape[1]))


@mistake(
    of=cross_attention,
    zh="换一段编码器输入，结果不变：你算的还是自注意力。",
    en="Put in another encoder sequence and nothing changes: this is still self-attention.",
)
def self_attention_instead(X_out, X_enc, Wq, Wk, Wv):
    return _attend(X_out @ Wq, X_out @ Wk, X_out @ Wv, 1 / math.sqrt(Wq.shape[1]))


@mistake(
    of=cross_attention,
    zh="每一行加起来不是 1：softmax 应在来源之间分配，来源在哪一根轴上？",
    en="The rows do not add up to 1: softmax shares out among the sources; which axis are they on?",
)
def softmax_over_receivers(X_out, X_enc, Wq, Wk, Wv):
    Q, K, V = X_out @ Wq, X_enc @ Wk, X_enc @ Wv
    A = (Q @ K.transpose(-2, -1) / math.sqrt(Q.shape[-1])).softmax(dim=1)
    return A @ V, A


@mistake(
    of=cross_attention,
    zh="权重比应有的尖锐：点积的数量级会随 d 增长，缩放在哪里？",
    en="The weights are sharper than they should be: dot products grow with d; where is the scaling?",
)
def not_scaled(X_out, X_enc, Wq, Wk, Wv):
    return _attend(X_out @ Wq, X_enc @ Wk, X_enc @ Wv, 1.0)


@mistake(
    of=cross_attention,
    zh="缩放用的数不对：点积里一共加了几项？那不是 X_out 的宽度 C。",
    en="The scale is off: how many products does one dot product add up? That is not the width C of X_out.",
)
def scaled_by_width(X_out, X_enc, Wq, Wk, Wv):
    return _attend(X_out @ Wq, X_enc @ Wk, X_enc @ Wv, 1 / math.sqrt(X_out.shape[-1]))


@mistake(
    of=cross_attention,
    zh="权重是对的，汇总的内容却不是 value：再看看 A 去乘了谁。",
    en="The weights are right, but what they sum up are not the values: see what A multiplies.",
)
def keys_summed_up(X_out, X_enc, Wq, Wk, Wv):
    K = X_enc @ Wk
    return _attend(X_out @ Wq, K, K, 1 / math.sqrt(Wq.shape[1]))


@mistake(
    of=cross_attention,
    zh="这里的 W 是数学写法 (C, d)，X 直接右乘即可；转置只在 C=d 时才不报错。",
    en="W is in the mathematical layout (C, d) here: X @ W. A transpose goes unnoticed only when C = d.",
)
def weights_transposed(X_out, X_enc, Wq, Wk, Wv):
    return _attend(X_out @ Wq.T, X_enc @ Wk.T, X_enc @ Wv.T, 1 / math.sqrt(Wq.shape[1]))


@mistake(
    of=cross_attention,
    zh="返回了分数而不是权重：A 的每一行应当非负，加起来是 1。",
    en="Scores came back instead of weights: every row of A is non-negative and adds up to 1.",
)
def scores_returned(X_out, X_enc, Wq, Wk, Wv):
    Q, K, V = X_out @ Wq, X_enc @ Wk, X_enc @ Wv
    scores = Q @ K.transpose(-2, -1) / math.sqrt(Q.shape[-1])
    return scores.softmax(dim=-1) @ V, scores


@alternative(of=cross_attention)
def with_einsum(X_out, X_enc, Wq, Wk, Wv):
    q = torch.einsum("boc,cd->bod", X_out, Wq)
    k, v = (torch.einsum("bic,cd->bid", X_enc, W) for W in (Wk, Wv))
    scores = torch.einsum("bod,bid->boi", q, k) * Wq.shape[1] ** -0.5
    A = (scores - scores.logsumexp(dim=-1, keepdim=True)).exp()
    return torch.einsum("boi,bid->bod", A, v), A


@alternative(of=cross_attention)
def with_sdpa(X_out, X_enc, Wq, Wk, Wv):
    q, k, v = X_out @ Wq, X_enc @ Wk, X_enc @ Wv
    A = F.softmax(torch.baddbmm(q.new_zeros(()), q, k.mT, beta=0, alpha=1 / math.sqrt(q.size(-1))), dim=-1)
    return F.scaled_dot_product_attention(q, k, v), A


# ---------------------------------------------------------------- dropout_row_sums


@exercise
def dropout_row_sums(A, p, n):
    samples = F.dropout(A.expand(n, *A.shape), p)  # (n, B, T, T)
    sums = samples.sum(dim=-1)  # (n, B, T)
    return sums[0], sums.mean(dim=0)  # (B, T), (B, T)


@mistake(
    of=dropout_row_sums,
    zh="平均下来行和只剩 1−p：留下的权重还少了一步，才能补上丢掉的那一份。",
    en="On average the rows only add up to 1−p: the weights that stay must make up for those that went.",
)
def not_rescaled(A, p, n):
    sums = (A * (torch.rand(n, *A.shape) >= p)).sum(dim=-1)
    return sums[0], sums.mean(dim=0)


@mistake(
    of=dropout_row_sums,
    zh="每次抽样的行和都恰好是 1：dropout 之后并没有再归一化这一步。",
    en="Every sample's rows add up to exactly 1: nothing is normalised again after dropout.",
)
def normalised_again(A, p, n):
    samples = F.dropout(A.expand(n, *A.shape), p)
    samples = samples / samples.sum(dim=-1, keepdim=True).clamp(min=1e-12)
    sums = samples.sum(dim=-1)
    return sums[0], sums.mean(dim=0)


@mistake(
    of=dropout_row_sums,
    zh="什么也没有丢掉：dropout 此刻处在训练态吗？",
    en="Nothing was dropped: is dropout in training mode here?",
)
def nothing_dropped(A, p, n):
    sums = F.dropout(A.expand(n, *A.shape), p, training=False).sum(dim=-1)
    return sums[0], sums.mean(dim=0)


@mistake(
    of=dropout_row_sums,
    zh="p 是丢掉的概率，不是留下的概率：看看有多少权重变成了 0。",
    en="p is the chance of being dropped, not of staying: see how many weights became 0.",
)
def keeps_with_probability_p(A, p, n):
    kept = torch.rand(n, *A.shape) < p
    sums = (A * kept / max(p, 1e-12)).sum(dim=-1)
    return sums[0], sums.mean(dim=0)


@mistake(
    of=dropout_row_sums,
    zh="你丢的是整行的和，行和只会是 0 或 1/(1−p)；应当逐个丢掉 A 里的权重。",
    en="You dropped whole sums, so each is 0 or 1/(1−p); it is the single weights in A that are dropped.",
)
def sums_dropped(A, p, n):
    sums = F.dropout(A.sum(dim=-1).expand(n, *A.shape[:-1]), p)
    return sums[0], sums.mean(dim=0)


@mistake(
    of=dropout_row_sums,
    zh="第二个结果不是平均：n 次抽样应当每次重新丢弃，再求平均。",
    en="The second result is no average: draw n times, dropping anew each time, then average.",
)
def one_sample_twice(A, p, n):
    sums = F.dropout(A, p).sum(dim=-1)
    return sums, sums.clone()


@mistake(
    of=dropout_row_sums,
    zh="求和的轴不对：行和要对来源（最后一根轴）相加。",
    en="The sum runs over the wrong axis: a row sum adds over the sources, the last axis.",
)
def columns_summed(A, p, n):
    sums = F.dropout(A.expand(n, *A.shape), p).sum(dim=-2)
    return sums[0], sums.mean(dim=0)


@alternative(of=dropout_row_sums)
def in_a_loop(A, p, n):
    sums = [F.dropout(A, p, training=True).sum(-1) for _ in range(n)]
    return sums[0], sum(sums) / n


@alternative(of=dropout_row_sums)
def with_bernoulli(A, p, n):
    keep = torch.bernoulli(torch.full((n, *A.shape), 1 - p, dtype=A.dtype))  # (n, B, T, T)
    sums = torch.einsum("btj,nbtj->nbt", A, keep) / (1 - p)
    return [sums[-1], sums.mean(0)]


@alternative(of=dropout_row_sums)
def one_mean_for_all_rows(A, p, n):
    sums = torch.stack([F.dropout(A, p).sum(-1) for _ in range(n)])  # (n, B, T)
    return sums[0], sums.mean().item()


# ---------------------------------------------------------------- value_shift


@exercise
def value_shift(A, V, c, keep, p):
    dropped = A * keep / (1 - p)  # (B, T, T)
    without = A @ (V + c) - A @ V  # (B, T, d)
    with_dropout = dropped @ (V + c) - dropped @ V  # (B, T, d)
    return without, with_dropout


@mistake(
    of=value_shift,
    zh="你认定输出总是移动 c。这要靠每行权重加起来是 1；dropout 之后还是这样吗？",
    en="You take it that the output always moves by c. That needs rows that add up to 1; do they still, after dropout?",
)
def always_c(A, V, c, keep, p):
    shift = c.expand_as(V).clone()
    return shift, shift.clone()


@mistake(
    of=value_shift,
    zh="留下的权重没有放大：dropout 除了丢，还做了什么？",
    en="The weights that stay were not scaled up: what else does dropout do besides dropping?",
)
def kept_weights_not_rescaled(A, V, c, keep, p):
    return A @ (V + c) - A @ V, (A * keep) @ (V + c) - (A * keep) @ V


@mistake(
    of=value_shift,
    zh="keep 里的 1 表示留下：你丢掉的正好是该留的。",
    en="A 1 in keep means the weight stays: you dropped exactly those that should stay.",
)
def keep_inverted(A, V, c, keep, p):
    dropped = A * (1 - keep.to(A.dtype)) / (1 - p)
    return A @ (V + c) - A @ V, dropped @ (V + c) - dropped @ V


@mistake(
    of=value_shift,
    zh="丢弃之后又归一化了一次，于是又恰好移动 c；dropout 并不这样做。",
    en="After dropping you normalised again, so the shift is c once more; dropout does no such thing.",
)
def dropped_rows_normalised(A, V, c, keep, p):
    dropped = A * keep
    dropped = dropped / dropped.sum(dim=-1, keepdim=True).clamp(min=1e-12)
    return A @ (V + c) - A @ V, dropped @ (V + c) - dropped @ V


@mistake(
    of=value_shift,
    zh="返回的是加了 c 之后的输出，题目问的是它变化了多少。",
    en="This is the output after adding c; the task asks by how much it changed.",
)
def output_instead_of_change(A, V, c, keep, p):
    dropped = A * keep / (1 - p)
    return A @ (V + c), dropped @ (V + c)


@mistake(
    of=value_shift,
    zh="丢弃前后两次用了不同的权重：第二个结果应当两边都用丢弃过的权重。",
    en="The two sides use different weights: for the second result both sides need the dropped ones.",
)
def only_one_side_dropped(A, V, c, keep, p):
    dropped = A * keep / (1 - p)
    return A @ (V + c) - A @ V, dropped @ (V + c) - A @ V


@mistake(
    of=value_shift,
    zh="方向反了：变化 = 新的减去旧的。",
    en="The sign is reversed: a change is the new minus the old.",
)
def old_minus_new(A, V, c, keep, p):
    dropped = A * keep / (1 - p)
    return A @ V - A @ (V + c), dropped @ V - dropped @ (V + c)


@mistake(
    of=value_shift,
    zh="放大的倍数不对：留下的权重要除以留下的概率。",
    en="The factor is off: the weights that stay are divided by the chance of staying.",
)
def divided_by_p(A, V, c, keep, p):
    dropped = A * keep / p if p else A * keep
    return A @ (V + c) - A @ V, dropped @ (V + c) - dropped @ V


@alternative(of=value_shift)
def from_row_sums(A, V, c, keep, p):
    rows = A.sum(dim=-1, keepdim=True)  # (B, T, 1)
    kept = A.masked_fill(keep == 0, 0.0).sum(dim=-1, keepdim=True) / (1 - p)  # (B, T, 1)
    return rows * c, kept * c


@alternative(of=value_shift)
def shift_alone(A, V, c, keep, p):
    shift = c.expand_as(V)  # (B, T, d)
    dropped = torch.where(keep.bool(), A, torch.zeros_like(A)).div(1 - p)
    return [torch.einsum("btj,bjd->btd", W, shift) for W in (A, dropped)]
