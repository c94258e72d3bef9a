-- allocate_in_loop: work buffers made anew in each iteration, against buffers made once.
--
-- Shows    x = f() makes the new value before it lets go of the old one, so one buffer more than needed
--          is there at the peak, and each new size looks for a place of its own. Buffers made once for
--          the largest batch, and views of them, ask the allocator for nothing.
-- Params   leak: true makes the buffers in the loop, false uses views of buffers made before it;
--          iterations; rows: the largest batch, each has half of it or more; columns.
-- Bound    fixed: three buffers of the largest batch, and no request after them; leak: four buffers at the
--          peak, and three requests an iteration.
-- Source   https://pytorch.org/tutorials/recipes/recipes/tuning_guide.html ("Preallocate memory in case of
--          variable input length").
scenario {
  name = "allocate_in_loop",
  summary = "work buffers made anew in each iteration instead of once",
  tags = { "pressure" },
  params = {
    { "leak", true, "make the buffers in the loop" },
    { "iterations", 60, "batches", least = 1, most = 1000000 },
    { "rows", 32768, "rows of the largest batch", least = 2, most = 16777216 },
    { "columns", 1024, "columns", least = 1, most = 1048576 },
  },
}

bound { allocated = 3 * 4 * rows * columns + 3 * MiB, leaks = leak }

if not leak then
  all_left, all_right, all_sums = empty { rows, columns }, empty { rows, columns }, empty { rows, columns }
end

for i = 0, iterations - 1 do
  local n = random((rows + 1) // 2, rows)
  if leak then
    left = empty { n, columns }
    right = empty { n, columns }
    sums = left + right
  else
    left, right, sums = all_left:narrow(1, 1, n), all_right:narrow(1, 1, n), all_sums:narrow(1, 1, n)
    sums:copy_(left):add_(right)
  end
  phase(i .. ":" .. n)
end
