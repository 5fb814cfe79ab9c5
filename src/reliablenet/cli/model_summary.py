"""What a model file holds, as values and as lines to read."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

from reliablenet._listing import listed
from reliablenet.certificate.promise_wording import promise_text
from reliablenet.certificate.shift_wording import survival
from reliablenet.cli.printing import (
    bearing_lines,
    bearing_values,
    certificate_lines,
    sensitivity_values,
)
from reliablenet.datasets.sources import sha256_of
from reliablenet.methods.layers import find_encoder, layers

SHOWN = 8  # names of columns in a line


def contents_of(model: Any, path: Path) -> dict[str, Any]:
    """Return what is known of a loaded model and its file, which `load` has verified."""
    with zipfile.ZipFile(path) as archive:
        manifest = json.loads(archive.read("manifest.json"))
    encoder = find_encoder(model)
    network = next((m for m in layers(model) if hasattr(m, "network_")), None)
    return {
        "method": " around ".join(type(layer).__name__ for layer in layers(model)),
        "network": None
        if network is None
        else {
            "name": network.network if isinstance(network.network, str) else "your own",
            "inputs": list(network.input_shape_),
            "weights": sum(weight.numel() for weight in network.network_.parameters()),
            "team": team_shares(network),
        },
        "features": None
        if encoder is None
        else {
            "numbers": encoder.numbers_,
            "categories": encoder.categories_,
            "dates": encoder.dates_,
            "texts": encoder.texts_,
            "left_out": dict(zip(encoder.dropped_, encoder.reasons_, strict=True)),
        },
        "profile": None if model.profile_ is None else model.profile_.to_dict(),
        "classes": getattr(model, "classes_", None),
        "tolerance": model.certificate_.tolerance or None,
        "threshold": model.threshold_,
        "promise": None
        if model.promise is None
        else promise_text(model.promise, model.certificate_.tolerance, model.certificate_.unit),
        "certificate": model.certificate_.to_dict(),
        "breakdown": bearing_values(model.breakdown_),
        "sensitivity": sensitivity_values(model.certificate_),
        "chain": [
            {
                "certificate": link.certificate,
                "unit": json.loads(link.document).get("unit", "row")
                if link.document
                else model.certificate_.unit,
                "reason": link.reason,
                "date": link.date or None,
            }
            for link in getattr(model, "chain_", ())
        ],
        "data_fingerprint": manifest["fingerprint"],
        "versions": manifest["versions"],
        "sha256": {"file": sha256_of(path)} | manifest["sha256"],
    }


def team_shares(network: Any) -> dict[str, float] | None:
    """Return the weight of the network and of each that answers beside it; None if nobody does."""
    team = getattr(network, "team_", None)
    return None if team is None else dict(zip(("network", *team.names), team.weights, strict=True))


def lines_of(model: Any, contents: dict[str, Any]) -> dict[str, str]:
    """Return the contents as lines for a reader."""
    made = model.certificate_.provenance
    lines = certificate_lines(model.certificate_) | {"method": contents["method"]}
    if model.promise is not None:
        lines["promise"] = contents["promise"]
    lines |= bearing_lines(model.breakdown_)
    if survived := survival(model.certificate_):
        lines["if moved"] = survived
    if contents["network"]:
        network = contents["network"]
        inputs = "x".join(map(str, network["inputs"]))
        lines["network"] = f"{network['name']}, {inputs} inputs, {network['weights']:,} weights"
        if network["team"]:
            shares = [f"{name} {share:.2f}" for name, share in network["team"].items()]
            lines["answers by"] = ", ".join(shares)
    if contents["features"]:
        features = contents["features"]
        for kind in ("numbers", "categories", "dates", "texts"):
            if features[kind]:
                lines[kind] = f"{len(features[kind])}: {listed(features[kind], SHOWN, str)}"
        for name, reason in features["left_out"].items():
            lines[f"without {name}"] = reason
    lines["profile"] = "none, so new rows cannot be checked against the training rows"
    if model.profile_ is not None:
        lines["profile"] = model.profile_.summary()
    if contents["classes"] is None:
        lines["predicts"] = f"a number, right within {contents['tolerance']}"
    else:
        lines["classes"] = f"{len(model.classes_)}: {listed(model.classes_, SHOWN, str)}"
    lines["counted"] = "groups, one row of each" if model.grouped_ else "rows"
    if made is not None:
        lines["rows"] = f"fingerprint {made.rows or 'not known'}, used for {made.uses} certificate"
        lines["rows"] += "s" * (made.uses != 1)
    for number, link in enumerate(contents["chain"], 1):
        when = f", {link['date']}" if link["date"] else ""
        lines[f"certificate {number}"] = (
            f"{link['reason']}{when}, counted {link['unit']}s ({link['certificate'][:16]})"
        )
    lines["data"] = f"fingerprint {contents['data_fingerprint'][:16]}"
    lines["made with"] = ", ".join(f"{name} {v}" for name, v in contents["versions"].items())
    lines["sha256"] = contents["sha256"]["file"]
    return lines
