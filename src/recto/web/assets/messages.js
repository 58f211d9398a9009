import { clean, listen, say, setHtml } from "/assets/shared.js";

// How near the end counts as being there, and how near the beginning older messages are asked for.
const NEAR_END = 80;
const NEAR_START = 600;

export default {
  template: `<div class="messages" tabindex="0" role="log" aria-label="Messages" aria-live="off">
    <div class="messages-inner"><div class="older quiet" hidden>Loading earlier messages…</div>
    <div class="items"></div><div class="turn" hidden></div></div></div>`,
  props: { items: Array, more: Boolean },
  mounted() {
    this.list = this.$el.querySelector(".items");
    this.turn = this.$el.querySelector(".turn");
    this.older = this.$el.querySelector(".older");
    this.isAsking = false;
    this.sticks = true;
    listen(this.$el, (action) => this.$emit("do", action));
    this.$el.addEventListener("scroll", () => this.onScroll(), { passive: true });
    // pictures and fonts change heights after the fact
    new ResizeObserver(() => this.stick()).observe(this.$el.querySelector(".messages-inner"));
    // what is below keeps to the same margins
    this.$el.parentElement.style.setProperty("--gutter", `${(this.$el.offsetWidth - this.$el.clientWidth) / 2}px`);
    this.show(this.items, this.more);
  },
  methods: {
    show(items, more) {
      this.list.replaceChildren(...items.map((item) => this.made(item)));
      this.setMore(more);
      this.sticks = true;
      this.$el.scrollTop = 0;
      this.stick();
    },
    made(item) {
      const holder = document.createElement("div");
      holder.className = "item";
      holder.dataset.item = item.id;
      holder.innerHTML = clean(item.html);
      return holder;
    },
    patch(order, changed, more) {
      const html = new Map(changed.map((item) => [item.id, item]));
      const known = new Map([...this.list.children].map((each) => [each.dataset.item, each]));
      const first = this.list.firstElementChild;
      const before = first ? first.getBoundingClientRect().top : 0;
      const wanted = new Set(order);
      for (const [id, each] of known) if (!wanted.has(id)) each.remove();
      let place = this.list.firstElementChild;
      for (const id of order) {
        let each = known.get(id);
        if (!each) {
          each = this.made(html.get(id));
          this.list.insertBefore(each, place);
          continue;
        }
        if (html.has(id)) setHtml(each, html.get(id).html);
        if (each === place) place = place.nextElementSibling;
        else this.list.insertBefore(each, place);
      }
      // what the reader looks at stays where it is when earlier messages come in above it
      if (first?.isConnected && !this.sticks) this.$el.scrollTop += first.getBoundingClientRect().top - before;
      this.setMore(more);
      this.stick();
    },
    setMore(more) {
      this.hasMore = more;
      this.isAsking = false;
      this.older.hidden = !more;
    },
    setTurn(parts, failure) {
      this.turn.replaceChildren();
      this.turn.hidden = parts === null && !failure;
      this.turn.classList.toggle("running", parts !== null);
      if (parts !== null) this.draw(parts);
      if (failure) {
        const told = document.createElement("p");
        told.className = "failure";
        told.setAttribute("role", "alert");
        told.textContent = failure;
        this.turn.append(told);
      }
      this.stick();
    },
    draw(changes) {
      for (const { part, kind, first, blocks } of changes) {
        let holder = this.turn.children[part];
        if (!blocks.length && kind === "status") {
          while (this.turn.children.length > part) this.turn.lastElementChild.remove();
          continue;
        }
        if (!holder || holder.dataset.kind !== kind) {
          const made = document.createElement("div");
          made.dataset.kind = kind;
          made.className = `part ${kind}` + (kind === "text" ? " prose" : "");
          holder ? holder.replaceWith(made) : this.turn.append(made);
          holder = made;
        }
        while (holder.children.length > first) holder.lastElementChild.remove();
        for (const html of blocks) {
          const block = document.createElement("div");
          block.className = "block";
          block.innerHTML = clean(html);
          holder.append(block);
        }
        if (kind === "question") say("Recto asks a question");
      }
      this.turn.hidden = false;
      this.stick();
    },
    jump(id) {
      const found = this.list.querySelector(`[data-item="${CSS.escape(id)}"]`);
      if (!found) return;
      this.sticks = false;
      found.scrollIntoView({ block: "center" });
      found.classList.add("found");
      setTimeout(() => found.classList.remove("found"), 2000);
    },
    stick() {
      // a first start is read from its beginning
      const isEmpty = this.list.firstElementChild?.dataset.item === "empty";
      if (this.sticks && !isEmpty) this.$el.scrollTop = this.$el.scrollHeight;
    },
    onScroll() {
      const { scrollTop, scrollHeight, clientHeight } = this.$el;
      this.sticks = scrollHeight - scrollTop - clientHeight < NEAR_END;
      if (scrollTop < NEAR_START && this.hasMore && !this.isAsking) {
        this.isAsking = true;
        this.$emit("do", { do: "older" });
      }
    },
  },
};
