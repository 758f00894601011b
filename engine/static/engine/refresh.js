"use strict";
/* Parts of a page that look again by themselves: data-refresh is where, data-seconds how often.
   A part is exchanged only if it changed, and not while somebody is inside it or has marked text
   of it; a request that fails is told and tried again; a hidden tab asks nothing. */
(() => {
  for (const part of document.querySelectorAll("[data-refresh]")) {
    const pause = 1000 * Number(part.dataset.seconds || 2);
    const note = document.createElement("p");
    note.className = "sim-note";
    note.setAttribute("role", "status");
    note.hidden = true;
    part.before(note);
    let last = null;
    let failedAt = null;
    const busy = () => part.contains(document.activeElement)
      || (!getSelection().isCollapsed && part.contains(getSelection().anchorNode));
    const look = async () => {
      if (document.hidden) return;
      const answer = await fetch(part.dataset.refresh, { headers: { "X-Requested-With": "fetch" } });
      if (answer.redirected || !answer.ok) throw new Error(String(answer.status));
      const html = await answer.text();
      failedAt = null;
      note.hidden = true;
      if (html === last || busy()) return;
      if (last !== null || html.trim() !== part.innerHTML.trim()) part.innerHTML = html;
      last = html;
      const typing = document.activeElement && document.activeElement.matches("input, textarea, select");
      if (part.querySelector("[data-reload]") && !typing) location.reload();
    };
    const again = () => setTimeout(async () => {
      try {
        await look();
      } catch (error) {
        failedAt = failedAt || new Date();
        note.textContent = `No answer since ${failedAt.toTimeString().slice(0, 8)}; trying again. What is shown may be old.`;
        note.hidden = false;
      }
      again();
    }, pause);
    again();
  }
})();
