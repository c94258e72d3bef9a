-- What scripts can call, one at a time, forwards and backwards, as functions() of record_truth.py records it.
scenario { name = "functions", summary = "each function of scripts, one at a time" }

function once(label, make, call)
  make()
  phase(label .. " inputs")
  out = call()
  phase(label .. " forward")
  if out.grad_fn then
    out:sum():backward()
  end
  phase(label .. " backward")
  out, a, b, m = nil, nil, nil, nil
  phase(label .. " end")
end

-- The inputs: `a` and, where there are sizes for it, `b`, which both require a gradient.
function of(label, sizes, call, others)
  once(label, function()
    a = rand(sizes)
    a:requires_grad_()
    if others then
      b = rand(others)
      b:requires_grad_()
    end
  end, call)
end

-- A loss of `a` against `b`, which is of the same sizes, or a class for each row.
function loss(label, call, classes)
  once(label, function()
    a = rand { 640, 300, requires_grad = true }
    b = classes and randint { 640 } or rand { 640, 300 }
  end, call)
end

-- A module of `a`.
function module(label, sizes, new)
  once(label, function()
    m = new()
    a = rand(sizes)
    a:requires_grad_()
  end, function() return m(a) end)
end

cube, flat, image = { 64, 300, 50 }, { 64, 300 }, { 16, 64, 32, 32 }

module("warm", { 64, 64 }, function() return nn.Linear { 64, 64 } end)
of("sum dim", cube, function() return a:sum(2) end)
of("sum keepdim", cube, function() return a:sum(3, { keepdim = true }) end)
of("sum two dims", cube, function() return a:sum { 2, 3 } end)
of("sum rows", { 4000, 2000 }, function() return a:sum(1) end)
of("mean dim", cube, function() return a:mean(2) end)
of("mean keepdim", cube, function() return a:mean(-1, { keepdim = true }) end)
of("max", cube, function() return a:max() end)
of("max dim", cube, function() return (a:max(2)) end)
of("max keepdim", cube, function() return (a:max(3, { keepdim = true })) end)
of("softmax dim", cube, function() return a:softmax(2) end)
of("log_softmax", { 640, 300 }, function() return a:log_softmax() end)
of("permute", cube, function() return a:permute { 3, 1, 2 }:contiguous() end)
of("permute back", cube, function()
  return a:permute { 3, 1, 2 }:permute { 2, 3, 1 }:contiguous()
end)
of("reshape view", cube, function() return a:reshape { 64, -1 } end)
of("reshape copy", cube, function() return a:transpose(2, 3):reshape { 64, -1 } end)
of("unsqueeze", cube, function() return a:unsqueeze(2) * 2 end)
of("squeeze", { 64, 1, 300 }, function() return a:squeeze(2) * 2 end)
of("squeeze all", { 64, 1, 300, 1 }, function() return a:squeeze() * 2 end)
of("expand", { 64, 1, 50 }, function() return a:expand { -1, 300, -1 } * 2 end)
of("div", flat, function() return a / b end, flat)
of("div broadcast", flat, function() return a / b end, { 300 })
of("div number", flat, function() return a / 3 end)
of("number div", flat, function() return 3 / a end)
of("sub", flat, function() return a - b end, flat)
of("number sub", flat, function() return 3 - a end)
of("pow", flat, function() return a ^ 3 end)
of("pow zero", flat, function() return a ^ 0 end)
of("pow one", flat, function() return a ^ 1 end)
of("sqrt", flat, function() return a:sqrt() end)
of("log", flat, function() return a:log() end)
of("leaky_relu", flat, function() return leaky_relu(a) end)
of("mse mean", { 640, 300 }, function() return mse_loss(a, b) end, { 640, 300 })
of("mse sum", { 640, 300 }, function() return mse_loss(a, b, { reduction = "sum" }) end, { 640, 300 })
of("mse none", { 640, 300 }, function() return mse_loss(a, b, { reduction = "none" }) end, { 640, 300 })
loss("mse target", function() return mse_loss(a, b) end)
bce = binary_cross_entropy_with_logits
loss("bce mean", function() return bce(a, b) end)
loss("bce sum", function() return bce(a, b, { reduction = "sum" }) end)
loss("bce none", function() return bce(a, b, { reduction = "none" }) end)
loss("kl batchmean", function() return kl_div(a, b, { reduction = "batchmean" }) end)
loss("kl mean", function() return kl_div(a, b) end)
loss("kl sum", function() return kl_div(a, b, { reduction = "sum" }) end)
loss("kl none", function() return kl_div(a, b, { reduction = "none" }) end)
loss("kl log target", function()
  return kl_div(a, b, { reduction = "batchmean", log_target = true })
end)
loss("ce mean", function() return cross_entropy(a, b, { ignore_index = 7 }) end, true)
loss("ce sum", function() return cross_entropy(a, b, { reduction = "sum" }) end, true)
loss("ce none", function() return cross_entropy(a, b, { reduction = "none" }) end, true)
module("group norm", image, function() return nn.GroupNorm { 8, 64 } end)
module("batch norm 1d", { 640, 300 }, function() return nn.BatchNorm1d { 300 } end)
module("batch norm 1d length", { 32, 64, 200 }, function() return nn.BatchNorm1d { 64 } end)
module("batch norm 1d eval", { 640, 300 }, function()
  m = nn.BatchNorm1d { 300 }
  m:eval()
  return m
end)
module("rms norm", { 32, 100, 512 }, function() return nn.RMSNorm { 512 } end)
module("avg pool", image, function() return nn.AvgPool2d { 3, stride = 2, padding = 1 } end)
module("adaptive pool 7", image, function() return nn.AdaptiveAvgPool2d { 7 } end)
module("upsample nearest", image, function() return nn.Upsample { scale_factor = 2 } end)
module("upsample bilinear", image, function()
  return nn.Upsample { scale_factor = 2, mode = "bilinear" }
end)
of("flatten 2", image, function() return nn.Flatten { 3 }(a) * 2 end)
module("frozen linear", { 64, 512 }, function() return nn.Linear { 512, 512 }:requires_grad_(false) end)
module("conv groups", image, function() return nn.Conv2d { 64, 128, 3, padding = 1, groups = 4 } end)
module("conv dilation", image, function() return nn.Conv2d { 64, 128, 3, padding = 2, dilation = 2 } end)
module("conv depthwise", image, function() return nn.Conv2d { 64, 64, 3, padding = 1, groups = 64 } end)
module("conv 1 by 3", image, function() return nn.Conv2d { 64, 64, { 1, 3 }, padding = { 0, 1 } } end)
module("conv1d", { 32, 64, 200 }, function() return nn.Conv1d { 64, 128, 5, padding = 2 } end)
module("conv1d stride", { 32, 64, 200 }, function() return nn.Conv1d { 64, 128, 4, stride = 2 } end)
