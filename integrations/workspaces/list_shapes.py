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


# --- more models ----------------------------------------------------------------------------------


def resnet_of(x, counts, planes_of, groups=1, first=64):
    """Bottlenecks: ResNet-152, ResNeXt, Wide ResNet; `planes_of` gives the width within a stage."""
    x = x.conv(first, 7, 2).pooled()
    for stage, count in enumerate(counts):
        inner, wide = planes_of(stage), 256 << stage
        for block in range(count):
            stride, given = 2 if stage and not block else 1, x
            x = x.conv(inner, 1).conv(inner, 3, stride, groups=groups).conv(wide, 1)
            if not block:
                given.conv(wide, 1, stride)


def resnext50(x):
    resnet_of(x, (3, 4, 6, 3), lambda stage: 128 << stage, groups=32)


def wide_resnet50(x):
    resnet_of(x, (3, 4, 6, 3), lambda stage: 128 << stage)


def cifar_resnet(x, width=16, widening=1):
    """ResNet-20 and the like; Wide ResNets of CIFAR with a widening."""
    x = x.conv(width, 3)
    for stage in range(3):
        planes = (width << stage) * widening
        for block in range(2):
            stride, given = 2 if stage and not block else 1, x
            x = x.conv(planes, 3, stride).conv(planes, 3)
            if given.shape[1] != planes:
                given.conv(planes, 1, stride)


def densenet121(x):
    x = x.conv(64, 7, 2).pooled()
    for count in (6, 12, 24, 16):
        for _ in range(count):
            x.conv(128, 1).conv(32, 3)
            x = x.like((x.shape[0], x.shape[1] + 32, *x.shape[2:]))
        if count != 16:
            x = x.conv(x.shape[1] // 2, 1).pooled()


def alexnet(x):
    x = x.conv(64, 11, 4, 2).pooled().conv(192, 5).pooled()
    x.conv(384, 3).conv(256, 3).conv(256, 3)


def squeezenet(x):
    x = x.conv(64, 3, 2, 0).pooled()
    for number, few in enumerate((16, 16, 32, 32, 48, 48, 64, 64)):
        x = x.conv(few, 1)
        x.conv(4 * few, 1)
        x = x.conv(4 * few, 3).like((x.shape[0], 8 * few, *x.shape[2:]))
        x = x.pooled() if number in (1, 3) else x
    x.conv(1000, 1)


def mobilenet_v3(x):
    x = x.conv(16, 3, 2)
    for kernel, inner, channels, squeezed, stride in (
            (3, 16, 16, 0, 1), (3, 64, 24, 0, 2), (3, 72, 24, 0, 1), (5, 72, 40, 1, 2), (5, 120, 40, 1, 1), (3, 240, 80, 0, 2),
            (3, 200, 80, 0, 1), (3, 184, 80, 0, 1), (3, 480, 112, 1, 1), (3, 672, 112, 1, 1), (5, 672, 160, 1, 2),
            (5, 960, 160, 1, 1)):
        x = x.conv(inner, 1).depthwise(kernel, stride)
        if squeezed:
            few = (inner // 4 + 4) // 8 * 8
            x.like((*x.shape[:2], 1, 1)).conv(few, 1).conv(inner, 1)
        x = x.conv(channels, 1)
    x.conv(960, 1)


def scaled_efficientnet(x, widening, deepening):
    """EfficientNet B1 to B4."""
    eighth = lambda channels: max(8, int(channels * widening + 4) // 8 * 8)
    x = x.conv(eighth(32), 3, 2)
    for expansion, channels, count, stride, kernel in ((1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3),
                                                       (6, 112, 3, 1, 5), (6, 192, 4, 2, 5), (6, 320, 1, 1, 3)):
        for block in range(-int(-count * deepening // 1)):
            x = inverted(x, expansion, eighth(channels), kernel, stride if block == 0 else 1, squeezed=True)
    x.conv(eighth(1280), 1)


def regnet(x):
    """RegNetY-1.6GF: groups of 24 channels."""
    x = x.conv(32, 3, 2)
    for channels, count in ((48, 2), (120, 6), (336, 17), (888, 2)):
        for block in range(min(count, 2)):
            stride, given = 1 if block else 2, x
            x = x.conv(channels, 1).conv(channels, 3, stride, groups=channels // 24)
            x.like((*x.shape[:2], 1, 1)).conv(max(1, given.shape[1] // 4), 1).conv(channels, 1)
            x = x.conv(channels, 1)
            if not block:
                given.conv(channels, 1, stride)


def convnext(x, first):
    x = x.conv(first, 4, 4, 0)
    for stage in range(4):
        x.depthwise(7)
        if stage < 3:
            x = x.conv(2 * x.shape[1], 2, 2, 0)


def inception(x):
    """GoogLeNet's blocks."""
    x = x.conv(64, 7, 2).pooled().conv(64, 1).conv(192, 3).pooled()
    for number, (one, few3, three, few5, five, pooled) in enumerate((
            (64, 96, 128, 16, 32, 32), (128, 128, 192, 32, 96, 64), (192, 96, 208, 16, 48, 64), (160, 112, 224, 24, 64, 64),
            (128, 128, 256, 24, 64, 64), (112, 144, 288, 32, 64, 64), (256, 160, 320, 32, 128, 128),
            (256, 160, 320, 32, 128, 128), (384, 192, 384, 48, 128, 128))):
        x.conv(one, 1)
        x.conv(few3, 1).conv(three, 3)
        x.conv(few5, 1).conv(five, 3)
        x.conv(pooled, 1)
        x = x.like((x.shape[0], one + three + five + pooled, *x.shape[2:]))
        x = x.pooled() if number in (1, 6) else x


def stable_diffusion(x):
    """The U-Net over latents of 64 x 64."""
    x = x.conv(320, 3)
    widths, kept = (320, 640, 1280, 1280), [320]
    for level, channels in enumerate(widths):
        for _ in range(2):
            if x.shape[1] != channels:
                x.conv(channels, 1)
            x = x.conv(channels, 3).conv(channels, 3)
            kept.append(channels)
        if level < 3:
            x.conv(channels, 1)
            x = x.conv(channels, 3, 2)
            kept.append(channels)
    for level, channels in reversed(list(enumerate(widths))):
        for _ in range(3):
            x = x.like((x.shape[0], x.shape[1] + kept.pop(), *x.shape[2:]))
            x.conv(channels, 1)
            x = x.conv(channels, 3).conv(channels, 3)
        x = x.upsampled().conv(channels, 3) if level else x
    x.conv(4, 3)


def autoencoder(x):
    """Strided convolutions down, transposed ones up."""
    for channels in (32, 64, 128, 256):
        x = x.conv(channels, 3, 2)
    for channels in (128, 64, 32, 16):
        x = x.transposed(channels, 4, 2, 1)
    x.conv(3, 3)


def enlarger(x):
    """Super-resolution: EDSR, ESPCN."""
    x.conv(64, 5).conv(32, 3).conv(12, 3)
    x = x.conv(64, 3).conv(64, 3)
    x.conv(256, 3)
    x.upsampled().conv(3, 3)
    x.conv(3, 9)


def detector(x):
    """YOLO's small one: blocks that split."""
    x = x.conv(32, 6, 2, 2)
    for channels in (64, 128, 256, 512):
        x = x.conv(channels, 3, 2)
        half = x.conv(channels // 2, 1)
        half.conv(channels // 2, 1).conv(channels // 2, 3)
        x.conv(channels, 1)
        x.conv(255, 1)


def segmenter(x):
    """DeepLab's head over a stride of 8: dilated."""
    x = x.like((x.shape[0], 2048, x.shape[2] // 8, x.shape[3] // 8))
    x.conv(256, 1)
    for dilation in (12, 24, 36):
        x.conv(256, 3, dilation=dilation)
    x.like((x.shape[0], 1280, *x.shape[2:])).conv(256, 1).conv(256, 3).conv(21, 1)
    x.conv(512, 3, dilation=2)
    x.conv(512, 3, dilation=4)


def speech(calls, batch, dtype):
    """What wav2vec 2.0, Whisper and keyword spotters do with sound."""
    x = Images(calls, batch, 1, 1, 16000, dtype=dtype).conv(512, (1, 10), (1, 5), (0, 0))
    for kernel in (3, 3, 3, 3, 2, 2):
        x = x.conv(512, (1, kernel), (1, 2), (0, 0))
    for features in (384, 512, 768):
        x = Images(calls, batch, 80, 1, 3000, dtype=dtype).conv(features, (1, 3))
        x.conv(features, (1, 3), (1, 2))
    x = Images(calls, batch, 40, 1, 100, dtype=dtype).conv(128, (1, 5)).conv(128, (1, 3)).conv(256, (1, 3))


def series(calls, batch, dtype):
    """Temporal convolutions over some features."""
    for channels in (1, 8, 16, 32):
        for length in (100, 128, 256, 500, 1000):
            x = Images(calls, batch, channels, 1, length, dtype=dtype)
            for power in range(4):
                x = x.conv(64, (1, 3), padding=(0, 1 << power), dilation=(1, 1 << power))
            x.conv(32, (1, 5)).conv(32, (1, 7))


VISION = (resnext50, wide_resnet50, densenet121, alexnet, squeezenet, mobilenet_v3, regnet, inception,
          lambda x: scaled_efficientnet(x, 1, 1.1), lambda x: scaled_efficientnet(x, 1.2, 1.4), lambda x: convnext(x, 128))


def of_more_models(calls):
    """What else users train, at batches between which others are interpolated."""
    images = lambda batch, side, channels=3, **options: Images(calls, batch, channels, side,
                                                               **{"dtype": "float32", **options})
    for batch in (16, 128, 256):
        for depth in (18, 34, 50):
            resnet(images(batch, 224), depth)
    for layout, dtype in (("channels_last", "float32"), ("channels_last", "bfloat16"), ("channels_last", "float16"),
                          ("contiguous", "float16"), ("contiguous", "bfloat16")):
        for batch in (32, 128):
            for depth in (18, 50):
                resnet(images(batch, 224, layout=layout, dtype=dtype), depth)
    for batch in (64, 128, 256, 512):
        for dtype in ("float32", "bfloat16"):
            resnet(images(batch, 32, dtype=dtype), 18)
            cifar_resnet(images(batch, 32, dtype=dtype))
            small_classifiers(images(batch, 32, dtype=dtype))
            small_classifiers(images(batch, 28, 1, dtype=dtype))
    for batch in (64, 128):
        cifar_resnet(images(batch, 32), widening=10)
        cifar_resnet(images(batch, 32), widening=4)
    for batch in (8, 32, 128):
        for model in VISION:
            model(images(batch, 224))
    for model in VISION:
        model(images(32, 224, dtype="bfloat16"))
    for batch in (1, 4, 16):
        for dtype in ("float32", "float16"):
            stable_diffusion(images(batch, 64, 4, dtype=dtype))
            detector(images(batch, 640, dtype=dtype))
            segmenter(images(batch, 512, dtype=dtype))
    for batch in (1, 4, 16, 32):
        for side in (64, 128, 256):
            autoencoder(images(batch, side))
            enlarger(images(batch, side))
            unet_by_interpolation(images(batch, side), 32)
            unet_by_interpolation(images(batch, side), 64)
            unet(images(batch, side)) if side < 256 or batch == 16 else None
    for batch in (16, 64, 128):
        dcgan(images(batch, 64))
        patches(images(batch, 224))
        patches(images(batch, 32))
    for batch in (4, 16, 64):
        for dtype in ("float32", "float16"):
            speech(calls, batch, dtype)
        series(calls, batch, "float32")
    for batch, side, depth in ((64, 224, 50), (128, 32, 18)):
        resnet(images(batch, side, benchmark=True), depth)


def of_more_networks(calls):
    """RNNs by what tutorials and papers take, then a grid of what is between."""
    for kind in ("lstm", "gru"):
        for dtype in ("float32", "float16"):
            for hidden, features in ((64, 32), (128, 128), (200, 200), (256, 256), (512, 512), (650, 650), (1024, 1024)):
                for layers in (1, 2):
                    for directions in (1, 2):
                        for batch, length in ((32, 35), (64, 50)):
                            rnns(calls, dtype=dtype, kind=kind, batch=batch, length=length, features=features, hidden=hidden,
                                 layers=layers, directions=directions)
        for hidden in (32, 50, 100, 300):
            for features in (1, 8, 64):
                for batch, length in ((1, 50), (32, 24), (64, 100)):
                    rnns(calls, dtype="float32", kind=kind, batch=batch, length=length, features=features, hidden=hidden)


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


def random_calls(convolutions, networks, seed=21):
    """Half of them are held: all directions of a call, or none."""
    draw, calls = random.Random(seed), {}
    for make, count in ((random_conv, convolutions), (random_rnn, networks)):
        for i in range(count):
            for call in with_directions(make(draw)):
                calls.setdefault(call, i % 2 == 1)
    return calls


def all_calls():
    calls = {}
    for source in (of_scenarios, of_models, of_more_networks, of_more_models):
        found = []
        source(found)
        calls.update((call, False) for call in found if call not in calls)
        if source is of_scenarios:
            calls.update((call, held) for call, held in random_calls(200, 80).items() if call not in calls)
            calls.update((call, held) for call, held in random_calls(600, 240, 22).items() if call not in calls)
    return calls


def main():
    for call, held in all_calls().items():
        print(call.line() + (" held" if held else ""))
    return 0


if __name__ == "__main__":
    sys.exit(main())
