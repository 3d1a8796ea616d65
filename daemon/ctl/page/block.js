// SPDX-License-Identifier: BSD-2-Clause
// Requests over time: latency, throughput, how many there were at once, addresses.
"use strict";

const colour_key = (k) => key(css(k.color), k.name);

// Kinds that occur anywhere: others have neither a key nor a switch.
function present(member) {
	return KINDS.filter((k) => pictures.devices.some((d) => d[member] && d[member][k.key]));
}

const shown_kinds = (member) => present(member).filter((k) => !state.hidden.has(k.key));

// ---- latency

// Rows are quarters of powers of two.
const heat_from = (row) => row < 4 ? 0 : Math.pow(2, row >> 2) * (1 + (row & 3) / 4);
const heat_row = (ns) => 4 * Math.log2(Math.max(1, ns));

// [row][n] of what is shown, a map a column.
function heat_columns() {
	const columns = Array.from({length: axis.n}, () => new Map());

	for (const d of chosen())
		for (const k of shown_kinds("latency"))
			if (d.latency[k.key])
				parsed(d.latency[k.key]).forEach((cells, c) => {
					for (const [row, n] of cells)
						columns[c].set(row, (columns[c].get(row) || 0) + n);
				});
	return columns;
}

// The row that the share of all lies in.
function heat_percentile(cells, share) {
	const rows = [...cells].sort((a, b) => a[0] - b[0]);
	const rank = Math.ceil(share * rows.reduce((n, r) => n + r[1], 0));
	let seen = 0;

	for (const [row, n] of rows) {
		seen += n;
		if (seen >= rank)
			return row;
	}
	return -1;
}

const heat_range = (row) => duration(heat_from(row)) + " to " + duration(heat_from(row + 1));

function heat_panel() {
	let columns = [], low = 0, high = 0, max = 0;
	const collect = () => {
		columns = heat_columns();
		low = Infinity;
		high = max = 0;
		for (const cells of columns)
			for (const [row, n] of cells) {
				low = Math.min(low, row);
				high = Math.max(high, row);
				max = Math.max(max, n);
			}
		if (max === 0)
			low = 40;
		// At least three powers of ten: what hardly varies shall not look as if it did.
		while (high - low < 40)
			if (low > 0 && (high + low) % 2)
				low--;
			else
				high++;
		low = Math.floor(low / 4) * 4;
	};
	const row_height = () => Math.max(2, Math.min(6, Math.floor(260 / (high - low + 1))));
	const row_y = (p, row) => p.height - 8 - (row - low + 1) * row_height();

	return new Panel({
		title: "Latency in the device",
		note: "From the last issue to the completion. Each cell counts the requests of that time and latency; " +
			"the lines are the median and the 99th percentile.",
		height() {
			collect();
			return (high - low + 1) * row_height() + 14;
		},
		legend: () => max ? [el("span", null, "1", el("i", {class: "ramp"}), count(max) + " requests"),
			el("span", null, "\u2500 p50"), el("span", null, "\u2504 p99")] : [],
		label() {
			const all = new Map();

			for (const cells of columns)
				for (const [row, n] of cells)
					all.set(row, (all.get(row) || 0) + n);
			return all.size ? "Half of the requests took no more than " +
				duration(heat_from(heat_percentile(all, 0.5) + 1)) + ", 99 of 100 no more than " +
				duration(heat_from(heat_percentile(all, 0.99) + 1)) + "." : "No requests.";
		},
		draw(ctx, p) {
			const color = ramp();

			for (let ns = 1; heat_row(ns) <= high + 1; ns *= 10) {
				const y = row_y(p, heat_row(ns)) + row_height();

				if (heat_row(ns) < low)
					continue;
				grid_line(ctx, p, y);
				left_text(ctx, p, y, duration(ns));
			}
			columns.forEach((cells, c) => {
				const [x, w] = p.cell(c);

				for (const [row, n] of cells) {
					ctx.fillStyle = color(strength(n, max));
					ctx.fillRect(x, row_y(p, row), w, row_height());
				}
			});
			this.line(ctx, p, 0.99, [3, 3]);
			this.line(ctx, p, 0.5, []);
			strip(ctx, p, "block");
		},
		line(ctx, p, share, dash) {
			for (const [color, width] of [["--panel", 3], ["--ink", 1.2]]) {
				ctx.strokeStyle = css(color);
				ctx.lineWidth = width;
				ctx.setLineDash(width > 2 ? [] : dash);
				ctx.globalAlpha = width > 2 ? 0.55 : 0.9;
				ctx.beginPath();
				let on = false;
				columns.forEach((cells, c) => {
					const row = cells.size ? heat_percentile(cells, share) : -1;

					if (row >= 0) {
						const y = row_y(p, row) + row_height() / 2;

						if (on)
							ctx.lineTo(p.x(c), y);
						else
							ctx.moveTo(p.x(c), y);
						ctx.lineTo(p.x(c + 1), y);
					}
					on = row >= 0;
				});
				ctx.stroke();
			}
			ctx.setLineDash([]);
			ctx.lineWidth = 1;
			ctx.globalAlpha = 1;
		},
		rows: () => high + 1,
		row_at: (y, p) => low + Math.floor((p.height - 8 - y) / row_height()),
		read(c, row) {
			const cells = columns[c], n = [...cells.values()].reduce((a, b) => a + b, 0);

			if (!n)
				return ["no requests" + state_note("block", c)];
			return [plural(n, "request") + " \u00b7 median " + heat_range(heat_percentile(cells, 0.5)) +
				" \u00b7 p99 " + heat_range(heat_percentile(cells, 0.99)) +
				(cells.has(row) ? " \u00b7 here " + heat_range(row) + ": " + count(cells.get(row)) : "") +
				state_note("block", c)];
		},
		table: () => table("Latency in the device over time, bounds of the step that it lies in",
			["From", num("Requests"), num("Median"), num("p99"), num("Most")],
			columns.map((cells, c) => [c, cells]).filter(([, cells]) => cells.size).map(([c, cells]) => [
				column_text(c), num(count([...cells.values()].reduce((a, b) => a + b, 0))),
				num(heat_range(heat_percentile(cells, 0.5))), num(heat_range(heat_percentile(cells, 0.99))),
				num(heat_range(Math.max(...cells.keys())))])),
	});
}

// ---- rows of devices, each with its own scale

function rows_panel(what) {
	const GAP = 14, ROW = pictures.devices.length <= 3 ? 110 : 78;
	const row_y = (i) => i * (ROW + GAP) + 8;

	return new Panel({
		...what,
		height: () => chosen().length * (ROW + GAP) + 6,
		rows: () => chosen().length,
		downwards: true,
		row_at: (y) => Math.min(chosen().length - 1, Math.max(0, Math.floor(y / (ROW + GAP)))),
		read: (c, row) => {
			const d = chosen()[Math.min(row, chosen().length - 1)];

			return [device_name(d) + ": " + what.value(d, c) + state_note("block", c)];
		},
		draw(ctx, p) {
			chosen().forEach((d, i) => {
				const y = row_y(i);

				what.row(ctx, p, d, y, ROW);
				left_text(ctx, p, y + ROW / 2, device_name(d), "--ink");
			});
			strip(ctx, p, "block");
		},
	});
}

const UP = ["read", "swap_in"], DOWN = ["write", "swap_out"];

function throughput_panel() {
	const of = (d, keys, c) => keys.reduce((n, k) =>
		n + (!state.hidden.has(k) && d.bytes[k] ? d.bytes[k][c] : 0), 0);
	const per_second = (n) => n / (axis.step / 1e9);
	const most = (d, keys) => {
		let max = 0;

		for (let c = 0; c < axis.n; c++)
			max = Math.max(max, of(d, keys, c));
		return max;
	};

	return rows_panel({
		title: "Throughput by device",
		note: "Data read (upwards) and written (downwards), swap apart; bytes that were done, in the column of " +
			"their completion. Each device and direction has its own scale: the rate at the left.",
		legend: () => shown_kinds("bytes").filter((k) => [...UP, ...DOWN].includes(k.key)).map(colour_key),
		label: () => chosen().map((d) => device_name(d) + ": read " +
			bytes(UP.reduce((n, k) => n + sum(d.bytes[k]), 0)) + ", written " +
			bytes(DOWN.reduce((n, k) => n + sum(d.bytes[k]), 0))).join(". ") + ".",
		row(ctx, p, d, y, height) {
			const up = most(d, UP), down = most(d, DOWN);
			const zero = y + (up && down ? height / 2 : up ? height : 0);

			grid_line(ctx, p, zero);
			for (let c = 0; c < axis.n; c++) {
				const [x, w] = p.cell(c);

				for (const [keys, sign, max] of [[UP, -1, up], [DOWN, 1, down]]) {
					const room = sign < 0 ? zero - y : y + height - zero;
					let at = 0;

					for (const k of KINDS.filter((kind) => keys.includes(kind.key) && !state.hidden.has(kind.key))) {
						const n = d.bytes[k.key] ? d.bytes[k.key][c] : 0, h = room * n / max;

						if (!n)
							continue;
						ctx.fillStyle = css(k.color);
						ctx.fillRect(x, sign < 0 ? zero - at - h : zero + at, w, Math.max(h, 0.5));
						at += h;
					}
				}
			}
			if (up)
				left_text(ctx, p, y + 4, rate(per_second(up)), "--faint");
			if (down)
				left_text(ctx, p, y + height - 4, rate(per_second(down)), "--faint");
		},
		value: (d, c) => KINDS.filter((k) => [...UP, ...DOWN].includes(k.key) && d.bytes[k.key] && d.bytes[k.key][c])
			.map((k) => k.name.toLowerCase() + " " + rate(per_second(d.bytes[k.key][c]))).join(", ") || "no data",
		table: () => table("Bytes over time", ["Device", "From", ...["Read", "Swap-in", "Written", "Swap-out", "Lost requests"]
			.map(num)], chosen().flatMap((d) => Array.from({length: axis.n}, (_, c) => c)
			.filter((c) => of(d, [...UP, ...DOWN], c) || (d.lost && d.lost[c])).map((c) => [device_name(d), column_text(c),
				...["read", "swap_in", "write", "swap_out"].map((k) => num(count(d.bytes[k] ? d.bytes[k][c] : 0))),
				num(count(d.lost ? d.lost[c] : 0))]))),
	});
}

function depth_panel() {
	const depth = (ns) => ns / axis.step, text = (v) => v === 0 ? "0" : v < 0.01 ? "< 0.01" : v.toFixed(v < 10 ? 2 : 1);

	return rows_panel({
		title: "Requests at once",
		note: "How many requests were in the device, and above them in the queue, on average over each column: " +
			"the queue size of iostat. Each device has its own scale.",
		legend: () => [key(css("--device"), "In the device"), key(css("--queue"), "In the queue")],
		label: () => chosen().map((d) => device_name(d) + ": at most " + text(depth(d.device_ns.reduce((m, v, c) =>
			Math.max(m, v + d.queue_ns[c]), 0))) + " in a column").join(". ") + ".",
		row(ctx, p, d, y, height) {
			const max = d.device_ns.reduce((m, v, c) => Math.max(m, v + d.queue_ns[c]), 0) || 1;

			grid_line(ctx, p, y + height);
			for (let c = 0; c < axis.n; c++) {
				const [x, w] = p.cell(c), device = height * d.device_ns[c] / max, queue = height * d.queue_ns[c] / max;

				ctx.fillStyle = css("--device");
				ctx.fillRect(x, y + height - device, w, device);
				ctx.fillStyle = css("--queue");
				ctx.fillRect(x, y + height - device - queue, w, queue);
			}
			left_text(ctx, p, y + 4, text(depth(max)), "--faint");
			left_text(ctx, p, y + height - 4, "0", "--faint");
		},
		value: (d, c) => text(depth(d.device_ns[c])) + " in the device, " + text(depth(d.queue_ns[c])) + " in the queue",
		table: () => table("Requests at once, on average", ["Device", "From", num("In the device"), num("In the queue")],
			chosen().flatMap((d) => Array.from({length: axis.n}, (_, c) => c).filter((c) => d.device_ns[c] || d.queue_ns[c])
				.map((c) => [device_name(d), column_text(c), num(text(depth(d.device_ns[c]))),
					num(text(depth(d.queue_ns[c])))]))),
	});
}

// ---- addresses

function map_panel() {
	const ROWS = 2, GAP = 22;
	const device = () => pictures.devices[state.device >= 0 ? state.device : pictures.devices.findIndex((d) => d.map)];
	const map = () => device() && device().map;
	const parts = () => {
		const kinds = map() ? KINDS.filter((k) => map().cells[k.key]) : [];

		return [kinds.filter((k) => !k.swap), kinds.filter((k) => k.swap)].filter((l) => l.length);
	};
	// [column][row] -> {n, by kind}; of the rows only those in use.
	let cells = [], max = 1, low = 0, high = 1;
	const collect = () => {
		cells = parts().map((kinds) => {
			const columns = Array.from({length: axis.n}, () => new Map());

			for (const k of kinds.filter((kind) => !state.hidden.has(kind.key)))
				parsed(map().cells[k.key]).forEach((list, c) => {
					for (const [row, n] of list) {
						if (!columns[c].has(row))
							columns[c].set(row, []);
						columns[c].get(row).push([k, n]);
					}
				});
			return columns;
		});
		const rows = map() ? Object.values(map().cells).flatMap((t) => parsed(t).flatMap((list) => list.map((x) => x[0]))) : [];

		low = rows.reduce((a, b) => Math.min(a, b), Infinity);
		high = rows.reduce((a, b) => Math.max(a, b), 0);
		max = cells.flatMap((columns) => columns.flatMap((m) => [...m.values()].map((l) =>
			l.reduce((n, x) => n + x[1], 0)))).reduce((a, b) => Math.max(a, b), 1);
	};
	const part_height = () => (high - low + 1) * ROWS + 8;
	const row_y = (part, row) => part * (part_height() + GAP) + GAP + (high - row) * ROWS;
	const address = (row) => (map().first_sector + row * map().row_sectors) * 512;
	const at = (row) => bytes(address(row)) + " to " + bytes(address(row + 1));

	return new Panel({
		title: "Where on the device",
		note: "Requests by the address at which they begin; what is darker had more of them. Swap has a map of its own.",
		height() {
			collect();
			return map() ? parts().length * (part_height() + GAP) + 6 : 40;
		},
		legend: () => parts().flat().filter((k) => !state.hidden.has(k.key)).map(colour_key),
		label: () => map() ? device_name(device()) + ", addresses from " + bytes(address(low)) + " to " +
			bytes(address(high + 1)) + "." : "No map of this device.",
		draw(ctx, p) {
			if (!map()) {
				ctx.textAlign = "left";
				ctx.fillStyle = css("--soft");
				ctx.fillText(device() ? "Addresses are kept of the " + pictures.devices.filter((d) => d.map).length +
					" devices with the most bytes." : "No requests.", p.x0 + 8, 20);
				return;
			}
			parts().forEach((kinds, part) => {
				ctx.textAlign = "left";
				ctx.fillStyle = css("--soft");
				ctx.fillText(device_name(device()) + (kinds[0].swap ? ", swap" : parts().length > 1 ? ", without swap" : ""),
					p.x0 + 2, part * (part_height() + GAP) + 10);
				const step = nice((high - low + 1) * map().row_sectors * 512, 4, 1024);

				for (let a = Math.ceil(address(low) / step) * step; a <= address(high + 1); a += step) {
					const y = row_y(part, (a - address(0)) / 512 / map().row_sectors) + ROWS;

					grid_line(ctx, p, y);
					left_text(ctx, p, y, bytes(a));
				}
				cells[part].forEach((column, c) => {
					const [x, w] = p.cell(c);

					for (const [row, list] of column) {
						const n = list.reduce((a, b) => a + b[1], 0);

						ctx.fillStyle = css(list.reduce((a, b) => b[1] > a[1] ? b : a)[0].color);
						ctx.globalAlpha = 0.4 + 0.6 * strength(n, max);
						ctx.fillRect(x, row_y(part, row), w, ROWS);
					}
				});
				ctx.globalAlpha = 1;
			});
			strip(ctx, p, "block");
		},
		rows: () => high + 1,
		row_at: (y) => high - Math.floor((y - GAP) % (part_height() + GAP) / ROWS),
		read(c, row) {
			const all = cells.flatMap((columns) => [...columns[c].values()].flat());
			const here = cells.flatMap((columns) => columns[c].get(row) || []);

			return [all.length ? plural(all.reduce((n, x) => n + x[1], 0), "request") : "no requests",
				map() && row >= low && row <= high ? " \u00b7 at " + at(row) + ": " +
					(here.map(([k, n]) => count(n) + " " + k.name.toLowerCase()).join(", ") || "none") : "",
				state_note("block", c)];
		},
		table: () => table("Requests by address", ["Address", ...parts().flat().map((k) => num(k.name))],
			map() ? Array.from({length: high - low + 1}, (_, i) => low + i).map((row) => [at(row),
				...parts().flat().map((k) => num(count(sum(parsed(map().cells[k.key]).map((list) =>
					(list.find((x) => x[0] === row) || [0, 0])[1])))))]) : []),
	});
}
