-- dynamic_graph: a network whose depth is drawn anew each time; each grad_fn is kept for a plot.
--
-- Shows    a grad_fn is a node, and a node holds the graph behind it with all that was saved. Kept for a
--          picture or a statistic, after a backward() that retained the graph, it keeps the activations
--          of that iteration though no tensor of it is left; how many differs from one to the next.
-- Params   leak: true keeps each grad_fn and retains the graph, false notes its name; iterations;
--          batch, features; max_depth: layers are applied 1 to so many times.
-- Bound    fixed: parameters with gradients, workspaces, and one graph of the greatest depth; leak:
--          each iteration adds its input and an activation for each layer that was applied.
-- Source   https://discuss.pytorch.org/t/how-to-debug-causes-of-gpu-memory-leaks/6741/22 (a grad_fn holds
--          what was saved though no tensor of it is left);
--          https://pytorch.org/docs/stable/notes/autograd.html (a graph is made anew in each iteration).
scenario {
  name = "dynamic_graph",
  summary = "grad_fn of graphs of varying depth kept: all that they saved stays",
  tags = { "retention" },
  params = {
    { "leak", true, "keep the grad_fn" },
    { "iterations", 25, "training steps", least = 1, most = 100000 },
    { "batch", 1024, "samples in a batch", least = 1, most = 1048576 },
    { "features", 1024, "width of the layer", least = 1, most = 65536 },
    { "max_depth", 12, "the greatest number of times that the layer is applied", least = 1, most = 1000 },
  },
}

first = nn.Linear { features, features }
middle = nn.Linear { features, features }
last = nn.Linear { features, 10 }
optimizer = optim.SGD { first, middle, last, lr = 0.01 }
history = list()
names = {}

activation = 4 * batch * features
parameters = 4 * (2 * features * (features + 1) + 10 * (features + 1))
-- each application saves one activation; at the peak of a pass three gradients are alive
bound { allocated = 3 * parameters + (max_depth + 6) * activation + 68 * MiB, leaks = leak }

for i = 0, iterations - 1 do
  state = relu(first(randn { batch, features }))
  for _ = 1, random(max_depth) do
    state = relu(middle(state))
  end
  loss = cross_entropy(last(state), randint { batch })
  loss:backward { retain_graph = leak }
  optimizer:step()
  optimizer:zero_grad()
  if leak then
    history:append(loss.grad_fn)
  else
    names[i] = loss.grad_fn.name
  end
  phase(i)
end
