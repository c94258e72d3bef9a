-- Operations under autocast, of other layouts, and by index, one at a time, as operations() of
-- record_truth.py records them.
scenario { name = "operations", summary = "each operation, one at a time" }

-- The inputs: what `make` binds to a, b and m. The result's sum goes backwards.
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

function leaf(sizes)
  local tensor <close> = hold(rand(sizes))
  return tensor:requires_grad_()
end

-- One of `sizes` and, where there are sizes for it, another, both with a gradient.
function of(label, sizes, call, others)
  once(label, function()
    a = leaf(sizes)
    if others then
      b = leaf(others)
    end
  end, call)
end

-- A module of one.
function module(label, sizes, new, call)
  once(label, function()
    m = new()
    a = leaf(sizes)
  end, call or function() return m(a) end)
end

-- The same in 16 bits, under autocast.
function amp(label, dtype, sizes, call, others)
  of(label, sizes, function()
    return autocast(dtype, function()
      local narrow <close> = hold(a:to(dtype))
      return call(narrow)
    end)
  end, others)
end

function amp_module(label, sizes, new, call)
  module(label, sizes, new, function()
    return autocast("bfloat16", call or function() return m(a) end)
  end)
end

flat, image = { 640, 300 }, { 16, 64, 32, 32 }

module("warm", { 64, 64 }, function() return nn.Linear { 64, 64 } end)
amp("amp square", "bfloat16", flat, function(x) return x:square() end)
amp("amp exp", "bfloat16", flat, function(x) return x:exp() end)
amp("amp log", "bfloat16", flat, function(x) return x:log() end)
amp("amp pow", "bfloat16", flat, function(x) return x ^ 3 end)
amp("amp number div", "bfloat16", flat, function(x) return 3 / x end)
amp("amp sqrt", "bfloat16", flat, function(x) return x:sqrt() end)
amp("amp sum", "bfloat16", flat, function(x) return x:sum() end)
amp("amp sum dim", "bfloat16", flat, function(x) return x:sum(2) end)
amp("amp mean", "bfloat16", flat, function(x) return x:mean() end)
amp("amp softmax", "bfloat16", flat, function(x) return x:softmax() end)
amp("amp softmax half", "float16", flat, function(x) return x:softmax() end)
amp("amp log_softmax", "bfloat16", flat, function(x) return x:log_softmax() end)
amp("amp log_softmax half", "float16", flat, function(x) return x:log_softmax() end)
amp("amp square mean", "bfloat16", flat, function(x)
  local square <close> = hold(x:square())
  return square:mean()
end)
amp("amp mse", "bfloat16", flat, function(x) return mse_loss(x, b) end, flat)
amp("amp bce", "bfloat16", flat, function(x)
  return binary_cross_entropy_with_logits(x, b:detach())
end, flat)
amp("amp kl", "bfloat16", flat, function(x)
  return kl_div(x, b:detach(), { reduction = "batchmean" })
end, flat)
amp("amp ce classes", "bfloat16", flat, function(x) return cross_entropy(x, randint { 640 }) end)
amp("amp ce probabilities", "bfloat16", flat, function(x)
  return cross_entropy(x, b:detach())
end, flat)
amp_module("amp linear", flat, function() return nn.Linear { 300, 500 } end)
amp_module("amp conv1d", { 32, 64, 200 }, function() return nn.Conv1d { 64, 128, 5 } end)
amp_module("amp layer norm", flat, function() return nn.LayerNorm { 300 } end, function()
  return m(a:to("bfloat16"))
end)
amp_module("amp group norm", image, function() return nn.GroupNorm { 8, 64 } end, function()
  return m(a:to("bfloat16"))
end)
amp_module("amp rms norm", flat, function() return nn.RMSNorm { 300 } end, function()
  return m(a:to("bfloat16"))
end)
amp_module("amp upsample", image, function() return nn.Upsample { scale_factor = 2 } end, function()
  return m(a:to("bfloat16"))
end)
amp_module("amp gru cell", { 640, 300 }, function() return nn.GRUCell { 300, 300 } end, function()
  return m(a, a)
end)
amp_module("amp lstm", { 20, 32, 256 }, function()
  return nn.LSTM { 256, 256, batch_first = false }
end, function() return (m(a)) end)
