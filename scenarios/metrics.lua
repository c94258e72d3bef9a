-- metrics: what a report needs of each step is kept with the graph that it came from.
--
-- Shows    a loss is one number, but with its grad_fn it holds the graph. Where backward() went
--          through, what the graph had saved is gone, and a loss costs 512 B, outputs their own size; in a
--          validation pass without a backward(), everything stays.
-- Params   leak: true keeps tensors, false numbers (item()), and validates under no_grad();
--          iterations; batch, inputs, hidden, classes: the model and what it is given; validate:
--          samples of the validation pass of each iteration.
-- Bound    fixed: parameters, gradients, the state and the temporaries of Adam, and the activations of one
--          batch; leak: each iteration adds the outputs, two losses and a validation graph (40 MiB).
-- Source   https://pytorch.org/docs/stable/notes/faq.html ("Don't accumulate history across your
--          training loop").
scenario {
  name = "metrics",
  summary = "losses and outputs kept for a report, with their graphs",
  tags = { "retention" },
  params = {
    { "leak", true, "keep tensors instead of numbers" },
    { "iterations", 20, "training steps", least = 1, most = 100000 },
    { "batch", 512, "samples in a batch", least = 1, most = 1048576 },
    { "inputs", 1024, "features of a sample", least = 1, most = 65536 },
    { "hidden", 4096, "width of the hidden layers", least = 1, most = 65536 },
    { "classes", 1000, "classes", least = 1, most = 1000000 },
    { "validate", 512, "samples of a validation pass", least = 1, most = 1048576 },
  },
}

model = nn.Sequential {
  nn.Linear { inputs, hidden }, nn.ReLU(), nn.Dropout(), nn.Linear { hidden, hidden }, nn.ReLU(),
  nn.LayerNorm { hidden }, nn.Linear { hidden, classes },
}
optimizer = optim.Adam { model, lr = 1e-3 }
losses, outputs, validation = list(), list(), list()

function loss_of(samples)
  return cross_entropy(model(randn { samples, inputs }), randint { samples })
end

-- parameters, gradients, two moments and what a step of Adam takes as well; workspaces; a batch's
-- activations
parameters = 4 * (hidden * (inputs + hidden + classes + 4) + classes)
activations = 4 * math.max(batch, validate) * (inputs + 6 * hidden + 2 * classes)
bound { allocated = 1.05 * (5 * parameters + 66 * MiB + activations), leaks = leak }

for i = 0, iterations - 1 do
  output = model(randn { batch, inputs })
  loss = cross_entropy(output, randint { batch })
  loss:backward()
  optimizer:step()
  optimizer:zero_grad()
  if leak then
    losses:append(loss)
    outputs:append(output)
    validation:append(loss_of(validate))
  else
    loss:item()
    no_grad(function()
      loss_of(validate):item()
    end)
  end
  phase(i)
end
