-- best_so_far: now and then the weights are the best so far, and a copy takes the last one's place;
-- each epoch ends with a validation.
scenario {
  name = "best_so_far",
  summary = "training with validations, a running average and a copy of the best weights",
  params = {
    { "iterations", 40, "training steps" },
    { "epoch", 5, "steps of an epoch", least = 1 },
    { "accumulate", 1, "batches for a step", least = 1 },
    { "batch", 512, "samples in a batch" },
    { "features", 1024, "width of each layer" },
    { "layers", 5, "linear layers" },
  },
}

local parts = {}
for k = 1, layers do
  parts[2 * k - 1] = nn.Linear { features, features }
  parts[2 * k] = nn.GELU()
end
model = nn.Sequential(parts)
optimizer = optim.AdamW { model, lr = 1e-3 }

weights, average = model:parameters(), list()
for k = 1, #weights do
  average:append(weights[k]:detach():clone())
end

function copy_weights()
  best = list()
  for k = 1, #weights do
    best:append(weights[k]:detach():clone())
  end
end

for i = 1, iterations do
  for _ = 1, accumulate do
    loss = model(randn { batch, features }):square():mean()
    loss:backward()
  end
  optimizer:step()
  optimizer:zero_grad()
  for k = 1, #weights do
    average[k]:mul_(0.9)
    average[k]:add_(weights[k]:detach())
  end
  if i % epoch == 0 then
    no_grad(function()
      validation = model(randn { 2 * batch, features }):square():mean()
    end)
    if random(3) == 1 then
      copy_weights()
    end
  end
  phase(i)
end
