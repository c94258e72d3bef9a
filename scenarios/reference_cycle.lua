-- reference_cycle: two nodes that link each other, a tensor in each.
--
-- Shows    memory that only a reference cycle keeps waits for Python's cyclic collector, which counts
--          objects and knows nothing of device memory: 64 MiB here weigh as much as an empty list.
-- Params   leak: true leaves it to the collector, false calls gc.collect() every `interval`
--          iterations; iterations; bytes: the size of each tensor; interval; objects: containers that
--          the rest of the program creates in an iteration (here the statistics that each phase
--          reads); free_lists: how many more they are while the interpreter's free lists are not full.
-- Bound    fixed: at most `interval` + 1 pairs at a time; leak: the collector decides, and lets more
--          than twice as many come together.
-- Source   the simple_cycle_leak and simple_cycle_fixed recordings (torch 2.11, Python 3.12, H200):
--          same phases, the same saw-tooth. The counts at the start are those that an interpreter has
--          after its imports.
scenario {
  name = "reference_cycle",
  summary = "objects that refer to each other hold tensors until the cyclic collector runs",
  tags = { "retention" },
  params = {
    { "leak", true, "never call gc.collect()" },
    { "iterations", 60, "pairs made", least = 1, most = 1000000 },
    { "bytes", 67108864, "size of each tensor", least = 1 },
    { "interval", 5, "iterations between calls of gc.collect()", least = 1, most = 1000000 },
    { "objects", 130, "containers made by other code in an iteration", most = 1000000 },
    { "free_lists", 310, "more of them while the free lists are not full", most = 1000000 },
  },
}

gc.set_count(0, 3, 0)
-- a large block may keep up to 1 MiB that is not worth splitting off
bound { allocated = (interval + 1) * 2 * (bytes + math.min(bytes, MiB) + 512), leaks = leak }

for i = 0, iterations - 1 do
  a, b = object(), object()
  a.data = empty { bytes, dtype = "uint8" }
  b.data = empty { bytes, dtype = "uint8" }
  a.other = b
  b.other = a
  if not leak and i % interval == 0 then
    gc.collect()
  end
  phase(i)
  gc.background { objects, free_lists = free_lists }
end
