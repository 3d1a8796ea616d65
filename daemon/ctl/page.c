// SPDX-License-Identifier: BSD-2-Clause
/*
 * page.c - one self-contained file: the page's own HTML, style and script (daemon/ctl/page/), the verdict as
 * text, so that it is there before and without any script, and the document that the script draws.
 *
 * What comes from a trace may hold anything. It is in two places: as text of the verdict, escaped here, and
 * in the document, which is JSON within a script element: there, every "<" is written as an escape of JSON, so
 * that nothing in it can end the element. The script puts it on the page as text only.
 */
#include "daemon/ctl/pictures.h"
#include "daemon/ctl/report-view.h"

/* The files as they are; the Makefile knows that this object depends on them. */
#define ASSET(name, file)                                                      \
	__asm__(".pushsection .rodata\n"                                       \
		".global page_" #name "_begin, page_" #name "_end\n"           \
		"page_" #name "_begin: .incbin \"daemon/ctl/page/" file "\"\n" \
		"page_" #name "_end: .byte 0\n"                                \
		".popsection\n");                                              \
	extern const char page_##name##_begin[], page_##name##_end[]

ASSET(html, "page.html");
ASSET(css, "page.css");
ASSET(base_js, "base.js");
ASSET(charts_js, "charts.js");
ASSET(block_js, "block.js");
ASSET(packets_js, "packets.js");
ASSET(main_js, "main.js");

static void put(struct ctl_out *out, const char *s)
{
	ctl_out_write(out, s, strlen(s));
}

static void put_escaped(struct ctl_out *out, const char *s)
{
	for (; *s; s++)
		switch (*s) {
		case '<':
			put(out, "&lt;");
			break;
		case '>':
			put(out, "&gt;");
			break;
		case '&':
			put(out, "&amp;");
			break;
		case '"':
			put(out, "&quot;");
			break;
		default:
			ctl_out_write(out, s, 1);
		}
}

/* A "<" is only ever inside of strings. */
static void put_document(struct ctl_out *out, const char *json)
{
	for (;;) {
		size_t n = strcspn(json, "<");

		ctl_out_write(out, json, n);
		if (!json[n])
			return;
		put(out, "\\u003c");
		json += n + 1;
	}
}

/* The word, the sentence and the reasons of `report`. */
static int put_verdict(const struct report_view *v, struct ctl_out *out)
{
	static const char *const looks[] = {
		[CTL_STYLE_GOOD] = "good", [CTL_STYLE_WARN] = "warn", [CTL_STYLE_BAD] = "bad"};
	_cleanup_free_ char *text = NULL;
	size_t size = 0;
	char *line, *rest;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return -ENOMEM;
	ctl_verdict_print(f, &v->verdict, v->n_segments, "", CTL_PRINT_PLAIN);
	if (fclose(f) != 0)
		return -ENOMEM;
	rest = text;
	line = strsep(&rest, "\n");
	put(out, "<p id=\"verdict\" class=\"");
	put(out, looks[ctl_verdict_style(v->verdict.code)]);
	put(out, "\"><strong>");
	ctl_out_write(out, line, strcspn(line, ":"));
	line += strcspn(line, ":");
	put(out, "</strong> <span>");
	put_escaped(out, *line ? line + 2 : line);
	put(out, "</span></p>\n");
	if (!rest || !*rest)
		return 0;
	put(out, "<ul id=\"reasons\">\n");
	while ((line = strsep(&rest, "\n"))) {
		line += strspn(line, " -");
		if (!*line)
			continue;
		put(out, "<li>");
		put_escaped(out, line);
		put(out, "</li>\n");
	}
	put(out, "</ul>\n");
	return 0;
}

static int put_part(const char *name, size_t len, const struct report_view *v, const char *document,
		    struct ctl_out *out)
{
	static const struct {
		const char *name;
		const char *begin, *end;
	} assets[] = {
		{"style", page_css_begin, page_css_end},
		{"script", page_base_js_begin, page_base_js_end},
		{"script", page_charts_js_begin, page_charts_js_end},
		{"script", page_block_js_begin, page_block_js_end},
		{"script", page_packets_js_begin, page_packets_js_end},
		{"script", page_main_js_begin, page_main_js_end},
	};
	bool known = false;

	if (len == 7 && memcmp(name, "verdict", len) == 0)
		return put_verdict(v, out);
	if (len == 8 && memcmp(name, "document", len) == 0) {
		put_document(out, document);
		return 0;
	}
	for (size_t i = 0; i < IOT_ARRAY_SIZE(assets); i++)
		if (strlen(assets[i].name) == len && memcmp(assets[i].name, name, len) == 0) {
			ctl_out_write(out, assets[i].begin,
				      (size_t)(assets[i].end - assets[i].begin));
			known = true;
		}
	return known ? 0 : -EINVAL;
}

int report_page_write(const struct report_view *v, const char *document, struct ctl_out *out)
{
	static const char open[] = "<!--@", close[] = "@-->";
	const char *at = page_html_begin;
	int r = 0;

	/* The first comment is the licence; the file ends in a 0 that was put behind it. */
	while (r == 0) {
		const char *mark = strstr(at, open), *end = mark ? strstr(mark, close) : NULL;

		if (!end) {
			put(out, at);
			break;
		}
		ctl_out_write(out, at, (size_t)(mark - at));
		mark += sizeof(open) - 1;
		r = put_part(mark, (size_t)(end - mark), v, document, out);
		at = end + sizeof(close) - 1;
	}
	return r;
}
