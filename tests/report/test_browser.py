"""The pages in a real browser: what a reader sees, clicks and types."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import reliablenet as rn
from reliablenet.certificate.judgement import judge
from reliablenet.report import benchmark_page, comparison_page, model_page, text, write_page
from reliablenet.report.operating import OperatingPoints, operating_points

EVIL = "<script>alert(1)</script>"
PAGES = ("model", "refused", "band", "comparison", "benchmark")


@pytest.fixture(scope="session")
def pages(tmp_path_factory, model, refused, band, comparison, rows, study) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    table, y = rows
    made = {
        "model": model_page(
            model, table=table, labels=y, groups="note", comparison=comparison, title=EVIL
        ),
        "refused": model_page(refused),
        "band": model_page(band),
        "comparison": comparison_page(comparison, title=EVIL),
        "benchmark": benchmark_page(*study),
    }
    return {name: write_page(page, folder / f"{name}.html") for name, page in made.items()}


@contextmanager
def opened(browser, path: Path, *, quiet: bool = True, **settings: object) -> Iterator:
    """Open a page, and afterwards hold it to have run, asked for and complained of nothing."""
    context = browser.new_context(**({"viewport": {"width": 1000, "height": 800}} | settings))
    page = context.new_page()
    troubles: list[str] = []
    page.on("console", lambda message: troubles.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: troubles.append(f"error: {error}"))
    page.on("dialog", lambda dialog: (troubles.append("a script ran"), dialog.dismiss()))
    page.on(
        "request",
        lambda request: (
            troubles.append(f"asked for {request.url}")
            if request.url != path.as_uri() and not request.url.startswith("data:")
            else None
        ),
    )
    try:
        page.goto(path.as_uri())
        yield page
        assert not quiet or troubles == []
    finally:
        context.close()


def points_of(model: rn.methods.SelectiveClassifier) -> OperatingPoints:
    certificate = model.certificate_
    own = (certificate.threshold, model.threshold_, model.selection_threshold_)
    return operating_points(model.evidence_.scored(), certificate.alpha, certificate.rho, own)


def shown(page) -> dict[str, str]:
    return {
        field.get_attribute("data-key"): field.inner_text()
        for field in page.locator("#explorer-box [data-key]").all()
    }


def expected(model: rn.methods.SelectiveClassifier, threshold: float) -> dict[str, str]:
    """Return what `certify` counts at a threshold, as the page writes it.

    In the certified region one bound holds for all thresholds at once.
    """
    rows, made = model.evidence_, model.certificate_
    one = rn.certify(
        None,
        rows.truth,
        threshold,
        made.alpha,
        made.rho,
        score=rows.score,
        predicted=rows.predicted,
    )
    lowest = judge(rows.scored(), made.alpha, made.rho)
    inside = lowest.threshold <= threshold < float("inf")
    bound = lowest.upper_bound if inside else one.upper_bound
    right = (one.accepted - one.errors) / one.accepted if one.accepted else float("nan")
    return {
        "coverage": text.percent(one.coverage),
        "jcw": text.percent(one.jcw, 2),
        "bound": text.percent_up(bound, one.alpha),
        "accuracy": text.percent(right, 2),
        "throughput": text.percent(one.throughput),
        "accepted": f"{one.accepted:,}",
        "errors": f"{one.errors:,}",
        "threshold": text.threshold(threshold),
    }


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("width", [375, 1400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_width_and_theme(browser, pages, name, width, scheme) -> None:
    size = {"width": width, "height": 900}
    with opened(browser, pages[name], viewport=size, color_scheme=scheme) as page:
        page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true })")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        colours = page.evaluate(
            "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]"
        )
        brightness = [sum(map(int, re.findall(r"\d+", colour)[:3])) for colour in colours]
        assert (brightness[0] > brightness[1]) == (scheme == "light")
        assert abs(brightness[0] - brightness[1]) > 500


@pytest.mark.parametrize("name", ["model", "band"])
def test_the_slider_shows_what_python_computes(browser, pages, model, band, name) -> None:
    fitted = {"model": model, "band": band}[name]
    points = points_of(fitted)
    with opened(browser, pages[name]) as page:
        for _ in range(60):  # by keyboard alone
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.id") == "slider":
                break
        slider = page.locator("#slider")
        start = points.place(fitted.threshold_)
        assert int(slider.input_value()) == start
        seen = []
        for keys in (
            [],
            ["ArrowRight"],
            ["ArrowLeft", "ArrowLeft"],
            ["PageUp"] * 3,
            ["PageDown"] * 2,
            ["ArrowRight"] * 17,
            ["Home"],
            ["End"],
        ):
            for key in keys:
                page.keyboard.press(key)
            place = int(slider.input_value())
            values = shown(page)
            status = values.pop("status")
            assert values == expected(fitted, float(points.threshold[place]))
            certified = points.threshold[place] >= fitted.certificate_.threshold
            idle = place == len(points) - 1
            assert status == ("acts on nothing" if idle else "yes" if certified else "no")
            assert page.locator("#explorer-box").get_attribute("data-status") == status
            assert status in slider.get_attribute("aria-valuetext")
            marker = page.locator("#marker").get_attribute("x1")
            assert float(marker.rstrip("%")) == pytest.approx(100 * place / (len(points) - 1))
            seen.append(place)
        assert len(set(seen)) == 8
        assert seen[-2:] == [0, len(points) - 1]
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        assert int(slider.input_value()) == start
        assert shown(page)["errors"] == f"{fitted.certificate_.errors:,}"


def test_the_certified_region_is_drawn_where_it_is(browser, pages, model) -> None:
    points = points_of(model)
    start = points.place(model.certificate_.threshold)
    with opened(browser, pages["model"]) as page:
        band = page.locator("#explorer .band.good")
        left = float(band.get_attribute("x").rstrip("%"))
        assert left == pytest.approx(100 * start / (len(points) - 1), abs=0.01)
        assert left + float(band.get_attribute("width").rstrip("%")) == pytest.approx(100, abs=0.02)
        page.locator("#slider").evaluate(
            "(slider, place) => { slider.value = place; slider.dispatchEvent(new Event('input')) }",
            start - 1,
        )
        assert shown(page)["status"] == "no"
        # The thumb stands under the marker.
        box, line = page.locator("#slider").bounding_box(), page.locator("#marker").bounding_box()
        thumb = box["x"] + 13 + (box["width"] - 26) * (start - 1) / (len(points) - 1)
        assert thumb == pytest.approx(line["x"] + line["width"] / 2, abs=1.5)


def test_no_region_without_a_certificate(browser, pages) -> None:
    with opened(browser, pages["refused"]) as page:
        assert page.locator("#explorer .band.good").count() == 0
        assert shown(page)["status"] == "acts on nothing"
        assert page.locator(".badge").inner_text() == "Not certified"


def test_without_javascript_the_values_stand_there(browser, pages, model) -> None:
    with opened(browser, pages["model"], java_script_enabled=False) as page:
        values = shown(page)
        assert values.pop("status") == "yes"
        assert values == expected(model, model.threshold_)
        assert not page.locator("#slider").is_visible()
        page.locator("#explorer summary").click()
        marked = page.locator("#explorer .marked td").all_inner_texts()
        assert marked[0] == text.threshold(model.threshold_)
        assert page.locator("#explorer tbody tr").count() >= 20


@pytest.mark.parametrize("name", ["model", "comparison"])
def test_a_script_as_a_name_is_shown_and_not_run(browser, pages, name) -> None:
    with opened(browser, pages[name]) as page:
        assert page.title() == EVIL
        assert EVIL in page.locator(".eyebrow").inner_text()
        if name == "model":
            cells = page.locator("#rows td").all_inner_texts()
            assert EVIL in cells
            assert EVIL in page.locator("#rows th").all_inner_texts()
            assert EVIL in page.locator("#groups td").all_inner_texts()
            assert page.locator("img").count() == 0


def test_an_injected_script_would_not_run_either(browser, pages, tmp_path) -> None:
    page_text = pages["band"].read_text().replace("<main", f"{EVIL}<main", 1)
    path = write_page(page_text, tmp_path / "injected.html")
    with opened(browser, path, quiet=False) as page:
        ran: list[str] = []
        page.on("dialog", lambda dialog: (ran.append(dialog.message), dialog.dismiss()))
        page.reload()
        assert ran == []
        assert page.locator("#slider").is_visible()  # our own script does run


def test_on_paper(browser, pages) -> None:
    with opened(browser, pages["model"], color_scheme="dark") as page:
        page.emulate_media(media="print", color_scheme="dark")
        assert not page.locator("nav").is_visible()
        assert not page.locator("#slider").is_visible()
        assert page.locator("h1").is_visible()
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert ground == "rgb(255, 255, 255)"
        assert page.pdf(format="A4").startswith(b"%PDF")


@pytest.mark.parametrize("name", PAGES)
def test_names_for_those_who_do_not_see(browser, pages, name) -> None:
    with opened(browser, pages[name]) as page:
        assert page.locator("h1").count() == 1
        for picture in page.locator("svg[role=img]").all():
            assert len(picture.get_attribute("aria-label")) > 5
        ids = page.evaluate("[...document.querySelectorAll('[id]')].map(e => e.id)")
        assert len(ids) == len(set(ids))
        for target in page.locator("nav a").all():
            assert target.get_attribute("href").lstrip("#") in ids
