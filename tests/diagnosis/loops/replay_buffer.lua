-- replay_buffer: transitions are stored on the device, and the oldest makes way once there are many.
scenario {
  name = "replay_buffer",
  summary = "a buffer that fills up and then stays as large as it is",
  params = {
    { "iterations", 60, "steps" },
    { "room", 20, "entries that there is room for" },
    { "entry", 2048, "rows of an entry" },
    { "features", 512, "columns of an entry, and width of each layer" },
    { "layers", 4, "linear layers" },
    { "batch", 1024, "samples in a batch" },
  },
}

local parts = {}
for k = 1, layers do
  parts[2 * k - 1] = nn.Linear { features, features }
  parts[2 * k] = nn.ReLU()
end
model = nn.Sequential(parts)
optimizer = optim.Adam { model, lr = 1e-3 }
buffer = list()

for i = 0, iterations - 1 do
  no_grad(function()
    buffer:append(model(randn { entry, features }))
  end)
  if #buffer > room then
    buffer:pop(1)
  end
  loss = model(randn { batch, features }):square():mean()
  loss:backward()
  optimizer:step()
  optimizer:zero_grad()
  phase(i)
end
