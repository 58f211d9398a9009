import { say } from "/assets/shared.js";

// After so long a pause the meter counts what was typed, and completions are looked up.
const PAUSE_MS = 100;
// The server takes no more at once.
const MOST_BYTES = 32 << 20;
const DRAFT = "recto-draft:";
// What was sent and is not known to have arrived: a lost connection must not lose it.
const SENT = "recto-sent:";
const TOKEN = /(?:^|[\s(])(\[\[[^\]\n]*|^\/[^\s]*)$/;

export default {
  template: `<div class="composer" ref="root">
    <div class="chips" v-if="editing"><span class="chip">Editing {{ editing.words }}
      <button type="button" class="mini" @click="endEdit">Cancel</button></span></div>
    <div class="chips" v-if="files.length"><span class="chip" v-for="(file, place) in files" :key="file.key" :aria-busy="file.isComing">
      {{ file.name }}<span v-if="file.isComing" class="quiet"> …</span><span v-if="file.error" class="warn"> {{ file.error }}</span>
      <button type="button" class="mini" :aria-label="'Remove ' + file.name" @click="files.splice(place, 1)">×</button></span></div>
    <ul class="offers" v-if="offers.length" role="listbox" id="offers">
      <li v-for="(each, place) in offers" :key="each.insert" :id="'offer-' + place" role="option" :aria-selected="place === chosen"
        :class="{ chosen: place === chosen }" @mousedown.prevent="take(each)"><span>{{ each.shown }}</span><span class="quiet">{{ each.about }}</span></li></ul>
    <div class="composer-row" :class="{ drops: isDropping }">
      <label class="button quiet attach" title="Attach files"><input type="file" multiple @change="attach($event.target.files); $event.target.value = ''">
        <span aria-hidden="true">+</span><span class="sr">Attach files</span></label>
      <textarea ref="text" rows="1" aria-label="Message" data-testid="composer" :placeholder="running ? 'Goes out when the reply is done' : 'Write a message'"
        role="combobox" aria-autocomplete="list" :aria-expanded="offers.length > 0" aria-controls="offers"
        :aria-activedescendant="offers.length ? 'offer-' + chosen : undefined"
        @input="typed" @keydown="key" @paste="paste" @click="look" @blur="offers = []"></textarea>
      <button type="button" class="button quiet" v-if="running" data-stop @click="$emit('do', { do: 'stop' })">Stop</button>
      <button type="button" class="button" @click="send" :disabled="!canSend">Send</button>
    </div></div>`,
  props: { start: String, busy: Boolean },
  computed: {
    canSend() {
      const isReady = !this.files.some((file) => file.isComing);
      return isReady && (!!this.text.trim() || this.files.some((file) => !file.error));
    },
  },
  data: () => ({ isDropping: false, editing: null, text: "", files: [], offers: [], chosen: 0, running: false }),
  mounted() {
    this.place = null;
    this.setPlace(this.start, this.busy);
    this.asked = 0;
    this.timer = 0;
    addEventListener("dragover", (event) => {
      event.preventDefault();
      this.isDropping = !!event.dataTransfer?.types.includes("Files");
    });
    addEventListener("dragleave", (event) => (this.isDropping &&= !!event.relatedTarget));
    addEventListener("drop", (event) => {
      event.preventDefault();
      this.isDropping = false;
      this.attach(event.dataTransfer?.files ?? []);
    });
    addEventListener("storage", (event) => {
      if (event.key === DRAFT + this.place && document.activeElement !== this.$refs.text) this.load();
    });
    this.$nextTick(() => matchMedia("(pointer: fine)").matches && this.$refs.text.focus());
  },
  methods: {
    setPlace(key, running, isSame) {
      if (running !== this.running) this.$nextTick(() => this.grow()); // the placeholder may need another height
      this.running = running;
      if (key === this.place) return;
      if (isSame) {
        localStorage.removeItem(DRAFT + this.place);
        this.place = key;
        this.changed();
        return;
      }
      this.place = key;
      this.editing = null;
      this.files = [];
      this.load();
    },
    load() {
      const found = [SENT, DRAFT].map((prefix) => localStorage.getItem(prefix + this.place)).filter(Boolean);
      localStorage.removeItem(SENT + this.place);
      this.set(found.join("\n"));
    },
    accepted(place) {
      localStorage.removeItem(SENT + place);
    },
    set(text) {
      this.show(text);
      this.changed();
    },
    show(text) {
      this.text = text;
      this.$refs.text.value = text;
      this.grow();
    },
    edit(kind, id, words, text) {
      this.editing = { kind, id, words };
      this.show(text);
      this.$refs.text.focus();
    },
    endEdit() {
      this.editing = null;
      this.load();
    },
    put(text, key) {
      if (key !== this.place) {
        const draft = localStorage.getItem(DRAFT + key);
        localStorage.setItem(DRAFT + key, draft ? `${text}\n${draft}` : text);
        return;
      }
      this.set(this.text.trim() ? `${text}\n${this.text}` : text);
      this.$refs.text.focus();
    },
    grow() {
      const field = this.$refs.text;
      field.style.height = "auto";
      field.style.height = `${Math.min(field.scrollHeight, innerHeight * 0.4)}px`;
    },
    typed() {
      this.text = this.$refs.text.value;
      this.grow();
      this.changed();
    },
    changed() {
      try {
        if (!this.editing) this.text ? localStorage.setItem(DRAFT + this.place, this.text) : localStorage.removeItem(DRAFT + this.place);
      } catch {
        say("The browser has no room for the draft");
      }
      clearTimeout(this.timer);
      this.timer = setTimeout(() => {
        this.$emit("do", { do: "draft", text: this.text });
        this.look();
      }, PAUSE_MS);
    },
    token() {
      const field = this.$refs.text;
      return field.value.slice(0, field.selectionStart).match(TOKEN)?.[1] ?? "";
    },
    look() {
      const token = this.token();
      this.asked += 1;
      if (!token) this.offers = [];
      else this.$emit("do", { do: "complete", request: this.asked, token, following: this.$refs.text.value.slice(this.$refs.text.selectionStart, this.$refs.text.selectionStart + 2) });
    },
    offer(request, found) {
      if (request !== this.asked || document.activeElement !== this.$refs.text) return;
      this.offers = found;
      this.chosen = 0;
    },
    take(each) {
      const field = this.$refs.text;
      const end = field.selectionStart;
      const start = end - this.token().length;
      field.setRangeText(each.insert, start, end, "end");
      this.offers = [];
      field.focus();
      this.typed();
    },
    key(event) {
      if (event.isComposing) return;
      if (this.offers.length) {
        if (event.key === "ArrowDown" || event.key === "ArrowUp") {
          const step = event.key === "ArrowDown" ? 1 : -1;
          this.chosen = (this.chosen + step + this.offers.length) % this.offers.length;
          event.preventDefault();
          return;
        }
        if (event.key === "Tab" || event.key === "Enter") {
          this.take(this.offers[this.chosen]);
          event.preventDefault();
          return;
        }
        if (event.key === "Escape") {
          this.offers = [];
          event.stopPropagation();
          return;
        }
      }
      if (event.key === "Enter" && !event.shiftKey) {
        event.preventDefault();
        this.send();
      }
    },
    send() {
      if (this.editing) {
        if (!this.text.trim()) return;
        this.$emit("do", { do: "save-edit", ...this.editing, text: this.text, place: this.place });
        this.endEdit();
        return;
      }
      if (!this.canSend) return;
      const files = this.files.filter((file) => !file.error);
      localStorage.setItem(SENT + this.place, this.text);
      this.$emit("do", { do: "send", text: this.text, place: this.place, files: files.map((file) => file.id) });
      this.files = [];
      this.set("");
    },
    paste(event) {
      const files = [...(event.clipboardData?.files ?? [])];
      if (files.length) {
        event.preventDefault();
        this.attach(files);
      }
    },
    async attach(files) {
      for (const file of [...files]) {
        const entry = Vue.reactive({ key: `${Date.now()}-${Math.random()}`, name: file.name || "picture", isComing: true, error: "" });
        this.files.push(entry);
        if (file.size > MOST_BYTES) {
          Object.assign(entry, { isComing: false, error: `is too large: at most ${MOST_BYTES >> 20} MB` });
          continue;
        }
        try {
          const answer = await fetch(`/attach?name=${encodeURIComponent(entry.name)}`, { method: "POST", body: file });
          if (answer.ok) Object.assign(entry, await answer.json());
          else entry.error = await answer.text();
        } catch {
          entry.error = "could not be sent: is `recto web` still running?";
        }
        entry.isComing = false;
      }
    },
  },
};
