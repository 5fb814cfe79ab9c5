"use strict";
// Every text that the explorer shows was written by Python; here it is only looked up.
(() => {
  const source = document.getElementById("points");
  if (!source) return;
  const { start, columns } = JSON.parse(source.textContent);
  const box = document.getElementById("explorer-box");
  const slider = document.getElementById("slider");
  const marker = document.getElementById("marker");
  const fields = [...box.querySelectorAll("[data-key]")];
  const last = columns.threshold.length - 1;

  const show = (place) => {
    for (const field of fields) field.textContent = columns[field.dataset.key][place];
    const x = `${(100 * place) / last}%`;
    marker.setAttribute("x1", x);
    marker.setAttribute("x2", x);
    box.dataset.status = columns.status[place];
    slider.setAttribute(
      "aria-valuetext",
      `${columns.threshold[place]}: acts on ${columns.coverage[place]}, ` +
        `bound ${columns.bound[place]}, certified: ${columns.status[place]}`,
    );
  };

  slider.addEventListener("input", () => show(Number(slider.value)));
  document.getElementById("back").addEventListener("click", () => {
    slider.value = start;
    show(start);
  });
  slider.value = start; // a reloaded page may remember another place
  show(start);
  box.querySelector(".control").hidden = false;
})();

// Outcomes that a person saves go to the server that the page came from; then what they change is shown.
(() => {
  const forms = [...document.querySelectorAll("form[data-outcome]")];
  if (!forms.length) return;

  const refresh = async () => {
    const answer = await fetch(location.pathname, { headers: { Accept: "text/html" } });
    if (!answer.ok) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const old of document.querySelectorAll("[data-live]")) {
      const found = fresh.getElementById(old.id);
      if (found) old.replaceWith(document.adoptNode(found));
    }
  };

  const save = async (form) => {
    const told = form.querySelector("output");
    const body = { outcomes: [{ id: form.dataset.outcome, truth: form.elements.truth.value }] };
    for (const field of form.elements) field.disabled = true;
    told.textContent = "saving";
    let said = "the server does not answer";
    let saved = false;
    try {
      const answer = await fetch("outcomes", {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify(body),
      });
      const content = await answer.json();
      saved = answer.ok;
      said = content.error || content.results[0].status;
    } catch {
      saved = false;
    }
    told.textContent = saved ? `✓ ${said}` : `✕ ${said}`;
    if (saved) await refresh();
    else for (const field of form.elements) field.disabled = false;
  };

  for (const form of forms) {
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      save(form);
    });
  }
})();
