-- vit: a vision transformer trained: patches, a class token, an encoder that normalises first.
--
-- Shows    what an image costs as a sequence of patches: activations grow with the number of patches,
--          attention keeps one number for each of them and head.
-- Params   batch; side: of an image; patch: side of a patch; features, heads, layers, classes: the model;
--          precision: of autocast; iterations: steps.
-- Bound    what the first step peaked at, the optimizer's state, and the images of the step before: no
--          later step takes more.
-- Source   A. Dosovitskiy et al., https://arxiv.org/abs/2010.11929 (ViT-S/16 by default).
scenario {
  name = "vit",
  summary = "vision transformer trained: patches as a sequence",
  tags = { "model" },
  params = {
    { "batch", 32, "images", least = 1, most = 65536 },
    { "side", 224, "of an image", least = 1, most = 8192 },
    { "patch", 16, "side of a patch", least = 1, most = 1024 },
    { "features", 384, "of a patch", least = 1, most = 65536 },
    { "heads", 6, "of attention", least = 1, most = 1024 },
    { "layers", 12, "of the encoder", least = 1, most = 256 },
    { "classes", 1000, "outputs", least = 2, most = 16777216 },
    { "precision", "", "of products: bfloat16, float16, or empty for 32 bits" },
    { "iterations", 3, "steps", least = 1, most = 100000 },
  },
}

assert(side % patch == 0, "side must be a multiple of patch")
patches = (side // patch) * (side // patch)
embedding = nn.Conv2d { 3, features, patch, stride = patch }
first = zeros { 1, 1, features, requires_grad = true }
positions = zeros { 1, patches + 1, features, requires_grad = true }
encoder = nn.TransformerEncoder { layers = layers, features = features, heads = heads, gelu = true, norm_first = true }
norm, head = nn.LayerNorm { features }, nn.Linear { features, classes }
optimizer = optim.AdamW { embedding, first, positions, encoder, norm, head }

function forward()
  x = embedding(images):view { batch, features, patches }:transpose(2, 3)
  x = cat({ first:expand { batch, -1, -1 }, x }, 2) + positions
  loss = cross_entropy(head(norm(encoder(x)):select(2, 1)), targets)
  x = nil
end

phase "start"
for i = 0, iterations - 1 do
  images, targets = randn { batch, 3, side, side }, randint { batch }
  if precision == "" then
    forward()
  else
    autocast(precision, forward)
  end
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
