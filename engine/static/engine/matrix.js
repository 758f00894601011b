"use strict";
/* The matrix of cohorts: arrow keys between cells, a count of what was changed, and one field
   for all changed cells instead of one for each tick. Without this script small pages work too. */
(() => {
  const form = document.getElementById("matrix");
  if (!form) return;
  const boxes = [...form.querySelectorAll("tbody input[type=checkbox]")];
  const told = form.querySelector("[data-changed]");
  const changed = () => boxes.filter((box) => box.checked !== box.defaultChecked);
  const tell = () => {
    const n = changed().length;
    if (told) told.textContent = n ? `${n} cell${n === 1 ? "" : "s"} changed, not saved` : "";
  };
  const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
  form.addEventListener("keydown", (event) => {
    const step = steps[event.key];
    const cell = event.target.closest("td");
    if (!step || !cell) return;
    const row = cell.parentElement.parentElement.rows[cell.parentElement.sectionRowIndex + step[0]];
    const next = row && row.cells[cell.cellIndex + step[1]];
    const box = next && next.querySelector("input");
    if (box) { event.preventDefault(); box.focus(); }
  });
  form.addEventListener("change", tell);
  form.addEventListener("reset", () => setTimeout(tell));
  form.addEventListener("submit", () => {
    form.elements.toggled.value = changed().map((box) => box.value).join(" ");
    for (const box of boxes) box.removeAttribute("name");
  });
  addEventListener("pageshow", tell);
})();
