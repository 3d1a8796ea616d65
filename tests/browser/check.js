// SPDX-License-Identifier: BSD-2-Clause
// Appended to a page by tests/browser/test-page.sh: uses it as a person would, by pointer and by keys, and writes what
// it found as test results into an element, which --dump-dom prints. Errors of the page are errors here.
"use strict";

(async () => {
	const results = [];
	const say = (name, good, why) => results.push(good ? "ok " + name : "not ok " + name + ": " + why);
	const equal = (name, want, got) => say(name, want === got, "expected '" + want + "', got '" + got + "'");
	// --dump-dom makes no frames.
	window.requestAnimationFrame = (f) => setTimeout(f, 0);
	window.cancelAnimationFrame = clearTimeout;
	const frames = () => new Promise((done) => setTimeout(done, 1));
	const root = document.documentElement;
	const BAD = /NaN|undefined|Infinity|\[object|null/;

	window.addEventListener("error", (e) => say("no error", false, e.message));
	window.addEventListener("unhandledrejection", (e) => say("no error", false, e.reason));

	async function run() {
		await frames();
		// The verdict is the document's.
		const record = doc.record;

		equal("verdict", record.being_recorded ? "open" : record.verdict, document.querySelector("#verdict strong").textContent);
		equal("reasons are there", record.reasons.length > 0, document.querySelectorAll("#reasons li").length > 0);
		equal("nothing was fetched", 0, performance.getEntriesByType("resource").length);
		equal("no element out of the trace", "0 0", document.images.length + " " + document.querySelectorAll("[onerror], [onload], b b").length);
		say("it fits the width", root.scrollWidth <= window.innerWidth, root.scrollWidth + " > " + window.innerWidth);

		const figures = document.getElementById("figures").textContent;

		if (doc.devices.length || !packets) {
			equal("figures: the width was asked for", new URL(location).searchParams.get("width"), String(window.innerWidth));
			say("figures: requests", figures.includes(count(doc.requests)), figures);
			say("figures: lost", figures.includes(count(doc.lost)), figures);
		}

		// For those who do not see it.
		equal("a language, one h1", "en 1", root.lang + " " + document.querySelectorAll("h1").length);
		for (const e of document.querySelectorAll("button, select"))
			say("a name: " + e.tagName, (e.textContent + (e.getAttribute("aria-label") || "")).trim() !== "", e.outerHTML);
		for (const e of document.querySelectorAll("select"))
			say("a label: select", e.closest("label") !== null, e.outerHTML);
		for (const theme of ["light", "dark"]) {
			set_theme(theme);
			await frames();
			for (const ink of ["--ink", "--soft", "--faint", "--good", "--warn", "--bad"])
				for (const ground of ["--panel", "--ground"])
					say(theme + ": " + ink + " on " + ground + " can be read", contrast(css(ink), css(ground)) >= 4.5,
						contrast(css(ink), css(ground)).toFixed(2) + " is less than 4.5");
		}

		for (const p of panels)
			await panel(p);
		await switches();
		for (const r of document.querySelectorAll("th"))
			if (!r.hasAttribute("scope"))
				say("heads say of what", false, r.outerHTML);
		for (const b of document.querySelectorAll(".ways button")) {
			b.click();
			equal("way: pressed", "true", b.getAttribute("aria-pressed"));
			const way = packets.ways[[...document.querySelectorAll(".ways button")].indexOf(b)];

			equal("way: all of its observations", way.hops.length,
				document.querySelectorAll(".way tbody tr:not(.missing)").length);
		}
		say("no number is broken", !BAD.test(document.body.innerText), (document.body.innerText.match(BAD) || {}).index + ": " +
			document.body.innerText.slice((document.body.innerText.match(BAD) || {index: 0}).index - 40).slice(0, 80));
	}

	function contrast(a, b) {
		const light = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16) / 255)
			.map((v) => v <= 0.03928 ? v / 12.92 : Math.pow((v + 0.055) / 1.055, 2.4))
			.reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
		const [x, y] = [light(a), light(b)];

		return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
	}

	// Colours that a picture is made of; one would be an empty canvas.
	function colors(canvas) {
		const copy = document.createElement("canvas"), ctx = copy.getContext("2d", {willReadFrequently: true});
		const seen = new Set();

		copy.width = canvas.width;
		copy.height = canvas.height;
		ctx.drawImage(canvas, 0, 0);
		const data = ctx.getImageData(0, 0, copy.width, copy.height).data;


		for (let i = 0; i < data.length; i += 4)
			seen.add(data[i] << 24 | data[i + 1] << 16 | data[i + 2] << 8 | data[i + 3]);
		return seen.size;
	}

	async function panel(p) {
		const name = p.what.title, key = async (k, shiftKey) => {
			p.canvas.dispatchEvent(new KeyboardEvent("keydown", {key: k, shiftKey, cancelable: true}));
			await frames();
		};

		equal(name + ": a picture with a name that keys reach", "img 0", p.canvas.getAttribute("role") + " " +
			p.canvas.getAttribute("tabindex"));
		say(name + ": says what it shows", (p.canvas.getAttribute("aria-label") || "").length > name.length + 40 &&
			!BAD.test(p.canvas.getAttribute("aria-label")), p.canvas.getAttribute("aria-label"));
		say(name + ": is drawn", colors(p.canvas) > 4, colors(p.canvas) + " colours");
		for (const [k, column] of [["Home", 0], ["ArrowRight", Math.min(1, axis.n - 1)], ["End", axis.n - 1],
			["ArrowLeft", Math.max(0, axis.n - 2)]]) {
			await key(k);
			equal(name + ": " + k, column, state.column);
			say(name + ": " + k + " is read out", p.output.textContent.startsWith(column_text(column)) &&
				p.output.textContent.length > column_text(column).length + 2 && !BAD.test(p.output.textContent),
			p.output.textContent);
		}
		for (let c = 0; c < axis.n; c++) {
			state.column = c;
			p.refresh();
			if (BAD.test(p.output.textContent))
				say(name + ": column " + c, false, p.output.textContent);
		}
		await key("ArrowUp");
		await key("ArrowDown");
		await key("Escape");
		equal(name + ": Escape", -1, state.column);
		const box = p.canvas.getBoundingClientRect();

		p.canvas.dispatchEvent(new PointerEvent("pointermove", {clientX: box.left + box.width * 0.6, clientY: box.top + 20}));
		await frames();
		say(name + ": the pointer is read out, everywhere", state.column > 0 &&
			panels.every((o) => o.output.textContent.startsWith(column_text(state.column))), p.output.textContent);
		p.canvas.dispatchEvent(new PointerEvent("pointerleave"));
		await frames();
		p.details.open = true;
		await new Promise((done) => setTimeout(done, 20));
		say(name + ": is there as a table", p.details.querySelectorAll("tbody tr").length > 0 || !doc.requests, "no rows");
	}

	// A column of a table, added up.
	function column_sum(p, title) {
		const t = p.details.querySelector("table");
		const at = [...t.querySelectorAll("thead th")].findIndex((th) => th.textContent === title);

		return [...t.querySelectorAll("tbody tr")].reduce((n, tr) => n + Number(tr.children[at].textContent.replace(/,/g, "")), 0);
	}

	async function switches() {
		const find = (title) => panels.find((p) => p.what.title === title);
		const bytes_of = (key) => pictures.devices.reduce((n, d) => n + sum(d.bytes[key]), 0);
		const throughput = find("Throughput by device"), heat = find("Latency in the device");

		if (!throughput)
			return;
		equal("table: read", bytes_of("read"), column_sum(throughput, "Read"));
		equal("table: read and swap-in are the report's", doc.read.bytes >= bytes_of("read") + bytes_of("swap_in"), true);
		equal("table: lost", doc.lost, column_sum(throughput, "Lost requests"));
		const all = column_sum(heat, "Requests");

		for (const b of document.querySelectorAll("#bar .kinds button")) {
			b.click();
			await frames();
			equal("switch: off", "false", b.getAttribute("aria-pressed"));
			say("switch: fewer in the table", column_sum(heat, "Requests") < all ||
				!sum(heat_columns().map((c) => c.size)), "still " + all);
			b.click();
			await frames();
		}
		equal("switch: all again", all, column_sum(heat, "Requests"));
		const select = document.querySelector("#bar select");

		for (let i = 0; select && i < pictures.devices.length; i++) {
			select.value = String(i);
			select.dispatchEvent(new Event("change"));
			await frames();
			equal("device " + i + ": its requests", Object.values(pictures.devices[i].latency).reduce((n, t) =>
				n + parsed(t).reduce((m, c) => m + c.reduce((k, x) => k + x[1], 0), 0), 0), column_sum(heat, "Requests"));
		}
		if (select) {
			select.value = "-1";
			select.dispatchEvent(new Event("change"));
		}
	}

	try {
		await run();
	} catch (e) {
		say("no error", false, e.stack);
	}
	document.body.append(el("pre", {id: "results"}, "\n" + results.join("\n") + "\n"));
})();
