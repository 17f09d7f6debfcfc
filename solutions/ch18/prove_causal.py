"""Notebook 4: proving that a mask works, with a gradient check and with counter-examples."""

import contextlib
import math

import torch
import torch.nn.functional as F

from autograder.exercises import alternative, exercise, mistake

# ---------------------------------------------------------------- sdpa_attend


@exercise
def sdpa_attend(q, k, v, p, training):
    return F.scaled_dot_product_attention(q, k, v, dropout_p=p if training else 0.0, is_causal=True)  # (…, T, d)


@mistake(
    of=sdpa_attend,
    zh="training=False 时两次调用的结果不同：函数式 SDPA 不知道模型处在什么状态，你传什么它就丢多少。",
    en="With training=False two calls disagree: functional SDPA knows no modes, it drops as much as you pass.",
)
def always_drops(q, k, v, p, training):
    return F.scaled_dot_product_attention(q, k, v, dropout_p=p, is_causal=True)


@mistake(
    of=sdpa_attend,
    zh="训练时也没有丢弃任何权重：p 用在哪里了？",
    en="Nothing is dropped in training either: where did p go?",
)
def never_drops(q, k, v, p, training):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


@mistake(
    of=sdpa_attend,
    zh="训练时稳定、评估时随机：条件写反了。",
    en="Stable in training and random in evaluation: the condition is the wrong way round.",
)
def flag_inverted(q, k, v, p, training):
    return F.scaled_dot_product_attention(q, k, v, dropout_p=0.0 if training else p, is_causal=True)


@mistake(
    of=sdpa_attend,
    zh="第一个位置只能看自己，它的输出就该是 v[0]；你的不是：谁来挡住未来？",
    en="The first position sees only itself, so its output is v[0]; yours is not. What keeps the future out?",
)
def not_causal(q, k, v, p, training):
    return F.scaled_dot_product_attention(q, k, v, dropout_p=p if training else 0.0)


@mistake(
    of=sdpa_attend,
    zh="在 SDPA 里，布尔遮罩的 True 是“参与”还是“挡住”？你挡住的正好是过去。",
    en="In SDPA, does True in a boolean mask mean take part or keep out? You kept out exactly the past.",
)
def boolean_mask_inverted(q, k, v, p, training):
    T = q.shape[-2]
    blocked = ~torch.ones(T, T, dtype=torch.bool).tril()
    return F.scaled_dot_product_attention(q, k, v, attn_mask=blocked, dropout_p=p if training else 0.0)


@mistake(
    of=sdpa_attend,
    zh="浮点遮罩是加到分数上的：加 0 和加 1，都挡不住任何位置。",
    en="A float mask is added to the scores: adding 0 or 1 keeps no position out.",
)
def zero_one_mask_added(q, k, v, p, training):
    T = q.shape[-2]
    mask = torch.ones(T, T, dtype=q.dtype).tril()
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=p if training else 0.0)


@mistake(
    of=sdpa_attend,
    zh="你丢的是输出的数，不是权重：只看得见自己的第一个位置，各个特征应当一起留下或一起变成 0。",
    en="You dropped numbers of the output, not weights: at position 0 all features should stay or vanish together.",
)
def output_dropped(q, k, v, p, training):
    return F.dropout(F.scaled_dot_product_attention(q, k, v, is_causal=True), p, training)


@mistake(
    of=sdpa_attend,
    zh="多次调用的平均值比不丢弃时小：留下的权重还要放大。",
    en="Averaged over many calls the output is too small: the weights that stay have to be scaled up.",
)
def weights_not_rescaled(q, k, v, p, training):
    T = q.shape[-2]
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    A = scores.masked_fill(~torch.ones(T, T, dtype=torch.bool).tril(), -math.inf).softmax(dim=-1)
    return (A * (torch.rand_like(A) >= p) if training else A) @ v


@mistake(
    of=sdpa_attend,
    zh="一个来源一旦丢掉，所有的接收者就都看不到它了：每个权重应各自决定去留。",
    en="Once a source is dropped, no receiver sees it any more: each single weight should be dropped on its own.",
)
def whole_sources_dropped(q, k, v, p, training):
    T = q.shape[-2]
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (…, T, T)
    A = scores.masked_fill(~torch.ones(T, T, dtype=torch.bool).tril(), -math.inf).softmax(dim=-1)
    return (A * F.dropout(torch.ones_like(A[..., :1, :]), p, training)) @ v


@alternative(of=sdpa_attend)
def by_hand(q, k, v, p, training):
    T = q.shape[-2]
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (…, T, T)
    A = scores.masked_fill(~torch.ones(T, T, dtype=torch.bool).tril(), -math.inf).softmax(dim=-1)
    return F.dropout(A, p, training) @ v


@alternative(of=sdpa_attend)
def with_additive_mask(q, k, v, p, training):
    T = q.size(-2)
    mask = torch.full((T, T), -math.inf, dtype=q.dtype).triu(1)  # (T, T)
    return F.scaled_dot_product_attention(q, k, v, mask, p * bool(training))


# ---------------------------------------------------------------- run_gradcheck


@exercise
def run_gradcheck(fn, T, d):
    inputs = [torch.randn(1, T, d, dtype=torch.float64, requires_grad=True) for _ in range(3)]  # Q, K, V
    return torch.autograd.gradcheck(fn, inputs, raise_exception=False)


@mistake(
    of=run_gradcheck,
    zh="连正确的实现也没有通过：有限差分要减去两个几乎相等的数，float32 的精度够吗？",
    en="Even a correct function fails: finite differences subtract nearly equal numbers; is float32 enough?",
)
def single_precision(fn, T, d):
    inputs = [torch.randn(1, T, d, requires_grad=True) for _ in range(3)]
    return torch.autograd.gradcheck(fn, inputs, raise_exception=False)


@mistake(
    of=run_gradcheck,
    zh="gradcheck 说没有输入需要梯度：它怎么知道要对谁求导？",
    en="gradcheck says that no input requires a gradient: how is it to know what to differentiate by?",
)
def nothing_requires_grad(fn, T, d):
    inputs = [torch.randn(1, T, d, dtype=torch.float64) for _ in range(3)]
    return torch.autograd.gradcheck(fn, inputs, raise_exception=False)


@mistake(
    of=run_gradcheck,
    zh="错误的梯度也得到了 True：异常被你吞掉了。",
    en="Wrong gradients got True as well: the exception was swallowed.",
)
def exception_swallowed(fn, T, d):
    inputs = [torch.randn(1, T, d, dtype=torch.float64, requires_grad=True) for _ in range(3)]
    with contextlib.suppress(RuntimeError):
        torch.autograd.gradcheck(fn, inputs)
    return True


@mistake(
    of=run_gradcheck,
    zh="有梯度不等于梯度正确：拿它和什么比一比？",
    en="A gradient that exists need not be right: what could it be compared with?",
)
def gradient_exists(fn, T, d):
    inputs = [torch.randn(1, T, d, dtype=torch.float64, requires_grad=True) for _ in range(3)]
    found = torch.autograd.grad(fn(*inputs).sum(), inputs, allow_unused=True)
    return all(g is not None for g in found)


@mistake(
    of=run_gradcheck,
    zh="只核对了 Q 的梯度：K 或 V 的梯度错了，你看不见。",
    en="Only the gradient of Q was checked: a wrong one for K or V goes unseen.",
)
def query_only(fn, T, d):
    q, k, v = (torch.randn(1, T, d, dtype=torch.float64) for _ in range(3))
    return torch.autograd.gradcheck(fn, (q.requires_grad_(), k, v), raise_exception=False)


@mistake(
    of=run_gradcheck,
    zh="换一组 T 和 d，检查的还是同一个大小：题目给的尺寸没有用上。",
    en="Ask for other T and d and the same size is checked: the sizes that were given are not used.",
)
def size_fixed(fn, T, d):
    inputs = [torch.randn(1, 2, 3, dtype=torch.float64, requires_grad=True) for _ in range(3)]
    return torch.autograd.gradcheck(fn, inputs, raise_exception=False)


@mistake(
    of=run_gradcheck,
    zh="T 和 d 用反了：第一根是位置，最后一根是特征。",
    en="T and d are the wrong way round: positions come first, features last.",
)
def sizes_swapped(fn, T, d):
    inputs = [torch.randn(1, d, T, dtype=torch.float64, requires_grad=True) for _ in range(3)]
    return torch.autograd.gradcheck(fn, inputs, raise_exception=False)


@mistake(
    of=run_gradcheck,
    zh="容差大到什么都能通过：差了一成的梯度也算对吗？",
    en="The tolerance lets everything through: should a gradient that is a tenth off count as right?",
)
def tolerance_too_wide(fn, T, d):
    inputs = [torch.randn(1, T, d, dtype=torch.float64, requires_grad=True) for _ in range(3)]
    return torch.autograd.gradcheck(fn, inputs, atol=1.0, rtol=1.0, raise_exception=False)


@mistake(
    of=run_gradcheck,
    zh="正确的实现得到 False，错误的得到 True：答案反了。",
    en="Right functions get False and wrong ones True: the answer is the wrong way round.",
)
def answer_inverted(fn, T, d):
    inputs = [torch.randn(1, T, d, dtype=torch.float64, requires_grad=True) for _ in range(3)]
    return not torch.autograd.gradcheck(fn, inputs, raise_exception=False)


@mistake(
    of=run_gradcheck,
    zh="三个输入用了同一个张量：对 Q 的误差和对 K 的误差正好相反时，加起来就看不见了。",
    en="One tensor serves as all three inputs: errors for Q and for K that are opposite add up to nothing.",
)
def one_input_for_all(fn, T, d):
    x = torch.randn(1, T, d, dtype=torch.float64, requires_grad=True)
    return torch.autograd.gradcheck(lambda x: fn(x, x, x), (x,), raise_exception=False)


@mistake(
    of=run_gradcheck,
    zh="输出先加成了一个数：有的错误在加起来之后互相抵消，每个输出都要单独核对。",
    en="The outputs were added up first: some errors cancel in the sum, so every output has to be checked by itself.",
)
def outputs_added_up(fn, T, d):
    inputs = [torch.randn(1, T, d, dtype=torch.float64, requires_grad=True) for _ in range(3)]
    return torch.autograd.gradcheck(lambda *qkv: fn(*qkv).sum(), inputs, raise_exception=False)


@alternative(of=run_gradcheck)
def with_try(fn, T, d):
    make = torch.Generator().manual_seed(0)
    q, k, v = torch.randn(3, 1, T, d, dtype=torch.double, generator=make).unbind()
    try:
        return torch.autograd.gradcheck(fn, tuple(x.clone().requires_grad_() for x in (q, k, v)), eps=1e-6, atol=1e-6)
    except RuntimeError:  # GradcheckError is one
        return False


@alternative(of=run_gradcheck)
def central_differences(fn, T, d):
    inputs = [torch.randn(1, T, d, dtype=torch.float64, requires_grad=True) for _ in range(3)]
    cotangent = torch.randn(fn(*inputs).shape, dtype=torch.float64)
    found = torch.autograd.grad((fn(*inputs) * cotangent).sum(), inputs, allow_unused=True, materialize_grads=True)
    with torch.no_grad():
        for x, grad in zip(inputs, found, strict=True):
            for i in range(x.numel()):
                step = torch.zeros(x.numel(), dtype=x.dtype).scatter(0, torch.tensor(i), 1e-6).view_as(x)
                up, down = ([y + sign * step if y is x else y for y in inputs] for sign in (1, -1))
                slope = ((fn(*up) - fn(*down)) * cotangent).sum() / 2e-6
                if (slope - grad.flatten()[i]).abs() > 1e-5:
                    return False
    return True


# ---------------------------------------------------------------- prefix_leak


@exercise
def prefix_leak(fn, Q, K, V, t):
    changed = [x.clone() for x in (Q, K, V)]
    for x in changed:
        x[:, t:] = torch.randn_like(x[:, t:])  # (B, T-t, d): the future becomes another one
    before = fn(Q, K, V)[:, :t]  # (B, t, d)
    after = fn(*changed)[:, :t]  # (B, t, d)
    return (after - before).abs().max().item()


def _other_future(x, t):
    changed = x.clone()
    changed[:, t:] = torch.randn_like(x[:, t:])
    return changed


def _moved(fn, Q, K, V, K2, V2, rows):
    return (fn(Q, K2, V2) - fn(Q, K, V))[:, rows].abs().max().item()


@mistake(
    of=prefix_leak,
    zh="改动的是过去：前面的输出当然会变，正确的实现也被你冤枉了。",
    en="The past was changed: of course earlier outputs move, and correct attention is accused.",
)
def past_changed(fn, Q, K, V, t):
    K2, V2 = (torch.cat([torch.randn_like(x[:, :t]), x[:, t:]], dim=1) for x in (K, V))
    return _moved(fn, Q, K, V, K2, V2, slice(None, t))


@mistake(
    of=prefix_leak,
    zh="比较的是 t 之后的输出：它们本来就该变，要看的是 t 之前。",
    en="You compare the outputs from t on: they are meant to move. Look at those before t.",
)
def suffix_compared(fn, Q, K, V, t):
    return _moved(fn, Q, K, V, _other_future(K, t), _other_future(V, t), slice(t, None))


@mistake(
    of=prefix_leak,
    zh="所有位置一起比较，正常的变化就盖住了泄漏：哪些位置不该变？",
    en="All positions are compared together, so lawful changes hide the leak: which positions must not move?",
)
def everything_compared(fn, Q, K, V, t):
    return _moved(fn, Q, K, V, _other_future(K, t), _other_future(V, t), slice(None))


@mistake(
    of=prefix_leak,
    zh="改动小得像舍入误差：没有遮罩的注意力也几乎不动。",
    en="The change is as small as rounding: even attention without a mask hardly moves.",
)
def change_too_small(fn, Q, K, V, t):
    K2, V2 = K.clone(), V.clone()
    K2[:, t:] += 1e-9
    V2[:, t:] += 1e-9
    return _moved(fn, Q, K, V, K2, V2, slice(None, t))


@mistake(
    of=prefix_leak,
    zh="0 乘 NaN 还是 NaN：正确的实现里，权重恰好是 0 的位置也会被毒到。",
    en="0 times NaN is NaN: in correct attention a weight of exactly 0 passes the poison on.",
)
def nan_planted(fn, Q, K, V, t):
    K2, V2 = K.clone(), V.clone()
    K2[:, t:], V2[:, t:] = math.nan, math.nan
    moved = fn(Q, K2, V2)[:, :t] - fn(Q, K, V)[:, :t]
    return moved.nan_to_num(nan=1e3).abs().max().item()


@mistake(
    of=prefix_leak,
    zh="只改了 key：从 value 走的泄漏看不见。",
    en="Only the keys were changed: a leak through the values goes unseen.",
)
def keys_only(fn, Q, K, V, t):
    return _moved(fn, Q, K, V, _other_future(K, t), V, slice(None, t))


@mistake(
    of=prefix_leak,
    zh="只改了 value：经过分数和归一化走的泄漏看不见。",
    en="Only the values were changed: a leak through scores and their normalisation goes unseen.",
)
def values_only(fn, Q, K, V, t):
    return _moved(fn, Q, K, V, K, _other_future(V, t), slice(None, t))


@mistake(
    of=prefix_leak,
    zh="只改了第 t 个位置：更远的未来也可能漏进来，比如最后一个。",
    en="Only position t was changed: the future further away may leak too, the last position for one.",
)
def one_position_changed(fn, Q, K, V, t):
    K2, V2 = K.clone(), V.clone()
    K2[:, t] = torch.randn_like(K[:, t])
    V2[:, t] = torch.randn_like(V[:, t])
    return _moved(fn, Q, K, V, K2, V2, slice(None, t))


@mistake(
    of=prefix_leak,
    zh="从 t+1 才开始改：正好漏掉了“偷看下一个”的实现。",
    en="The change starts at t+1, and so misses an implementation that peeks one step ahead.",
)
def starts_one_late(fn, Q, K, V, t):
    return _moved(fn, Q, K, V, _other_future(K, t + 1), _other_future(V, t + 1), slice(None, t))


@mistake(
    of=prefix_leak,
    zh="比较到了第 t 行：它可以看见位置 t，变了并不是泄漏。",
    en="Row t is compared as well: it may see position t, so its moving is no leak.",
)
def one_row_too_many(fn, Q, K, V, t):
    return _moved(fn, Q, K, V, _other_future(K, t), _other_future(V, t), slice(None, t + 1))


@mistake(
    of=prefix_leak,
    zh="弱一千倍的泄漏，你报的数却一样：要的是变化有多大，不是“有没有”。",
    en="A leak a thousand times weaker gets the same number: the size of the change is asked for, not a yes or no.",
)
def yes_or_no(fn, Q, K, V, t):
    return float(_moved(fn, Q, K, V, _other_future(K, t), _other_future(V, t), slice(None, t)) > 0)


@mistake(
    of=prefix_leak,
    zh="很弱的泄漏被当成了舍入误差：正确的因果实现，变化恰好是 0，不需要容差。",
    en="A faint leak is passed off as rounding: in correct attention the change is exactly 0, without tolerance.",
)
def small_leaks_forgiven(fn, Q, K, V, t):
    leak = _moved(fn, Q, K, V, _other_future(K, t), _other_future(V, t), slice(None, t))
    return leak if leak > 1e-5 else 0.0


@mistake(
    of=prefix_leak,
    zh="调用之后，传进来的 K、V 也被改了：先复制，再改动。",
    en="After the call the K and V that were passed in are changed too: copy first, then change.",
)
def inputs_edited(fn, Q, K, V, t):
    before = fn(Q, K, V)
    K[:, t:] = torch.randn_like(K[:, t:])
    V[:, t:] = torch.randn_like(V[:, t:])
    return (fn(Q, K, V) - before)[:, :t].abs().max().item()


@mistake(
    of=prefix_leak,
    zh="平均把一处很大的变化冲淡了：要的是最大的变化。",
    en="An average waters down a large change in one place: the largest change is asked for.",
)
def average_change(fn, Q, K, V, t):
    return (fn(Q, _other_future(K, t), _other_future(V, t)) - fn(Q, K, V))[:, :t].abs().mean().item()


@mistake(
    of=prefix_leak,
    zh="变化可以是负的：变小的输出，被你当成没有动。",
    en="A change can be negative: an output that went down counts as still with yours.",
)
def sign_kept(fn, Q, K, V, t):
    return (fn(Q, _other_future(K, t), _other_future(V, t)) - fn(Q, K, V))[:, :t].max().item()


@alternative(of=prefix_leak)
def future_zeroed(fn, Q, K, V, t):
    past = (torch.arange(K.shape[-2]) < t).to(K.dtype)[:, None]  # (T, 1)
    return (fn(Q, K * past, V * past) - fn(Q, K, V))[..., :t, :].abs().max()


@alternative(of=prefix_leak)
def each_input_in_turn(fn, Q, K, V, t):
    before, worst = fn(Q, K, V), 0.0
    for which in range(3):
        inputs = [Q, K, V]
        inputs[which] = torch.cat([inputs[which][:, :t], inputs[which][:, t:] + 10], dim=1)
        worst = max(worst, float((fn(*inputs) - before)[:, :t].abs().max()))
    return worst


# ---------------------------------------------------------------- leak_matrix


@exercise
def leak_matrix(fn, X):
    T = X.shape[1]
    before = fn(X)  # (1, T, d)
    L = torch.zeros(T, T, dtype=torch.bool)
    for s in range(T):
        changed = X.clone()
        changed[:, s] += torch.randn_like(changed[:, s])
        L[:, s] = (fn(changed) != before)[0].any(dim=-1)  # (T,)
    return L


def _response(fn, X, replaced):
    """(T, T): how far each output row moves when ``replaced(X, s)`` stands in for X."""
    before = fn(X)
    columns = [(fn(replaced(X, s)) - before)[0].abs().amax(dim=-1) for s in range(X.shape[1])]
    return torch.stack(columns, dim=1)


def _one_moved(X, s):
    changed = X.clone()
    changed[:, s] += torch.randn_like(changed[:, s])
    return changed


@mistake(
    of=leak_matrix,
    zh="未来跑到了左下角：行应是接收者 t，列应是来源 s。",
    en="The future came out in the lower left: rows are receivers t, columns are sources s.",
)
def transposed(fn, X):
    return (_response(fn, X, _one_moved) > 0).T.contiguous()


@mistake(
    of=leak_matrix,
    zh="变化小于阈值就不算：一处很弱的泄漏就这样溜走了。",
    en="Whatever moves less than the threshold does not count, and so a weak leak slips away.",
)
def tolerance_too_large(fn, X):
    return _response(fn, X, _one_moved) > 0.3


@mistake(
    of=leak_matrix,
    zh="千分之一的阈值仍嫌太大：无关的位置一丝不动，有关的哪怕动一点也要算。",
    en="A thousandth is still too large a threshold: what does not depend stays put exactly.",
)
def tolerance_of_a_thousandth(fn, X):
    return _response(fn, X, _one_moved) > 1e-3


@mistake(
    of=leak_matrix,
    zh="一次改了 s 以后的所有位置，就分不清依赖的到底是哪一个：试试只看最近两步的窗口。",
    en="Changing everything from s on cannot tell which position mattered: try a window of the last two steps.",
)
def whole_suffix_changed(fn, X):
    def replaced(X, s):
        changed = X.clone()
        changed[:, s:] += torch.randn_like(changed[:, s:])
        return changed

    return _response(fn, X, replaced) > 0


@mistake(
    of=leak_matrix,
    zh="没有问过 fn 就写下了答案：换一个不遮未来的 fn，结果还是下三角。",
    en="The answer never asked fn: give it one that does not mask, and it is still lower triangular.",
)
def causality_assumed(fn, X):
    fn(X)
    return torch.ones(X.shape[1], X.shape[1], dtype=torch.bool).tril()


@mistake(
    of=leak_matrix,
    zh="植入的 NaN 会经过恰好为 0 的权重传开（0×NaN=NaN）：无关的行也被染上了。",
    en="A planted NaN spreads through weights of exactly 0 (0 × NaN = NaN) and taints rows that do not depend on it.",
)
def poison_planted(fn, X):
    def replaced(X, s):
        changed = X.clone()
        changed[:, s] = math.nan
        return changed

    return _response(fn, X, replaced).isnan()


@mistake(
    of=leak_matrix,
    zh="只改了第 0 个特征：从别的特征走的依赖看不见。",
    en="Only feature 0 was changed: a dependence through another feature goes unseen.",
)
def one_feature_changed(fn, X):
    def replaced(X, s):
        changed = X.clone()
        changed[:, s, 0] += 1.0
        return changed

    return _response(fn, X, replaced) > 0


@mistake(
    of=leak_matrix,
    zh="只看了输出的第 0 个特征：变化可能出现在别的特征里。",
    en="Only feature 0 of the output was looked at: the change may show in another one.",
)
def one_output_feature(fn, X):
    before = fn(X)
    return torch.stack([fn(_one_moved(X, s))[0, :, 0] != before[0, :, 0] for s in range(X.shape[1])], dim=1)


@mistake(
    of=leak_matrix,
    zh="对角线空着：自己改变了，自己的输出难道不变？",
    en="The diagonal is empty: does an output not move when its own input does?",
)
def diagonal_missing(fn, X):
    return (_response(fn, X, _one_moved) > 0) & ~torch.eye(X.shape[1], dtype=torch.bool)


@mistake(
    of=leak_matrix,
    zh="给出的是“没有依赖”的位置：True 与 False 反了。",
    en="These are the pairs that do not depend: True and False are swapped.",
)
def independence_instead(fn, X):
    return _response(fn, X, _one_moved) == 0


@mistake(
    of=leak_matrix,
    zh="调用之后 X 变了：先复制，再改动。",
    en="X is another one after the call: copy first, then change.",
)
def input_edited(fn, X):
    L = torch.zeros(X.shape[1], X.shape[1], dtype=torch.bool)
    for s in range(X.shape[1]):
        before = fn(X).clone()
        X[:, s] += 1.0
        L[:, s] = (fn(X) != before)[0].any(dim=-1)
    return L


@mistake(
    of=leak_matrix,
    zh="allclose、isclose 有默认的容差：比它弱的依赖就看不见了。不依赖的位置一位也不差，可以直接比相等。",
    en="allclose and isclose have tolerances by default and miss what is weaker. Without dependence nothing moves at all.",
)
def compared_with_isclose(fn, X):
    before = fn(X)
    return torch.stack([~torch.isclose(fn(_one_moved(X, s)), before)[0].all(dim=-1) for s in range(X.shape[1])], dim=1)


@mistake(
    of=leak_matrix,
    zh="先把输出的特征加起来再比：一个升、一个降，正好抵消，依赖就不见了。",
    en="The output features were added up before comparing: one goes up, one goes down, and the dependence is gone.",
)
def output_features_added_up(fn, X):
    before = fn(X).sum(dim=-1)
    moved = [(fn(_one_moved(X, s)).sum(dim=-1) - before)[0].abs() > 1e-12 for s in range(X.shape[1])]
    return torch.stack(moved, dim=1)


@mistake(
    of=leak_matrix,
    zh="给一个位置的所有特征加上同一个数，层归一化正好把它减掉，依赖就看不见了：各个特征要改得不一样。",
    en="One number added to all features of a position is what a layer norm takes away: change the features differently.",
)
def all_features_shifted_alike(fn, X):
    return _response(fn, X, lambda X, s: X + torch.eye(X.shape[1], dtype=X.dtype)[s, :, None]) > 1e-12


@alternative(of=leak_matrix)
def with_jacobian(fn, X):
    J = torch.autograd.functional.jacobian(fn, X)  # (1, T, d, 1, T, C)
    return J.abs().sum(dim=(0, 2, 3, 5)) > 0


@alternative(of=leak_matrix)
def negated_one_by_one(fn, X):
    T = X.size(1)
    rows = []
    for s in range(T):
        sign = 1 - 2 * torch.eye(T, dtype=X.dtype)[s, :, None]  # (T, 1)
        rows.append((fn(X * sign) - fn(X)).abs().flatten(2).amax(2).squeeze(0).gt(1e-12))
    return torch.stack(rows).mT


# ---------------------------------------------------------------- model_leak


@exercise
def model_leak(model, idx, t):
    was_training = model.training
    model.eval()
    with torch.no_grad():
        before = model(idx)  # (B, T, vocab)
        vocab = before.shape[-1]
        changed = idx.clone()
        step = torch.randint(1, vocab, changed[:, t:].shape)  # never 0: every future token becomes another one
        changed[:, t:] = (changed[:, t:] + step) % vocab
        after = model(changed)  # (B, T, vocab)
    model.train(was_training)
    return (after - before)[:, :t].abs().max().item()


def _other_tokens(idx, vocab, start, stop=None):
    changed = idx.clone()
    future = changed[:, start:stop]
    changed[:, start:stop] = (future + torch.randint(1, vocab, future.shape)) % vocab
    return changed


def _logits_before_and_after(model, idx, start, stop=None):
    """In eval mode, which is restored; the vocabulary is read off the logits."""
    was = model.training
    model.eval()
    with torch.no_grad():
        before = model(idx)
        after = model(_other_tokens(idx, before.shape[-1], start, stop))
    model.train(was)
    return before, after


@mistake(
    of=model_leak,
    zh="正确的模型也被你指认泄漏：两次调用之间，除了未来的字符，还有什么不一样？",
    en="A correct model is accused: what else differs between your two calls besides the future tokens?",
)
def dropout_left_on(model, idx, t):
    with torch.no_grad():
        before = model(idx)
        after = model(_other_tokens(idx, before.shape[-1], t))
    return (after - before)[:, :t].abs().max().item()


@mistake(
    of=model_leak,
    zh="没有遮罩的模型也得到 0：替换之后，未来真的变了吗？",
    en="A model without a mask gets 0 too: did the future really change?",
)
def future_replaced_by_itself(model, idx, t):
    was = model.training
    model.eval()
    with torch.no_grad():
        before = model(idx)
        changed = idx.clone()
        changed[:, t:] = idx[:, t:]
        after = model(changed)
    model.train(was)
    return (after - before)[:, :t].abs().max().item()


@mistake(
    of=model_leak,
    zh="第 t−1 个字符也被换掉了：那是过去，前面的输出当然会变。",
    en="Token t−1 was replaced as well: that is the past, and of course the outputs before t move.",
)
def starts_one_early(model, idx, t):
    before, after = _logits_before_and_after(model, idx, t - 1)
    return (after - before)[:, :t].abs().max().item()


@mistake(
    of=model_leak,
    zh="只看了概率最大的字符有没有换：分数变了，而第一名没变，你就看不见。",
    en="Only the most likely token is compared: when scores move but the winner stays, you see nothing.",
)
def winners_compared(model, idx, t):
    before, after = _logits_before_and_after(model, idx, t)
    return (after.argmax(-1) != before.argmax(-1))[:, :t].double().mean().item()


@mistake(
    of=model_leak,
    zh="检查结束后，模型还停在 eval 模式：把它原来的状态还给它。",
    en="After the check the model is still in eval mode: give it back the state it came with.",
)
def left_in_eval(model, idx, t):
    before, after = _logits_before_and_after(model.eval(), idx, t)
    return (after - before)[:, :t].abs().max().item()


@mistake(
    of=model_leak,
    zh="本来处在 eval 模式的模型，检查之后却开始训练了：恢复原状，不是一律打开。",
    en="A model that came in eval mode left in training mode: restore what was there, do not simply switch on.",
)
def always_left_training(model, idx, t):
    before, after = _logits_before_and_after(model, idx, t)
    model.train()
    return (after - before)[:, :t].abs().max().item()


@mistake(
    of=model_leak,
    zh="比较了所有位置：t 以后的输出本来就该变。",
    en="All positions are compared: the outputs from t on are meant to move.",
)
def all_positions_compared(model, idx, t):
    before, after = _logits_before_and_after(model, idx, t)
    return (after - before).abs().max().item()


@mistake(
    of=model_leak,
    zh="只换了第 t 个字符：更远的未来也可能漏进来。",
    en="Only token t was replaced: the future further away may leak too.",
)
def next_token_only(model, idx, t):
    before, after = _logits_before_and_after(model, idx, t, t + 1)
    return (after - before)[:, :t].abs().max().item()


@mistake(
    of=model_leak,
    zh="只换了最后一个字符：偷看下一个的模型，你就看不出来。",
    en="Only the last token was replaced: a model that peeks at the next one goes unseen.",
)
def last_token_only(model, idx, t):
    before, after = _logits_before_and_after(model, idx, idx.shape[1] - 1)
    return (after - before)[:, :t].abs().max().item()


@mistake(
    of=model_leak,
    zh="弱得多的泄漏，你报的数却一样：要的是 logits 变了多少。",
    en="A far weaker leak gets the same number: the task asks how far the logits moved.",
)
def leak_or_not(model, idx, t):
    before, after = _logits_before_and_after(model, idx, t)
    return float(not torch.equal(after[:, :t], before[:, :t]))


@mistake(
    of=model_leak,
    zh="调用之后 idx 被改了：先复制，再替换。",
    en="idx is changed after the call: copy first, then replace.",
)
def tokens_edited(model, idx, t):
    was = model.training
    model.eval()
    with torch.no_grad():
        before = model(idx)
        idx[:, t:] = (idx[:, t:] + 1) % before.shape[-1]
        after = model(idx)
    model.train(was)
    return (after - before)[:, :t].abs().max().item()


@mistake(
    of=model_leak,
    zh="只看了 batch 里的第一条序列：别的序列里的泄漏看不见。",
    en="Only the first sequence of the batch was looked at: a leak in another one goes unseen.",
)
def first_sequence_compared(model, idx, t):
    before, after = _logits_before_and_after(model, idx, t)
    return (after - before)[0, :t].abs().max().item()


@mistake(
    of=model_leak,
    zh="平均把一处很大的变化冲淡了：要的是最大的变化。",
    en="An average waters down a large change in one place: the largest change is asked for.",
)
def average_change_of_logits(model, idx, t):
    before, after = _logits_before_and_after(model, idx, t)
    return (after - before)[:, :t].abs().mean().item()


@mistake(
    of=model_leak,
    zh="变化可以是负的：变小的 logit，被你当成没有动。",
    en="A change can be negative: a logit that went down counts as still with yours.",
)
def sign_of_change_kept(model, idx, t):
    before, after = _logits_before_and_after(model, idx, t)
    return (after - before)[:, :t].max().item()


@mistake(
    of=model_leak,
    zh="随机抽到的字符有时正好是原来那个：字符表很小时，未来根本没有换。",
    en="A token drawn at random is sometimes the one that was there: with a small alphabet the future does not change.",
)
def replaced_by_chance(model, idx, t):
    was = model.training
    model.eval()
    with torch.no_grad():
        before = model(idx)
        changed = torch.cat([idx[:, :t], torch.randint(before.shape[-1], idx[:, t:].shape)], dim=1)
        after = model(changed)
    model.train(was)
    return (after - before)[:, :t].abs().max().item()


@mistake(
    of=model_leak,
    zh="两次用了同一个随机种子，丢掉的相同，噪声是没有了，可是查的还是训练态的模型：题目要查 eval 模式。",
    en="One seed for both calls makes the noise equal, but it is still the training mode that you check, not eval mode.",
)
def one_seed_for_both(model, idx, t):
    torch.manual_seed(0)
    before = model(idx)
    torch.manual_seed(0)
    after = model(_other_tokens(idx, before.shape[-1], t))
    return (after - before)[:, :t].abs().max().item()


@mistake(
    of=model_leak,
    zh="很弱的泄漏被当成了舍入误差：因果的模型，logits 一位也不变，不需要容差。",
    en="A faint leak is passed off as rounding: the logits of a causal model do not move at all, without tolerance.",
)
def faint_leaks_forgiven(model, idx, t):
    before, after = _logits_before_and_after(model, idx, t)
    leak = (after - before)[:, :t].abs().max().item()
    return leak if leak > 1e-5 else 0.0


@alternative(of=model_leak)
def next_in_the_alphabet(model, idx, t):
    mode = model.training
    try:
        model.train(False)
        before = model(idx).detach()
        changed = torch.cat([idx[:, :t], (idx[:, t:] + 1) % before.size(-1)], dim=1)
        return float((model(changed).detach() - before)[:, :t].abs().max())
    finally:
        model.train(mode)


@alternative(of=model_leak)
@torch.no_grad()
def several_random_futures(model, idx, t):
    mode = model.training
    model.eval()
    before = model(idx)[:, :t].double()
    worst = torch.zeros((), dtype=torch.float64)
    for _ in range(3):
        future = torch.randint(model(idx).shape[-1] - 1, idx[:, t:].shape)
        future += future >= idx[:, t:]  # skips what stands there already
        worst = torch.maximum(worst, (model(torch.hstack([idx[:, :t], future]))[:, :t].double() - before).abs().max())
    model.train(mode)
    return worst
