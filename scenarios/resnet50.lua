-- resnet50: ResNet-50 trained on images.
--
-- Shows    where the memory of a convolutional network is: activations that grow with the batch and the
--          square of the side, against 97.5 MiB of parameters; what mixed precision, accumulation and
--          the optimizer's state change.
-- Params   batch, side: the images; iterations: steps; optimizer_name: sgd, momentum or adam;
--          accumulate: batches for a step; precision: of autocast, empty for 32 bits;
--          set_to_none: of zero_grad; benchmark: cuDNN tries its algorithms.
-- Bound    what the first step peaked at and the optimizer's state: no later step takes more.
-- Source   recordings with torch 2.11 on an H200: resnet50_bs32, and seven more of the same loop
--          (tests/data/truth/patterns); K. He et al., arXiv 1512.03385.
scenario {
  name = "resnet50",
  summary = "ResNet-50 trained: images, optimizer, precision, accumulation",
  tags = { "model" },
  params = {
    { "batch", 32, "images", least = 1, most = 4096 },
    { "side", 224, "of an image", least = 1, most = 4096 },
    { "iterations", 3, "steps", least = 1, most = 100000 },
    { "optimizer_name", "momentum", "sgd, momentum or adam" },
    { "accumulate", 1, "batches for a step", least = 1, most = 1024 },
    { "precision", "", "of autocast; empty: 32 bits" },
    { "set_to_none", true, "zero_grad" },
    { "benchmark", false, "cuDNN tries its algorithms" },
  },
}

cudnn.benchmark(benchmark)
model = nn.resnet50 {}
if optimizer_name == "adam" then
  optimizer = optim.Adam { model }
else
  assert(optimizer_name == "momentum" or optimizer_name == "sgd", "optimizer_name: sgd, momentum or adam")
  optimizer = optim.SGD { model, momentum = optimizer_name == "momentum" and 0.9 or 0 }
end
phase "start"

function forward()
  loss = cross_entropy(model(images), classes)
end

for i = 0, iterations - 1 do
  optimizer:zero_grad { set_to_none = set_to_none }
  for k = 1, accumulate do
    images, classes = randn { batch, 3, side, side }, randint { batch }
    if precision == "" then
      forward()
    else
      autocast(precision, forward)
    end
    part = accumulate > 1 and " " .. k or ""
    phase(i .. ":forward" .. part)
    loss:backward()
    phase(i .. ":backward" .. part)
  end
  optimizer:step()
  phase(i .. ":step")
  if i == 0 then -- gradients that are zeroed, not freed, are there in the next forward pass
    parameters = model:nbytes()
    local memory = cuda.memory()
    local peak = memory and memory.max_allocated or cuda.requested().peak
    bound { allocated = 1.05 * (peak + optimizer:nbytes() + parameters) }
  end
end
