"""PyTorch's kernels as headroom's machine files name them, with a grid of sizes for each.

A kernel is a function of a Device and the sizes of a call; it returns calls that are timed in turn. Cold
calls read their weights or KV-cache in turn from up to 512 places of a pool that no cache holds; small ones fit
a cache together, as those of a small model do. Compound kernels run the operators that
modules of Transformers run without a compiler: RMSNorm, RoPE, and attention over a cache
that grows by concatenation. Sizes are not those of a preset: the file must predict, not remember.
"""

import itertools

FEATURES = [160, 640, 1664, 3328]
OUT_FEATURES = [160, 640, 1664, 3328, 12544, 51008]
ROWS = [1, 2, 4, 8, 16, 48, 112, 320, 896, 2176]
ELEMENTS = [64, 1024, 8000, 48000, 300_000, 1_200_000, 4_800_000, 19_200_000]
HEADS = [10, 38, 150]
QUERIES = [1, 16, 64, 208, 320, 960]
KEYS = [16, 64, 208, 320, 960]
HEAD_DIMS = [32, 64, 128]
STEP_HEADS = [3, 12, 46]
GROUPS = [1, 3, 8]
CACHED = [16, 64, 320, 1088, 4160]
STEP_HEAD_DIMS = [32, 64, 128]

LINEAR = [("rows", ROWS), ("in_features", FEATURES), ("out_features", OUT_FEATURES)]
PAIRS = [("batch_heads", HEADS), ("queries", QUERIES), ("keys", KEYS)]
ATTENTION = PAIRS + [("head_dim", HEAD_DIMS)]
CAUSAL = [("batch_heads", [16, 48, 160]), ("group", [1, 4]), *ATTENTION[1:]]
STEP = [("batch_kv_heads", STEP_HEADS), ("group", GROUPS), ("keys", CACHED), ("head_dim", STEP_HEAD_DIMS)]
NORM = [("rows", [1, 14, 112, 896, 3584]), ("width", [112, 448, 1088, 3392])]
COUNT = [("elements", ELEMENTS)]


class Operands:
    """Tensors of one device and type."""

    def __init__(self, torch, device, dtype, pool_bytes):
        self.torch, self.device, self.dtype = torch, device, dtype
        self.element_bytes = torch.empty((), dtype=dtype).element_size()
        self.pool = torch.empty(pool_bytes // self.element_bytes, device=device, dtype=dtype).normal_(0, 0.02)

    def random(self, *shape):
        """A tensor of its own with values of the pool, which copies faster than a generator writes."""
        result = self.torch.empty(*shape, device=self.device, dtype=self.dtype)
        flat, size = result.view(-1), self.pool.numel()
        for first in range(0, flat.numel(), size):
            part = flat[first:first + size]
            part.copy_(self.pool[:part.numel()])
        return result

    def heads(self, heads, rows, dim):
        """[1, heads, rows, dim], a view of rows that hold all heads, as projections return them."""
        return self.random(1, rows, heads, dim).transpose(1, 2)

    def cold(self, *shape):
        """Tensors of a shape that lie one after another in the pool; at most 512, which may fit a cache if small."""
        size = 1
        for length in shape:
            size *= length
        count = max(1, min(512, self.pool.numel() // size))
        if count == 1 and size > self.pool.numel():
            return [self.random(*shape)]
        return [self.pool[i * size:(i + 1) * size].view(*shape) for i in range(count)]


def linear(cold):
    def calls(op, rows, inputs, outputs):
        call = op.torch.nn.functional.linear
        x, bias = op.random(rows, inputs), op.random(outputs)
        weights = op.cold(outputs, inputs) if cold else [op.random(outputs, inputs)]
        return [lambda w=w: call(x, w, bias) for w in weights]
    return calls


def scores(op, heads, queries, keys, dim):
    query, key, scale = op.heads(heads, queries, dim), op.heads(heads, keys, dim), dim ** -0.5
    return [lambda: op.torch.matmul(query, key.transpose(2, 3)) * scale]


def context(op, heads, queries, keys, dim):
    probabilities, value = op.random(1, heads, queries, keys), op.heads(heads, keys, dim)
    return [lambda: op.torch.matmul(probabilities, value).transpose(1, 2).contiguous()]


def softmax(masks):
    def calls(op, heads, queries, keys):
        x = op.random(1, heads, queries, keys)
        added = [op.random(1, heads if mask == "bias" else 1, queries, keys) for mask in masks]
        function, wide = op.torch.nn.functional.softmax, op.torch.float32

        def call():
            y = x
            for mask in added:
                y = y + mask
            return function(y, dim=-1, dtype=wide).to(op.dtype)
        return [call]
    return calls


def fused(op, heads, queries, keys, dim):
    query, key, value = (op.heads(heads, n, dim) for n in (queries, keys, keys))
    attend = op.torch.nn.functional.scaled_dot_product_attention
    return [lambda: attend(query, key, value).transpose(1, 2).contiguous()]


def attends(torch, group):
    """Fused attention; grouped heads share keys without copies where PyTorch can (2.5 and later)."""
    attend = torch.nn.functional.scaled_dot_product_attention
    if group > 1 and "enable_gqa" in (attend.__doc__ or ""):
        return lambda query, key, value, **rest: attend(query, key, value, enable_gqa=True, **rest)
    return lambda query, key, value, **rest: attend(query, repeat(key, group), repeat(value, group), **rest)


def fused_causal(op, heads, group, queries, keys, dim):
    query = op.heads(heads, queries, dim)
    key, value = (op.heads(heads // group, keys, dim) for _ in range(2))
    attend, square = attends(op.torch, group), queries == keys
    mask = None if square else op.torch.ones(queries, keys, device=op.device, dtype=op.torch.bool).tril(keys - queries)

    def call():
        return attend(query, key, value, attn_mask=mask, is_causal=square).transpose(1, 2).contiguous()
    return [call]


def repeat(x, group):
    """Key-value heads for every query head, as Transformers' repeat_kv copies them."""
    if group == 1:
        return x
    batch, heads, rows, dim = x.shape
    return x[:, :, None].expand(batch, heads, group, rows, dim).reshape(batch, heads * group, rows, dim)


def caches(op, cold, heads, keys, dim):
    return op.cold(1, heads, keys, dim) if cold else [op.random(1, heads, keys, dim)]


def step_scores(cold):
    def calls(op, heads, group, keys, dim):
        query, new, scale = op.heads(heads * group, 1, dim), op.heads(heads, 1, dim), dim ** -0.5

        def call(past):
            cached = op.torch.cat((past, new), -2)
            key = repeat(cached, group)
            op.torch.matmul(query, key.transpose(2, 3)) * scale
            return cached
        return [lambda past=past: call(past) for past in caches(op, cold, heads, keys, dim)]
    return calls


def step_context(cold):
    def calls(op, heads, group, keys, dim):
        probabilities, new = op.random(1, heads * group, 1, keys + 1), op.heads(heads, 1, dim)

        def call(past):
            cached = op.torch.cat((past, new), -2)
            op.torch.matmul(probabilities, repeat(cached, group)).transpose(1, 2).contiguous()
            return cached
        return [lambda past=past: call(past) for past in caches(op, cold, heads, keys, dim)]
    return calls


def step_fused(cold):
    def calls(op, heads, group, keys, dim):
        query, new = op.heads(heads * group, 1, dim), op.heads(heads, 1, dim)
        attend = attends(op.torch, group)
        pasts = caches(op, cold, heads, keys, dim)

        def call(past, other):
            cached = [op.torch.cat((x, new), -2) for x in (past, other)]
            attend(query, *cached).transpose(1, 2).contiguous()
            return cached
        pairs = zip(pasts[::2], pasts[1::2]) if len(pasts) > 1 else [(pasts[0], pasts[0])]
        return [lambda a=a, b=b: call(a, b) for a, b in pairs]
    return calls


def layer_norm(op, rows, width):
    x, weight, bias = op.random(rows, width), op.random(width), op.random(width)
    return [lambda: op.torch.nn.functional.layer_norm(x, (width,), weight, bias)]


def rms_norm(op, rows, width):
    x, weight = op.random(rows, width), op.random(width)

    def call():
        y = x.to(op.torch.float32)
        y = y * op.torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6)
        return weight * y.to(op.dtype)
    return [call]


def embedding(op, rows, width):
    table = op.pool[:op.pool.numel() // width * width].view(-1, width)
    ids = op.torch.randint(0, table.size(0), (1, rows), device=op.device)
    return [lambda: op.torch.nn.functional.embedding(ids, table)]


def rotary(op, elements):
    dim = 64
    rows = max(1, elements // (2 * dim))
    query, key = op.random(rows, dim), op.random(rows, dim)
    cos, sin = op.random(rows, dim), op.random(rows, dim)

    def turned(x):
        return x * cos + op.torch.cat((-x[..., dim // 2:], x[..., :dim // 2]), -1) * sin
    return [lambda: (turned(query), turned(key))]


def unary(name):
    def calls(op, elements):
        x, function = op.random(elements), activations(op.torch)[name]
        return [lambda: function(x)]
    return calls


def gated(name):
    def calls(op, elements):
        x, up, function = op.random(elements), op.random(elements), activations(op.torch)[name]
        return [lambda: function(x) * up]
    return calls


def activations(torch):
    functional = torch.nn.functional
    return {
        "relu": functional.relu, "gelu": functional.gelu, "silu": functional.silu, "tanh": torch.tanh,
        "gelu_tanh": lambda x: functional.gelu(x, approximate="tanh"),
        "feature_map": lambda x: functional.elu(x) + 1, "scale": lambda x: x * 0.125, "copy": lambda x: x.clone()}


def residual_add(op, elements):
    x, y = op.random(elements), op.random(elements)
    return [lambda: x + y]


UNARY = ["relu", "gelu", "gelu_tanh", "silu", "tanh", "scale", "feature_map", "copy"]
GATED = ["relu", "gelu", "gelu_tanh", "silu"]

KERNELS = {
    "linear_cold": (LINEAR, linear(True)), "linear_warm": (LINEAR, linear(False)),
    "attention_scores": (ATTENTION, scores), "attention_context": (ATTENTION, context),
    "attention_softmax": (PAIRS, softmax([])), "attention_softmax_causal": (PAIRS, softmax(["causal"])),
    "attention_softmax_biased": (PAIRS, softmax(["bias", "causal"])),
    "attention_fused": (ATTENTION, fused), "attention_fused_causal": (CAUSAL, fused_causal),
    "step_scores_cold": (STEP, step_scores(True)), "step_scores_warm": (STEP, step_scores(False)),
    "step_context_cold": (STEP, step_context(True)), "step_context_warm": (STEP, step_context(False)),
    "step_fused_cold": (STEP, step_fused(True)), "step_fused_warm": (STEP, step_fused(False)),
    "layer_norm": (NORM, layer_norm), "rms_norm": (NORM, rms_norm), "embedding": (NORM, embedding),
    **{name: (COUNT, unary(name)) for name in UNARY},
    **{f"{name}_gated": (COUNT, gated(name)) for name in GATED},
    "residual_add": (COUNT, residual_add), "rotary": (COUNT, rotary)}


def names(torch):
    """Kernels that this PyTorch has: fused attention came with 2.0."""
    fuses = hasattr(torch.nn.functional, "scaled_dot_product_attention")
    return [name for name in KERNELS if fuses or "fused" not in name]


def kept_bytes(name, sizes, size_of_element):
    """Bytes that a call's results keep, as a pass keeps the caches that it extends: 0 if none."""
    if not name.startswith("step_"):
        return 0
    heads, _, keys, dim = sizes
    return (2 if "fused" in name else 1) * heads * keys * dim * size_of_element


def product(sizes):
    result = 1
    for size in sizes:
        result *= size
    return result


def thinned(sizes):
    """Every second size, and the last."""
    return sizes[::2] if len(sizes) % 2 else sizes[::2] + sizes[-1:]


def grid(name, effort):
    """Axes of a kernel: [(name, sizes)]."""
    axes = KERNELS[name][0]
    if effort == "full":
        return axes
    if effort == "check":
        return [(axis, sizes[:2]) for axis, sizes in axes]
    return [(axis, thinned(sizes)) for axis, sizes in axes]


def points(axes):
    return list(itertools.product(*(sizes for _, sizes in axes)))
