-- evaluation: a model evaluated without no_grad().
--
-- Shows    each pass records a graph that no backward() frees. `loss` keeps it, with the input and all
--          activations, until the next pass has made its own: two graphs at the peak.
-- Params   leak: true evaluates as in training, false under no_grad(); iterations; layers, features:
--          the perceptron; batch.
-- Bound    fixed: parameters, workspace, and three activations at a time; the leaking variant holds
--          a graph of 1 + layers activations at the end of every iteration, and two graphs at the peak.
-- Source   the eval_leak and eval_fixed recordings (torch 2.11, H200): same phases;
--          https://pytorch.org/docs/stable/notes/autograd.html (no-grad mode).
scenario {
  name = "evaluation",
  summary = "evaluation without no_grad(): every pass builds a graph",
  tags = { "retention" },
  params = {
    { "leak", true, "evaluate without no_grad()" },
    { "iterations", 20, "batches evaluated", least = 1, most = 100000 },
    { "batch", 2048, "samples in a batch", least = 1, most = 1048576 },
    { "layers", 12, "linear layers", least = 1, most = 256 },
    { "features", 1024, "width of each layer", least = 1, most = 65536 },
  },
}

local parts = {}
for i = 1, layers do
  parts[2 * i - 1] = nn.Linear { features, features }
  parts[2 * i] = nn.ReLU()
end
model = nn.Sequential(parts)

activation = cuda.block_bytes(4 * batch * features)
parameters = layers * (cuda.block_bytes(4 * features * features) + cuda.block_bytes(4 * features))
-- the input, and what goes in and out of a layer; cuBLAS and cuBLASLt keep 33 MiB
bound { allocated = parameters + 3 * activation + 36 * MiB, leaks = leak }

function evaluate()
  loss = model(randn { batch, features }):square():mean()
end

for i = 0, iterations - 1 do
  if leak then
    evaluate()
  else
    no_grad(evaluate)
  end
  phase(i)
end
