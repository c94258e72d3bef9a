-- first_iteration: record_truth.py's pattern of that name.
scenario {
  name = "first_iteration",
  summary = "cuDNN's trial of algorithms in the first pass",
  params = {
    { "batch", 512, "images", least = 1, most = 4096 },
    { "side", 28, "of an image", least = 1, most = 4096 },
    { "iterations", 1, "steps", least = 1, most = 1000 },
    { "benchmark", true, "cuDNN tries its algorithms" },
  },
}

cudnn.benchmark(benchmark)
model = nn.resnet50 {}
optimizer = optim.SGD { model, momentum = 0.9 }
phase "start"
for i = 0, iterations - 1 do
  x = randn { batch, 3, side, side }
  y = randint { batch }
  optimizer:zero_grad()
  loss = cross_entropy(model(x), y)
  phase(i .. ":forward")
  loss:backward()
  optimizer:step()
  loss, x, y = nil, nil, nil
  phase(i .. ":step")
end

parameters, gradients, buffers = model:nbytes()
phase("sizes " .. parameters .. " " .. gradients .. " " .. buffers .. " " .. optimizer:nbytes())
