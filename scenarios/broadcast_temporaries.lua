-- broadcast_temporaries: all distances between two sets of points, by broadcasting or by a product.
--
-- Shows    a[:, None] - b[None] is as large as the product of all its dimensions, and each elementwise
--          step makes another one: temporaries a hundred times the size of inputs and result. By
--          |a|^2 - 2ab + |b|^2 nothing is larger than the result.
-- Params   leak: true broadcasts, false multiplies; iterations; points: in each set; features.
-- Bound    fixed: four matrices of the result's size, the points, and cuBLAS's workspace; leak: two
--          temporaries that are `features` times as large.
-- Source   https://pytorch.org/docs/stable/notes/broadcasting.html;
--          https://pytorch.org/docs/stable/generated/torch.cdist.html (compute_mode: matrix product).
scenario {
  name = "broadcast_temporaries",
  summary = "distances by broadcasting: temporaries far larger than the result",
  tags = { "pressure" },
  params = {
    { "leak", true, "broadcast instead of multiplying" },
    { "iterations", 20, "batches", least = 1, most = 100000 },
    { "points", 1024, "points in each set", least = 1, most = 1048576 },
    { "features", 128, "coordinates of a point", least = 1, most = 65536 },
  },
}

result = 4 * points * points
bound { allocated = 4 * result + 5 * 4 * points * features + 38 * MiB, leaks = leak }

ones_column = ones { 1, features, 1 }

function by_broadcasting()
  total = (a:view { points, 1, features } - b:view { 1, points, features }):square():sum()
end

function by_product()
  product = bmm(a:view { 1, points, features }, b:view { 1, points, features }:transpose(2, 3))
  distances = product * -2 + bmm(a:view { 1, points, features }:square(), ones_column)
  product = nil
  distances:add_(bmm(b:view { 1, points, features }:square(), ones_column):transpose(2, 3))
  total = distances:sum()
  distances = nil
end

for i = 0, iterations - 1 do
  a, b = randn { points, features }, randn { points, features }
  if leak then
    by_broadcasting()
  else
    by_product()
  end
  phase(i)
end
