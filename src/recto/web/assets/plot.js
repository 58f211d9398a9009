// Bars, lines and graphs on a canvas, in the colours of the page. Texts are data: nothing here becomes HTML.
import { echarts } from "nicegui-echart";

const dark = window.matchMedia("(prefers-color-scheme: dark)");
const still = window.matchMedia("(prefers-reduced-motion: reduce)");
const GROUPS = ["--s-system", "--s-tools", "--s-history", "--s-references", "--s-rules", "--s-memory", "--s-summary", "--s-recalled", "--s-sources", "--s-documents"];

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const colour = (name) => css(name === "tools" ? "--s-tools" : `--${name}`);
const short = (value) => (Math.abs(value) >= 1e6 ? `${+(value / 1e6).toFixed(1)}M` : Math.abs(value) >= 1e4 ? `${Math.round(value / 1e3)}k` : `${+(+value).toFixed(4)}`);

export default {
  template: `<div class="plot" role="img"></div>`,
  props: { plot: Object, graph: Object },
  mounted() {
    this.chart = echarts.init(this.$el, null, { renderer: "canvas" });
    this.chart.on("click", (event) => {
      const id = event.dataType === "node" ? event.data.id : event.dataType === "edge" ? null : event.name;
      if (typeof id === "string") this.$emit("do", { do: "note", link: id });
    });
    this.sizes = new ResizeObserver(() => this.chart.resize());
    this.sizes.observe(this.$el);
    this.redraw = () => this.draw();
    dark.addEventListener("change", this.redraw);
    this.draw();
  },
  beforeUnmount() {
    dark.removeEventListener("change", this.redraw);
    this.sizes.disconnect();
    this.chart.dispose();
  },
  updated() {
    this.draw();
  },
  methods: {
    draw() {
      const shown = this.graph || this.plot;
      this.$el.setAttribute("aria-label", shown ? shown.label : "");
      this.$el.hidden = !shown;
      if (!shown) return;
      this.chart.resize();
      this.chart.setOption(this.graph ? this.graphOptions(this.graph) : this.plotOptions(this.plot), true);
    },
    common() {
      return {
        animation: !still.matches,
        animationDuration: 300,
        textStyle: { color: css("--ink"), fontFamily: css("--sans"), fontSize: 12 },
        tooltip: { renderMode: "richText", confine: true, backgroundColor: css("--raised"), borderColor: css("--line"), textStyle: { color: css("--ink"), fontSize: 12 } },
      };
    },
    axis(name) {
      return {
        type: "value",
        name,
        nameTextStyle: { color: css("--soft"), align: "left" },
        axisLabel: { color: css("--soft"), formatter: short },
        splitLine: { lineStyle: { color: css("--line") } },
      };
    },
    plotOptions(plot) {
      const common = this.common();
      return {
        ...common,
        tooltip: { ...common.tooltip, trigger: "axis" },
        legend: { top: 0, textStyle: { color: css("--ink") }, type: "scroll", inactiveColor: css("--soft") },
        grid: { top: 56, left: 8, right: 12, bottom: plot.across ? 28 : 8, containLabel: true },
        xAxis: {
          type: "category",
          data: plot.names,
          name: plot.across,
          nameLocation: "middle",
          nameGap: 28,
          nameTextStyle: { color: css("--soft") },
          axisLabel: { color: css("--soft"), hideOverlap: true, width: 90, overflow: "truncate" },
          axisLine: { lineStyle: { color: css("--line") } },
        },
        yAxis: this.axis(plot.up),
        series: plot.series.map((each) => this.series(each)),
      };
    },
    series(each) {
      const paint = colour(each.colour);
      if (each.kind === "marks") {
        return { name: each.name, type: "scatter", symbol: "triangle", symbolSize: 11, symbolOffset: [0, "-60%"], data: each.data, itemStyle: { color: paint }, z: 5 };
      }
      return {
        name: each.name,
        type: each.kind,
        data: each.data,
        stack: each.stack || undefined,
        itemStyle: { color: paint },
        lineStyle: { color: paint, width: 2 },
        barMaxWidth: 26,
        showSymbol: each.data.length < 40,
        symbolSize: 5,
        large: each.data.length > 2000,
      };
    },
    graphOptions(graph) {
      const searched = graph.nodes.some((node) => node.is_found);
      const many = graph.nodes.length > 300;
      return {
        ...this.common(),
        legend: { top: 0, type: "scroll", textStyle: { color: css("--ink") }, data: graph.groups.map((name) => ({ name })) },
        series: [
          {
            type: "graph",
            layout: "force",
            roam: true,
            top: 40,
            draggable: true,
            categories: graph.groups.map((name, place) => ({ name, itemStyle: { color: css(GROUPS[place % GROUPS.length]) } })),
            force: { repulsion: many ? 40 : 140, edgeLength: many ? 30 : 70, gravity: 0.12, layoutAnimation: !still.matches && !many },
            label: { show: !many, position: "right", color: css("--ink"), formatter: (node) => node.data.name, width: 120, overflow: "truncate" },
            labelLayout: { hideOverlap: true },
            emphasis: { focus: "adjacency", label: { show: true } },
            lineStyle: { color: css("--soft"), opacity: 0.45, curveness: 0.06 },
            data: graph.nodes.map((node) => ({
              id: node.id,
              name: node.name,
              value: node.size,
              category: node.group,
              symbolSize: 8 + 5 * Math.sqrt(Math.min(node.size, 60)),
              itemStyle: { opacity: searched && !node.is_found ? 0.15 : 1, borderColor: node.is_gone ? css("--bad") : node.is_found ? css("--ink") : "transparent", borderWidth: node.is_gone || node.is_found ? 2 : 0, borderType: node.is_gone ? "dashed" : "solid" },
              label: node.is_found ? { show: true, fontWeight: "bold" } : searched ? { show: false } : {},
            })),
            links: graph.lines.map(([one, other, count]) => ({ source: one, target: other, value: count, lineStyle: { width: Math.min(1 + Math.log2(count), 6) } })),
          },
        ],
      };
    },
  },
};
