-- hidden: record_truth.py's pattern of that name.
scenario {
  name = "hidden",
  summary = "a recurrent network's state carried over, with its graph or without",
  params = {
    { "leak", true, "with its graph" },
    { "gru", false, "a GRU in place of an LSTM" },
    { "batch", 32, "sequences", least = 1, most = 4096 },
    { "length", 64, "steps", least = 1, most = 4096 },
    { "features", 128, "of a step", least = 1, most = 65536 },
    { "hidden", 256, "size of the state", least = 1, most = 65536 },
    { "layers", 2, "of the network", least = 1, most = 32 },
    { "both", false, "bidirectional" },
  },
}

if gru then
  network = nn.GRU { features, hidden, layers = layers, bidirectional = both }
else
  network = nn.LSTM { features, hidden, layers = layers, bidirectional = both }
end
for i = 0, 5 do
  output, h, c = network(randn { batch, length, features }, h, c)
  loss = output:square():mean()
  if not leak then
    loss:backward()
    h, c = h:detach(), c and c:detach()
  end
  phase(i)
end

parameters, gradients, buffers = network:nbytes()
phase("sizes " .. parameters .. " " .. gradients .. " " .. buffers .. " " .. 0)
