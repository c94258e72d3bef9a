-- Attention, one call at a time, forwards and backwards, as attention() of truth_models.py records it.
scenario { name = "attention", summary = "each kernel of attention, and the modules over it" }

function once(label, make, call)
  make()
  phase(label .. " inputs")
  out = call()
  phase(label .. " forward")
  out:sum():backward()
  phase(label .. " backward")
  out, q, k, v, m, x, y, mask = nil, nil, nil, nil, nil, nil, nil, nil
  phase(label .. " end")
end

sdpa = scaled_dot_product_attention

-- Queries of 8 heads, keys and values of `heads`; the sizes of the one and the other.
function attends(label, dtype, options, length, keys, depth, heads)
  once(label, function()
    q = rand { 4, 8, length, depth, dtype = dtype, requires_grad = true }
    k = rand { 4, heads or 8, keys or length, depth, dtype = dtype, requires_grad = true }
    v = rand { 4, heads or 8, keys or length, depth, dtype = dtype, requires_grad = true }
    mask = options.mask and zeros { length, keys or length, dtype = options.mask } or nil
  end, function()
    return sdpa(q, k, v, {
      attn_mask = mask, is_causal = options.causal, dropout_p = options.dropout, backend = options.backend,
      enable_gqa = heads ~= nil,
    })
  end)
end

function module(label, new, call)
  once(label, function()
    m = new()
    x = rand { 8, 100, 256, requires_grad = true }
    y = rand { 8, 60, 256, requires_grad = true }
  end, call)
end

once("warm", function() m, x = nn.Linear { 64, 64 }, rand { 64, 64 } end, function() return m(x) end)
for _, dtype in ipairs { "float32", "bfloat16" } do
  for _, backend in ipairs { "auto", "efficient", "math" } do
    attends(backend .. " " .. dtype, dtype, { backend = backend }, 256, nil, 64)
    attends(backend .. " causal " .. dtype, dtype, { backend = backend, causal = true }, 256, nil, 64)
    attends(backend .. " cross " .. dtype, dtype, { backend = backend }, 100, 200, 64)
    attends(backend .. " mask " .. dtype, dtype, { backend = backend, mask = "bool" }, 100, nil, 64)
    attends(backend .. " added mask " .. dtype, dtype, { backend = backend, mask = dtype }, 100, nil, 64)
    attends(backend .. " dropout " .. dtype, dtype, { backend = backend, dropout = 0.25 }, 256, nil, 64)
    attends(backend .. " depth 32 " .. dtype, dtype, { backend = backend }, 200, nil, 32)
    attends(backend .. " depth 96 " .. dtype, dtype, { backend = backend }, 200, nil, 96)
    attends(backend .. " depth 128 " .. dtype, dtype, { backend = backend }, 200, nil, 128)
  end
end
for _, depth in ipairs { 32, 60, 64, 96, 128, 192, 256 } do
  attends("flash depth " .. depth, "bfloat16", { backend = "flash" }, 200, nil, depth)
end
attends("flash causal", "float16", { backend = "flash", causal = true }, 256, nil, 64)
attends("flash dropout", "float16", { backend = "flash", dropout = 0.1 }, 256, nil, 64)
attends("flash few rows", "float16", { backend = "flash" }, 4, 4096, 64)
attends("flash grouped", "bfloat16", { backend = "flash" }, 256, nil, 64, 2)
attends("auto grouped", "bfloat16", {}, 256, nil, 64, 2)
attends("math grouped", "float32", {}, 256, nil, 64, 2)
attends("auto depth 192", "bfloat16", {}, 200, nil, 192)
attends("auto dropout 0.1", "bfloat16", { dropout = 0.1 }, 256, nil, 64)

function multihead(options)
  options[1], options[2] = 256, 4
  return function() return nn.MultiheadAttention(options) end
end
module("multihead self", multihead { batch_first = true, need_weights = false }, function() return m(x, x, x) end)
module("multihead cross", multihead { batch_first = true, need_weights = false }, function() return m(x, y, y) end)
module("multihead length first", multihead { need_weights = false }, function() return m(x, x, x) end)
module("multihead weights", multihead { batch_first = true }, function() return (m(x, x, x)) end)
module("multihead weights cross", multihead { batch_first = true, dropout = 0.1 }, function() return (m(x, y, y)) end)
module("multihead no bias", multihead { batch_first = true, need_weights = false, bias = false }, function()
  return m(x, x, x)
end)
for _, first in ipairs { false, true } do
  suffix = first and " norm first" or ""
  module("encoder layer" .. suffix, function()
    return nn.TransformerEncoderLayer { 256, 4, hidden = 512, dropout = 0, norm_first = first }
  end, function() return m(x) end)
  module("decoder layer" .. suffix, function()
    return nn.TransformerDecoderLayer { 256, 4, hidden = 512, norm_first = first }
  end, function() return m(x, y) end)
end
module("decoder", function()
  return nn.TransformerDecoder { layers = 2, features = 256, heads = 4, hidden = 512, gelu = true }
end, function() return m(x, y) end)
