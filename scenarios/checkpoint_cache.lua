-- checkpoint_cache: the inputs of checkpointed blocks, stashed for the way back and never cleared.
--
-- Shows    a library that keeps the checkpointed activations in a cache of its own must clear it after
--          backward(). Where it does not, each step leaves one activation for each block, though
--          checkpointing is on and the peak of a step looks as it should.
-- Params   leak: true never clears the cache, false clears it after each backward(); iterations; layers,
--          features, batch: the model and its batch.
-- Bound    fixed: parameters with gradients, an activation for each block and what one block takes; leak:
--          each iteration adds an activation for each block.
-- Source   https://github.com/deepspeedai/DeepSpeed/pull/1698 (tensors stashed by activation
--          checkpointing are cleared after the backward pass);
--          https://github.com/pytorch/pytorch/issues/77284 (the same in a version of torch's own).
scenario {
  name = "checkpoint_cache",
  summary = "checkpointed activations stashed for backward() and never cleared",
  tags = { "retention" },
  params = {
    { "leak", true, "never clear the cache" },
    { "iterations", 20, "training steps", least = 1, most = 100000 },
    { "layers", 8, "blocks", least = 1, most = 256 },
    { "features", 1024, "width of each layer", least = 1, most = 65536 },
    { "batch", 1024, "samples in a batch", least = 1, most = 1048576 },
  },
}

local parts = {}
for k = 1, layers do
  parts[k] = nn.Sequential { nn.Linear { features, features }, nn.ReLU(), nn.Linear { features, features } }
end
model = nn.Sequential(parts) -- holds the blocks
optimizer = optim.SGD { model, lr = 0.01 }
cache = list()

activation = cuda.block_bytes(4 * batch * features)
parameters = 2 * layers * (cuda.block_bytes(4 * features * features) + cuda.block_bytes(4 * features))
bound { allocated = 2 * parameters + (layers + 10) * activation + 68 * MiB, leaks = leak }

for i = 0, iterations - 1 do
  x = randn { batch, features }
  for k = 1, layers do
    cache:append(x)
    x = checkpoint(parts[k], x)
  end
  loss = x:square():mean()
  x = nil
  loss:backward()
  optimizer:step()
  optimizer:zero_grad()
  if not leak then
    cache:clear()
  end
  phase(i)
end
