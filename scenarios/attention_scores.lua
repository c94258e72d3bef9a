-- attention_scores: attention that writes its scores out, or flash attention.
--
-- Shows    the mathematical kernel keeps softmax(q k^T) of every layer, which grows with the square of
--          the length, and computes it in 32 bits; flash attention keeps one number for each row.
-- Params   leak: true takes the mathematical kernel, false flash attention; batch, length: the sequences;
--          features, heads, layers: a GPT of 16 bits; iterations: steps.
-- Bound    parameters, gradients and moments, 17 activations of a layer, and 16 that are at work; the leaking variant adds a square of the length for each layer.
-- Source   https://arxiv.org/abs/2205.14135 (FlashAttention);
--          https://pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html.
scenario {
  name = "attention_scores",
  summary = "GPT whose attention keeps its scores, or flash attention",
  tags = { "pressure" },
  params = {
    { "leak", true, "write the scores out" },
    { "batch", 2, "sequences", least = 1, most = 4096 },
    { "length", 2048, "tokens of a sequence", least = 1, most = 65536 },
    { "features", 768, "of a token", least = 8, most = 65536 },
    { "heads", 12, "of attention", least = 1, most = 1024 },
    { "layers", 4, "blocks", least = 1, most = 256 },
    { "iterations", 4, "steps", least = 1, most = 100000 },
  },
}

depth = features // heads
assert(features % heads == 0 and depth % 8 == 0 and depth <= 256,
  "features of a head must be a multiple of 8 and at most 256")

blocks = list()
trained = list()
for i = 1, layers do
  block = object()
  block.norm1, block.norm2 = nn.LayerNorm { features }, nn.LayerNorm { features }
  block.qkv = nn.Linear { features, 3 * features }
  block.projection = nn.Linear { features, features }
  block.wide = nn.Linear { features, 4 * features }
  block.narrow = nn.Linear { 4 * features, features }
  for _, part in ipairs { "norm1", "norm2", "qkv", "projection", "wide", "narrow" } do
    trained:append(block[part])
  end
  blocks:append(block)
end
block = nil
-- all of it is made in 32 bits first, as model.cuda().to(torch.bfloat16) does
for _, part in ipairs(trained) do
  part:to("bfloat16")
end
optimizer = optim.AdamW { trained }

parameters = 2 * layers * (12 * features * features + 13 * features)
activation = 2 * batch * length * features
bound { allocated = 5.2 * parameters + (17 * layers + 16) * activation + 72 * MiB, leaks = leak }

function attend(block, x)
  local parts <close> = hold(block.qkv(block.norm1(x)):chunk(3, -1))
  local function by_heads(part)
    return part:view { batch, length, heads, depth }:transpose(2, 3)
  end
  local y = scaled_dot_product_attention(by_heads(parts[1]), by_heads(parts[2]), by_heads(parts[3]), {
    is_causal = true, backend = leak and "math" or "flash",
  })
  return block.projection(y:transpose(2, 3):reshape { batch, length, features })
end

for i = 0, iterations - 1 do
  x = randn { batch, length, features, dtype = "bfloat16" }
  for _, block in ipairs(blocks) do
    x = x + attend(block, x)
    x = x + block.narrow(gelu(block.wide(block.norm2(x))))
  end
  loss = x:square():mean()
  x = nil
  phase(i .. ":forward")
  loss:backward()
  phase(i .. ":backward")
  optimizer:step()
  optimizer:zero_grad()
  phase(i .. ":step")
end
