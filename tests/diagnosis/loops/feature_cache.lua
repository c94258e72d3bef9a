-- feature_cache: a frozen body's features of a data set are computed in the first epoch and kept.
scenario {
  name = "feature_cache",
  summary = "features that are computed once and kept for all epochs",
  params = {
    { "batches", 12, "of the data set", least = 1 },
    { "epochs", 4, "epochs", least = 1 },
    { "batch", 1024, "samples in a batch" },
    { "features", 1024, "width of each layer" },
    { "layers", 4, "linear layers of the body" },
  },
}

local parts = {}
for k = 1, layers do
  parts[2 * k - 1] = nn.Linear { features, features }
  parts[2 * k] = nn.ReLU()
end
body = nn.Sequential(parts)
head = nn.Linear { features, 100 }
optimizer = optim.SGD { head, lr = 0.1 }
cache = list()

for epoch = 1, epochs do
  for k = 1, batches do
    if epoch == 1 then
      no_grad(function()
        cache:append(body(randn { batch, features }))
      end)
    end
    cross_entropy(head(cache[k]), randint { batch }):backward()
    optimizer:step()
    optimizer:zero_grad()
  end
  phase(epoch)
end
