-- stored_gradients: the gradients of each step are copied for a report.
scenario {
  name = "stored_gradients",
  summary = "copies of gradients kept, or their number",
  params = {
    { "leak", true, "keep the copies" },
    { "iterations", 20, "training steps" },
    { "batch", 256, "samples in a batch" },
    { "features", 512, "width of the first layer, twice that of the next, and so on" },
    { "layers", 3, "linear layers" },
  },
}

local parts, width = {}, features
for k = 1, layers do
  parts[2 * k - 1] = nn.Linear { width, 2 * width }
  parts[2 * k] = nn.ReLU()
  width = 2 * width
end
model = nn.Sequential(parts)
optimizer = optim.Adam { model, lr = 1e-3 }
weights, history = model:parameters(), list()

for i = 0, iterations - 1 do
  model(randn { batch, features }):square():mean():backward()
  for k = 1, #weights do
    if leak then
      history:append(weights[k].grad:clone())
    else
      weights[k].grad:square():sum():item()
    end
  end
  optimizer:step()
  optimizer:zero_grad()
  phase(i)
end
