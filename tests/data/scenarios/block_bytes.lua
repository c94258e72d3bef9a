-- block_bytes: cuda.block_bytes() says what the allocator counts and reserves.
scenario { name = "block_bytes", summary = "cuda.block_bytes() against the allocator" }

-- Shares of a segment are rounded up.
local function check(what, bytes, count, each, all)
  if all > count * each or all <= count * (each - 1) then
    error(string.format("%d blocks of %d: %d %s, not %d for each", count, bytes, all, what, each))
  end
end

for _, size in ipairs { 100 * KiB, 300 * KiB, MiB, MiB + 1, 1.9 * MiB, 3.3 * MiB, 4 * MiB, 6.2 * MiB, 6.5 * MiB,
    9 * MiB, 9.9 * MiB, 10 * MiB, 12.5 * MiB, 13.5 * MiB, 100 * MiB + 1 } do
  local bytes = math.floor(size)
  local allocated, reserved = cuda.block_bytes(bytes)
  local count = 3 * math.max(1, math.floor(20 * MiB / reserved + 0.5)) -- as many as fill segments
  held = list()
  for _ = 1, count do
    held:append(empty { bytes, dtype = "uint8" })
  end
  local memory = cuda.memory()
  check("allocated", bytes, count, allocated, memory.allocated)
  check("reserved", bytes, count, reserved, memory.reserved)
  held:clear()
  cuda.empty_cache()
end
assert(cuda.block_bytes(0) == 0 and cuda.block_bytes(1) == 512)
phase "end"
