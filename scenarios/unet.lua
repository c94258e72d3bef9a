-- unet: segmentation with a U-Net: each level's activations wait for the way up.
--
-- Shows    the first levels, with few channels and all pixels, take most of the memory, and keep it
--          from the first operation of the forward pass to the last of the backward pass.
-- Params   batch; side: of an image; channels: of the first level, twice as many in each next one;
--          levels; iterations: steps.
-- Bound    what the first step peaked at, the optimizer's state, and the images of the step before: no
--          later step takes more.
-- Source   O. Ronneberger et al., https://arxiv.org/abs/1505.04597; bilinear upsampling in place of
--          transposed convolutions, as in https://github.com/milesial/Pytorch-UNet (bilinear=True).
scenario {
  name = "unet",
  summary = "U-Net trained: activations of each level wait for the way up",
  tags = { "model" },
  params = {
    { "batch", 8, "images", least = 1, most = 65536 },
    { "side", 256, "of an image", least = 2, most = 8192 },
    { "channels", 32, "of the first level", least = 1, most = 4096 },
    { "levels", 4, "below the first", least = 1, most = 12 },
    { "iterations", 3, "steps", least = 1, most = 100000 },
  },
}

assert(side % (1 << levels) == 0, "side must be a multiple of 2^levels")

function twice(input, output)
  return nn.Sequential {
    nn.Conv2d { input, output, 3, padding = 1, bias = false }, nn.BatchNorm2d { output }, nn.ReLU { inplace = true },
    nn.Conv2d { output, output, 3, padding = 1, bias = false }, nn.BatchNorm2d { output }, nn.ReLU { inplace = true },
  }
end

down, up = list(), list()
down:append(twice(3, channels))
for i = 1, levels do
  down:append(nn.Sequential { nn.MaxPool2d { 2 }, twice(channels << i - 1, channels << i) })
end
for i = levels, 1, -1 do
  up:append(twice((channels << i) + (channels << i - 1), channels << i - 1))
end
double = nn.Upsample { scale_factor = 2, mode = "bilinear" }
head = nn.Conv2d { channels, 1, 1 }
optimizer = optim.Adam { down, up, head, lr = 1e-4 }

function forward()
  skips = list()
  x = images
  for _, level in ipairs(down) do
    x = level(x)
    skips:append(x)
  end
  skips:pop()
  for _, level in ipairs(up) do
    x = level(cat({ skips:pop(), double(x) }, 2))
  end
  loss = binary_cross_entropy_with_logits(head(x), masks)
  x, skips = nil, nil
end

phase "start"
for i = 0, iterations - 1 do
  images, masks = randn { batch, 3, side, side }, ones { batch, 1, side, side }
  forward()
  phase(i .. ":forward")
  loss:backward()
  phase(i .. ":backward")
  optimizer:step()
  optimizer:zero_grad()
  phase(i .. ":step")
  if i == 0 then
    bound { allocated = 1.05 * (cuda.requested().peak + optimizer:nbytes() + images:nbytes()) + 2 * MiB }
  end
end
