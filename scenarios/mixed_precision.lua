-- mixed_precision: the same training in 32 bits, or under autocast in 16.
--
-- Shows    under autocast activations of products take half, while parameters, gradients and moments stay in
--          32 bits and a 16-bit copy of each weight lives as long as the forward pass: what it saves depends
--          on how much of the memory is activations.
-- Params   leak: true trains in 32 bits, false under autocast("bfloat16"); iterations; layers, features,
--          batch: a perceptron with GELU.
-- Bound    fixed: parameters, gradients and two moments, 16-bit copies of the weights, and 16-bit
--          activations; leak: activations of twice the size.
-- Source   https://pytorch.org/docs/stable/amp.html;
--          https://pytorch.org/tutorials/recipes/recipes/amp_recipe.html.
scenario {
  name = "mixed_precision",
  summary = "training in 32 bits, or under autocast in 16",
  tags = { "pressure" },
  params = {
    { "leak", true, "train in 32 bits" },
    { "iterations", 5, "training steps", least = 1, most = 100000 },
    { "layers", 12, "linear layers", least = 1, most = 256 },
    { "features", 1024, "width of each layer", least = 1, most = 65536 },
    { "batch", 16384, "samples in a batch", least = 1, most = 1048576 },
  },
}

local parts = {}
for k = 1, layers do
  parts[2 * k - 1] = nn.Linear { features, features }
  parts[2 * k] = nn.GELU()
end
model = nn.Sequential(parts)
optimizer = optim.AdamW { model, lr = 1e-4 }

activation = 2 * batch * features -- in 16 bits
parameters = 4 * layers * (features + 1) * features
-- a layer saves its input and GELU's; six activations are input, loss and temporaries
bound { allocated = 5.5 * parameters + (2 * layers + 12) * activation + 68 * MiB, leaks = leak }

function forward()
  loss = model(randn { batch, features }):square():mean()
end

for i = 0, iterations - 1 do
  if leak then
    forward()
  else
    autocast("bfloat16", forward)
  end
  phase(i .. ":forward")
  loss:backward()
  optimizer:step()
  optimizer:zero_grad()
  phase(i .. ":step")
end
