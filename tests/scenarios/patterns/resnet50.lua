-- resnet50: record_truth.py's pattern of that name.
scenario {
  name = "resnet50",
  summary = "ResNet-50 trained: images, optimizer, precision, accumulation",
  params = {
    { "batch", 8, "images", least = 1, most = 4096 },
    { "side", 224, "of an image", least = 1, most = 4096 },
    { "optimizer_name", "momentum", "sgd, momentum or adam" },
    { "iterations", 3, "steps", least = 1, most = 1000 },
    { "set_to_none", true, "zero_grad" },
    { "accumulate", 1, "batches for a step", least = 1, most = 64 },
    { "precision", "", "of autocast; empty: off" },
    { "benchmark", false, "cuDNN tries its algorithms" },
    { "channels_last", false, "weights and images with their channels last" },
  },
}

cudnn.benchmark(benchmark)
model = nn.resnet50 {}
if channels_last then
  model:to_channels_last()
end
if optimizer_name == "adam" then
  optimizer = optim.Adam { model }
else
  optimizer = optim.SGD { model, momentum = optimizer_name == "momentum" and 0.9 or 0 }
end
phase "start"

function forward()
  loss = cross_entropy(model(x), y)
end

for i = 0, iterations - 1 do
  optimizer:zero_grad { set_to_none = set_to_none }
  phase(i .. ":zero grads")
  for k = 0, accumulate - 1 do
    suffix = accumulate > 1 and " " .. k or ""
    fresh_x = randn { batch, 3, side, side }
    fresh_y = randint { batch }
    if channels_last then
      fresh_x = fresh_x:to { memory_format = "channels_last" }
    end
    x, y = fresh_x, fresh_y
    fresh_x, fresh_y = nil, nil
    if precision == "" then
      forward()
    else
      autocast(precision, forward)
    end
    phase(i .. ":forward" .. suffix)
    loss:backward()
    phase(i .. ":backward" .. suffix)
  end
  optimizer:step()
  phase(i .. ":step")
end

parameters, gradients, buffers = model:nbytes()
phase("sizes " .. parameters .. " " .. gradients .. " " .. buffers .. " " .. optimizer:nbytes())
