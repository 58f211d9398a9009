import { listen, markNote, setHtml } from "/assets/shared.js";

export default {
  template: `<component :is="tag" ref="root"></component>`,
  props: { html: String, tag: { type: String, default: "div" } },
  data: () => ({ shown: null }),
  mounted() {
    listen(this.$el, (action) => this.$emit("do", action));
    this.draw();
  },
  updated() {
    this.draw();
  },
  watch: {
    html() {
      this.draw();
    },
  },
  methods: {
    draw() {
      if (this.html === this.shown) return;
      this.shown = this.html;
      setHtml(this.$el, this.html);
      markNote(this.$el);
      const title = this.$el.querySelector("[data-page-title]");
      if (title) document.title = `${title.textContent} · Recto`;
    },
  },
};
