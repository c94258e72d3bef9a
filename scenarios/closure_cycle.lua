-- closure_cycle: a callback that captures its owner, made anew for each fold of a cross-validation.
--
-- Shows    trainer.on_step = lambda: ... trainer ...: the trainer holds the function, the function's
--          closure holds the trainer. When the next fold's trainer takes its name, the old one is not
--          freed but waits for the cyclic collector, with the model, the gradients and the optimizer's
--          state. The collector counts objects: eight of them weigh nothing.
-- Params   leak: true leaves it to the collector, false calls gc.collect() every `interval` folds;
--          iterations: folds; steps: training steps of a fold; batch, features, layers: the model;
--          interval; objects: containers that the rest of the program creates in a fold.
-- Count    what a trainer consists of is counted from the sources of torch 2.11: a module is 17
--          containers (itself, its __dict__, a set, 11 OrderedDicts, 3 dicts), a parameter 6 (itself, its
--          gradient, the optimizer's dict and three tensors), an optimizer 13, a lambda with what it
--          captures 3. `objects` is not known for a program, and 0.
-- Bound    fixed: at most `interval` + 1 trainers at a time; leak: the collector decides, and lets more
--          come together.
-- Source   torch/nn/modules/module.py, torch/optim/optimizer.py (__init__);
--          https://github.com/pytorch/pytorch/issues/128211 (a method kept by its own module),
--          https://github.com/pytorch/pytorch/issues/47589 (LambdaLR with a lambda that captures self).
scenario {
  name = "closure_cycle",
  summary = "a callback captures its owner: models wait for the cyclic collector",
  tags = { "retention" },
  params = {
    { "leak", true, "never call gc.collect()" },
    { "iterations", 24, "folds", least = 1, most = 100000 },
    { "steps", 3, "training steps of a fold", least = 1, most = 100000 },
    { "batch", 256, "samples in a batch", least = 1, most = 1048576 },
    { "features", 1024, "width of each layer", least = 1, most = 65536 },
    { "layers", 4, "linear layers", least = 1, most = 256 },
    { "interval", 2, "folds between calls of gc.collect()", least = 1, most = 100000 },
    { "objects", 0, "containers made by other code in a fold", most = 1000000 },
  },
}

-- parameters, gradients and two moments; a batch's activations while it trains; workspaces
trainer_bytes = 4 * layers * (cuda.block_bytes(4 * features * features) + cuda.block_bytes(4 * features))
bound {
  allocated = (interval + 1.3) * trainer_bytes + 4 * layers * cuda.block_bytes(4 * batch * features) + 68 * MiB,
  leaks = leak,
}

containers = 17 * (layers + 1) + 6 * 2 * layers + 13

function new_trainer()
  trainer = object()
  local parts = {}
  for k = 1, layers do
    parts[k] = nn.Linear { features, features }
  end
  trainer.model = nn.Sequential(parts)
  trainer.optimizer = optim.AdamW { trainer.model, lr = 1e-3 }
  trainer.on_step = object() -- the function, and the cell of its closure that has the trainer
  trainer.on_step.closure = list()
  trainer.on_step.closure:append(trainer)
  trainer.containers = list() -- one of them
  for _ = 2, containers do
    trainer.containers:append(object())
  end
end

for i = 0, iterations - 1 do
  new_trainer()
  for _ = 1, steps do
    trainer.optimizer:zero_grad()
    relu(trainer.model(randn { batch, features })):square():mean():backward()
    trainer.optimizer:step()
  end
  if not leak and i % interval == 0 then
    gc.collect()
  end
  gc.background { objects }
  phase(i)
end
