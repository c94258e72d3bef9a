-- transformer: a transformer encoder trained, with the layers of torch.nn.TransformerEncoder.
--
-- Shows    what grows with what: attention with the square of the length where it is not fused, the
--          two linear layers with batch x length, parameters and moments with neither.
-- Params   batch, length: the sequences; features, heads, hidden, layers: the model; gelu, norm_first:
--          as in torch; clip: the gradients' norm is clipped; iterations: steps.
-- Bound    what the first step peaked at and the optimizer's state: no later step takes more.
-- Source   recordings with torch 2.11 on an H200: encoder_post, encoder_pre, encoder_clip
--          (tests/data/truth/patterns); A. Vaswani et al., arXiv 1706.03762.
scenario {
  name = "transformer",
  summary = "transformer encoder trained: AdamW, clipped gradients",
  tags = { "model" },
  params = {
    { "batch", 32, "sequences", least = 1, most = 65536 },
    { "length", 128, "tokens", least = 1, most = 65536 },
    { "features", 512, "of a token", least = 1, most = 65536 },
    { "heads", 8, "of attention", least = 1, most = 1024 },
    { "hidden", 2048, "features between the two linear layers", least = 1, most = 262144 },
    { "layers", 6, "of the encoder", least = 1, most = 1024 },
    { "classes", 1000, "outputs for a token", least = 2, most = 16777216 },
    { "gelu", false, "in place of ReLU" },
    { "norm_first", false, "normalise before each part" },
    { "clip", true, "clip the gradients' norm" },
    { "iterations", 3, "steps", least = 1, most = 100000 },
  },
}

model = nn.Sequential {
  nn.TransformerEncoder {
    layers = layers, features = features, heads = heads, hidden = hidden, gelu = gelu, norm_first = norm_first,
  },
  nn.Linear { features, classes },
}
optimizer = optim.AdamW { model }
phase "start"

for i = 0, iterations - 1 do
  optimizer:zero_grad()
  tokens, targets = randn { batch, length, features }, randint { batch * length }
  loss = cross_entropy(model(tokens):view { batch * length, classes }, targets)
  phase(i .. ":forward")
  loss:backward()
  phase(i .. ":backward")
  if clip then
    clip_grad_norm(model)
  end
  optimizer:step()
  phase(i .. ":step")
  if i == 0 then -- later passes reuse blocks, with what is not split off
    local memory = cuda.memory()
    local peak = memory and memory.max_allocated or cuda.requested().peak
    bound { allocated = 1.1 * (peak + optimizer:nbytes()) }
  end
end
