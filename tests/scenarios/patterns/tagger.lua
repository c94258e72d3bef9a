-- tagger: record_truth.py's pattern of that name.
scenario {
  name = "tagger",
  summary = "embedding, recurrent network, linear layer; Adam",
  params = {
    { "gru", false, "a GRU in place of an LSTM" },
    { "layers", 1, "of the network", least = 1, most = 32 },
    { "features", 256, "of a word", least = 1, most = 65536 },
    { "hidden", 512, "size of the state", least = 1, most = 65536 },
    { "batch", 32, "sequences", least = 1, most = 4096 },
    { "length", 64, "words", least = 1, most = 4096 },
    { "both", false, "bidirectional" },
    { "vocabulary", 10000, "words known", least = 2, most = 1000000 },
  },
}

words = nn.Embedding { vocabulary, features }
if gru then
  network = nn.GRU { features, hidden, layers = layers, bidirectional = both }
else
  network = nn.LSTM { features, hidden, layers = layers, bidirectional = both }
end
head = nn.Linear { both and 2 * hidden or hidden, vocabulary }
optimizer = optim.Adam { words, network, head }
phase "start"

for i = 0, 2 do
  optimizer:zero_grad()
  phase(i .. ":zero grads")
  fresh_x = randint { batch, length }
  fresh_y = randint { batch * length }
  x, y = fresh_x, fresh_y
  fresh_x, fresh_y = nil, nil
  loss = cross_entropy(head((network(words(x)))):view { batch * length, vocabulary }, y)
  phase(i .. ":forward")
  loss:backward()
  phase(i .. ":backward")
  optimizer:step()
  phase(i .. ":step")
end

a, a_gradients, a_buffers = words:nbytes()
b, b_gradients, b_buffers = network:nbytes()
c, c_gradients, c_buffers = head:nbytes()
parameters, gradients, buffers = a + b + c, a_gradients + b_gradients + c_gradients, a_buffers + b_buffers + c_buffers
phase("sizes " .. parameters .. " " .. gradients .. " " .. buffers .. " " .. optimizer:nbytes())
