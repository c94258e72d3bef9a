-- gpt: record_truth.py's pattern of that name.
scenario {
  name = "gpt",
  summary = "GPT trained: precision, checkpointing, accumulation, optimizer",
  params = {
    { "batch", 8, "sequences", least = 1, most = 4096 },
    { "length", 256, "tokens", least = 1, most = 65536 },
    { "vocabulary", 50304, "tokens known", least = 2, most = 1000000 },
    { "features", 768, "of a token", least = 1, most = 65536 },
    { "heads", 12, "of attention", least = 1, most = 1024 },
    { "layers", 8, "blocks", least = 1, most = 1024 },
    { "iterations", 3, "steps", least = 1, most = 1000 },
    { "accumulate", 1, "batches for a step", least = 1, most = 64 },
    { "precision", "", "of autocast; empty: off" },
    { "checkpoint", false, "keep only the inputs of blocks" },
    { "foreach", true, "all parameters at once" },
    { "fused", false, "one kernel" },
    { "causal", false, "nanoGPT's blocks, with positions" },
  },
}

model = nn.gpt {
  vocabulary = vocabulary, features = features, heads = heads, layers = layers, checkpoint = checkpoint,
  causal = causal, positions = causal and 256 or 0,
}
optimizer = optim.AdamW { model, foreach = foreach, fused = fused }
phase "start"

function forward()
  loss = cross_entropy(model(x):view { batch * length, vocabulary }, y)
end

for i = 0, iterations - 1 do
  optimizer:zero_grad()
  phase(i .. ":zero grads")
  for k = 0, accumulate - 1 do
    suffix = accumulate > 1 and " " .. k or ""
    fresh_x = randint { batch, length }
    fresh_y = randint { batch * length }
    x, y = fresh_x, fresh_y
    fresh_x, fresh_y = nil, nil
    if precision == "" then
      forward()
    else
      autocast(precision, forward)
    end
    phase(i .. ":forward" .. suffix)
    loss:backward()
    phase(i .. ":backward" .. suffix)
  end
  optimizer:step()
  phase(i .. ":step")
end

parameters, gradients, buffers = model:nbytes()
phase("sizes " .. parameters .. " " .. gradients .. " " .. buffers .. " " .. optimizer:nbytes())
