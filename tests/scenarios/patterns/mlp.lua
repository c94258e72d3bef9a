-- mlp: record_truth.py's pattern of that name, and shared/traces' eval_*.
scenario {
  name = "mlp",
  summary = "a multi-layer perceptron evaluated, with or without no_grad",
  params = {
    { "leak", true, "without no_grad" },
    { "layers", 8, "linear layers", least = 1, most = 1024 },
    { "features", 1536, "of a layer", least = 1, most = 65536 },
    { "batch", 4096, "rows", least = 1, most = 65536 },
    { "iterations", 5, "batches", least = 1, most = 1000 },
  },
}

model = nn.Sequential {}
for i = 1, layers do
  model:append(nn.Linear { features, features })
  model:append(nn.ReLU())
end
function pass()
  fresh = randn { batch, features }
  x = fresh
  fresh = nil
  loss = (model(x) - x):square():mean()
end
for i = 0, iterations - 1 do
  if leak then
    pass()
  else
    no_grad(pass)
  end
  phase(i)
end

parameters, gradients, buffers = model:nbytes()
phase("sizes " .. parameters .. " " .. gradients .. " " .. buffers .. " " .. 0)
