// SPDX-License-Identifier: BSD-2-Clause
// Panels with the common time axis. Each has a picture, a line that says what is under the cursor (pointer or
// arrow keys), and behind it the same numbers as a table. The cursor's time is the same in all of them.
"use strict";

const panels = [];
const AXIS_HEIGHT = 24;

const gutter = () => window.innerWidth < 704 ? 62 : 112;

class Panel {
	// what: {title, note, legend(): nodes, height(): px of the plot, draw(ctx, plot), read(column, row): nodes,
	// rows(): how many there are to go up and down in, table(): element, label(): sentence}
	constructor(what) {
		this.what = what;
		this.row = 0;
		this.legend = el("div", {class: "legend", "aria-hidden": "true"});
		this.canvas = el("canvas", {tabindex: "0", role: "img"});
		this.output = el("output", {"aria-live": "polite"});
		this.details = el("details", {ontoggle: () => this.fill()}, el("summary", null, "As a table"));
		this.root = el("figure", {class: "panel"},
			el("div", {class: "head"}, el("h2", null, what.title), this.legend),
			what.note ? el("p", {class: "note"}, what.note) : null,
			this.canvas, this.output, this.details);
		this.base = document.createElement("canvas");
		this.canvas.addEventListener("pointermove", (e) => this.point(e));
		this.canvas.addEventListener("pointerdown", (e) => this.point(e));
		this.canvas.addEventListener("pointerleave", () => move_cursor(-1, null));
		this.canvas.addEventListener("keydown", (e) => this.key(e));
		panels.push(this);
	}

	plot() {
		const width = this.canvas.clientWidth || 800, x0 = gutter(), w = width - x0 - 2;

		return {
			width, x0, w, height: this.what.height(),
			x: (column) => x0 + w * column / axis.n,
			// Whole pixels, so that neighbours neither overlap nor leave a gap.
			cell(column) {
				const from = Math.floor(this.x(column));

				return [from, Math.max(1, Math.floor(this.x(column + 1)) - from)];
			},
		};
	}

	draw() {
		const p = this.plot(), ratio = window.devicePixelRatio || 1, height = p.height + AXIS_HEIGHT;

		for (const c of [this.canvas, this.base]) {
			c.width = Math.round(p.width * ratio);
			c.height = Math.round(height * ratio);
		}
		this.canvas.style.height = height + "px";
		const ctx = this.base.getContext("2d");

		ctx.scale(ratio, ratio);
		ctx.font = "11px " + getComputedStyle(document.body).fontFamily;
		ctx.textBaseline = "middle";
		this.axis(ctx, p);
		this.what.draw(ctx, p);
		this.legend.replaceChildren(...(this.what.legend ? this.what.legend() : []));
		this.canvas.setAttribute("aria-label", this.what.title + ". " + this.what.label() +
			" Arrow keys read out values.");
		this.refresh();
		if (this.details.open)
			this.fill();
	}

	axis(ctx, p) {
		ctx.strokeStyle = css("--grid");
		ctx.fillStyle = css("--soft");
		ctx.textAlign = "center";
		for (const t of time_ticks(Math.max(2, Math.floor(p.w / 110)))) {
			const x = Math.round(p.x(t.column)) + 0.5;

			ctx.beginPath();
			ctx.moveTo(x, 0);
			ctx.lineTo(x, p.height + 4);
			ctx.stroke();
			if (x > p.x0 + 24 && x < p.width - 24)
				ctx.fillText(t.text, x, p.height + 14);
		}
		ctx.strokeStyle = css("--line");
		ctx.beginPath();
		ctx.moveTo(p.x0, p.height + 0.5);
		ctx.lineTo(p.x0 + p.w, p.height + 0.5);
		ctx.stroke();
	}

	// The picture, and the cursor over it.
	refresh() {
		const ctx = this.canvas.getContext("2d"), ratio = window.devicePixelRatio || 1;

		ctx.setTransform(1, 0, 0, 1, 0, 0);
		ctx.clearRect(0, 0, this.canvas.width, this.canvas.height);
		ctx.drawImage(this.base, 0, 0);
		if (state.column < 0 || state.column >= axis.n) {
			this.output.replaceChildren(this.what.idle ? this.what.idle() : "");
			return;
		}
		ctx.scale(ratio, ratio);
		const p = this.plot(), [x, w] = p.cell(state.column);

		ctx.strokeStyle = css("--ink");
		ctx.globalAlpha = 0.65;
		ctx.strokeRect(x - 0.5, 0.5, w + 1, p.height - 1);
		ctx.globalAlpha = 1;
		this.output.replaceChildren(el("b", null, column_text(state.column)), "  ",
			...this.what.read(state.column, this.row));
	}

	point(e) {
		const p = this.plot(), box = this.canvas.getBoundingClientRect();
		const column = Math.floor((e.clientX - box.left - p.x0) / p.w * axis.n);

		if (this.what.row_at)
			this.row = this.what.row_at(e.clientY - box.top, p);
		if (column < 0 || column >= axis.n)
			move_cursor(-1, null);
		else
			move_cursor(column, this);
	}

	key(e) {
		const step = e.shiftKey ? 10 : 1, rows = this.what.rows ? this.what.rows() : 0;
		const to = {ArrowLeft: state.column - step, ArrowRight: state.column + step, Home: 0,
			End: axis.n - 1, Escape: -1}[e.key];

		if (to !== undefined)
			move_cursor(e.key === "Escape" ? -1 : Math.min(axis.n - 1, Math.max(0, to)), this);
		else if (rows && (e.key === "ArrowUp" || e.key === "ArrowDown"))
			this.row = Math.min(rows - 1, Math.max(0, this.row + (e.key === "ArrowUp" ? step : -step) *
				(this.what.downwards ? -1 : 1)));
		else
			return;
		e.preventDefault();
		if (to === undefined)
			this.refresh();
	}

	fill() {
		if (this.details.open)
			this.details.replaceChildren(this.details.firstChild, this.what.table());
	}
}

let frame = 0;

function move_cursor(column, panel) {
	if (column === state.column && !panel)
		return;
	state.column = column;
	cancelAnimationFrame(frame);
	frame = requestAnimationFrame(() => panels.forEach((p) => p.refresh()));
}

function draw_all() {
	for (const p of panels)
		p.draw();
}

// ---- what panels share

function key(color, text) {
	return el("span", null, el("i", {class: "key", style: "background:" + color}), text);
}

function left_text(ctx, p, y, text, color) {
	ctx.textAlign = "right";
	ctx.fillStyle = css(color || "--soft");
	let t = text;

	while (t.length > 2 && ctx.measureText(t).width > p.x0 - 8)
		t = t.slice(0, -2) + "\u2026";
	ctx.fillText(t, p.x0 - 7, y);
}

function grid_line(ctx, p, y) {
	ctx.strokeStyle = css("--grid");
	ctx.beginPath();
	ctx.moveTo(p.x0, Math.round(y) + 0.5);
	ctx.lineTo(p.x0 + p.w, Math.round(y) + 0.5);
	ctx.stroke();
}

const LETTERS = {
	"c": {name: "complete", color: "--good"},
	"l": {name: "lost, each with its owner", color: "--warn"},
	"p": {name: "recorded in part", color: "--faint"},
	"u": {name: "unknown", color: "--unknown"},
	"-": {name: "nothing was recorded", color: "--grid"},
};

// Beside its colour each state has a pattern.
function fill_state(ctx, letter, x, y, w, h) {
	ctx.save();
	ctx.beginPath();
	ctx.rect(x, y, w, h);
	ctx.clip();
	ctx.fillStyle = ctx.strokeStyle = css(LETTERS[letter].color);
	ctx.globalAlpha = letter === "c" ? 0.75 : letter === "l" ? 0.9 : letter === "-" ? 1 : 0.25;
	ctx.fillRect(x, y, w, h);
	if (letter === "u" || letter === "p") {
		ctx.globalAlpha = 0.85;
		ctx.lineWidth = letter === "u" ? 2 : 1;
		for (let i = Math.floor((x - h) / 6) * 6; i < x + w; i += 6) {
			ctx.beginPath();
			ctx.moveTo(i, y + h);
			ctx.lineTo(i + h, y);
			ctx.stroke();
		}
	}
	ctx.restore();
}

const STATE_ORDER = "clpu-";

// The worst of all lanes of a stream in a column: what every picture of it has to show.
function worst(stream, column) {
	let at = -1;

	for (const lane of pictures.record.lanes)
		if (lane.stream === stream)
			at = Math.max(at, STATE_ORDER.indexOf(lane.state[column]));
	return at < 0 ? "-" : STATE_ORDER[at];
}

// Absence is visible in every picture: a strip above the axis wherever the record is not complete.
function strip(ctx, p, stream) {
	for (let c = 0, to; c < axis.n; c = to) {
		const letter = worst(stream, c);

		for (to = c + 1; to < axis.n && worst(stream, to) === letter; to++)
			;
		if (letter !== "c")
			fill_state(ctx, letter, p.x(c), p.height - 5, p.x(to) - p.x(c), 5);
	}
}

function state_note(stream, column) {
	const letter = worst(stream, column);

	return letter === "c" ? "" : " \u00b7 the record here: " + LETTERS[letter].name;
}

// Five colours, between them even steps; t in 0..1.
function ramp() {
	const stops = [0, 1, 2, 3, 4].map((i) => css("--heat-" + i)).map((h) =>
		[1, 3, 5].map((at) => parseInt(h.slice(at, at + 2), 16)));

	return (t) => {
		const at = Math.min(3.999, Math.max(0, t * 4)), i = Math.floor(at), f = at - i;

		return "rgb(" + stops[i].map((v, k) => Math.round(v + (stops[i + 1][k] - v) * f)).join(",") + ")";
	};
}

// Count of a cell as 0..1: small counts are seen beside large ones.
const strength = (n, max) => max <= 1 ? 1 : Math.log(n) / Math.log(max);

// ---- the record

function record_panel() {
	const lanes = pictures.record.lanes, ROW = 34, losses = lanes.some((l) => sum(l.lost));
	const name = (l) => (several_hosts ? l.host + " " : "") + l.stream;

	return new Panel({
		title: "The record",
		note: "What is proved of each moment. Marks below a lane: losses with an owner (a tick) and windows " +
			"of doubt (a bar). The strip above the axis of every picture repeats what is not complete.",
		height: () => lanes.length * ROW + 4,
		legend: () => Object.entries(LETTERS).filter(([letter]) => lanes.some((l) => l.state.includes(letter)))
			.map(([, s]) => key(css(s.color), s.name)),
		label: () => lanes.map((l) => name(l) + ": " + Object.entries(LETTERS).map(([letter, s]) =>
			[l.state.split(letter).length - 1, s.name]).filter(([n]) => n).map(([n, s]) =>
			percent(n, axis.n) + " of the time " + s).join(", ")).join(". ") + ".",
		draw(ctx, p) {
			lanes.forEach((l, i) => {
				const y = i * ROW + 6;

				left_text(ctx, p, y + 8, name(l), "--ink");
				for (let c = 0, to; c < axis.n; c = to) {
					for (to = c + 1; to < axis.n && l.state[to] === l.state[c]; to++)
						;
					fill_state(ctx, l.state[c], p.x(c), y, p.x(to) - p.x(c), 16);
				}
				for (let c = 0; c < axis.n; c++) {
					const [x, w] = p.cell(c);

					ctx.fillStyle = css("--unknown");
					if (l.doubts[c])
						ctx.fillRect(x, y + 19, w, 3);
					ctx.fillStyle = css("--mark");
					if (l.lost[c])
						ctx.fillRect(x + w / 2 - 1, y + 16, 2, 10);
				}
			});
		},
		rows: () => lanes.length,
		downwards: true,
		row_at: (y) => Math.min(lanes.length - 1, Math.max(0, Math.floor(y / ROW))),
		read(c, row) {
			const l = lanes[Math.min(row, lanes.length - 1)];

			return [name(l) + ": " + LETTERS[l.state[c]].name +
				(l.lost[c] ? " \u00b7 " + count(l.lost[c]) + " lost, each with its owner" : "") +
				(l.doubts[c] ? " \u00b7 " + plural(l.doubts[c], "window") + " of doubt" : "")];
		},
		idle: () => (losses ? "" : "No loss has an owner in this time. ") +
			(pictures.record.n_windows ? plural(pictures.record.n_windows, "window") + " of doubt." :
				"No windows of doubt."),
		table() {
			const rows = [];

			for (const l of lanes)
				for (let c = 0, to; c < axis.n; c = to) {
					let lost = 0, doubts = 0;

					for (to = c; to < axis.n && l.state[to] === l.state[c]; to++) {
						lost += l.lost[to];
						doubts = Math.max(doubts, l.doubts[to]);
					}
					rows.push([name(l), column_text(c), column_text(to), LETTERS[l.state[c]].name,
						num(count(lost)), num(count(doubts))]);
				}
			return el("div", null,
				table("The record over time", ["Stream", "From", "To", "State", num("Lost"),
					num("Windows at once")], rows),
				pictures.record.n_windows ? table("Windows of doubt" +
					(pictures.record.n_windows > pictures.record.windows.length ?
						", the first " + pictures.record.windows.length + " of " +
						count(pictures.record.n_windows) : ""),
				["Stream", "From", "To", "Kind", "Probe", num("Observations")],
				pictures.record.windows.map((w) => [name(lanes[w.lane]),
					wall(BigInt(w.from_ns), 1e6), wall(BigInt(w.to_ns), 1e6), w.kind,
					w.probe || "any", num(w.n === null ? "not known" : count(w.n))])) : null);
		},
	});
}
