-- variable_batch: a transformer trained on batches whose size and length are drawn anew each time.
--
-- Shows    fragmentation: no iteration's blocks fit the holes that the one before left, so reserved
--          memory grows far beyond what is ever allocated, up to out of memory with room to spare.
-- Params   leak: true draws batch and length, false pads every batch to the largest shape;
--          iterations; layers, features, heads, hidden: the transformer; max_batch, max_length;
--          shapes: given ones.
-- Bound    fixed: reserved memory is what the largest batch needs, and some segments that are not full;
--          leak: more than that, though no batch is larger. Both: allocated memory is the same at the end
--          of each iteration (parameters, optimizer state, workspaces).
-- Source   the varbatch_cap6_* recordings (torch 2.11, H200): same model, labels "N:BATCHxLENGTH". The
--          shapes are drawn from the seed here and differ from the recorded ones.
scenario {
  name = "variable_batch",
  summary = "transformer with batch and length drawn anew each iteration: fragmentation",
  tags = { "pressure" },
  params = {
    { "leak", true, "draw the shapes instead of padding to the largest" },
    { "iterations", 40, "training steps", least = 1, most = 100000 },
    { "layers", 6, "layers of the encoder", least = 1, most = 256 },
    { "features", 512, "features of a token", least = 1, most = 65536 },
    { "heads", 8, "attention heads", least = 1, most = 256 },
    { "hidden", 2048, "features between the two linear layers", least = 1, most = 262144 },
    { "max_batch", 128, "the largest batch", least = 8, most = 65536 },
    { "max_length", 200, "the longest sequence", least = 5, most = 65536 },
    { "shapes", "", "in place of drawn ones: \"96x138 32x106 ...\", in turn" },
  },
}

-- "96x138 32x106": batches and lengths; whatever is between the numbers separates the shapes.
local batches, lengths, digits = {}, {}, ""
for i = 1, #shapes + 1 do
  local character = i <= #shapes and string.sub(shapes, i, i) or " "
  if character >= "0" and character <= "9" then
    digits = digits .. character
  elseif character == "x" then
    batches[#batches + 1], digits = tonumber(digits), ""
  elseif digits ~= "" then
    lengths[#lengths + 1], digits = tonumber(digits), ""
  end
end
assert(#batches == #lengths and (#batches > 0 or shapes == ""), "shapes: BATCHxLENGTH ... expected")

model = nn.TransformerEncoder {
  layers = layers, features = features, heads = heads, hidden = hidden,
}
optimizer = optim.AdamW { model, lr = 1e-4 }

-- What the largest batch takes at the height of its backward pass: in each layer what is saved of a
-- token (9.5 vectors of `features`, 2.25 of `hidden`, masks counted as quarters), and in the last one
-- the temporaries, of the two linear layers or, where those are narrow, of attention; parameters with
-- two moments; the workspaces of both threads. Large blocks with their share of a segment.
local function reserved(numbers)
  local _, bytes = cuda.block_bytes(4 * numbers)
  return bytes
end

tokens = max_batch * max_length
narrow, wide = reserved(tokens * features), reserved(tokens * hidden)
saved = layers * (9.5 * narrow + 2.25 * wide + 4 * tokens * (heads + 8))
temporaries = math.max(wide, 2 * narrow) + 3 * narrow
parameters = layers * (4 * features * features + 2 * features * hidden + 9 * features + hidden)
needed = saved + temporaries + 3 * 4 * parameters + 66 * MiB
-- some segments are never full: a few of 20 MiB, and three of the largest
bound { reserved = 1.08 * needed + 3 * math.max(wide, 3 * narrow) + 100 * MiB, leaks = leak }

for i = 0, iterations - 1 do
  -- an eighth (less an odd sample), a quarter, a half, three quarters or all of the largest batch
  drawn_batch = choice {
    max_batch // 8 + 1, max_batch // 4, max_batch // 4, max_batch // 2, max_batch * 3 // 4,
    max_batch,
  }
  drawn_length = random(max_length // 5, max_length)
  if #batches > 0 then
    batch, length = batches[i % #batches + 1], lengths[i % #batches + 1]
  elseif leak then
    batch, length = drawn_batch, drawn_length
  else
    batch, length = max_batch, max_length
  end
  model(randn { batch, length, features }):square():mean():backward()
  optimizer:step()
  optimizer:zero_grad { set_to_none = true }
  phase(i .. ":" .. batch .. "x" .. length)
end
