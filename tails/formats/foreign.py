"""Words of other languages for what is measured: a line that holds one is read as if it were in English."""

from __future__ import annotations

import re

# English -> the words for it; longer ones are tried first. A number may stand inside: ``第 12 步``.
_WORDS: dict[str, str] = {
    "train loss": "训练损失|訓練損失|训练loss|学習損失|훈련 손실|학습 손실|trainingsverlust|потери на обучении",
    "val loss": "验证损失|驗證損失|验证loss|検証損失|검증 손실|validierungsverlust|потери на валидации",
    "avg loss": "平均损失|平均損失|平均loss|평균 손실",
    "loss": "损失值|损失函数|损失|損失|손실|verlust|perte|pérdida|perdida|perda|perdita|потери|потеря|функция потерь"
    "|kayıp",
    "lr": "学习率|學習率|学習率|학습률|lernrate|taux d'apprentissage|tasa de aprendizaje|taxa de aprendizado"
    "|скорость обучения",
    "step": "全局步数|训练步数|训练次数|迭代次数|步数|步骤|迭代|ステップ|스텝|schritt|étape|paso|passo|шаг|adım",
    "iteration": "イテレーション|itération|iteración|итерация",
    "epoch": "轮次|轮数|训练轮|エポック|에포크|epoche|époque|época|эпоха",
    "grad norm": "梯度范数|梯度範數|勾配ノルム|gradientennorm",
    "test ": "整体测试集上的|测试集上的|测试集",
    "val ": "验证集上的|验证集|驗證集",
    "accuracy": "准确率|正确率|準確率|正解率|정확도|genauigkeit|précision|точность",
    "reward": "奖励|獎勵|報酬|보상",
    "perplexity": "困惑度|パープレキシティ",
    "tokens/s": "词元/秒|tokens/秒|トークン/秒",
    "time": "耗时|用时|所要時間",
    "memory": "显存|顯存|メモリ",
}
_PAIRS = sorted(
    ((word, to) for to, words in _WORDS.items() for word in words.split("|")), key=lambda pair: -len(pair[0])
)
_ENGLISH = dict(_PAIRS)


def _pattern(word: str) -> str:
    """Languages written without blanks have no word ends."""
    return rf"(?<!\w){re.escape(word)}(?!\w)" if word < "\u0500" else re.escape(word)


_ANY = re.compile("|".join(_pattern(word) for word, _ in _PAIRS), re.IGNORECASE)
_ORDINAL = re.compile(
    r"第\s*(\d[\d,]*)(?:\s*/\s*(\d+))?\s*(步|次迭代|轮|輪|个epoch|ステップ|エポック)"
    r"(?:\s*[/，,(（]?\s*[共总]共?\s*(\d+)\s*(?:步|次|轮|輪)[)）]?)?"  # 第 3 步 / 共 40 步
)
_WIDE = str.maketrans(
    {"：": ": ", "，": ", ", "；": "; ", "＝": "=", "（": "(", "）": ")", "％": "%", "｜": "|", "、": ", "}
)
WIDE_COLON = "："
_WIDE_VALUE = re.compile(r"[A-Za-z\d]\s?[：＝]\s?[-+.\dnN]")  # 训练 Loss：2.5
TOKENS = (*(word.encode() for word, _ in _PAIRS), "第".encode())


def in_english(text: str) -> str:
    """`text` with the words of the table in English; other words stay as they are.

    >>> in_english("第 12 步，训练损失：2.5")
    'step 12, train loss: 2.5'
    """
    if _ANY.search(text) is None and _ORDINAL.search(text) is None and _WIDE_VALUE.search(text) is None:
        return text
    text = _ORDINAL.sub(_counted, text.translate(_WIDE))
    return _ANY.sub(lambda match: _ENGLISH.get(match[0].lower(), match[0]), text)


def _counted(match: re.Match[str]) -> str:
    word = "epoch" if match[3] in ("轮", "輪", "个epoch", "エポック") else "step"
    total = match[2] or match[4]
    return f"{word} {match[1]}" + (f"/{total}" if total else "")
