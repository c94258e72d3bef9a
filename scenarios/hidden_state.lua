-- hidden_state: an LSTM whose state is carried from batch to batch without detach().
--
-- Shows    a hidden state chains the graphs of all batches: activations and cuDNN's reserve spaces
--          of every batch so far stay in memory.
-- Params   leak: true keeps the state with its graph and only computes the loss, false detaches it
--          and trains; iterations; batch, length, input, hidden, layers: the shape of the LSTM.
-- Bound    fixed: four times the parameters and a batch's activations at the height of a backward pass,
--          and the same memory at the end of each iteration; leak: allocated memory grows by one
--          batch's activations (31.5 MiB) an iteration.
-- Source   the hidden_leak and hidden_fixed recordings (torch 2.11, H200): same phases.
scenario {
  name = "hidden_state",
  summary = "LSTM state carried over without detach(): the graphs of all batches stay",
  tags = { "retention" },
  params = {
    { "leak", true, "never detach the state" },
    { "iterations", 25, "batches", least = 1, most = 100000 },
    { "batch", 32, "sequences in a batch", least = 1, most = 65536 },
    { "length", 40, "steps of a sequence", least = 1, most = 65536 },
    { "input", 256, "features of a step", least = 1, most = 65536 },
    { "hidden", 512, "size of the state", least = 1, most = 65536 },
    { "layers", 2, "layers of the LSTM", least = 1, most = 32 },
  },
}

lstm = nn.LSTM { input, hidden, layers = layers }
optimizer = optim.SGD { lstm, lr = 0.01 }

-- cuDNN's reserve space has 5.5 numbers for each element of a layer's output; 32 MiB for workspaces
saved = 4 * batch * length * (input + hidden + 5.5 * layers * hidden)
parameters = 4 * 4 * hidden * (input + (2 * layers - 1) * hidden + 2 * layers)
bound { allocated = 4 * (parameters + saved) + 32 * MiB, leaks = leak }

for i = 0, iterations - 1 do
  output, h, c = lstm(randn { batch, length, input }, h, c)
  loss = output:square():mean()
  if not leak then
    optimizer:zero_grad()
    loss:backward()
    optimizer:step()
    h, c = h:detach(), c:detach()
  end
  phase(i)
end
