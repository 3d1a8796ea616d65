// SPDX-License-Identifier: BSD-2-Clause
// The document, its numbers as text, and the little that builds a page out of text nodes. Nothing from the
// document is ever taken for HTML.
"use strict";

const doc = JSON.parse(document.getElementById("document").textContent);
const pictures = doc.pictures;
const axis = {
	from: BigInt(pictures.axis.from_ns || "0"),
	step: pictures.axis.step_ns,
	n: pictures.axis.columns,
};

const KINDS = [
	{key: "read", name: "Read", color: "--read"},
	{key: "write", name: "Write", color: "--write"},
	{key: "swap_in", name: "Swap-in", color: "--swap-in", swap: true},
	{key: "swap_out", name: "Swap-out", color: "--swap-out", swap: true},
	{key: "discard", name: "Discard, zeroes", color: "--discard"},
	{key: "other", name: "Flush and other", color: "--other"},
];

// What a reader has chosen; panels look at it when they draw.
const state = {
	device: -1, // index in pictures.devices; -1: all
	hidden: new Set(), // keys of kinds
	column: -1, // under the cursor, in all panels with a time axis
};

// ---- elements

function el(tag, attributes, ...children) {
	const e = document.createElement(tag);

	for (const [name, value] of Object.entries(attributes || {})) {
		if (name === "class")
			e.className = value;
		else if (name.startsWith("on"))
			e.addEventListener(name.slice(2), value);
		else if (value !== null && value !== undefined && value !== false)
			e.setAttribute(name, value === true ? "" : value);
	}
	e.append(...children.filter((c) => c !== null && c !== undefined));
	return e;
}

function svg(tag, attributes, ...children) {
	const e = document.createElementNS("http://www.w3.org/2000/svg", tag);

	for (const [name, value] of Object.entries(attributes || {}))
		e.setAttribute(name, value);
	e.append(...children);
	return e;
}

function css(name) {
	return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// rows: lists of texts; {t, n: right aligned} and elements as cells. The first cell is the row's head.
function table(caption, head, rows, attributes) {
	const cell = (tag, c, extra) => {
		if (c instanceof Node)
			return el(tag, extra, c);
		if (c && typeof c === "object")
			return el(tag, {...extra, class: c.n ? "n" : c.class || ""}, c.node || c.t);
		return el(tag, extra, c === null || c === undefined ? "" : String(c));
	};

	return el("div", {class: "wide", tabindex: "0", role: "region", "aria-label": caption},
		el("table", attributes,
			el("caption", null, caption),
			el("thead", null, el("tr", null, ...head.map((h) => cell("th", h, {scope: "col"})))),
			el("tbody", null, ...rows.map((r) => {
				const cells = r.cells || r;

				return el("tr", {class: r.class || ""}, ...cells.map((c, i) =>
					i ? cell("td", c) : cell("th", c, {scope: "row"})));
			}))));
}

const num = (t) => ({t, n: true});

// ---- numbers as text

function count(n) {
	return n === null || n === undefined ? "not known" : String(n).replace(/\B(?=(\d{3})+$)/g, ",");
}

function scaled(v, units, base) {
	let i = 0;

	while (v >= base && i < units.length - 1) {
		v /= base;
		i++;
	}
	return (i === 0 ? String(Math.round(v)) : v >= 100 ? v.toFixed(0) : v.toFixed(1)).replace(/\.0$/, "") +
		"\u00a0" + units[i];
}

const bytes = (v) => v === null ? "not known" : scaled(v, ["B", "KiB", "MiB", "GiB", "TiB", "PiB"], 1024);
const rate = (v) => bytes(v) + "/s";

function duration(ns) {
	if (ns === null || ns === undefined)
		return "\u2013";
	if (ns < 60e9)
		return scaled(ns, ["ns", "\u00b5s", "ms", "s"], 1000);
	if (ns < 3600e9)
		return Math.floor(ns / 60e9) + "\u00a0min " + Math.round(ns % 60e9 / 1e9) + "\u00a0s";
	if (ns < 86400e9)
		return Math.floor(ns / 3600e9) + "\u00a0h " + Math.round(ns % 3600e9 / 60e9) + "\u00a0min";
	return Math.floor(ns / 86400e9) + "\u00a0d " + Math.round(ns % 86400e9 / 3600e9) + "\u00a0h";
}

const percent = (part, whole) => whole ? (100 * part / whole).toFixed(1) + "%" : "\u2013";
const plural = (n, one, many) => count(n) + " " + (n === 1 ? one : many || one + "s");

// Wall clock of where the page is read, with as many digits as the step can tell apart.
function wall(ns, step, with_date) {
	const d = new Date(Number(ns / 1000000n));
	const two = (v) => String(v).padStart(2, "0");
	let text = two(d.getHours()) + ":" + two(d.getMinutes());

	if (step < 60e9)
		text += ":" + two(d.getSeconds());
	if (step < 1e9) {
		const digits = step >= 1e6 ? 3 : step >= 1e3 ? 6 : 9;

		text += "." + String(ns % 1000000000n).padStart(9, "0").slice(0, digits);
	}
	if (with_date || step >= 86400e9)
		text = d.getFullYear() + "-" + two(d.getMonth() + 1) + "-" + two(d.getDate()) +
			(step >= 86400e9 && !with_date ? "" : " " + text);
	return text;
}

const column_ns = (c) => axis.from + BigInt(c) * BigInt(axis.step);
const column_text = (c) => wall(column_ns(c), axis.step, axis.step * axis.n >= 86400e9);

// ---- series of a document

// "row:n row:n;..." as a list of [row, n] a column.
function grid(text) {
	return text.split(";").map((column) => column === "" ? [] : column.split(" ").map((cell) => {
		const colon = cell.indexOf(":");

		return [Number(cell.slice(0, colon)), Number(cell.slice(colon + 1))];
	}));
}

// Grids are large: each is read once, when it is first drawn.
const grids = new Map();

function parsed(text) {
	if (!grids.has(text))
		grids.set(text, grid(text));
	return grids.get(text);
}

const visible = () => KINDS.filter((k) => !state.hidden.has(k.key));
const chosen = () => pictures.devices.filter((d, i) => state.device < 0 || state.device === i);
const several_hosts = doc.hosts > 1;
const device_name = (d) => (several_hosts && d.host ? d.host + "/" : "") + (d.disk || d.dev || "(others)");

function sum(list) {
	return list ? list.reduce((a, b) => a + b, 0) : 0;
}

// Of all kinds that are shown and devices that are chosen: series[kind][column] added up.
function total(devices, member, kinds) {
	const out = new Array(axis.n).fill(0);

	for (const d of devices)
		for (const k of kinds)
			if (d[member][k.key])
				d[member][k.key].forEach((v, c) => { out[c] += v; });
	return out;
}

// ---- scales

// 1, 2, 5, 10, ... (or powers of two) up from what gives at most n steps.
function nice(max, n, base) {
	if (base === 1024) {
		let step = 1;

		while (max / step > n)
			step *= 2;
		return step;
	}
	const power = Math.pow(10, Math.floor(Math.log10(max / n)));

	return power * [1, 2, 5, 10].find((m) => max / (m * power) <= n);
}

const TIMES = [1, 2, 5, 10, 20, 50, 100, 200, 500].flatMap((v) => [v * 1e-9, v * 1e-6, v * 1e-3])
	.concat([1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200,
		86400, 172800, 604800, 2592000, 7776000, 31536000, 315360000])
	.sort((a, b) => a - b);

// Where the time axis has ticks: [{column (a fraction), text}].
function time_ticks(most) {
	const span = axis.step * axis.n;
	const step = BigInt(Math.round((TIMES.find((t) => span / (t * 1e9) <= most) || 315360000) * 1e9));
	const zone = BigInt(new Date(Number(axis.from / 1000000n)).getTimezoneOffset()) * 60000000000n;
	const ticks = [];

	for (let t = (axis.from - zone + step - 1n) / step * step + zone; t < column_ns(axis.n); t += step)
		ticks.push({column: Number(t - axis.from) / axis.step, text: wall(t, Number(step))});
	return ticks;
}
