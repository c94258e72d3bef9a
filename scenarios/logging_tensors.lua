-- logging_tensors: a logger keeps what it is given until the epoch ends, on the device.
--
-- Shows    detach() cuts the graph and not the memory: a detached tensor shares the whole storage. A
--          logger that gathers activations for a histogram at the end of the epoch, and every loss, keeps
--          them all, and what looked like a steady training loop grows from step to step.
-- Params   leak: true logs detached tensors, false the numbers that are wanted (mean, item());
--          iterations; every: steps between two logs; batch, features, layers: the model.
-- Bound    fixed: parameters with gradients and momentum, workspaces, and the activations of one batch;
--          leak: each log adds an activation of each layer, each step a loss.
-- Source   https://github.com/Lightning-AI/pytorch-lightning/issues/4556 (values logged for the end of
--          the epoch stay on the GPU).
scenario {
  name = "logging_tensors",
  summary = "detached activations and losses gathered by a logger until the epoch ends",
  tags = { "retention" },
  params = {
    { "leak", true, "log tensors instead of numbers" },
    { "iterations", 40, "training steps", least = 1, most = 100000 },
    { "every", 2, "steps between two logs of the activations", least = 1, most = 100000 },
    { "batch", 1024, "samples in a batch", least = 1, most = 1048576 },
    { "features", 1024, "width of each layer", least = 1, most = 65536 },
    { "layers", 6, "linear layers", least = 1, most = 256 },
  },
}

local parts = {}
for k = 1, layers do
  parts[k] = nn.Linear { features, features }
end
model = nn.Sequential(parts) -- holds the parts
optimizer = optim.SGD { model, lr = 0.01, momentum = 0.9 }
log = list()

activation = cuda.block_bytes(4 * batch * features)
parameters = layers * (cuda.block_bytes(4 * features * features) + cuda.block_bytes(4 * features))
bound { allocated = 3 * parameters + (layers + 5) * activation + 68 * MiB, leaks = leak }

for i = 0, iterations - 1 do
  x = randn { batch, features }
  for k = 1, layers do
    x = relu(parts[k](x))
    if i % every == 0 then
      if leak then
        log:append(x:detach())
      else
        x:mean():item()
      end
    end
  end
  loss = x:square():mean()
  loss:backward()
  optimizer:step()
  optimizer:zero_grad()
  if leak then
    log:append(loss:detach())
  end
  phase(i)
end
