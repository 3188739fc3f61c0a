"""Small models of many kinds, with examples and losses: what PyTorch is used for."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

Tensor = torch.Tensor


@dataclasses.dataclass(frozen=True)
class Model:
    """A module, a batch of its inputs, targets, and a loss of what it gives and the targets."""

    module: nn.Module
    inputs: tuple[Tensor, ...]
    targets: tuple[Tensor, ...] = ()
    loss: Callable[..., Tensor] = lambda output: output.square().mean()


def classes(number: int, count: int = 4) -> Tensor:
    return torch.arange(count) % number


def classified(number: int, *layers: nn.Module, inputs: Tensor) -> Model:
    """Return a model of layers that ends in classes, whose targets are some classes."""
    features = nn.Sequential(*layers, nn.Flatten())
    width = features.eval()(inputs).shape[1]
    module = nn.Sequential(features.train(), nn.Linear(width, number))
    return Model(module, (inputs,), (classes(number, len(inputs)),), F.cross_entropy)


def images(channels: int = 2, size: int = 8, count: int = 4) -> Tensor:
    return torch.randn(count, channels, size, size)


def mlp() -> Model:
    return classified(3, nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 6), nn.Tanh(), inputs=rows(5))


def rows(width: int, count: int = 4) -> Tensor:
    return torch.randn(count, width)


def conv1d() -> Model:
    series = torch.randn(4, 2, 12)
    layers = nn.Conv1d(2, 4, 3, stride=2, padding=1), nn.ReLU(), nn.MaxPool1d(2)
    return classified(3, *layers, nn.AvgPool1d(2, padding=1), inputs=series)


def conv2d() -> Model:
    layers = (
        nn.Conv2d(2, 4, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(4, 8, 3, padding="same", groups=2, dilation=2),
        nn.AvgPool2d(3, stride=2, padding=1, count_include_pad=False),
        nn.AdaptiveAvgPool2d(1),
    )
    return classified(3, *layers, inputs=images())


def conv3d() -> Model:
    volumes = torch.randn(4, 1, 4, 4, 4)
    layers = nn.Conv3d(1, 3, 3, padding=1), nn.ReLU(), nn.MaxPool3d(2)
    return classified(2, *layers, nn.AdaptiveAvgPool3d(1), inputs=volumes)


def adaptive_pools() -> Model:
    layers = nn.Conv2d(2, 3, 2), nn.AdaptiveMaxPool2d(3), nn.AdaptiveAvgPool2d(2)
    return classified(3, *layers, inputs=images(size=7))


def transposed() -> Model:
    module = nn.Sequential(
        nn.Conv2d(2, 4, 3, stride=2, padding=1),
        nn.LeakyReLU(0.1),
        nn.ConvTranspose2d(4, 2, 3, stride=2, padding=1, output_padding=1),
    )
    batch = images()
    return Model(module, (batch,), (batch,), F.mse_loss)


def batch_norm() -> Model:
    # A feature that is the same in a whole batch, as after ReLU, would magnify rounding by 300.
    layers = nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.Tanh(), nn.Flatten(), nn.BatchNorm1d(144)
    return classified(3, *layers, inputs=images())


def norms() -> Model:
    layers = (
        nn.Conv2d(2, 4, 3),
        nn.GroupNorm(2, 4),
        nn.ReLU(),
        nn.InstanceNorm2d(4, affine=True),
        nn.LocalResponseNorm(2),
        nn.Flatten(),
        nn.LayerNorm(144),
        nn.Linear(144, 8),
        nn.RMSNorm(8),
    )
    return classified(3, *layers, inputs=images())


def weight_norms() -> Model:
    weight_norm = nn.utils.parametrizations.weight_norm
    return classified(3, weight_norm(nn.Linear(5, 6)), nn.SELU(), inputs=rows(5))


class Sequence1(nn.Module):
    """A recurrent layer, and classes of its last output."""

    def __init__(self, layer: nn.Module, width: int) -> None:
        super().__init__()
        self.layer = layer
        self.head = nn.Linear(width, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.layer(x)[0][:, -1])


def recurrent(layer: nn.Module, width: int = 5) -> Model:
    return Model(Sequence1(layer, width), (torch.randn(4, 3, 4),), (classes(3),), F.cross_entropy)


def rnn() -> Model:
    return recurrent(nn.RNN(4, 5, batch_first=True))


def lstm() -> Model:
    return recurrent(nn.LSTM(4, 5, num_layers=2, bidirectional=True, batch_first=True), 10)


def gru() -> Model:
    return recurrent(nn.GRU(4, 5, batch_first=True))


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True, add_bias_kv=True)

    def forward(self, x: Tensor, padding: Tensor) -> Tensor:
        output, weights = self.attention(x, x, x, key_padding_mask=padding)
        return torch.cat([output.flatten(), weights.flatten()])


def attention() -> Model:
    padding = torch.tensor([[False, False, False], [False, False, True]])
    return Model(Attention(), (torch.randn(2, 3, 8), padding))


def encoder() -> Model:
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    return Model(nn.TransformerEncoder(layer, 2), (torch.randn(2, 3, 8),))


class LanguageModel(nn.Module):
    """A small transformer that predicts the next token, with tied embeddings."""

    def __init__(self, tokens: int = 11, width: int = 8, length: int = 5) -> None:
        super().__init__()
        self.tokens = nn.Embedding(tokens, width)
        self.places = nn.Parameter(torch.randn(length, width) * 0.1)
        self.layer = nn.TransformerEncoderLayer(
            width, 2, 16, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.head = nn.Linear(width, tokens, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, x: Tensor) -> Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        hidden = self.tokens(x) + self.places[: x.shape[1]]
        return self.head(self.layer(hidden, src_mask=mask, is_causal=True))


def next_tokens(logits: Tensor, tokens: Tensor) -> Tensor:
    """Return the mean cross entropy of the next tokens, without the padding 0."""
    return F.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten(), ignore_index=0)


def sentences(tokens: int = 11) -> Tensor:
    return (torch.arange(15).reshape(3, 5) * 7 + 1) % tokens


def language_model() -> Model:
    return Model(LanguageModel(), (sentences(),), (sentences(),), next_tokens)


class ScaledAttention(nn.Module):
    """Causal attention by the function of PyTorch."""

    def __init__(self) -> None:
        super().__init__()
        self.parts = nn.Linear(8, 24)

    def forward(self, x: Tensor) -> Tensor:
        parts = self.parts(x).unflatten(-1, (3, 2, 4)).permute(2, 0, 3, 1, 4)
        return F.scaled_dot_product_attention(*parts.unbind(0), is_causal=True)


def scaled_attention() -> Model:
    return Model(ScaledAttention(), (torch.randn(2, 3, 8),))


class Embeddings(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one = nn.Embedding(7, 4, padding_idx=0)
        self.scaled = nn.Embedding(7, 4)
        self.bag = nn.EmbeddingBag(7, 4, mode="mean")

    def forward(self, x: Tensor) -> Tensor:
        return self.one(x).sum(1) + self.scaled(x).amax(1) + self.bag(x)


def embeddings() -> Model:
    return Model(Embeddings(), (torch.tensor([[0, 3, 5], [6, 3, 0]]),))


ACTIVATIONS = (
    nn.ReLU, nn.GELU, nn.SiLU, nn.ELU, nn.CELU, nn.SELU, nn.LeakyReLU, nn.PReLU, nn.Softplus,
    nn.Hardswish, nn.Hardsigmoid, nn.Hardtanh, nn.Hardshrink, nn.Softshrink, nn.Tanhshrink,
    nn.Mish, nn.Softsign, nn.LogSigmoid, nn.ReLU6, nn.Sigmoid, nn.Tanh,
)  # fmt: skip


class Activations(nn.Module):
    """The mean of one layer under every activation."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 8)
        self.activations = nn.ModuleList([cls() for cls in ACTIVATIONS])
        self.softs = nn.ModuleList([nn.Softmax(1), nn.LogSoftmax(1), nn.Softmin(1), nn.GLU(1)])
        self.tanh = nn.GELU(approximate="tanh")

    def forward(self, x: Tensor) -> Tensor:
        hidden = 2 * self.layer(x)
        every = [each(hidden) for each in (*self.activations, self.tanh)]
        softs = [each(hidden).mean() for each in self.softs]
        return torch.stack(every).mean(0) + torch.stack(softs).sum()


def activations() -> Model:
    return Model(Activations(), (rows(6),))


def class_losses(logits: Tensor, y: Tensor) -> Tensor:
    weight = torch.tensor([0.5, 1.0, 2.0])
    distribution = torch.full_like(logits, 0.1).scatter(1, y[:, None], 0.8)
    log_p = F.log_softmax(logits, 1)
    losses = [
        F.cross_entropy(logits, y, label_smoothing=0.1),
        F.cross_entropy(logits, y, ignore_index=1),
        F.cross_entropy(logits, y, weight=weight),
        F.cross_entropy(logits, distribution, reduction="sum"),
        F.nll_loss(log_p, y, weight=weight, reduction="none").sum(),
        F.kl_div(log_p, distribution, reduction="batchmean"),
        F.multi_margin_loss(logits, y),
        F.multilabel_soft_margin_loss(logits, distribution.round()),
        F.binary_cross_entropy_with_logits(logits, distribution, pos_weight=weight),
        F.binary_cross_entropy(logits.sigmoid(), distribution),
        F.poisson_nll_loss(logits, y[:, None].float()),
    ]
    return torch.stack(losses).mean()


def losses_of_classes() -> Model:
    return Model(nn.Linear(5, 3), (rows(5),), (classes(3),), class_losses)


def vector_losses(output: Tensor, y: Tensor) -> Tensor:
    sign = torch.tensor([1.0, -1.0, 1.0, -1.0])
    losses = [
        F.mse_loss(output, y),
        F.l1_loss(output, y),
        F.smooth_l1_loss(output, y, beta=0.5),
        F.huber_loss(output, y, delta=0.7),
        F.cosine_embedding_loss(output, y, sign),
        F.triplet_margin_loss(output, y, y.flip(0)),
        F.margin_ranking_loss(output[:, 0], y[:, 0], sign, margin=0.1),
        F.hinge_embedding_loss(output[:, 0], sign),
        F.soft_margin_loss(output[:, 0], sign),
        F.pairwise_distance(output, y).mean(),
        1 - F.cosine_similarity(output, y).mean(),
    ]
    return torch.stack(losses).mean()


def losses_of_vectors() -> Model:
    return Model(nn.Linear(5, 3), (rows(5),), (rows(3),), vector_losses)


def upsampled() -> Model:
    module = nn.Sequential(
        nn.ReflectionPad2d(1),
        nn.Conv2d(2, 8, 3),
        nn.PixelShuffle(2),
        nn.ReplicationPad2d(1),
        nn.Conv2d(2, 2, 3, padding=1, padding_mode="circular"),
        nn.Upsample(scale_factor=2, mode="nearest"),
        nn.ZeroPad2d((1, 0, 0, 1)),
        nn.Upsample(size=(6, 6), mode="bilinear", align_corners=False),
        nn.PixelUnshuffle(2),
        nn.ChannelShuffle(2),
    )
    return Model(module, (images(size=4, count=2),))


def bilinear() -> Model:
    class Product(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.product = nn.Bilinear(3, 4, 5)

        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            return self.product(x, y)

    return Model(Product(), (rows(3), rows(4)))


class Block(nn.Module):
    """A residual block of ResNet-18, with groups in place of batches."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(before, after, 3, stride, 1, bias=False)
        self.norm1 = nn.GroupNorm(2, after)
        self.second = nn.Conv2d(after, after, 3, 1, 1, bias=False)
        self.norm2 = nn.GroupNorm(2, after)
        self.short: nn.Module = nn.Identity()
        if stride != 1 or before != after:
            short = nn.Conv2d(before, after, 1, stride, bias=False)
            self.short = nn.Sequential(short, nn.GroupNorm(2, after))

    def forward(self, x: Tensor) -> Tensor:
        hidden = F.relu(self.norm1(self.first(x)), inplace=True)
        return F.relu(self.norm2(self.second(hidden)) + self.short(x))


def resnet(outputs: int = 4, widths: Sequence[int] = (4, 8, 16, 32)) -> nn.Module:
    """Return ResNet-18 for small images, of few channels."""
    layers: list[nn.Module] = [
        nn.Conv2d(3, widths[0], 3, 1, 1, bias=False),
        nn.GroupNorm(2, widths[0]),
        nn.ReLU(inplace=True),
    ]
    before = widths[0]
    for stage, after in enumerate(widths):
        layers += [Block(before, after, 2 if stage else 1), Block(after, after, 1)]
        before = after
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, outputs)]
    return nn.Sequential(*layers)


def resnet_18() -> Model:
    return Model(resnet(), (images(3),), (classes(4),), F.cross_entropy)


def cifar_cnn() -> Model:
    """The two blocks of convolutions and the dense layers that benchmarks train on CIFAR-10."""
    layers: list[nn.Module] = []
    before = 3
    for width in (4, 8):
        layers += [
            nn.Conv2d(before, width, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(width, width, 3),
            nn.ReLU(),
            nn.MaxPool2d(2),
        ]
        before = width
    return classified(10, *layers, nn.Flatten(), nn.Linear(8, 16), nn.ReLU(), inputs=images(3, 12))


class NextWord(nn.Module):
    """The recurrent language model of benchmarks on StackOverflow: LSTM, projection, words."""

    def __init__(self, words: int = 11) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, 4, padding_idx=0)
        self.recurrent = nn.LSTM(4, 6, batch_first=True)
        self.projection = nn.Linear(6, 4)
        self.words = nn.Linear(4, words)

    def forward(self, x: Tensor) -> Tensor:
        return self.words(self.projection(self.recurrent(self.embedding(x))[0]))


def next_word() -> Model:
    return Model(NextWord(), (sentences(),), (sentences(),), next_tokens)


def flair_labels() -> Model:
    """The ResNet of benchmarks on Flair, which gives each image several of the labels."""
    labels = (torch.arange(20).reshape(4, 5) % 3 == 0).float()
    return Model(resnet(5), (images(3),), (labels,), F.binary_cross_entropy_with_logits)


MODELS: dict[str, Callable[[], Model]] = {
    make.__name__: make
    for make in (
        mlp, conv1d, conv2d, conv3d, adaptive_pools, transposed, batch_norm, norms, weight_norms,
        rnn, lstm, gru, attention, encoder, language_model, scaled_attention, embeddings,
        activations, losses_of_classes, losses_of_vectors, upsampled, bilinear, resnet_18,
        cifar_cnn, next_word, flair_labels,
    )
}  # fmt: skip


def ctc() -> Model:
    """A recurrent network and connectionist temporal classification."""

    def loss(output: Tensor, y: Tensor) -> Tensor:
        log_p = F.log_softmax(output.transpose(0, 1), 2)
        return F.ctc_loss(log_p, y, torch.tensor([6, 6]), torch.tensor([2, 1]))

    return Model(nn.Linear(3, 5), (torch.randn(2, 6, 3),), (torch.tensor([[1, 2], [3, 0]]),), loss)


def bert() -> Model:
    """A tiny BERT of Hugging Face for two classes, without dropout."""
    import transformers

    config = transformers.BertConfig(
        vocab_size=20,
        hidden_size=8,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=8,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    module = transformers.BertForSequenceClassification(config)
    tokens = (torch.arange(12).reshape(2, 6) * 5 + 1) % 20
    mask = torch.tensor([[1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0]])
    return Model(
        module,
        (tokens, mask),
        (classes(2, 2),),
        lambda output, y: F.cross_entropy(output.logits, y),
    )


def llama(rank: int = 2) -> Model:
    """A tiny Llama of Hugging Face whose matrices are adapted by PEFT, at low rank."""
    import peft
    import transformers

    config = transformers.LlamaConfig(
        vocab_size=20,
        hidden_size=8,
        intermediate_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=16,
    )
    base = transformers.LlamaForCausalLM(config)
    adapters = peft.LoraConfig(
        r=rank, lora_alpha=4, lora_dropout=0.0, target_modules=["q_proj", "v_proj"]
    )
    with warnings.catch_warnings():
        # PEFT calls what Transformers has given another name.
        warnings.simplefilter("ignore", FutureWarning)
        module = peft.get_peft_model(base, adapters)
    tokens = (torch.arange(12).reshape(2, 6) * 5 + 1) % 20

    def loss(output: Any, y: Tensor) -> Tensor:
        return next_tokens(output.logits, y)

    return Model(module, (tokens,), (tokens,), loss)


HUGGING_FACE = {"bert": bert, "llama": llama}
