-- early_phase: a search for the largest batch comes first, and then a training that needs little.
scenario {
  name = "early_phase",
  summary = "what an early phase needed stays in the allocator's cache",
  params = {
    { "leak", true, "never empty the cache" },
    { "iterations", 20, "training steps" },
    { "search", 64, "how many times the batch the search goes up to, in steps of twice as much" },
    { "batch", 256, "samples in a batch" },
    { "features", 1024, "width of each layer" },
    { "layers", 6, "linear layers" },
  },
}

local parts = {}
for k = 1, layers do
  parts[2 * k - 1] = nn.Linear { features, features }
  parts[2 * k] = nn.ReLU()
end
model = nn.Sequential(parts)
optimizer = optim.SGD { model, lr = 0.01, momentum = 0.9 }

function train(samples)
  optimizer:zero_grad()
  loss = model(randn { samples, features }):square():mean()
  loss:backward()
  optimizer:step()
end

local times = 1
while times <= search do
  train(times * batch)
  times = 2 * times
end
loss = nil
if not leak then
  cuda.empty_cache()
end
phase "search"

for i = 0, iterations - 1 do
  train(batch)
  phase(i)
end
