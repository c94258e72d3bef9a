-- Steps of optimizers, models in 16 bits and GradScaler, as training() of truth_models.py records them.
scenario { name = "training", summary = "optimizers, groups, types and GradScaler" }

function model()
  return nn.Sequential { nn.Linear { 512, 1024 }, nn.ReLU(), nn.Linear { 1024, 300 } }
end

-- Three steps, each with its forward and backward pass.
function steps(label, make, dtype, scaled)
  m = model()
  if dtype then m:to(dtype) end
  phase(label .. " model")
  o = make()
  phase(label .. " optimizer")
  for i = 0, 2 do
    x = rand { 64, 512, dtype = dtype }
    loss = m(x):sum()
    if scaled then loss = scaler:scale(loss) end
    loss:backward()
    phase(label .. " backward " .. i)
    if scaled then
      scaler:step(o)
      scaler:update()
    else
      o:step()
    end
    phase(label .. " step " .. i)
    o:zero_grad()
  end
  m, o, x, loss = nil, nil, nil, nil
  phase(label .. " end")
end

steps("warm", function() return optim.SGD { m } end)
for _, foreach in ipairs { true, false } do
  suffix = foreach and "" or " in turn"
  steps("sgd" .. suffix, function() return optim.SGD { m, momentum = 0.9, foreach = foreach } end)
  steps("sgd decay" .. suffix, function() return optim.SGD { m, weight_decay = 0.1, foreach = foreach } end)
  steps("nesterov" .. suffix, function()
    return optim.SGD { m, momentum = 0.9, nesterov = true, weight_decay = 0.1, foreach = foreach }
  end)
  steps("adam decay" .. suffix, function() return optim.Adam { m, weight_decay = 0.1, foreach = foreach } end)
  steps("adamw amsgrad" .. suffix, function() return optim.AdamW { m, amsgrad = true, foreach = foreach } end)
  steps("rmsprop" .. suffix, function() return optim.RMSprop { m, foreach = foreach } end)
  steps("rmsprop all" .. suffix, function()
    return optim.RMSprop { m, momentum = 0.9, centered = true, weight_decay = 0.1, foreach = foreach }
  end)
  steps("adagrad" .. suffix, function() return optim.Adagrad { m, foreach = foreach } end)
  steps("adagrad decay" .. suffix, function() return optim.Adagrad { m, weight_decay = 0.1, foreach = foreach } end)
end
steps("sgd fused", function() return optim.SGD { m, momentum = 0.9, fused = true } end)
steps("adam fused amsgrad", function() return optim.Adam { m, amsgrad = true, fused = true } end)
steps("adamw bfloat16", function() return optim.AdamW { m } end, "bfloat16")
steps("adamw float16 in turn", function() return optim.AdamW { m, foreach = false } end, "float16")
scaler = GradScaler()
steps("scaled", function() return optim.SGD { m, momentum = 0.9 } end, nil, true)

extra = nn.Linear { 300, 512 }
steps("groups", function()
  o = optim.AdamW { m }
  o:add_param_group { extra, weight_decay = 0 }
  extra(rand { 64, 300 }):sum():backward()
  return o
end)

-- A frozen base with two small linears beside it.
base = nn.Linear { 1024, 1024 }:requires_grad_(false)
down, up = nn.Linear { 1024, 16, bias = false }, nn.Linear { 16, 1024, bias = false }
o = optim.AdamW { down, up }
x = rand { 256, 1024, requires_grad = true }
phase "adapter inputs"
y = base(x) + up(down(x)) * 2
phase "adapter forward"
y:sum():backward()
phase "adapter backward"
o:step()
phase "adapter step"
