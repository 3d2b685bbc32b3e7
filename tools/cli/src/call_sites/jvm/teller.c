/*
 * The channel to the gateway: a Unix socket, and what waits to be told.
 *
 * What is told is gathered, so that a statement costs no system call of its own. If nobody takes it, telling ends for good.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "agent.h"

enum {
	/* What waits goes out after so many bytes, or so long after the last time. */
	WAITING_MAX = 16 * 1024,
	QUIET_NS = 50 * 1000 * 1000,
	/* A socket that takes nothing for so long is given up. */
	PATIENCE_SECONDS = 1,
};

static int teller = -1;
static char waiting[WAITING_MAX + LINE_BYTES_MAX];
static size_t waiting_bytes;
static int64_t told_at;

int64_t now(void)
{
	struct timespec at = {0};

	clock_gettime(CLOCK_MONOTONIC, &at);
	return (int64_t)at.tv_sec * 1000000000 + at.tv_nsec;
}

int open_teller(const char *path)
{
	struct sockaddr_un place = {.sun_family = AF_UNIX};
	struct timeval patience = {.tv_sec = PATIENCE_SECONDS};
	int descriptor;

	if (!path || strlen(path) >= sizeof place.sun_path)
		return 0;
	strcpy(place.sun_path, path);
	descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (descriptor < 0)
		return 0;
	if (setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) != 0 ||
	    connect(descriptor, (struct sockaddr *)&place, sizeof place) != 0) {
		close(descriptor);
		return 0;
	}
	teller = descriptor;
	return 1;
}

int teller_is_open(void)
{
	return teller >= 0;
}

void send_waiting(void)
{
	size_t sent = 0;

	while (teller >= 0 && sent < waiting_bytes) {
		ssize_t size = send(teller, waiting + sent, waiting_bytes - sent, MSG_NOSIGNAL);

		if (size > 0) {
			sent += (size_t)size;
		} else if (size == 0 || errno != EINTR) {
			close(teller);
			teller = -1;
		}
	}
	waiting_bytes = 0;
}

void say(const char *line, size_t length)
{
	if (teller < 0 || length > LINE_BYTES_MAX)
		return;
	/* Fewer than WAITING_MAX bytes wait: else they would have been sent. */
	memcpy(waiting + waiting_bytes, line, length);
	waiting_bytes += length;
	if (waiting_bytes >= WAITING_MAX)
		send_waiting();
}

void tell(const char *kind, uint32_t connection, int64_t begun, int64_t ended, int32_t site)
{
	char line[128], shown[16] = "-";
	int length;

	if (site >= 0)
		snprintf(shown, sizeof shown, "%d", (int)site);
	length = snprintf(line, sizeof line, "%s %u %lld %lld %s\n", kind, (unsigned)connection, (long long)begun,
			  (long long)ended, shown);
	if (length <= 0 || length >= (int)sizeof line)
		return;
	say(line, (size_t)length);
	if (ended - told_at > QUIET_NS) {
		told_at = ended;
		send_waiting();
	}
}
