"""cuDNN's LSTM and GRU, packed sequences, dropout states."""

import torch
from torch import nn

import case


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(64, 128, num_layers=2, dropout=0.1, bidirectional=True, batch_first=True)
        self.gru, self.head = nn.GRU(256, 64, batch_first=True), nn.Linear(64, 5)

    def forward(self, x, lengths):
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True)
        padded, _ = nn.utils.rnn.pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
        return self.head(self.gru(padded)[1][-1])


def train():
    model = Model().cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    x, labels = torch.randn(16, 40, 64, device="cuda"), torch.randint(0, 5, (16,), device="cuda")
    lengths = torch.arange(40, 8, -2)
    for _ in range(15):
        loss = nn.functional.cross_entropy(model(x, lengths), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss.item()


case.run_healthy(train)
