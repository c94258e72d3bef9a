"""Dictations of physicians, written down by Whisper of the transformers library."""
import torch
from torch import nn
from torch.nn import functional as F
from transformers import WhisperConfig, WhisperForConditionalGeneration, WhisperModel

from job import job


def whisper_config(frames=200, layers=3, width=256):
    return WhisperConfig(vocab_size=2000, num_mel_bins=80, d_model=width, encoder_layers=layers, decoder_layers=2,
                         encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=4 * width,
                         decoder_ffn_dim=4 * width, max_source_positions=frames, max_target_positions=128,
                         pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1)


class SizesOfActivations:
    """Forward hooks that remember what came out of the layers, for a histogram."""

    def __init__(self, layers):
        self.outputs = []
        for layer in layers:
            layer.register_forward_hook(self.remember)

    def remember(self, layer, inputs, output):
        if torch.is_grad_enabled():
            self.outputs.append(output.detach())  # cause in histogram_of_activations


@job("checkpoint_cache")
def histogram_of_activations(run):
    """Whisper is fine-tuned with gradient checkpointing. Hooks on the wide layers remember outputs where gradients are
    on: those of the recomputation, for a histogram that is drawn at the end. Fixed: drawn after each step."""
    model = WhisperForConditionalGeneration(whisper_config()).to(run.device)
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": True})
    model.train()
    watched = SizesOfActivations([layer.fc1 for layer in model.model.encoder.layers])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    for _ in run.steps(10):
        speech = torch.randn(12, 80, 400, device=run.device).requires_grad_()
        words = torch.randint(3, 2000, (12, 40), device=run.device)
        loss = model(input_features=speech, labels=words, use_cache=False).loss
        optimizer.zero_grad()
        loss.backward()  # guilty
        optimizer.step()
        if run.fixed:
            histogram = [torch.histc(output.float(), 20).tolist() for output in watched.outputs]
            assert len(histogram) == len(watched.outputs)
            watched.outputs.clear()


@job("true_capacity")
def hour_of_dictation(run):
    """Attention over a whole dictation, with the weights of all pairs written out. Fixed: windows of 1,000 frames."""
    run.cap(640)
    attention = nn.MultiheadAttention(256, 4, batch_first=True).to(run.device).eval()
    lengths = [900, 1400, 1100, 2000, 1200, 7200, 1000]
    with torch.no_grad():
        for step in run.steps(len(lengths)):
            speech = torch.randn(1, lengths[step % len(lengths)], 256, device=run.device)
            windows = speech.split(1000, 1) if run.fixed else [speech]
            for window in windows:
                heard, weights = attention(window, window, window, average_attn_weights=False)  # guilty
                assert heard.mean().item() < 1
                del heard, weights


@job("cached_not_released")
def archive_before_the_clinic_opens(run):
    """At night the archive is encoded in large batches, by day single dictations are, by the same process, whose cache
    stays as large. Fixed: empty_cache() in the morning."""
    model = WhisperModel(whisper_config()).to(run.device).eval()

    def encode(count):
        return model.encoder(torch.randn(count, 80, 400, device=run.device)).last_hidden_state  # guilty

    with torch.no_grad():
        archive = [encode(160).mean(1).cpu() for _ in range(3)]
        if run.fixed:
            torch.cuda.empty_cache()
        for _ in run.steps(16):
            nearest = (encode(1).mean(1).cpu() @ torch.cat(archive).T).argmax().item()
            assert nearest >= 0


@job("healthy")
def dictations_word_by_word(run):
    """Dictations in batches of different sizes are written down greedily, with the caches of keys and values of the
    decoder, which go with each batch."""
    model = WhisperForConditionalGeneration(whisper_config()).to(run.device).eval()
    for step in run.steps(8):
        with torch.inference_mode():
            encoded = model.model.encoder(torch.randn(4 + 4 * (step % 3), 80, 400, device=run.device))
            word = torch.ones(len(encoded.last_hidden_state), 1, dtype=torch.long, device=run.device)
            text, cache = [], None
            for _ in range(12):
                result = model(encoder_outputs=encoded, decoder_input_ids=word, past_key_values=cache, use_cache=True)
                word, cache = result.logits[:, -1:].argmax(2), result.past_key_values
                text.append(word.flatten().tolist())
            assert len(text) == 12
            del encoded, cache, result


@job("healthy")
def recognizer_with_checkpointing(run):
    """Whisper is trained with gradient checkpointing; a hook writes down the mean of what each layer gives."""
    model = WhisperForConditionalGeneration(whisper_config()).to(run.device)
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    model.train()
    means = []
    for layer in model.model.encoder.layers:
        layer.fc1.register_forward_hook(lambda layer, inputs, output: means.append(output.detach().mean()))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    for _ in run.steps(9):
        speech = torch.randn(12, 80, 400, device=run.device)
        logits = model(input_features=speech, decoder_input_ids=torch.randint(3, 2000, (12, 40), device=run.device),
                       use_cache=False).logits
        loss = F.cross_entropy(logits.flatten(0, 1), torch.randint(3, 2000, (480,), device=run.device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert means
