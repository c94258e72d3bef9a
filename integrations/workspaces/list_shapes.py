#!/usr/bin/env python3
"""Prints the list of calls that gmd's own table of workspaces is recorded from (record_workspaces.py --shapes):
what the shipped scenarios and their recordings call, then random calls, half of them held, then common models.

    list_shapes.py > LIST

Needs the standard library only. The most important come first, lest a limit of time leaves them out.
"""

import random
import sys

from record_workspaces import Conv, Rnn, with_directions


class Images:
    """A batch of images on its way through a model; each layer is a call, and gives what it makes of them."""

    def __init__(self, calls, batch, channels, height, width=None, **options):
        self.calls, self.options = calls, options
        self.shape = (batch, channels, height, width or height)

    def like(self, shape):
        return Images(self.calls, *shape, **self.options)

    def conv(self, channels, kernel, stride=1, padding=None, groups=1, dilation=1):
        pair = lambda number: number if isinstance(number, tuple) else (number, number)
        kernel, dilation = pair(kernel), pair(dilation)
        if padding is None:
            padding = tuple(d * (k - 1) // 2 for k, d in zip(kernel, dilation))
        call = Conv("forward", input=self.shape, weight=(channels, self.shape[1] // groups, *kernel),
                    stride=pair(stride), padding=pair(padding), dilation=dilation, groups=groups, **self.options)
        self.calls += with_directions(call)
        return self.like(call.output())

    def pooled(self, factor=2):
        batch, channels, height, width = self.shape
        return self.like((batch, channels, -(-height // factor), -(-width // factor)))

    def depthwise(self, kernel, stride=1):
        return self.conv(self.shape[1], kernel, stride, groups=self.shape[1])

    def transposed(self, channels, kernel, stride, padding):
        """A transposed convolution is the way back of the one that leads from its result to its input."""
        batch, inner, *sides = self.shape
        height, width = ((side - 1) * stride - 2 * padding + kernel for side in sides)
        result = self.like((batch, channels, height, width))
        result.conv(inner, kernel, stride, padding)
        return result

    def upsampled(self, channels=None):
        batch, own, height, width = self.shape
        return self.like((batch, channels or own, 2 * height, 2 * width))


# --- models ---------------------------------------------------------------------------------------

RESNETS = {18: ((2, 2, 2, 2), False), 34: ((3, 4, 6, 3), False), 50: ((3, 4, 6, 3), True), 101: ((3, 4, 23, 3), True)}


def resnet(x, depth):
    counts, bottleneck = RESNETS[depth]
    x = x.conv(64, 7, 2).pooled()
    for stage, count in enumerate(counts):
        planes = 64 << stage
        for block in range(count):
            stride = 2 if stage and not block else 1
            given, wide = x, planes * 4 if bottleneck else planes
            if bottleneck:
                x = x.conv(planes, 1).conv(planes, 3, stride).conv(wide, 1)
            else:
                x = x.conv(planes, 3, stride).conv(planes, 3)
            if stride > 1 or given.shape[1] != wide:
                given.conv(wide, 1, stride)


def vgg16(x):
    for count, channels in ((2, 64), (2, 128), (3, 256), (3, 512), (3, 512)):
        for _ in range(count):
            x = x.conv(channels, 3)
        x = x.pooled()


def inverted(x, expansion, channels, kernel, stride, squeezed=False):
    inner = x.shape[1] * expansion
    wide = x.conv(inner, 1) if expansion > 1 else x
    wide = wide.depthwise(kernel, stride)
    if squeezed:  # squeeze and excitation
        few = max(1, x.shape[1] // 4)
        wide.like((*wide.shape[:2], 1, 1)).conv(few, 1).conv(inner, 1)
    return wide.conv(channels, 1)


def mobilenet_v2(x):
    x = x.conv(32, 3, 2)
    for expansion, channels, count, stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
                                               (6, 160, 3, 2), (6, 320, 1, 1)):
        for block in range(count):
            x = inverted(x, expansion, channels, 3, stride if block == 0 else 1)
    x.conv(1280, 1)


def efficientnet_b0(x):
    x = x.conv(32, 3, 2)
    for expansion, channels, count, stride, kernel in ((1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3),
                                                       (6, 112, 3, 1, 5), (6, 192, 4, 2, 5), (6, 320, 1, 1, 3)):
        for block in range(count):
            x = inverted(x, expansion, channels, kernel, stride if block == 0 else 1, squeezed=True)
    x.conv(1280, 1)


def convnext_tiny(x):
    x = x.conv(96, 4, 4, 0)
    for stage in range(4):  # the products of its blocks are Linear
        x.depthwise(7)
        if stage < 3:
            x = x.conv(2 * x.shape[1], 2, 2, 0)


def unet_by_interpolation(x, first):
    """The scenario unet."""
    levels = [first << level for level in range(5)]
    double = lambda image, channels: image.conv(channels, 3).conv(channels, 3)
    kept = []
    for channels in levels:
        x = double(x, channels)
        kept.append(x)
        x = x.pooled()
    x = kept.pop()
    for channels in reversed(levels[:-1]):
        skip = kept.pop()
        x = double(x.like((x.shape[0], x.shape[1] + channels, *skip.shape[2:])), channels)
    x.conv(1, 1)


def unet(x):
    double = lambda image, channels: image.conv(channels, 3).conv(channels, 3)
    kept = []
    for channels in (64, 128, 256, 512):
        x = double(x, channels)
        kept.append(x)
        x = x.pooled()
    x = double(x, 1024)
    for channels in (512, 256, 128, 64):
        x = x.transposed(channels, 2, 2, 0)
        x = double(x.like((x.shape[0], 2 * channels, *x.shape[2:])), channels)
    x.conv(2, 1)


def diffusion_unet(x):
    """The residual blocks of a small diffusion model."""
    x = x.conv(128, 3)
    for channels in (128, 256, 256, 512):
        x = x.conv(channels, 3).conv(channels, 3)
        x.conv(channels, 1)
        x = x.conv(channels, 3, 2)
    for channels in (512, 256, 256, 128):
        x = x.upsampled().conv(channels, 3)
        x = x.like((x.shape[0], 2 * channels, *x.shape[2:])).conv(channels, 3).conv(channels, 3)
    x.conv(3, 3)


def dcgan(x, noise=100):
    discriminator = x.conv(64, 4, 2, 1)
    for channels in (128, 256, 512):
        discriminator = discriminator.conv(channels, 4, 2, 1)
    discriminator.conv(1, 4, 1, 0)
    generator = x.like((x.shape[0], noise, 1, 1)).transposed(512, 4, 1, 0)
    for channels in (256, 128, 64, x.shape[1]):
        generator = generator.transposed(channels, 4, 2, 1)


def patches(x):
    for features, side in ((192, 16), (384, 16), (768, 16), (768, 32), (1024, 14), (1024, 16)):
        if x.shape[2] % side == 0:
            x.conv(features, side, side, 0)


def wavenet(x):
    """Dilated convolutions over one dimension: images one line high."""
    x = x.conv(64, (1, 1))
    for power in range(10):
        x.conv(128, (1, 2), padding=(0, 1 << power), dilation=(1, 1 << power))
    x.conv(64, (1, 1))
    x.conv(256, (1, 1))


def small_classifiers(x):
    """What tutorials train on MNIST and CIFAR."""
    x.conv(6, 5, 1, 0).pooled().conv(16, 5, 1, 0)
    x.conv(32, 3, 1, 0).conv(64, 3, 1, 0)
    x.conv(32, 3).conv(32, 3).pooled().conv(64, 3).conv(64, 3).pooled().conv(128, 3)


def rnns(calls, **options):
    for training in (True, False):
        calls += with_directions(Rnn("forward", training=training, **options))


# --- the list -------------------------------------------------------------------------------------


def of_scenarios(calls):
    """The defaults of the shipped scenarios, and the loops of tests/scenarios/record_truth.py."""
    images = lambda batch, side, **options: Images(calls, batch, 3, side, **{"dtype": "float32", **options})
    resnet(images(32, 224), 50)
    resnet(images(1, 224), 50)
    for benchmark in (False, True):
        resnet(images(512, 28, benchmark=benchmark), 50)
    for batch in (4, 8, 16, 64):
        resnet(images(batch, 128 if batch == 4 else 224), 50)
    resnet(images(32, 224, dtype="bfloat16"), 50)
    resnet(images(32, 224, benchmark=True), 50)
    for batch, side in ((8, 256), (4, 128), (16, 128)):
        unet_by_interpolation(images(batch, side), 32)
    sequences = lambda **options: rnns(calls, dtype="float32", **options)
    sequences(kind="lstm", batch=32, length=40, features=256, hidden=512, layers=2)
    for kind in ("lstm", "gru"):
        sequences(kind=kind, batch=64, length=64, features=512, hidden=1024, layers=2)
    for batch in (80, 32):
        sequences(kind="gru", batch=batch, length=50, features=500, hidden=1000, directions=2, packed=True)
    for kind in ("lstm", "gru"):
        for layers, directions in ((1, 1), (2, 1), (3, 1), (1, 2), (2, 2)):
            for batch, length, features, hidden in ((16, 20, 64, 128), (32, 50, 96, 256), (16, 40, 64, 1000)):
                sequences(kind=kind, batch=batch, length=length, features=features, hidden=hidden, layers=layers,
                          directions=directions)


def of_models(calls):
    for batch, dtype in ((32, "float32"), (32, "bfloat16"), (8, "float32"), (64, "float32"), (1, "float32")):
        images = lambda side, channels=3: Images(calls, batch, channels, side, dtype=dtype)
        for depth in RESNETS:
            resnet(images(224), depth)
        for model in (vgg16, mobilenet_v2, efficientnet_b0, convnext_tiny, patches):
            model(images(224))
        resnet(images(32), 18)
        small_classifiers(images(28, 1))
        small_classifiers(images(32))
        diffusion_unet(images(32))
        dcgan(images(64))
        if batch <= 8:
            unet(images(256))
        wavenet(Images(calls, batch, 1, 1, 8000, dtype=dtype))


def random_conv(draw):
    kernel = draw.choice((1, 1, 3, 3, 3, 5, 7))
    groups = draw.choice((1, 1, 1, 1, 2, 4, 8))
    channels = lambda: groups * draw.choice((1, 3, 4, 8, 16, 24, 32, 48, 64, 96))
    side = max(kernel, round(2 ** draw.uniform(2, 8)))
    batch = max(1, min(round(2 ** draw.uniform(0, 7)), 2 ** 21 // side ** 2))
    inputs = channels()
    return Conv("forward", draw.choice(("float32", "float32", "bfloat16", "float16")), (batch, inputs, side, side),
                (channels(), inputs // groups, kernel, kernel), stride=(draw.choice((1, 1, 2)),) * 2,
                padding=(draw.choice((0, kernel // 2)),) * 2, groups=groups,
                layout=draw.choice(("contiguous", "contiguous", "contiguous", "channels_last")))


def random_rnn(draw):
    size = lambda most: round(2 ** draw.uniform(4, most))
    return Rnn("forward", draw.choice(("float32", "float32", "float16")), draw.choice(("lstm", "gru")),
               draw.choice((1, 4, 16, 32, 50, 64, 128)), draw.choice((1, 10, 35, 64, 100)), size(10), size(10.3),
               draw.choice((1, 1, 2, 3)), draw.choice((1, 1, 2)))


def random_calls(convolutions, networks):
    """Half of them are held: all directions of a call, or none."""
    draw, calls = random.Random(21), {}
    for make, count in ((random_conv, convolutions), (random_rnn, networks)):
        for i in range(count):
            for call in with_directions(make(draw)):
                calls.setdefault(call, i % 2 == 1)
    return calls


def all_calls():
    calls = {}
    for source in (of_scenarios, of_models):
        found = []
        source(found)
        calls.update((call, False) for call in found if call not in calls)
        if source is of_scenarios:
            calls.update((call, held) for call, held in random_calls(200, 80).items() if call not in calls)
    return calls


def main():
    for call, held in all_calls().items():
        print(call.line() + (" held" if held else ""))
    return 0


if __name__ == "__main__":
    sys.exit(main())
