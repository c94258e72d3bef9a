-- encoder: record_truth.py's pattern of that name.
scenario {
  name = "encoder",
  summary = "transformer encoder trained",
  params = {
    { "batch", 32, "sequences", least = 1, most = 4096 },
    { "length", 96, "tokens", least = 1, most = 65536 },
    { "features", 512, "of a token", least = 1, most = 65536 },
    { "heads", 8, "of attention", least = 1, most = 1024 },
    { "layers", 6, "of the encoder", least = 1, most = 1024 },
    { "optimizer_name", "adamw", "adamw or adam" },
    { "gelu", false, "in place of ReLU" },
    { "norm_first", false, "normalise before each part" },
    { "clip", false, "clip the gradients' norm" },
  },
}

model = nn.Sequential {
  nn.TransformerEncoder {
    layers = layers, features = features, heads = heads, gelu = gelu, norm_first = norm_first,
  },
  nn.Linear { features, 1000 },
}
optimizer = optim.AdamW { model }
phase "start"

for i = 0, 2 do
  optimizer:zero_grad()
  phase(i .. ":zero grads")
  fresh_x = randn { batch, length, features }
  fresh_y = randint { batch * length }
  x, y = fresh_x, fresh_y
  fresh_x, fresh_y = nil, nil
  loss = cross_entropy(model(x):view { batch * length, 1000 }, y)
  phase(i .. ":forward")
  loss:backward()
  phase(i .. ":backward")
  if clip then
    clip_grad_norm(model)
    phase(i .. ":clip")
  end
  optimizer:step()
  phase(i .. ":step")
end

parameters, gradients, buffers = model:nbytes()
phase("sizes " .. parameters .. " " .. gradients .. " " .. buffers .. " " .. optimizer:nbytes())
