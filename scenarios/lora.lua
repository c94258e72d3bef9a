-- lora: a Llama-like decoder fine-tuned: all of its weights, or two small linears beside each.
--
-- Shows    a frozen base in 16 bits has neither gradients nor moments: what is left is the base itself,
--          its activations, and adapters that take a hundredth of it. RMSNorm, rotary embeddings, grouped
--          keys and values, flash attention and SwiGLU, as Llama has them.
-- Params   leak: true trains every weight, false freezes the base and trains adapters (LoRA); rank: of an
--          adapter; batch, length: the sequences; vocabulary, features, hidden, heads, groups (heads of
--          keys and values), layers: the model; iterations: steps.
-- Bound    the base, seven times the adapters, 12 results of the features' width in each layer and 5 of
--          the hidden one, and the logits four times; the leaking variant adds the gradients and two
--          moments of every weight.
-- Source   https://arxiv.org/abs/2106.09685 (LoRA); https://arxiv.org/abs/2302.13971 (LLaMA).
scenario {
  name = "lora",
  summary = "Llama-like decoder fine-tuned: every weight, or adapters beside a frozen base",
  tags = { "pressure" },
  params = {
    { "leak", true, "train every weight" },
    { "rank", 16, "of an adapter", least = 1, most = 1024 },
    { "batch", 2, "sequences", least = 1, most = 4096 },
    { "length", 512, "tokens of a sequence", least = 2, most = 65536 },
    { "vocabulary", 32000, "tokens known", least = 2, most = 16777216 },
    { "features", 1024, "of a token", least = 8, most = 65536 },
    { "hidden", 2816, "width of the feed-forward layers", least = 1, most = 262144 },
    { "heads", 16, "of queries", least = 1, most = 1024 },
    { "groups", 4, "heads of keys and values", least = 1, most = 1024 },
    { "layers", 8, "blocks", least = 1, most = 256 },
    { "iterations", 4, "steps", least = 1, most = 100000 },
  },
}

depth = features // heads
assert(features % heads == 0 and heads % groups == 0, "features, heads and groups must divide each other")
assert(depth % 8 == 0 and depth <= 128, "features of a head must be a multiple of 8 and at most 128")

trained = list()
parts = list()

-- A part of the base: trained, or frozen.
function of_base(part)
  if leak then
    trained:append(part)
  else
    part:requires_grad_(false)
  end
  parts:append(part)
  return part
end

-- A linear of the base, with an adapter where the base is frozen.
function linear(input, output)
  layer = object()
  layer.base = of_base(nn.Linear { input, output, bias = false })
  if not leak then
    layer.down = nn.Linear { input, rank, bias = false }
    layer.up = nn.Linear { rank, output, bias = false }
    for _, part in ipairs { "down", "up" } do
      trained:append(layer[part])
      parts:append(layer[part])
    end
  end
  return layer
end

-- What was made in 32 bits since the last time, as module.cuda().to(torch.bfloat16) converts it.
function convert()
  for _, part in ipairs(parts) do
    part:to("bfloat16")
  end
  parts:clear()
end

function project(layer, x)
  if leak then
    return layer.base(x)
  end
  local x <close> = hold(x)
  return layer.base(x) + layer.up(layer.down(x)) * 2
end

words = of_base(nn.Embedding { vocabulary, features })
convert()
blocks = list()
for i = 1, layers do
  block = object()
  block.norm1 = of_base(nn.RMSNorm { features })
  block.norm2 = of_base(nn.RMSNorm { features })
  block.q = linear(features, features)
  block.k = linear(features, groups * depth)
  block.v = linear(features, groups * depth)
  block.o = linear(features, features)
  block.gate = linear(features, hidden)
  block.up = linear(features, hidden)
  block.down = linear(hidden, features)
  convert()
  blocks:append(block)
end
last = of_base(nn.RMSNorm { features })
convert()
head = of_base(nn.Linear { features, vocabulary, bias = false })
convert()
block, layer = nil, nil
optimizer = optim.AdamW { trained, lr = 1e-4 }
cosine = randn { length, depth, dtype = "bfloat16" }
sine = randn { length, depth, dtype = "bfloat16" }

tokens = batch * length
key_features = groups * depth
matrix = 2 * features * features + 2 * features * key_features + 3 * features * hidden
base = 2 * (layers * (matrix + 2 * features) + features + 2 * vocabulary * features)
adapters = 2 * rank * layers * (9 * features + 2 * key_features + 3 * hidden)
-- what a layer keeps, what one is at work with, and the logits: in 16 bits, and a loss and gradients
graph = 2 * tokens * layers * (12 * features + 5 * hidden + 8 * rank)
working = 2 * tokens * (12 * features + 6 * hidden) + 8 * tokens * vocabulary
bound { allocated = base + 7 * adapters + graph + working + 70 * MiB, leaks = leak }

-- [batch, length, heads * depth] as [batch, heads, length, depth]
function by_heads(x, count)
  return x:view { batch, length, count, depth }:transpose(2, 3)
end

-- x * cos + rotate_half(x) * sin
function rotate(x)
  local x <close> = hold(x)
  local halves <close> = hold(x:chunk(2, -1))
  return x * cosine + cat({ -halves[2], halves[1] }, -1) * sine
end

function attend(block, x)
  local x <close> = hold(x)
  local q <close> = hold(by_heads(project(block.q, x), heads))
  local k <close> = hold(by_heads(project(block.k, x), groups))
  local v <close> = hold(by_heads(project(block.v, x), groups))
  local y = scaled_dot_product_attention(rotate(q), rotate(k), v, { is_causal = true, enable_gqa = heads ~= groups })
  return project(block.o, y:transpose(2, 3):reshape { batch, length, features })
end

function feed_forward(block, x)
  local x <close> = hold(x)
  return project(block.down, silu(project(block.gate, x)) * project(block.up, x))
end

function forward()
  x = words(inputs)
  for _, block in ipairs(blocks) do
    x = x + attend(block, block.norm1(x))
    x = x + feed_forward(block, block.norm2(x))
  end
  logits = head(last(x))
  loss = cross_entropy(logits:view { tokens, vocabulary }, targets)
  logits, x = nil, nil
end

phase "start"
for i = 0, iterations - 1 do
  inputs, targets = randint { batch, length }, randint { tokens }
  forward()
  phase(i .. ":forward")
  loss:backward()
  phase(i .. ":backward")
  optimizer:step()
  optimizer:zero_grad()
  phase(i .. ":step")
end
