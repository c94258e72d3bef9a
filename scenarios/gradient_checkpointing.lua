-- gradient_checkpointing: a transformer that saves all activations, or only the input of each block.
--
-- Shows    with checkpointing a block saves its input and is run again on the way back: the peak is one
--          block's activations and not those of all, for a third more work.
-- Params   leak: true saves everything, false checkpoints each block; iterations; layers, features,
--          heads, batch, length: the transformer and its batch.
-- Bound    fixed: parameters with gradients and two moments, the input of each block, and the activations
--          of one; leak: those of all blocks.
-- Source   https://pytorch.org/docs/stable/checkpoint.html.
scenario {
  name = "gradient_checkpointing",
  summary = "activations of all blocks saved, or recomputed block by block",
  tags = { "pressure" },
  params = {
    { "leak", true, "save all activations" },
    { "iterations", 5, "training steps", least = 1, most = 100000 },
    { "layers", 12, "blocks", least = 1, most = 256 },
    { "features", 512, "features of a token", least = 1, most = 65536 },
    { "heads", 8, "attention heads", least = 1, most = 256 },
    { "batch", 16, "sequences in a batch", least = 1, most = 65536 },
    { "length", 256, "tokens of a sequence", least = 1, most = 65536 },
  },
}

local parts = {}
for k = 1, layers do
  parts[k] = nn.TransformerEncoder { layers = 1, features = features, heads = heads }
end
model = nn.Sequential(parts) -- holds the blocks
optimizer = optim.AdamW { model, lr = 1e-4 }

activation = cuda.block_bytes(4 * batch * length * features)
-- of a block: into attention, out of it, the two linear layers; their biases and the normalisations
parameters = layers * (cuda.block_bytes(12 * features * features) + cuda.block_bytes(4 * features * features)
  + 2 * cuda.block_bytes(16 * features * features) + cuda.block_bytes(12 * features)
  + cuda.block_bytes(16 * features) + 6 * cuda.block_bytes(4 * features))
-- a block has 9.5 activations and 2.25 of four times the width, and as many temporaries; a step of
-- AdamW, when they are gone, takes as much as the parameters; blocks that are reused keep a part that is
-- not split off
bound {
  allocated = math.max(5.3 * parameters, 4.3 * parameters + (layers + 32) * activation) + 68 * MiB,
  leaks = leak,
}

for i = 0, iterations - 1 do
  x = randn { batch, length, features }
  for k = 1, layers do
    if leak then
      x = parts[k](x)
    else
      x = checkpoint(parts[k], x)
    end
  end
  loss = x:square():mean()
  x = nil
  phase(i .. ":forward")
  loss:backward()
  optimizer:step()
  optimizer:zero_grad()
  phase(i .. ":step")
end
