-- inference_serving: keys and values of requests of many lengths, which come, grow and go.
--
-- Shows    a cache that grows by torch.cat() asks for a little more in each step than what was freed in
--          the last one, for each layer of each request: no hole fits, and reserved memory is far more
--          than the tokens there are. Pages of equal size fit everywhere.
-- Params   leak: true grows each cache by cat(), false gives it pages of `page` tokens; iterations: decoding
--          steps; layers, heads, depth: the model's keys and values, in 16 bits; capacity: tokens that are
--          admitted, with what each request may still grow; max_prompt, max_output: lengths are drawn up to
--          these; page.
-- Bound    fixed: reserved memory is that of the admitted tokens, a page for each request, what is left of
--          segments that pages do not fill, and a segment; leak: more, in holes that no cache fits any more.
-- Source   https://arxiv.org/abs/2309.06180 (PagedAttention: fragmentation of the KV cache);
--          https://huggingface.co/docs/transformers/kv_cache (dynamic and static caches).
scenario {
  name = "inference_serving",
  summary = "KV caches of requests of many lengths grown by cat(), or in pages",
  tags = { "pressure" },
  params = {
    { "leak", true, "grow caches by cat() instead of pages" },
    { "iterations", 300, "decoding steps", least = 1, most = 1000000 },
    { "layers", 4, "layers", least = 1, most = 1000 },
    { "heads", 32, "heads of keys and values", least = 1, most = 1024 },
    { "depth", 64, "features of a head", least = 1, most = 4096 },
    { "capacity", 32768, "tokens admitted at a time", least = 64, most = 1000000000 },
    { "max_prompt", 4096, "the longest prompt", least = 2, most = 1000000 },
    { "max_output", 512, "the longest output", least = 2, most = 1000000 },
    { "page", 64, "tokens of a page", least = 1, most = 100000 },
  },
}

assert(max_prompt + max_output <= capacity, "capacity must be at least max_prompt + max_output")

token_bytes = 2 * 2 * layers * heads * depth
-- A request has 9/16 of the most tokens, on average; its last page is half empty on average, and counts
-- as one here.
requests_at_a_time = 16 / 9 * capacity / (max_prompt + max_output)
-- PyTorch's allocator cuts pages from segments; what is left of one fits no page
local _, page_bytes = cuda.block_bytes(page * token_bytes)
bound {
  reserved = (capacity / page + requests_at_a_time) * page_bytes + 20 * MiB,
  leaks = leak,
}

running = list()
new_token = empty { 2, heads, 1, depth, dtype = "float16" }

local function new_page()
  return empty { 2, layers, heads, page, depth, dtype = "float16" }
end

local function admit(prompt, output)
  request = object()
  request.length, request.left, request.size = prompt, output, prompt + output
  request.cache = list()
  if leak then
    for _ = 1, layers do
      request.cache:append(empty { 2, heads, prompt, depth, dtype = "float16" })
    end
  else
    for _ = 1, (prompt + page - 1) // page do
      request.cache:append(new_page())
    end
  end
  running:append(request)
end

local function grow(request)
  if leak then
    for k = 1, layers do
      request.cache[k] = cat({ request.cache[k], new_token }, 3)
    end
  elseif request.length % page == 0 then
    request.cache:append(new_page())
  end
  request.length, request.left = request.length + 1, request.left - 1
end

local prompt, output -- of the request at the head of the queue
local total = 0 -- tokens of what runs, with what is still to come
local function draw()
  prompt = random(max_prompt // 8 + 1, max_prompt)
  output = random(max_output // 8 + 1, max_output)
end
draw()

no_grad(function()
  for step = 1, iterations do
    while total + prompt + output <= capacity do
      admit(prompt, output)
      total = total + prompt + output
      draw()
    end
    for k = #running, 1, -1 do
      request = running[k]
      grow(request)
      if request.left == 0 then
        total = total - request.size
        running:pop(k)
      end
    end
    request = nil
    if step % 10 == 0 then
      phase(step .. ":" .. #running)
    end
  end
end)
