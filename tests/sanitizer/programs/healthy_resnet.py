"""torchvision's ResNet-18, channels last, with cuDNN's search for the fastest algorithms."""

import torch
import torchvision

import case


def train():
    torch.backends.cudnn.benchmark = True
    model = torchvision.models.resnet18(num_classes=10).cuda().to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    images = torch.randn(16, 3, 64, 64, device="cuda").to(memory_format=torch.channels_last)
    labels = torch.randint(0, 10, (16,), device="cuda")
    for _ in range(12):
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss.item()


case.run_healthy(train)
