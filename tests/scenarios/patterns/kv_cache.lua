-- kv_cache: record_truth.py's pattern of that name.
scenario {
  name = "kv_cache",
  summary = "decoding: keys and values of earlier positions grown by cat(), or kept in one block",
  params = {
    { "static", false, "one block for as long as it gets" },
  },
}

layers, batch, heads, depth, most = 8, 4, 16, 64, 256

local function new(length)
  return zeros { batch, heads, length, depth, dtype = "float16" }
end

-- What scaled_dot_product_attention() asks for: where its random numbers begin, and what it gives.
local function attend()
  seed, offset, merged = empty { 1, dtype = "int64" }, empty { 1, dtype = "int64" }, new(1)
  seed, offset, merged = nil, nil, nil
end

no_grad(function()
  keys, values = list(), list()
  for _ = 1, layers do
    keys:append(new(static and most or 64))
    values:append(new(static and most or 64))
  end
  for i = 64, 95 do
    for k = 1, layers do
      query = new(1)
      if static then
        keys[k]:narrow(3, i + 1, 1):copy_(new(1))
        values[k]:narrow(3, i + 1, 1):copy_(new(1))
      else
        longer_keys, longer_values = cat({ keys[k], new(1) }, 3), cat({ values[k], new(1) }, 3)
        keys[k], values[k] = longer_keys, longer_values
        longer_keys, longer_values = nil, nil
      end
      attend()
    end
    if i % 8 == 7 then
      phase(i)
    end
  end
end)
