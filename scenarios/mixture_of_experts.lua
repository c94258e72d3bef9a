-- mixture_of_experts: how many tokens come to this rank's experts is decided by the data.
--
-- Shows    with experts spread over ranks, a popular expert brings its rank the tokens of all others:
--          sizes differ in every layer of every step, the peak is set by the worst of them, and blocks of
--          one step do not fit the holes of the next. A capacity for each expert makes all sizes equal, for
--          the price of dropped tokens and padding.
-- Params   leak: true takes all tokens that come, false pads or cuts to the capacity; iterations; layers,
--          experts (on this rank), features, hidden: the model; tokens: an expert's fair share; skew:
--          an expert gets from 1/skew to skew times its share; factor: capacity over fair share.
-- Bound    fixed: reserved memory is what layers * experts of the capacity take; leak: more.
-- Source   https://arxiv.org/abs/2101.03961 (Switch Transformer: capacity factor);
--          https://arxiv.org/abs/2601.17111 (imbalanced routing runs out of memory).
scenario {
  name = "mixture_of_experts",
  summary = "experts that take all tokens routed to them, or a capacity",
  tags = { "pressure" },
  params = {
    { "leak", true, "no capacity: take what comes" },
    { "iterations", 20, "training steps", least = 1, most = 100000 },
    { "layers", 4, "layers with experts", least = 1, most = 256 },
    { "experts", 4, "experts of each layer on this rank", least = 1, most = 256 },
    { "features", 512, "features of a token", least = 1, most = 65536 },
    { "hidden", 2048, "width of an expert", least = 1, most = 262144 },
    { "tokens", 4096, "tokens of an expert, when all get as many", least = 8, most = 16777216 },
    { "skew", 4.0, "how many times more or fewer may come", least = 1, most = 1000 },
    { "factor", 1.25, "capacity of an expert over its fair share", least = 0.001, most = 1000 },
  },
}

local parts = {}
for k = 1, layers * experts do
  parts[k] = nn.Sequential { nn.Linear { features, hidden }, nn.ReLU(), nn.Linear { hidden, features } }
end
model = nn.Sequential(parts) -- holds the experts
optimizer = optim.AdamW { model, lr = 1e-4 }

capacity = math.max(1, math.floor(factor * tokens))
-- of so many numbers, with their share of a segment
local function reserved(numbers)
  local _, bytes = cuda.block_bytes(4 * numbers)
  return bytes
end

parameters = layers * experts * (2 * reserved(features * hidden) + reserved(features) + reserved(hidden))
-- an expert saves its tokens and the hidden activation; its result waits to be combined
tokens_in, inside = reserved(capacity * features), reserved(capacity * hidden)
saved = layers * experts * (2 * tokens_in + inside)
working = 2 * tokens_in + 4 * inside
bound {
  reserved = 1.2 * (math.max(5 * parameters, 4 * parameters + saved + working) + 66 * MiB),
  leaks = leak,
}

-- What the data of a step likes and what each expert is good at count as much: from -1 to 1.
local function draw()
  return random(-1000, 1000) / 1000
end

for i = 0, iterations - 1 do
  results = list()
  local most, liking = 0, draw()
  for k = 1, layers * experts do
    local count = math.floor(tokens * skew ^ ((liking + draw()) / 2))
    most = math.max(most, count)
    if not leak then
      count = capacity
    end
    results:append(parts[k](empty { count, features }))
  end
  for k = layers * experts, 1, -1 do
    local size = results[k]:size(1)
    results[k]:backward(empty { size, features })
    results:pop()
  end
  optimizer:step()
  optimizer:zero_grad()
  phase(i .. ":" .. most)
end
