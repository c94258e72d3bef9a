-- gpt: a GPT trained in mixed precision, gradients accumulated over batches, the next batch prefetched.
--
-- Shows    what bfloat16 autocast keeps: a 16-bit copy of each weight from its first use to the end of
--          the backward pass, activations in 16 bits, the residual stream and the loss in 32; batches
--          of other sizes leave holes of other sizes.
-- Params   batches: sequences in each batch, in turn; length: tokens of a sequence; accumulate: batches
--          for a step; iterations: steps; vocabulary, features, heads, layers: the model;
--          precision: bfloat16, float16, or empty for 32 bits.
-- Bound    parameters, gradients and moments, 16-bit copies of the parameters, the graph of the largest
--          batch, and its logits: logarithms of softmax in 16 and in 32 bits, and a gradient; or, where
--          that is less, a step of AdamW, which takes the roots of all second moments at once.
-- Source   the gpt_frames recording (torch 2.11, H200): same phases.
scenario {
  name = "gpt",
  summary = "GPT in mixed precision with accumulated gradients and prefetched batches",
  tags = { "model" },
  params = {
    { "batches", "8 16 16 8 12 16 12 16 16", "sequences in each batch, in turn" },
    { "length", 256, "tokens of a sequence", least = 1, most = 65536 },
    { "iterations", 4, "steps", least = 1, most = 100000 },
    { "accumulate", 2, "batches for a step", least = 1, most = 1024 },
    { "vocabulary", 50304, "tokens known", least = 2, most = 16777216 },
    { "features", 768, "of a token", least = 1, most = 65536 },
    { "heads", 12, "attention heads", least = 1, most = 256 },
    { "layers", 8, "blocks", least = 1, most = 256 },
    { "precision", "bfloat16", "of products; empty: 32 bits" },
  },
}

-- The numbers of a text.
local sizes, digits = {}, ""
for i = 1, #batches + 1 do
  local character = i <= #batches and string.sub(batches, i, i) or " "
  if character >= "0" and character <= "9" then
    digits = digits .. character
  elseif digits ~= "" then
    sizes[#sizes + 1] = tonumber(digits)
    digits = ""
  end
end
assert(#sizes > 0, "batches: at least one number")

embedding = nn.Embedding { vocabulary, features }
blocks = list()
for i = 1, layers do
  blocks:append(nn.GPTBlock { features, heads = heads })
end
head = nn.Linear { features, vocabulary, bias = false }
optimizer = optim.AdamW { embedding, blocks, head, lr = 3e-4 }
side = cuda.Stream()
drawn = 0

largest = 0
for _, size in ipairs(sizes) do
  largest = math.max(largest, size)
end
tokens_at_once = largest * length
parameters = 4 * (2 * vocabulary * features + layers * features * (12 * features + 13))
width = precision == "" and 2 or 1
graph = width * tokens_at_once * (36 * layers * features + 10 * vocabulary)
bound { allocated = 1.05 * (math.max(4.5 * parameters + graph, 5 * parameters) + 72 * MiB) }

function prefetch()
  local batch = sizes[drawn % #sizes + 1]
  drawn = drawn + 1
  cuda.stream(side, function()
    upcoming = randint { batch, length }
  end)
end

function forward()
  x = embedding(tokens)
  for _, block in ipairs(blocks) do
    x = block(x)
  end
  rows = x:size(1) * length
  loss = cross_entropy(head(x):view { rows, vocabulary }, tokens:view { rows })
end

prefetch()
phase "start"
for i = 0, iterations - 1 do
  for _ = 1, accumulate do
    cuda.current_stream():wait_stream(side)
    tokens = upcoming
    prefetch()
    if precision == "" then
      forward()
    else
      autocast(precision, forward)
    end
    loss:backward()
  end
  optimizer:step()
  optimizer:zero_grad()
  phase(i)
end
