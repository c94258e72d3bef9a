-- gan: a generator and a discriminator trained in turn, their losses kept for a plot.
--
-- Shows    a discriminator that sees the generator's images with their graph needs retain_graph=True, so
--          that the generator's step can go through it again; then nothing frees the graphs, and each loss
--          that is kept keeps those of its step.
-- Params   leak: true does so, false detaches the images and keeps numbers; batch; latent, hidden, pixels:
--          the perceptrons; iterations: steps of each.
-- Bound    parameters, gradients and moments of both, the roots of the larger one's, and the activations
--          of the generator and of three passes of the discriminator.
-- Source   https://pytorch.org/tutorials/beginner/dcgan_faces_tutorial.html (detach() and item());
--          https://pytorch.org/docs/stable/notes/faq.html (history across a training loop).
scenario {
  name = "gan",
  summary = "GAN whose losses are kept with graphs that retain_graph did not free",
  tags = { "retention" },
  params = {
    { "leak", true, "keep the losses, and the graph of the generator's images" },
    { "batch", 256, "images", least = 1, most = 1048576 },
    { "latent", 128, "numbers that an image is made of", least = 1, most = 65536 },
    { "hidden", 1024, "width of both", least = 1, most = 65536 },
    { "pixels", 3072, "of an image", least = 1, most = 16777216 },
    { "iterations", 20, "steps", least = 1, most = 100000 },
  },
}

generator = nn.Sequential {
  nn.Linear { latent, hidden }, nn.LeakyReLU { 0.2 }, nn.Linear { hidden, hidden }, nn.LeakyReLU { 0.2 },
  nn.Linear { hidden, pixels }, nn.Tanh(),
}
discriminator = nn.Sequential {
  nn.Linear { pixels, hidden }, nn.LeakyReLU { 0.2 }, nn.Linear { hidden, hidden }, nn.LeakyReLU { 0.2 },
  nn.Linear { hidden, 1 },
}
for_generator = optim.Adam { generator, lr = 2e-4 }
for_discriminator = optim.Adam { discriminator, lr = 2e-4 }
losses = list()

parameters = 4 * (latent * hidden + 2 * hidden * hidden + 2 * hidden * pixels + 5 * hidden + pixels + 1)
images, noise = 4 * batch * pixels, 4 * batch * latent
activations = 4 * batch * hidden
bound { allocated = 5.2 * parameters + 8 * images + 3 * noise + 20 * activations + 72 * MiB, leaks = leak }

judge = binary_cross_entropy_with_logits

function keep(loss)
  if leak then
    losses:append(loss)
  else
    local number = loss:item()
  end
end

for i = 0, iterations - 1 do
  real, zero, one = randn { batch, pixels }, zeros { batch, 1 }, ones { batch, 1 }
  fake = generator(randn { batch, latent })
  for_discriminator:zero_grad()
  if leak then
    loss = judge(discriminator(real), one) + judge(discriminator(fake), zero)
  else
    loss = judge(discriminator(real), one) + judge(discriminator(fake:detach()), zero)
  end
  loss:backward { retain_graph = leak }
  for_discriminator:step()
  keep(loss)
  for_generator:zero_grad()
  loss = judge(discriminator(fake), one)
  loss:backward()
  for_generator:step()
  keep(loss)
  fake, loss = nil, nil
  phase(i)
end
