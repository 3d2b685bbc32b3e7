/*
 * Sites: the program's frames on the stack of a thread, and their numbers.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent.h"

enum {
	/* Frames of one site, and bytes of the text of one. */
	FRAMES_MAX = 5,
	FRAME_BYTES_MAX = 200,
	/* Frames that are looked at for one of the program's. */
	DEPTH_MAX = 200,
	/* Sites that are numbered: what comes later has no line. */
	SITES_MAX = 100 * 1000,
	PLACES_FIRST = 1024,
};

struct named_frame {
	struct method method;
	int32_t line;
};

/* A table of sites by their hash; 0 is a free place. */
struct site {
	uint64_t hash;
	int32_t number;
};

static struct site *sites;
static size_t sites_capacity, sites_count;

/* The length of the character at `text`, in UTF-8; 0 if it is none. Java writes rare characters in another way. */
static size_t character_length(const unsigned char *text, const unsigned char *end)
{
	size_t length = *text < 0x80 ? 1 : *text < 0xc2 ? 0 : *text < 0xe0 ? 2 : *text < 0xf0 ? 3 : *text < 0xf5 ? 4 : 0;

	if (length > (size_t)(end - text))
		return 0;
	for (size_t byte = 1; byte < length; byte++)
		if ((text[byte] & 0xc0) != 0x80)
			return 0;
	if ((text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xed && text[1] > 0x9f) ||
	    (text[0] == 0xf0 && text[1] < 0x90) || (text[0] == 0xf4 && text[1] > 0x8f))
		return 0;
	return length;
}

/* Writes a frame as JSON, at most twice FRAME_BYTES_MAX bytes and the quotes; returns where it ends. */
static char *quoted(char *to, const struct named_frame *frame)
{
	char text[1024];
	int length = snprintf(text, sizeof text, "%s:%d in %s", frame->method.file, (int)frame->line, frame->method.name);
	const unsigned char *from = (const unsigned char *)text, *end;

	if (length < 0)
		length = 0;
	if (length >= (int)sizeof text)
		length = sizeof text - 1;
	end = from + length;
	if (length > FRAME_BYTES_MAX)
		from = end - FRAME_BYTES_MAX;
	while (from < end && (*from & 0xc0) == 0x80)
		from++;
	*to++ = '"';
	while (from < end) {
		size_t size = character_length(from, end);

		if (size == 0 || *from < ' ') {
			*to++ = '?';
			from++;
			continue;
		}
		if (*from == '"' || *from == '\\')
			*to++ = '\\';
		memcpy(to, from, size);
		to += size;
		from += size;
	}
	*to++ = '"';
	return to;
}

static void say_site(int32_t number, const struct named_frame *frames, int count)
{
	char line[64 + FRAMES_MAX * (2 * FRAME_BYTES_MAX + 4)], *end = line;

	_Static_assert(sizeof line <= LINE_BYTES_MAX, "a site is one line");
	end += snprintf(line, 64, "site %d [", (int)number);
	for (int frame = 0; frame < count; frame++) {
		if (frame)
			*end++ = ',';
		end = quoted(end, &frames[frame]);
	}
	*end++ = ']';
	*end++ = '\n';
	say(line, (size_t)(end - line));
}

/* The place of a site in a table: its own, or a free one. */
static struct site *site_at(struct site *table, size_t capacity, uint64_t hash)
{
	size_t place = (size_t)(hash >> 32) & (capacity - 1);

	while (table[place].hash && table[place].hash != hash)
		place = (place + 1) & (capacity - 1);
	return &table[place];
}

/* Makes room for one more site; false if there is none. */
static int has_room(void)
{
	size_t capacity = sites_capacity ? 2 * sites_capacity : PLACES_FIRST;
	struct site *table;

	if (sites_count >= SITES_MAX)
		return 0;
	if (2 * (sites_count + 1) <= sites_capacity)
		return 1;
	table = calloc(capacity, sizeof *table);
	if (!table)
		return 0;
	for (size_t place = 0; place < sites_capacity; place++)
		if (sites[place].hash)
			*site_at(table, capacity, sites[place].hash) = sites[place];
	free(sites);
	sites = table;
	sites_capacity = capacity;
	return 1;
}

/* The number of a site, which is told if it is new. The mutex is held. */
static int32_t site_number(const struct named_frame *frames, int count)
{
	uint64_t hash = 1;
	struct site *site;

	for (int frame = 0; frame < count; frame++)
		hash = mixed(mixed(hash, (uint64_t)(uintptr_t)frames[frame].method.id), (uint64_t)frames[frame].line);
	hash |= 1; /* no free place */
	site = sites ? site_at(sites, sites_capacity, hash) : NULL;
	if (site && site->hash)
		return site->number;
	if (!has_room())
		return -1;
	site = site_at(sites, sites_capacity, hash);
	*site = (struct site){hash, (int32_t)sites_count++};
	say_site(site->number, frames, count);
	return site->number;
}

/* The program's own frames are named where there are any, else those of the libraries it uses. */
int32_t site_here(environment java)
{
	struct stack_frame frames[DEPTH_MAX];
	struct named_frame own[FRAMES_MAX], installed[FRAMES_MAX];
	int own_count = 0, installed_count = 0;
	int32_t count = 0, site = -1;

	if (GET_STACK(tools, NULL, 0, DEPTH_MAX, frames, &count) != 0)
		return -1;
	lock();
	for (int32_t frame = 0; frame < count && own_count < FRAMES_MAX; frame++) {
		struct named_frame here = {.method = method_of(java, frames[frame].method)};

		if (here.method.origin == NEVER)
			continue;
		here.line = line_at(&here.method, frames[frame].place);
		if (here.line <= 0)
			continue; /* made by the compiler */
		if (here.method.origin == OWN)
			own[own_count++] = here;
		else if (installed_count < FRAMES_MAX)
			installed[installed_count++] = here;
	}
	if (own_count)
		site = site_number(own, own_count);
	else if (installed_count)
		site = site_number(installed, installed_count);
	unlock();
	return site;
}
