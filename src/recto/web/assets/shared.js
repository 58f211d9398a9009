// What all parts of the page share: HTML made harmless once more, buttons that act, buttons that copy.
import DOMPurify from "dompurify";

const ALLOWED = {
  ADD_ATTR: ["target"],
  FORBID_TAGS: ["style", "svg", "math", "iframe", "object", "embed", "link", "meta", "base"],
  FORBID_ATTR: ["srcset", "formaction", "action", "ping", "background"],
};

export function clean(html) {
  return DOMPurify.sanitize(html, ALLOWED);
}

// Sets HTML and keeps what the user has opened, typed and scrolled to.
export function setHtml(root, html) {
  const open = new Set([...root.querySelectorAll("details[open][data-key]")].map((each) => each.dataset.key));
  const closed = new Set([...root.querySelectorAll("details[data-key]:not([open])")].map((each) => each.dataset.key));
  const active = root.contains(document.activeElement) ? document.activeElement : null;
  const focus = active?.dataset.focus;
  const typed = focus && "value" in active ? [active.value, active.selectionStart] : null;
  const scrolled = [...root.querySelectorAll("[data-scroll]")].map((each) => [each.dataset.scroll, each.scrollTop]);
  root.innerHTML = clean(html);
  for (const each of root.querySelectorAll("details[data-key]")) {
    if (open.has(each.dataset.key)) each.open = true;
    else if (closed.has(each.dataset.key)) each.open = false;
  }
  for (const [key, top] of scrolled) {
    const found = root.querySelector(`[data-scroll="${CSS.escape(key)}"]`);
    if (found) found.scrollTop = top;
  }
  if (focus) {
    const found = root.querySelector(`[data-focus="${CSS.escape(focus)}"]`);
    found?.focus({ preventScroll: true });
    if (found && typed) {
      found.value = typed[0];
      if (typed[1] !== null) found.setSelectionRange?.(typed[1], typed[1]);
    }
  }
}

export function listen(root, emit) {
  root.addEventListener("click", (event) => {
    const copy = event.target.closest("[data-copy]");
    if (copy && root.contains(copy)) return copyFrom(copy);
    const found = event.target.closest("[data-do]");
    if (!found || !root.contains(found) || found.tagName === "FORM" || found.tagName === "SELECT") return;
    // a link that leads somewhere can be opened in another tab
    if (found.tagName === "A" && found.getAttribute("href") !== "#" && (event.ctrlKey || event.metaKey || event.shiftKey)) return;
    event.preventDefault();
    if (!found.disabled) emit({ ...found.dataset });
  });
  root.addEventListener("submit", (event) => {
    event.preventDefault();
    if (event.target.dataset.do) emit({ ...event.target.dataset, ...Object.fromEntries(new FormData(event.target)) });
  });
  root.addEventListener("change", (event) => {
    const found = event.target.closest("select[data-do], input[data-change]");
    if (!found) return;
    const value = found.type !== "checkbox" ? found.value : found.checked ? "1" : "";
    emit({ ...found.dataset, do: found.dataset.do || found.dataset.change, value });
  });
  const timers = new WeakMap();
  root.addEventListener("input", (event) => {
    const found = event.target.closest("[data-input]");
    if (!found) return;
    clearTimeout(timers.get(found));
    timers.set(found, setTimeout(() => emit({ ...found.dataset, do: found.dataset.input, value: found.value }), 150));
  });
}

async function copyFrom(button) {
  let text = button.dataset.text;
  if (text === undefined) {
    const kind = button.dataset.copy;
    const holder = kind === "code" ? button.closest(".code")?.querySelector("pre") : button.closest("[data-id]")?.querySelector(".body");
    text = holder ? holder.innerText : "";
  }
  const words = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Not copied: the browser refuses";
  }
  setTimeout(() => (button.textContent = words), 1500);
}

export function say(words) {
  const place = document.getElementById("announcer");
  if (place) place.textContent = words;
}

// A note shows the passages that were used, and begins where the link leads.
export function markNote(root) {
  const note = root.querySelector(".note");
  if (!note) return;
  const lines = (note.dataset.marked || "").split(" ").filter(Boolean).map(Number);
  const blocks = [...note.querySelectorAll("[data-line]")];
  const holding = (line) =>
    blocks.filter((each) => +each.dataset.line <= line && line <= +(each.dataset.end ?? each.dataset.line)).at(-1);
  for (const line of lines) holding(line)?.classList.add("marked");
  const at = +note.dataset.at;
  if (at && note.dataset.shown !== note.dataset.at) {
    note.dataset.shown = note.dataset.at;
    holding(at)?.scrollIntoView({ block: "center" });
  }
}
