/*
 * What the files of the agent know of each other.
 *
 * One mutex guards all that the agent knows. It is never held while Java runs: a function that may call Java lets go of it.
 */
#ifndef AGENT_H
#define AGENT_H

#include <stddef.h>
#include <stdint.h>

#include "java.h"

enum {
	/* Longest line that is told, in bytes: the gateway reads no longer one. */
	LINE_BYTES_MAX = 4096,
	/* Bytes of a write that are looked at. */
	LOOK_BYTES = 8,
};

/* --- agent.c: the agent's life --- */

void lock(void);
void unlock(void);

/* --- teller.c: the channel to the gateway. All but the first two: the mutex is held --- */

/* Nanoseconds of CLOCK_MONOTONIC. */
int64_t now(void);
/* Connects to the socket at `path`; false if nobody listens. */
int open_teller(const char *path);
int teller_is_open(void);
/* Tells one line, which ends by a line feed. */
void say(const char *line, size_t length);
/* Tells of a connection or a call ("open", "call"); a site below 0 is none. */
void tell(const char *kind, uint32_t connection, int64_t begun, int64_t ended, int32_t site);
/* Sends what waits. */
void send_waiting(void);

/* --- methods.c: whose a method is --- */

enum origin { NEVER, INSTALLED, OWN };

struct method {
	method_id id;
	enum origin origin;
	/* "src/main/java/shop/Views.java" and "Views.orders"; kept for good, and null for a method that is never named. */
	char *file, *name;
	int32_t line_count;
	struct line_entry *lines;
};

/* The first place of the class path, if it is a jar or a war, is the program's. The mutex is held. */
void set_class_path(const char *path);
/* The mutex is held; it is let go of if Java has to be asked. */
struct method method_of(environment java, method_id id);
/* The line of a place in a method's code; 0 if it has none. */
int32_t line_at(const struct method *method, int64_t place);

/* A value mixed into a hash. */
uint64_t mixed(uint64_t hash, uint64_t value);

/* --- sites.c: the program's frames on a thread's stack --- */

/* The number of this thread's site; -1 if it has none. The mutex is not held. */
int32_t site_here(environment java);

/* --- connections.c: which sockets lead to the gateway, and which call lasts on them. The mutex is not held --- */

void set_gateway_port(unsigned port);
/* The program is about to connect a socket. */
void connecting(environment java, int descriptor);
/* The program is about to write `size` bytes. `bytes` are the first ones: LOOK_BYTES, or all if they are fewer. */
void writing(environment java, int descriptor, const unsigned char *bytes, int64_t size);
/* Tells of the calls that last. */
void end_calls(void);

/* --- natives.c: the native methods by which Java connects sockets and writes to them --- */

/* The function to be called instead of a native method's; null if that is none of ours. The mutex is held. */
void *instead_of(const char *class, const char *name, const char *signature, void *address);

#endif
