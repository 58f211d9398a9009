// What belongs to the whole page: its address, keys, and what covers it on narrow screens.
const $ = (selector) => document.querySelector(selector);
const press = (selector) => $(selector)?.click();
const page = () => $(".page");

window.rectoPage = {
  setAddress(address) {
    if (location.pathname !== address) history.pushState(null, "", address);
    page()?.classList.remove("shows-list");
  },
};
addEventListener("popstate", () => location.reload());

const KEYS = {
  KeyN: () => press('.list [data-do="new"].button'),
  KeyS: () => $('[data-focus="search"]')?.focus(),
  KeyW: () => press(".meter-button"),
  KeyD: () => press('[data-do="documents"]'),
  KeyR: () => [...document.querySelectorAll('.item [data-do="context"]')].at(-1)?.click(),
  KeyE: () => [...document.querySelectorAll('.item [data-do="edit"]')].at(-1)?.click(),
  ArrowUp: () => step(-1),
  ArrowDown: () => step(1),
};

function step(by) {
  const all = [...document.querySelectorAll('.conversations a[data-do="open"]')];
  const at = all.findIndex((each) => each.getAttribute("aria-current"));
  all[at < 0 ? 0 : at + by]?.click();
}

addEventListener("keydown", (event) => {
  const isTyping = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
  if (event.altKey && !event.ctrlKey && !event.metaKey && KEYS[event.code]) {
    event.preventDefault();
    KEYS[event.code]();
  } else if (event.ctrlKey && event.key === ".") {
    press(".composer [data-stop]");
  } else if (event.key === "?" && !isTyping) {
    $("#keys")?.showModal();
  } else if (event.key === "Escape" && !$("#keys")?.open) {
    const close = $('.panel:not(.closed) [data-do="close-panel"]');
    close ? close.click() : $(".composer textarea")?.focus();
    page()?.classList.remove("shows-list");
  }
});

addEventListener("click", (event) => {
  const wanted = event.target.closest("[data-page]")?.dataset.page;
  if (wanted === "keys") $("#keys")?.showModal();
  if (wanted === "close-keys") $("#keys")?.close();
  if (wanted === "list") page().classList.toggle("shows-list");
  else if (!event.target.closest(".list")) page()?.classList.remove("shows-list");
  // one menu at a time
  for (const menu of document.querySelectorAll("details.menu[open]")) if (!menu.contains(event.target)) menu.open = false;
});
