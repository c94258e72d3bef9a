-- curriculum: sequences get longer from epoch to epoch; nothing is kept.
scenario {
  name = "curriculum",
  summary = "batches that grow over the training, and are let go each",
  params = {
    { "iterations", 40, "training steps" },
    { "every", 8, "steps of a length", least = 1 },
    { "longer", 32, "tokens by which the next length is longer" },
    { "batch", 16, "sequences in a batch" },
    { "features", 512, "of a token" },
    { "layers", 4, "of the encoder" },
  },
}

model = nn.TransformerEncoder { layers = layers, features = features, heads = 8 }
optimizer = optim.AdamW { model, lr = 1e-4 }

for i = 0, iterations - 1 do
  length = longer * (1 + i // every)
  loss = model(randn { batch, length, features }):square():mean()
  loss:backward()
  optimizer:step()
  optimizer:zero_grad()
  phase(i)
end
