// SPDX-License-Identifier: BSD-2-Clause
// Packets: what was observed and dropped over time, and the way of single packets.
"use strict";

const packets = pictures.packets;

function drops_panel() {
	const COLORS = ["--write", "--read", "--swap-in", "--swap-out", "--other", "--device", "--unknown", "--discard"];
	const ROW = 34, rows = [{name: "observations", list: packets.over_time, n: packets.observations, color: "--faint"},
		...packets.reasons.map((r, i) => ({name: r.name, list: r.over_time, n: r.n, color: COLORS[i % COLORS.length]}))];
	const max_of = (r) => Math.max(1, ...r.list);

	return new Panel({
		title: "Packets and drops",
		note: "Observations of packets, and below them drops by reason, in each column. Each row has its own scale.",
		height: () => rows.length * ROW + 10,
		label: () => rows.map((r) => r.name + ": " + count(r.n)).join(", ") + ".",
		draw(ctx, p) {
			rows.forEach((r, i) => {
				const y = i * ROW + 4, max = max_of(r), h = ROW - 8;

				grid_line(ctx, p, y + h);
				left_text(ctx, p, y + h / 2, r.name, i ? "--ink" : "--soft");
				ctx.fillStyle = css(r.color);
				for (let c = 0; c < axis.n; c++) {
					const [x, w] = p.cell(c), v = h * r.list[c] / max;

					if (r.list[c])
						ctx.fillRect(x, y + h - Math.max(1, v), w, Math.max(1, v));
				}
			});
			strip(ctx, p, "packet");
		},
		rows: () => rows.length,
		downwards: true,
		row_at: (y) => Math.min(rows.length - 1, Math.max(0, Math.floor(y / ROW))),
		read: (c) => [rows.filter((r, i) => !i || r.list[c]).map((r) => count(r.list[c]) + " " + r.name).join(", ") +
			state_note("packet", c)],
		table: () => table("Packets over time", ["From", ...rows.map((r) => num(r.name))],
			Array.from({length: axis.n}, (_, c) => c).filter((c) => rows.some((r) => r.list[c]))
				.map((c) => [column_text(c), ...rows.map((r) => num(count(r.list[c])))])),
	});
}

function drops_table() {
	const d = packets.drops, max = Math.max(1, ...d.rows.map((r) => r.n + r.lost));
	const rest = [["not_selected", "outside the selection, counted and not recorded"],
		["suppressed", "of these came too often to be recorded"], ["unattributed", "lost without an owner"],
		["missed", "runs missed by the probe"]]
		.filter(([k]) => d[k] !== 0).map(([k, what]) => (d[k] === null ? "it is not known how many" : count(d[k])) +
			" " + what);

	return el("section", {class: "panel"},
		el("div", {class: "head"}, el("h2", null, "Drops by reason and place")),
		d.rows.length ? table(d.n_rows > d.rows.length ? "The " + d.rows.length + " most of " + count(d.n_rows) : "All drops",
			["Reason", "Where", "Interface", num("Drops"), num("Lost"), num("Bytes"), ""],
			d.rows.map((r) => [r.reason, r.location || "\u2013", r.iface || "\u2013", num(count(r.n)), num(count(r.lost)),
				num(bytes(r.bytes)), el("span", {class: "share", style: "width:8rem;display:block"},
					el("i", {style: "background:" + css("--write") + ";width:" + 100 * (r.n + r.lost) / max + "%"}))])) :
			el("p", null, d.unsealed ? "No drops recorded." : "No drops."),
		rest.length ? el("p", {class: "note"}, "Beside these: " + rest.join("; ") + ".") : null,
		d.unsealed ? el("p", {class: "note"}, "All figures are lower bounds: segments without a footer: " +
			count(d.unsealed) + ".") : null);
}

// ---- the way of a packet

const flow = (h) => [h.proto, (h.src || "?") + (h.sport ? ":" + h.sport : ""), "\u2192",
	(h.dst || "?") + (h.dport ? ":" + h.dport : "")].join(" ");
const iface = (h) => h.iface || (h.ifindex ? "if" + h.ifindex : "\u2013");
// Where an observation was: the same name in another namespace is another place.
const place = (h) => iface(h) + (h.netns ? " in netns " + h.netns : "");

// Observations in their order; a number without a record is a row of its own.
function way_rows(packet) {
	const rows = [];
	let expected = 1;

	for (const h of packet.hops) {
		if (h.hop) {
			if (expected === 1 && packet.truncated_start)
				expected = h.hop;
			for (; expected < h.hop && rows.length < 200; expected++)
				rows.push({missing: expected});
			expected = Math.max(expected, h.hop + 1);
		}
		rows.push({h});
	}
	return rows;
}

function way_lanes(rows, lanes) {
	const X = 22, ROW = 30, HEAD = 26, color = [css("--read"), css("--swap-in"), css("--write"), css("--swap-out"), css("--other")];
	const below = svg("g"), lines = svg("g"), g = svg("g");
	const x = (i) => 12 + i * X, y = (r) => HEAD + r * ROW + ROW / 2;
	let last = null, gap = false;

	lanes.forEach((_, i) => below.append(svg("line", {x1: x(i), x2: x(i), y1: HEAD, y2: HEAD + rows.length * ROW,
		stroke: css("--grid"), "stroke-width": 8, "stroke-linecap": "round"})));
	rows.forEach((r, at) => {
		if (r.missing) {
			const i = last ? last.lane : 0;

			g.append(svg("circle", {cx: x(i), cy: y(at), r: 5, fill: css("--panel"), stroke: css("--warn"),
				"stroke-width": 1.5, "stroke-dasharray": "2 2"}));
			gap = true;
			return;
		}
		const lane = lanes.indexOf(place(r.h));

		if (last)
			lines.append(svg("path", {
				d: "M" + x(last.lane) + " " + y(last.at) + " C" + x(last.lane) + " " + (y(last.at) + 16) + " " +
					x(lane) + " " + (y(at) - 16) + " " + x(lane) + " " + y(at),
				fill: "none", stroke: gap ? css("--warn") : css("--soft"), "stroke-width": 2,
				"stroke-dasharray": gap ? "3 3" : "none"}));
		const end = r.h.flags.includes("end"), drop = r.h.probe === "kfree_skb";

		g.append(end ? svg("rect", {x: x(lane) - 6, y: y(at) - 6, width: 12, height: 12, rx: drop ? 0 : 3,
			fill: drop ? css("--bad") : css("--ink")}) :
			svg("circle", {cx: x(lane), cy: y(at), r: 5.5, fill: color[lane % color.length]}));
		last = {lane, at};
		gap = false;
	});
	return svg("svg", {width: lanes.length * X + 8, height: HEAD + rows.length * ROW, "aria-hidden": "true"}, below, lines, g);
}

function way_view(packet) {
	const rows = way_rows(packet), lanes = [];
	const first = packet.hops.length ? BigInt(packet.hops[0].ts_ns) : 0n;
	let before = first;

	for (const r of rows)
		if (r.h && !lanes.includes(place(r.h)))
			lanes.push(place(r.h));
	const t = el("table", {"aria-label": "The way of packet " + packet.packet},
		el("thead", null, el("tr", null, ...["Probe", num("After"), num("Step"), "Interface", num("Length"), num("CPU"), "What"]
			.map((c) => el("th", {scope: "col", class: c.n ? "n" : ""}, c.t || c)))),
		el("tbody", null, ...rows.map((r) => {
			if (r.missing)
				return el("tr", {class: "missing"}, el("th", {scope: "row"}, "observation " + r.missing),
					el("td", {colspan: 6}, "there is no record of it"));
			const ns = BigInt(r.h.ts_ns), step = Number(ns - before);

			before = ns;
			return el("tr", null, el("th", {scope: "row"}, r.h.probe),
				el("td", {class: "n"}, duration(Number(ns - first))),
				el("td", {class: "n gap"}, r.h.hop === 1 ? "" : "+" + duration(Math.abs(step))),
				el("td", null, iface(r.h)), el("td", {class: "n"}, r.h.len + "\u00a0B"),
				el("td", {class: "n"}, String(r.h.cpu)),
				el("td", null, [r.h.reason, r.h.location, r.h.comm].filter(Boolean).join(" \u00b7 ")));
		})));

	return el("div", null,
		el("h3", null, "Packet " + packet.packet + ": " + packet.verdict.replace(/[_-]/g, " ") +
			(packet.parent ? ", of packet " + packet.parent : "")),
		packet.hops.length ? el("p", {class: "note"}, flow(packet.hops[0]) + ", first seen " +
			wall(BigInt(packet.hops[0].realtime_ns || "0"), 1e3, true)) : null,
		...packet.reasons.map((r) => el("p", {class: "note"}, r)),
		el("div", {class: "wide way", tabindex: "0", role: "region", "aria-label": "The way of packet " + packet.packet},
			way_lanes(rows, lanes), t),
		packet.observations > packet.hops.length ? el("p", {class: "note"}, "The first " + packet.hops.length + " of " +
			count(packet.observations) + " observations.") : null,
		el("p", {class: "note"}, "Lanes, from the left: " + (lanes.join(", ") || "none") + ". A square ends the packet."));
}

function ways_section() {
	if (!packets.ways.length)
		return null;
	const view = el("div", {"aria-live": "polite"}), buttons = [];
	const show = (i) => {
		buttons.forEach((b, k) => b.setAttribute("aria-pressed", String(k === i)));
		view.replaceChildren(way_view(packets.ways[i]));
	};
	const list = el("ul", {"aria-label": "Packets"}, ...packets.ways.map((w, i) => {
		const b = el("button", {type: "button", onclick: () => show(i)},
			w.why.replace(/^./, (c) => c.toUpperCase()) + " \u00b7 " + w.verdict.replace(/[_-]/g, " "),
			el("small", null, "packet " + w.packet + (w.hops.length ? ", " + flow(w.hops[0]) : "")));

		buttons.push(b);
		return el("li", null, b);
	}));
	const section = el("section", {class: "panel"},
		el("div", {class: "head"}, el("h2", null, "The way of a packet")),
		el("p", {class: "note"}, "Some packets that stand for the others: the first drop of a reason, packets that lost an " +
			"observation, and of " + plural(packets.sampled, "packet") + " picked by chance among " + count(packets.born) +
			" whose beginning was seen, the one with the most observations, the slowest and a usual one. " +
			"explain shows any packet."),
		el("div", {class: "ways"}, list, view));

	way_redraws.push(() => show(Math.max(0, buttons.findIndex((b) => b.getAttribute("aria-pressed") === "true"))));
	show(0);
	return section;
}

// The drawings have colours of the theme in them.
const way_redraws = [];
