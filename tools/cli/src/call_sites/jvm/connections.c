/*
 * The program's connections to the gateway, by the descriptors of their sockets.
 *
 * A call begins with a write to a connection, and lasts until another line writes to the same one.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "agent.h"

enum {
	/* Sockets of higher numbers have no lines. */
	DESCRIPTORS_MAX = 1 << 20,
	/* What asks for encryption, in PostgreSQL: a message of 8 bytes with one of these codes. */
	ASKS_TLS = 80877103,
	ASKS_GSS = 80877104,
	/* Records of TLS: of its handshake, and encrypted ones. */
	TLS_CHANGE = 0x14,
	TLS_HANDSHAKE = 0x16,
	TLS_DATA = 0x17,
	/* Of encrypted writes, the first or the second is the startup packet, as TLS 1.2 and 1.3 have it. */
	STARTUP_WRITES_MAX = 2,
};

/*
 *   NONE --connect--> CONNECTED --startup packet--> GREETED --next write--> OPEN
 *
 * By the write that makes it OPEN, the startup packet (or MySQL's greeting) has been answered. So the gateway has taken the
 * connection between the connect and that write.
 */
struct connection {
	enum { NONE, CONNECTED, GREETED, OPEN } phase;
	int encrypted_writes;
	uint32_t number;
	/* When the connect began. */
	int64_t opened;
	/* Site of the connect, then of the call that lasts; -1 if there is none. */
	int32_t site;
	int64_t begun;
};

static unsigned gateway_port;
static struct connection *connections;
static size_t connections_length;
static uint32_t connection_count;

void set_gateway_port(unsigned port)
{
	gateway_port = port;
}

/* Whether a socket leads to the gateway. Of Unix sockets all may. */
static int is_gateway(int descriptor)
{
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
		struct sockaddr_un un;
	} peer = {.any = {.sa_family = AF_UNSPEC}};
	socklen_t length = sizeof peer;

	if (getpeername(descriptor, &peer.any, &length) != 0)
		return 0;
	switch (peer.any.sa_family) {
	case AF_INET:
		return ntohs(peer.v4.sin_port) == gateway_port;
	case AF_INET6:
		return ntohs(peer.v6.sin6_port) == gateway_port;
	default:
		return peer.any.sa_family == AF_UNIX;
	}
}

/* Tells of the call that lasts on a connection. */
static void end_call(struct connection *connection, int64_t ended)
{
	if (connection->phase == OPEN && connection->site >= 0)
		tell("call", connection->number, connection->begun, ended, connection->site);
	connection->site = -1;
}

/* The connection of a descriptor; null if memory is short. */
static struct connection *made_at(int descriptor)
{
	if ((size_t)descriptor >= connections_length) {
		size_t length = ((size_t)descriptor + 64) * 2;
		struct connection *grown = realloc(connections, length * sizeof *grown);

		if (!grown)
			return NULL;
		memset(grown + connections_length, 0, (length - connections_length) * sizeof *grown);
		connections = grown;
		connections_length = length;
	}
	return &connections[descriptor];
}

void connecting(environment java, int descriptor)
{
	int64_t begun = now();
	struct connection *connection;
	int32_t site;

	if (descriptor < 0 || descriptor >= DESCRIPTORS_MAX)
		return;
	site = site_here(java);
	lock();
	connection = made_at(descriptor);
	if (connection) {
		end_call(connection, begun);
		*connection = (struct connection){.phase = CONNECTED, .opened = begun, .site = site};
	}
	unlock();
}

static uint32_t number_at(const unsigned char *bytes)
{
	return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

/* What a write does to the phase of a connection that is not open yet. */
static void advance(struct connection *connection, const unsigned char *bytes, int64_t size)
{
	uint32_t code = size == LOOK_BYTES && number_at(bytes) == LOOK_BYTES ? number_at(bytes + 4) : 0;
	int is_record = size >= 3 && bytes[1] == 3 && bytes[2] <= 4;

	if (code == ASKS_TLS || code == ASKS_GSS)
		return;
	if (is_record && (bytes[0] == TLS_CHANGE || bytes[0] == TLS_HANDSHAKE))
		return;
	if (is_record && bytes[0] == TLS_DATA && connection->encrypted_writes < STARTUP_WRITES_MAX) {
		connection->encrypted_writes++;
		connection->phase = GREETED;
		return;
	}
	connection->phase = connection->phase == CONNECTED ? GREETED : OPEN;
}

/* The connection of a descriptor, if it is open with this write; null if not. The mutex is held. */
static struct connection *open_at(int descriptor, const unsigned char *bytes, int64_t size, int64_t begun)
{
	struct connection *connection;

	if (!teller_is_open() || (size_t)descriptor >= connections_length)
		return NULL;
	connection = &connections[descriptor];
	if (connection->phase == NONE)
		return NULL;
	/* The number may be another socket's by now, or a file's. */
	if (!is_gateway(descriptor)) {
		end_call(connection, begun);
		connection->phase = NONE;
		return NULL;
	}
	if (connection->phase != OPEN) {
		advance(connection, bytes, size);
		if (connection->phase != OPEN)
			return NULL;
		connection->number = connection_count++;
		tell("open", connection->number, connection->opened, begun, connection->site);
		connection->site = -1;
	}
	return connection;
}

void writing(environment java, int descriptor, const unsigned char *bytes, int64_t size)
{
	int64_t begun = now();
	struct connection *connection;
	int32_t site;

	if (descriptor < 0 || size <= 0)
		return;
	lock();
	connection = open_at(descriptor, bytes, size, begun);
	unlock();
	if (!connection)
		return;
	site = site_here(java);
	lock();
	connection = &connections[descriptor]; /* the table may have grown */
	if (connection->phase == OPEN && connection->site != site) {
		end_call(connection, begun);
		connection->begun = begun;
		connection->site = site;
	}
	unlock();
}

void end_calls(void)
{
	int64_t ended = now();

	lock();
	for (size_t descriptor = 0; descriptor < connections_length; descriptor++)
		end_call(&connections[descriptor], ended);
	send_waiting();
	unlock();
}
