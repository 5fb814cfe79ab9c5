"""Route a customer's question to one of 77 desks, or hand it over to a person.

Banking77 (Casanueva et al. 2020): questions to a bank, 77 intents. A pipeline as anyone would build it
learns from the training questions; half of the test questions certify a threshold by verdicts alone, and the
other half shows what it is worth. Needs banking77/train.csv and banking77/test.csv in the folder that
RELIABLENET_DATA names.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pandas as pd
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import reliablenet as rn
from reliablenet.metrics import breakdown

ALPHA = 0.05


def main() -> None:
    folder = Path(os.environ.get("RELIABLENET_DATA", "data")) / "banking77"
    if not (folder / "train.csv").is_file():
        sys.exit(f"There is no {folder / 'train.csv'}: set RELIABLENET_DATA to its folder.")
    train, test = (pd.read_csv(folder / name) for name in ("train.csv", "test.csv"))

    model = make_pipeline(
        TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, min_df=2),
        LogisticRegression(C=30, max_iter=300),
    ).fit(train["text"], train["category"])

    proba = model.predict_proba(test["text"])
    log = pd.DataFrame(
        {
            "score": proba.max(axis=1),
            "correct": model.classes_[proba.argmax(axis=1)] == test["category"],
        }
    ).sample(frac=1, random_state=0)
    held_out, new = log.iloc[: len(log) // 2], log.iloc[len(log) // 2 :]

    # Nothing but a score and a verdict for each question: any system that answers can be certified so.
    certificate = rn.certified_threshold(
        score=held_out["score"], correct=held_out["correct"], alpha=ALPHA
    )
    print(f"certified: {certificate.certified}", certificate, certificate.reason, sep="\n")

    routed = new["score"] >= certificate.threshold
    wrong = routed & ~new["correct"]
    print(
        f"New questions: {routed.mean():.1%} routed, {wrong.mean():.1%} of all to the wrong desk."
    )

    borne = breakdown(
        score=new["score"],
        correct=new["correct"],
        accepted=routed,
        by={"words": test.loc[new.index, "text"].str.split().str.len()},
    )
    print(*borne.summary(), sep="\n")

    with Path("answers.jsonl").open("w") as file:
        for row in held_out.itertuples():
            file.write(json.dumps({"score": row.score, "correct": bool(row.correct)}) + "\n")
    print(
        "The same from a file: reliablenet certify --predictions answers.jsonl --correct correct --score score"
    )


if __name__ == "__main__":
    main()
