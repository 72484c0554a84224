"""The dialects of stdout logs, in the order they are tried. To add one: write the module, add its line here."""

from __future__ import annotations

from trainmon.tails.formats.bars import Bars
from trainmon.tails.formats.boxed import Boxed
from trainmon.tails.formats.build_nanogpt import BuildNanoGpt
from trainmon.tails.formats.catboost import CatBoost
from trainmon.tails.formats.columns import Columns
from trainmon.tails.formats.composer import Composer
from trainmon.tails.formats.composer_file import ComposerFile
from trainmon.tails.formats.continued import Continued
from trainmon.tails.formats.darknet import Darknet
from trainmon.tails.formats.deepspeed import DeepSpeed
from trainmon.tails.formats.dict_line import DictLine
from trainmon.tails.formats.epoch_batch import EpochBatch
from trainmon.tails.formats.espnet import EspNet
from trainmon.tails.formats.exposition import Exposition
from trainmon.tails.formats.fairseq import Fairseq
from trainmon.tails.formats.generated import Generated
from trainmon.tails.formats.generic import Generic
from trainmon.tails.formats.ggml import Ggml
from trainmon.tails.formats.headed import Headed
from trainmon.tails.formats.influx import Influx
from trainmon.tails.formats.julia import Julia
from trainmon.tails.formats.keras import Keras
from trainmon.tails.formats.line import Dialect
from trainmon.tails.formats.lingua import Lingua
from trainmon.tails.formats.litgpt import LitGpt
from trainmon.tails.formats.llmc import LlmC
from trainmon.tails.formats.loggable_bar import LoggableBar
from trainmon.tails.formats.marian import Marian
from trainmon.tails.formats.maxtext import MaxText
from trainmon.tails.formats.megatron import Megatron
from trainmon.tails.formats.mllog_line import MlLogLine
from trainmon.tails.formats.modded_nanogpt import ModdedNanoGpt
from trainmon.tails.formats.nanochat import NanoChat
from trainmon.tails.formats.nanogpt import NanoGpt
from trainmon.tails.formats.nemo_line import NemoLine
from trainmon.tails.formats.numbered import Numbered
from trainmon.tails.formats.olmo_core import OlmoCore
from trainmon.tails.formats.rich_bar import RichBar
from trainmon.tails.formats.sockeye import Sockeye
from trainmon.tails.formats.torchtitan import TorchTitan
from trainmon.tails.formats.torchtune import TorchTune
from trainmon.tails.formats.triples import Triples
from trainmon.tails.formats.verl import Verl
from trainmon.tails.formats.wenet import WeNet

DIALECTS: tuple[type[Dialect], ...] = (
    Generated,  # before those that would read what a model wrote
    Exposition,
    OlmoCore,
    Composer,
    ComposerFile,
    MlLogLine,
    Megatron,
    DeepSpeed,
    NanoGpt,
    NanoChat,
    BuildNanoGpt,
    TorchTitan,
    LlmC,
    LitGpt,
    ModdedNanoGpt,
    MaxText,
    Verl,
    Lingua,
    Fairseq,
    NemoLine,
    EspNet,
    WeNet,
    Marian,
    Sockeye,
    Influx,
    CatBoost,
    Darknet,
    Julia,
    Triples,
    LoggableBar,
    EpochBatch,
    Keras,
    Ggml,
    RichBar,
    TorchTune,
    Bars,
    DictLine,
    Columns,
    Boxed,
    Headed,
    Numbered,
    Continued,
    Generic,  # the net under all others
)
