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
