"""`reliablenet inspect`: what is in a model file."""

from __future__ import annotations

from reliablenet.cli import options


def inspect(model: options.Model, as_json: options.AsJson = False) -> None:
    """Show what a model file holds: method, features, classes, rule, certificate, versions, hashes.

    Example: reliablenet inspect model.rnet
    """
    from reliablenet.certificate.promise_wording import verdict
    from reliablenet.cli.model_rows import load_model
    from reliablenet.cli.model_summary import contents_of, lines_of
    from reliablenet.cli.printing import show, show_json

    fitted = load_model(model)
    found = contents_of(fitted, model)
    if as_json:
        show_json(found)
    else:
        sentence = verdict(fitted.certificate_, "the model", acts=fitted.threshold_ < float("inf"))
        show(sentence, lines_of(fitted, found))
