-- lstm: a recurrent language model: words, an LSTM or GRU of several layers, a word for each word.
--
-- Shows    the logits and their gradient beside everything else: batch x length x vocabulary numbers
--          outweigh the network's own states and cuDNN's reserve space.
-- Params   batch, length: the sentences; vocabulary, features, hidden, layers, gru: the model;
--          iterations: steps.
-- Bound    what the first step peaked at and the optimizer's state: no later step takes more.
-- Source   recordings with torch 2.11 on an H200: tagger_lstm, tagger_gru (tests/data/truth/patterns).
scenario {
  name = "lstm",
  summary = "recurrent language model: LSTM or GRU, Adam, logits over a vocabulary",
  tags = { "model" },
  params = {
    { "batch", 64, "sentences", least = 1, most = 65536 },
    { "length", 64, "words", least = 1, most = 65536 },
    { "vocabulary", 30000, "words known", least = 2, most = 16777216 },
    { "features", 512, "of a word", least = 1, most = 65536 },
    { "hidden", 1024, "size of the state", least = 1, most = 65536 },
    { "layers", 2, "of the network", least = 1, most = 256 },
    { "gru", false, "a GRU in place of the LSTM" },
    { "iterations", 3, "steps", least = 1, most = 100000 },
  },
}

words = nn.Embedding { vocabulary, features }
if gru then
  network = nn.GRU { features, hidden, layers = layers }
else
  network = nn.LSTM { features, hidden, layers = layers }
end
head = nn.Linear { hidden, vocabulary }
optimizer = optim.Adam { words, network, head }
phase "start"

for i = 0, iterations - 1 do
  optimizer:zero_grad()
  sentences, next_words = randint { batch, length }, randint { batch * length }
  logits = head((network(words(sentences))))
  phase(i .. ":forward")
  loss = cross_entropy(logits:view { batch * length, vocabulary }, next_words)
  phase(i .. ":loss")
  loss:backward()
  phase(i .. ":backward")
  optimizer:step()
  phase(i .. ":step")
  if i == 0 then -- from then on the old logits and loss are there until the new ones are
    local memory = cuda.memory()
    local peak = memory and memory.max_allocated or cuda.requested().peak
    bound { allocated = 1.05 * (peak + optimizer:nbytes() + 2 * logits:nbytes()) }
  end
end
