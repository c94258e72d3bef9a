-- first_iteration_peak: cuDNN tries its algorithms at the first use of each convolution.
--
-- Shows    with torch.backends.cudnn.benchmark each trial asks for the workspace that its algorithm
--          wants, gigabytes for some, and gives it back: the first pass peaks at ten times what every
--          later one takes. What is refused is asked for once more with half the size and left out at last,
--          so that the smallest memory that trains is the steady peak: gmd run first_iteration_peak
--          --smallest-limit (docs/scenarios.md, "How much memory does it need").
-- Params   leak: true lets cuDNN try, false does not; epochs, iterations of each; batch, side: images.
-- Bound    fixed: parameters, gradients and momentum, the activations of a batch, and the largest workspace,
--          in the first iteration as in all others; leak: more than three times that in the first. Without
--          trials cuDNN takes a gradient of each image's own for the weights of the last 1x1 convolutions
--          (2 GiB for 512 images, recorded on an H200): what is tried is faster and smaller.
-- Source   the left_free_16, left_free_2 and left_free_1.2 recordings (torch 2.11, H200): same phases;
--          https://pytorch.org/docs/stable/backends.html (cudnn.benchmark);
--          https://discuss.pytorch.org/t/high-gpu-memory-usage-problem/34694.
scenario {
  name = "first_iteration_peak",
  summary = "trials of convolution algorithms: the first pass peaks far above all others",
  tags = { "pressure" },
  params = {
    { "leak", true, "let cuDNN try its algorithms" },
    { "epochs", 2, "epochs", least = 1, most = 100000 },
    { "iterations", 6, "training steps of an epoch", least = 1, most = 100000 },
    { "batch", 512, "images in a batch", least = 1, most = 65536 },
    { "side", 28, "height and width of an image", least = 8, most = 1024 },
  },
}

cudnn.benchmark(leak)
model = nn.resnet50 { classes = 10 }
optimizer = optim.SGD { model, lr = 0.01, momentum = 0.9 }

parameters = 4 * 23528522
-- What ResNet-50 saves of an image: for each pixel of it, and of the five sizes that it halves it to,
-- rounded up: inputs of convolutions and normalisations, the latter's results, the pool's indices.
saved, height = 3 * side * side, side
for _, numbers in ipairs { 128, 3264, 7424, 20992, 21504 } do
  height = (height + 1) // 2
  saved = saved + numbers * height * height
end
workspace = 4 * batch * 512 * 2048
bound { allocated = 3 * parameters + 4 * batch * saved + workspace + 80 * MiB, leaks = leak }

for e = 0, epochs - 1 do
  cuda.reset_peak_memory_stats()
  for _ = 1, iterations do
    x, y = randn { batch, 3, side, side }, randint { batch }
    cross_entropy(model(x), y):backward()
    optimizer:step()
    optimizer:zero_grad()
  end
  phase("epoch" .. e)
end
