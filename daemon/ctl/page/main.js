// SPDX-License-Identifier: BSD-2-Clause
// The page: figures, switches, panels, tables.
"use strict";

// ---- top of the page

const packet_drops = () => packets.reasons.reduce((n, r) => n + r.n, 0);

function figures() {
	const dl = document.getElementById("figures");
	const put = (name, value, more, look) => dl.append(el("div", {class: look || ""}, el("dt", null, name),
		el("dd", null, value, more ? el("small", null, more) : null)));
	const swap = (b, part) => part ? bytes(part) + " swap, " + percent(part, b.bytes) : "no swap";

	// Of a record that has packets only there is nothing to say about requests.
	if (packets && !doc.devices.length) {
		put("Packets observed", count(packets.observations), plural(packet_drops(), "drop"));
		return;
	}
	put("Requests recorded", count(doc.requests), doc.filtered ? "that pass the filters" : null);
	put("Requests lost", doc.losses_final ? count(doc.lost) : "at least " + count(doc.lost),
		doc.lost ? bytes(doc.lost_bytes) + ", each with its owner" : doc.losses_final ? "by the ledgers" :
			"not final: unsealed or damaged segments", doc.lost || !doc.losses_final ? "lost" : "");
	put("Written", bytes(doc.written.bytes), swap(doc.written, doc.written.swap_out_bytes));
	put("Read", bytes(doc.read.bytes), swap(doc.read, doc.read.swap_in_bytes));
	if (packets)
		put("Packets observed", count(packets.observations), plural(packet_drops(), "drop"));
}

function scope() {
	const notes = [];
	const first = BigInt(doc.first_ns || "0"), last = BigInt(doc.last_ns || "0");

	notes.push(wall(first, 1e9, true) + " to " + wall(last, 1e9, true) + " (" + duration(Number(last - first)) + "), " +
		Intl.DateTimeFormat().resolvedOptions().timeZone + " time; " + plural(doc.segments, "segment") + " of " +
		plural(doc.captures, "capture") + " on " + plural(doc.hosts, "host") + ", " + bytes(doc.file_bytes) + ".");
	if (doc.selections.some((s) => s && s !== "all"))
		notes.push("Recorded were: " + doc.selections.filter(Boolean).join("; ") + ".");
	if (doc.between_captures_ns)
		notes.push("Of this time " + duration(Number(doc.between_captures_ns)) +
			" lie between captures: nothing was recorded then.");
	if (doc.torn)
		notes.push(plural(doc.torn, "segment") + " not sealed: what is missing of it is not known.");
	if (!doc.swap_out_known || !doc.swap_in_known)
		notes.push("Some segments cannot tell swap: what is shown as without swap may hold some.");
	if (!doc.swap_recorded)
		notes.push("Some segments were recorded without swap, as configured.");
	if (doc.filtered)
		notes.push("Filters are on: shown is what passes them; the verdict is on the whole record.");
	if (pictures.outside)
		notes.push(plural(pictures.outside, "request") + " completed outside of the time that the segments name.");
	if (pictures.record.further_machines)
		notes.push("More machines than have a lane: the verdict above is on all of them.");
	document.getElementById("scope").append(notes.join(" "));
	const hosts = [...new Set(pictures.record.lanes.map((l) => l.host).filter(Boolean))];

	if (hosts.length) {
		document.getElementById("title").textContent = hosts.slice(0, 4).join(", ") + (hosts.length > 4 ? ", \u2026" : "");
		document.title = hosts[0] + " \u2013 iotraced report";
	}
}

function toolbar() {
	const bar = document.getElementById("bar");
	const kinds = KINDS.filter((k) => pictures.devices.some((d) => d.requests[k.key]));

	if (pictures.devices.length > 1 && doc.requests)
		bar.append(el("label", null, "Device ", el("select", {onchange(e) {
			state.device = Number(e.target.value);
			draw_all();
		}}, el("option", {value: "-1"}, "all"), ...pictures.devices.map((d, i) => el("option", {value: i}, device_name(d))))));
	if (kinds.length > 1)
		bar.append(el("div", {class: "kinds", role: "group", "aria-label": "Kinds of requests"}, ...kinds.map((k) =>
			el("button", {type: "button", "aria-pressed": "true", onclick(e) {
				const b = e.currentTarget, on = b.getAttribute("aria-pressed") !== "true";

				b.setAttribute("aria-pressed", String(on));
				if (on)
					state.hidden.delete(k.key);
				else
					state.hidden.add(k.key);
				draw_all();
			}}, el("i", {class: "key", style: "background:var(" + k.color + ")"}), k.name))));
	const theme = el("button", {type: "button", class: "end", onclick: () =>
		set_theme(document.documentElement.dataset.theme === "dark" ? "light" : "dark")});

	bar.append(theme);
	bar.hidden = false;
	return theme;
}

// ---- tables

function spark(histogram) {
	const W = 112, H = 26, bars = histogram.filter((b) => b.n), max = Math.max(1, ...bars.map((b) => b.n));
	const power = (b) => b.from ? Math.log2(b.from) : 0;

	if (!bars.length)
		return "";
	const low = Math.min(...bars.map(power)), n = Math.max(8, Math.max(...bars.map(power)) - low + 1);

	return svg("svg", {width: W, height: H, role: "img", "aria-label": "from " + duration(bars[0].from) + " to " +
		duration(bars[bars.length - 1].to)}, ...bars.map((b) => {
		const h = Math.max(1, (H - 2) * b.n / max);

		return svg("rect", {x: (power(b) - low) * W / n, y: H - h, width: W / n - 1, height: h, fill: "var(--device)"});
	}));
}

function requests_section() {
	const line = (device, what, c, seconds, part) => ({class: part ? "part" : "", cells: [
		part ? what : device + " \u00b7 " + what, num(count(c.requests)), num(doc.losses_final || c.lost ? count(c.lost) : "?"),
		num(count(c.total)), num(c.iops === null ? "\u2013" : c.iops.toFixed(1)), num(bytes(c.bytes_done)), num(count(c.errors)),
		num(duration(c.queue_ns.p50)), num(duration(c.device_ns.p50)), num(duration(c.device_ns.p99)),
		num(duration(c.device_ns.max)), spark(c.device_ns.histogram)]});
	const rows = [];

	for (const d of doc.devices)
		for (const op of d.ops) {
			const name = (several_hosts ? d.host + "/" : "") + d.disk;

			rows.push(line(name, op.op, op));
			if (op.swap.out.total || op.swap.in.total)
				for (const [key, text] of [["without", "without swap"], ["out", "swap-out"], ["in", "swap-in"]])
					if (op.swap[key].total || key === "without")
						rows.push(line(name, text, op.swap[key], null, true));
		}
	return el("section", {class: "panel"},
		el("div", {class: "head"}, el("h2", null, "Requests by device and operation")),
		rows.length ? table("Total = recorded + lost. Latencies are of what was recorded.",
			["Device, operation", ...["Recorded", "Lost", "Total", "per second", "Bytes", "Errors", "Queue p50", "Device p50",
				"Device p99", "Device max"].map(num), "Device latency"], rows) : el("p", null, "No requests."));
}

function top_section(top) {
	const title = {process: "Processes", cgroup: "Cgroups"}[top.what];
	const max = Math.max(1, ...top.rows.map((r) => r.bytes_done));
	const bar = (r) => el("span", {class: "share", style: "width:9rem;display:block"},
		el("i", {style: "background:var(--read);width:" + 100 * r.read_bytes / max + "%"}),
		el("i", {style: "background:var(--write);width:" + 100 * r.write_bytes / max + "%"}));

	return el("section", {class: "panel"},
		el("div", {class: "head"}, el("h2", null, title)),
		top.rows.length ? table((top.groups > top.rows.length ? "The " + top.rows.length + " of " + count(top.groups) +
			" with the most bytes" : "All " + count(top.groups)) + "; what was lost is in no row",
		["Name", num("Bytes"), num("Share"), "", num("Requests"), num("per second"), num("p50"), num("p99"), num("Most")],
		top.rows.map((r) => [{node: (several_hosts && r.host ? r.host + ": " : "") + r.name, class: "name"},
			num(bytes(r.bytes_done)), num(percent(r.bytes_done, top.bytes_done)), bar(r), num(count(r.requests)),
			num(r.iops === null ? "\u2013" : r.iops.toFixed(1)), num(duration(r.latency_ns && r.latency_ns.p50)),
			num(duration(r.latency_ns && r.latency_ns.p99)), num(duration(r.latency_ns && r.latency_ns.max))])) :
			el("p", null, "None."));
}

// ---- all of it

function set_theme(theme) {
	document.documentElement.dataset.theme = theme;
	theme_button.textContent = theme === "dark" ? "Light" : "Dark";
	theme_button.setAttribute("aria-label", "Switch to the " + (theme === "dark" ? "light" : "dark") + " theme");
	draw_all();
	way_redraws.forEach((draw) => draw());
}

figures();
scope();
const theme_button = toolbar();
const main = document.getElementById("pictures");

if (axis.n) {
	main.append(record_panel().root);
	if (doc.requests)
		main.append(heat_panel().root, throughput_panel().root, depth_panel().root, map_panel().root);
	if (packets)
		main.append(drops_panel().root);
}
if (doc.devices.length || !packets)
	main.append(requests_section(), ...pictures.top.map(top_section));
if (packets)
	main.append(...[drops_table(), ways_section()].filter(Boolean));
document.getElementById("foot").textContent = "Made by iotracectl report --html. This file is complete in itself and asks " +
	"no network for anything.";

const dark = matchMedia("(prefers-color-scheme: dark)");

dark.addEventListener("change", () => set_theme(dark.matches ? "dark" : "light"));
set_theme(dark.matches ? "dark" : "light");
let width = 0;

new ResizeObserver(() => {
	if (main.clientWidth !== width) {
		width = main.clientWidth;
		draw_all();
	}
}).observe(main);
