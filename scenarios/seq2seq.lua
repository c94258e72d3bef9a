-- seq2seq: the translation model that a thread of the PyTorch forum asks about.
--
-- Shows    where the memory of a training step goes, and that the second iteration peaks higher than
--          the first: its forward pass runs while the gradients, Adam's two moments and the first
--          iteration's outputs are in memory. docs/scenarios.md explains each figure.
-- Params   iterations; batch, length: of the sentences; vocabulary; features: of an embedded word;
--          hidden: size of a GRU's state.
--          foreach: Adam updates all parameters at once, with temporaries as large as all of them.
-- Bound    parameters, gradients and moments, the graph of one iteration, gradients of the decoder on
--          their way, and the logits four times: as they are, their logarithms of softmax, and two
--          gradients. Memory at the end of an iteration is
--          the same from the first "optimizer step" on.
-- Source   discuss.pytorch.org, "Understanding GPU memory usage" (torch of 2018); recorded again with
--          torch 2.11 on an H200: seq2seq, same phases.
scenario {
  name = "seq2seq",
  tags = { "model" },
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

parameters = model:nbytes()
tokens = batch * length
graph = 4 * tokens * ((48 + length) * hidden + 5 * features)
temporaries = foreach and parameters or 0
-- gradients of the decoder's cells, which each word of the target adds to, and the one that is added
summed = 4 * (18 * hidden * hidden + 3 * hidden * features)
bound { allocated = 1.05 * (4 * parameters + graph + 16 * tokens * vocabulary + temporaries + summed
  + 84 * MiB) }

-- The figures of the thread (torch of 2018), and those recorded with torch 2.11, in MiB.
thread = { ["beginning"] = "281", ["0:forward"] = "2108", ["0:compute loss"] = "2566",
  ["0:backward"] = "1020", ["0:optimizer step"] = "1581" }
recorded = { ["beginning"] = "282", ["0:zero grads"] = "282", ["0:forward"] = "2342",
  ["0:compute loss"] = "2800", ["0:backward"] = "1086", ["0:optimizer step"] = "1651",
  ["1:zero grads"] = "1651", ["1:forward"] = "3216", ["1:compute loss"] = "3674",
  ["1:backward"] = "1651", ["1:optimizer step"] = "1651" }
known = batch == 80 and length == 50 and vocabulary == 30000 and features == 500 and hidden == 1000
if known and iterations == 3 then
  print("allocated, MiB        2018   torch 2.11   here")
end

function step(label)
  phase(label)
  local memory = cuda.memory()
  if known and iterations == 3 and memory and recorded[label] then
    print(string.format("%-18s %7s %12s %6d", label, thread[label] or "", recorded[label],
      memory.allocated // MiB))
  end
end

step "beginning"

for i = 0, iterations - 1 do
  source = randint { batch, length } * 1 -- drawn, and moved to the range of the words
  target = randint { batch, length } * 1
  optimizer:zero_grad { set_to_none = false }
  step(i .. ":zero grads")
  output = model(source, target)
  step(i .. ":forward")
  loss = cross_entropy(output:view { batch * length, vocabulary }, target:view { batch * length }) / length
  step(i .. ":compute loss")
  loss:backward()
  step(i .. ":backward")
  optimizer:step()
  step(i .. ":optimizer step")
end
