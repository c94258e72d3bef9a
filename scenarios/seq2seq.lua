-- seq2seq: the translation model that a thread of the PyTorch forum asks about.
--
-- Shows    where the memory of a training step goes, and that the second iteration peaks higher than
--          the first: its forward pass runs while the gradients, Adam's two moments and the first
--          iteration's outputs are in memory. docs/scenarios.md explains each figure.
-- Params   iterations; batch, length: of the sentences; vocabulary; features: of an embedded word;
--          hidden: size of a GRU's state.
-- Bound    allocated memory is the same at the end of every iteration from the first "optimizer step" on.
-- Source   discuss.pytorch.org, "Understanding GPU memory usage" (torch of 2018); recorded again with
--          torch 2.11 on an H200: seq2seq, same phases.
scenario {
  name = "seq2seq",
  summary = "GRU encoder-decoder with attention and Adam: the forum thread's memory table",
  params = {
    { "iterations", 3, "training steps", least = 1, most = 100000 },
    { "batch", 80, "sentences in a batch", least = 1, most = 65536 },
    { "length", 50, "words of a sentence", least = 1, most = 4096 },
    { "vocabulary", 30000, "words known", least = 2, most = 16777216 },
    { "features", 500, "of an embedded word", least = 1, most = 65536 },
    { "hidden", 1000, "size of the state", least = 1, most = 65536 },
    { "foreach", false, "Adam goes over all parameters at once" },
  },
}

model = nn.seq2seq { vocabulary = vocabulary, features = features, hidden = hidden }
optimizer = optim.Adam { model, lr = 2e-4, foreach = foreach }
phase "beginning"

for i = 0, iterations - 1 do
  source = randint { batch, length } * 1 -- drawn, and moved to the range of the words
  target = randint { batch, length } * 1
  optimizer:zero_grad { set_to_none = false }
  phase(i .. ":zero grads")
  output = model(source, target)
  phase(i .. ":forward")
  loss = cross_entropy(output:view { batch * length, vocabulary }, target:view { batch * length }) / length
  phase(i .. ":compute loss")
  loss:backward()
  phase(i .. ":backward")
  optimizer:step()
  phase(i .. ":optimizer step")
end
