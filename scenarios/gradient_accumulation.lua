-- gradient_accumulation: ResNet-50 trained without optimizer.zero_grad().
--
-- Shows    gradients that are never cleared: they are in memory during each forward pass, so every
--          iteration peaks higher by the size of the parameters (97.5 MiB) than with zero_grad().
-- Params   leak: true never calls zero_grad(), false calls it at the start of each iteration;
--          iterations; batch: images of 224 x 224 in a batch; classes.
-- Bound    fixed: no iteration peaks higher than the first backward pass and one set of momentum;
--          leak: each iteration after the first does, since it holds the gradients as well (N:forward is
--          one set of gradients higher); neither grows from iteration to iteration.
-- Source   the resnet50_leak and resnet50_fixed recordings (torch 2.11, H200): same phases.
scenario {
  name = "gradient_accumulation",
  summary = "ResNet-50 trained without zero_grad(): gradients stay through the forward pass",
  tags = { "retention" },
  params = {
    { "leak", true, "never call zero_grad()" },
    { "iterations", 5, "training steps", least = 1, most = 100000 },
    { "batch", 1, "images in a batch", least = 1, most = 4096 },
    { "classes", 1000, "outputs of the last layer", least = 1, most = 1000000 },
  },
}

model = nn.resnet50 { classes = classes }
optimizer = optim.SGD { model, lr = 0.01, momentum = 0.9 }
input = randn { batch, 3, 224, 224 }
target = randn_like(model(input)) -- class probabilities
phase "start"

for i = 0, iterations - 1 do
  if not leak then
    optimizer:zero_grad { set_to_none = true }
  end
  output = model(input)
  phase(i .. ":forward")
  cross_entropy(output, target):backward()
  phase(i .. ":backward")
  if i == 0 then
    parameters = 4 * (25557032 + 2049 * (classes - 1000)) -- bytes
    bound { allocated = 1.05 * (cuda.requested().peak + parameters), leaks = leak }
  end
  optimizer:step()
  phase(i .. ":step")
end
