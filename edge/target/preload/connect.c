/*
 * `run --redirect` where seccomp cannot be used: a `connect` in front of the C library's, loaded by LD_PRELOAD.
 *
 * ONETRIP_LEAD is "TCP UNIX PLACE PLACE ...": where the gateway listens, as address:port and as path, and the places
 * that lead to it, each an address:port or a path. Addresses of IPv6 stand in brackets. The library needs nothing but
 * what every C library has under the same name, so that it loads into programs of any; the call itself is the kernel's.
 * Once the gateway's path is gone, so is the gateway: what outlives it connects where it says.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	struct sockaddr_un un;
};

/* Reads the word at `text` as an address; its length goes to `length`, which is 0 if it is none. */
static const char *read_place(const char *text, union address *place, socklen_t *length)
{
	char word[sizeof place->un.sun_path + 64];
	size_t size = strcspn(text, " ");
	const char *rest = text + size + (text[size] == ' ');
	char *colon;

	*length = 0;
	if (size == 0 || size >= sizeof word)
		return rest;
	memcpy(word, text, size);
	word[size] = 0;
	memset(place, 0, sizeof *place);
	if (word[0] == '/') {
		if (size >= sizeof place->un.sun_path)
			return rest;
		place->un.sun_family = AF_UNIX;
		memcpy(place->un.sun_path, word, size);
		*length = sizeof place->un;
		return rest;
	}
	colon = strrchr(word, ':');
	if (!colon)
		return rest;
	*colon = 0;
	if (word[0] == '[') {
		word[strlen(word) - 1] = 0;
		place->v6.sin6_family = AF_INET6;
		place->v6.sin6_port = htons((unsigned short)atoi(colon + 1));
		if (inet_pton(AF_INET6, word + 1, &place->v6.sin6_addr) == 1)
			*length = sizeof place->v6;
	} else {
		place->v4.sin_family = AF_INET;
		place->v4.sin_port = htons((unsigned short)atoi(colon + 1));
		if (inet_pton(AF_INET, word, &place->v4.sin_addr) == 1)
			*length = sizeof place->v4;
	}
	return rest;
}

/* The address with one of IPv4 that is written as IPv6 made plain; 0 if it is of no kind that is led anywhere. */
static int plain(const struct sockaddr *from, socklen_t length, union address *to)
{
	static const unsigned char mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

	memset(to, 0, sizeof *to);
	if (!from || length < sizeof from->sa_family || length > sizeof *to)
		return 0;
	memcpy(to, from, length);
	if (to->any.sa_family == AF_INET6 && memcmp(&to->v6.sin6_addr, mapped, sizeof mapped) == 0) {
		struct sockaddr_in v4;

		memset(&v4, 0, sizeof v4);
		v4.sin_family = AF_INET;
		v4.sin_port = to->v6.sin6_port;
		memcpy(&v4.sin_addr, (const char *)&to->v6.sin6_addr + sizeof mapped, sizeof v4.sin_addr);
		memset(to, 0, sizeof *to);
		to->v4 = v4;
	}
	return to->any.sa_family == AF_INET || to->any.sa_family == AF_INET6 || to->any.sa_family == AF_UNIX;
}

static int is_same(const union address *one, const union address *other)
{
	if (one->any.sa_family != other->any.sa_family)
		return 0;
	if (one->any.sa_family == AF_INET)
		return one->v4.sin_port == other->v4.sin_port &&
		       one->v4.sin_addr.s_addr == other->v4.sin_addr.s_addr;
	if (one->any.sa_family == AF_INET6)
		return one->v6.sin6_port == other->v6.sin6_port &&
		       memcmp(&one->v6.sin6_addr, &other->v6.sin6_addr, sizeof one->v6.sin6_addr) == 0;
	return strncmp(one->un.sun_path, other->un.sun_path, sizeof one->un.sun_path) == 0;
}

/* The gateway's address for a socket of this family, from those of IPv4 or a path. */
static socklen_t fit(union address *gateway, int family, int fd)
{
	if (gateway->any.sa_family == AF_INET && family == AF_INET6) {
		struct in_addr v4 = gateway->v4.sin_addr;
		in_port_t port = gateway->v4.sin_port;
		int no = 0;

		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
		memset(gateway, 0, sizeof *gateway);
		gateway->v6.sin6_family = AF_INET6;
		gateway->v6.sin6_port = port;
		memset((char *)&gateway->v6.sin6_addr + 10, 0xff, 2);
		memcpy((char *)&gateway->v6.sin6_addr + 12, &v4, sizeof v4);
		return sizeof gateway->v6;
	}
	if (gateway->any.sa_family != family)
		return 0;
	return family == AF_INET ? sizeof gateway->v4 : family == AF_INET6 ? sizeof gateway->v6 : sizeof gateway->un;
}

__attribute__((visibility("default"))) int connect(int fd, const struct sockaddr *to, socklen_t length)
{
	const char *text = getenv("ONETRIP_LEAD");
	union address wanted, tcp, path, place;
	socklen_t size, known;
	int type = 0;
	socklen_t type_size = sizeof type;

	if (text && plain(to, length, &wanted) && getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_size) == 0 &&
	    type == SOCK_STREAM) {
		text = read_place(text, &tcp, &known);
		text = read_place(text, &path, &known);
		while (*text) {
			text = read_place(text, &place, &known);
			if (!known || !is_same(&wanted, &place))
				continue;
			if (access(path.un.sun_path, F_OK) != 0)
				break;
			place = wanted.any.sa_family == AF_UNIX ? path : tcp;
			size = fit(&place, to->sa_family, fd);
			if (size)
				return (int)syscall(SYS_connect, fd, &place, size);
		}
	}
	return (int)syscall(SYS_connect, fd, to, length);
}
